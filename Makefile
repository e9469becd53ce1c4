# SPDX-License-Identifier: MIT
# gguf-utils: `make help` lists the targets. One flat file; everything built lies under build/.

# (a dot for the hash: make 4.3 leaves a backslash before one, of which gawk warns)
VERSION := $(shell awk '/^.define GGU_VERSION_(MAJOR|MINOR|PATCH)/ { v = v (v == "" ? "" : ".") $$3 } \
  END { print v }' libgguf/ggu.h)
# folders of an installation, by the names of GNU's conventions; those in capitals, which the environment may also set,
# are their defaults
PREFIX ?= /usr/local
prefix = $(PREFIX)
exec_prefix = $(prefix)
BINDIR ?= $(exec_prefix)/bin
LIBDIR ?= $(exec_prefix)/lib
INCLUDEDIR ?= $(prefix)/include
DATADIR ?= $(prefix)/share
MANDIR ?= $(datarootdir)/man
bindir = $(BINDIR)
libdir = $(LIBDIR)
includedir = $(INCLUDEDIR)
datarootdir = $(DATADIR)
datadir = $(datarootdir)
mandir = $(MANDIR)
DESTDIR ?=
CPPFLAGS ?=
CC ?= cc
AR ?= ar
# the compiler's own: that of this machine may not read the objects of another
OBJCOPY ?= $(or $(shell $(CC) -print-prog-name=objcopy 2>/dev/null),objcopy)
BUILD ?= build
ifneq ($(word 2,$(BUILD)),)
$(error BUILD=$(BUILD): make cannot build in a folder whose name has blanks)
endif
PKG_CONFIG ?= pkg-config
PKGS = jansson yaml-0.1 libxxhash zlib libpcre2-8 libutf8proc nettle
# Lines and functions (-g1) are 5 of a program's 10 MB. With -g, which describes each inlined kernel, it would be 33 MB.
CFLAGS ?= -O2 -g1
# -ffp-contract=off is part of the numeric contract (quant/quant.h), not a matter of taste.
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
  -Wno-missing-field-initializers
ALL_CFLAGS = -std=c11 -Wno-psabi -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -fvisibility=hidden $(WARN) $(CPPFLAGS) \
  $(CFLAGS) -ffp-contract=off -fno-math-errno -fPIC -pthread $(PKG_CFLAGS)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
# said here, as the compiler's messages would not lead to it
ifeq ($(PKG_LIBS),)
$(warning $(PKG_CONFIG) does not find all of $(PKGS): `sh scripts/deps` installs them on Debian)
endif
# LDLIBS is the user's, like CFLAGS, CPPFLAGS and LDFLAGS: what is built needs the others whatever these are
ALL_LDLIBS = $(LDLIBS) $(PKG_LIBS) -lm -pthread
ARCH := $(shell $(CC) -dumpmachine | sed 's/-.*//')

# the shared library: the version of its interface is the first number
ifneq ($(findstring darwin,$(shell $(CC) -dumpmachine)),)
SHLIB = $(BUILD)/libggu.dylib
SHLIB_FLAGS = -dynamiclib -install_name $(libdir)/libggu.dylib
SHLIB_LINKS =
else
SHLIB = $(BUILD)/libggu.so.$(VERSION)
SHLIB_FLAGS = -shared -Wl,-soname,libggu.so.0
SHLIB_LINKS = libggu.so.0 libggu.so
endif

# ---- sources: a new file in a folder needs no edit here ----
OBJ = $(BUILD)/obj
objs = $(patsubst %.c,$(OBJ)/%.o,$(wildcard $(1)/*.c))
PROGS = $(patsubst tools/%.c,$(BUILD)/bin/%,$(wildcard tools/gguf-*.c))
TOOL_OBJS = $(patsubst %.c,$(OBJ)/%.o,$(filter-out $(wildcard tools/gguf-*.c),$(wildcard tools/*.c)))
ARCHS = $(sort $(wildcard model/arch/*.yaml))
# link order: users before what they use
ARCHIVES = $(patsubst %,$(BUILD)/lib%.a,tools convert model imatrix quant ggu)

all: $(PROGS) $(SHLIB) ## build every program into build/bin, and the shared library

# A file that was deleted leaves nothing that is newer than what was made of it, so that a list of them stands in: it is
# written where it differs from the files that there are.
SOURCES = $(sort $(wildcard $(patsubst %,%/*.c,tools convert model/* imatrix quant libgguf)) $(ARCHS))
ifneq ($(SOURCES),$(shell cat $(BUILD)/sources 2>/dev/null))
$(BUILD)/sources: FORCE
endif
$(BUILD)/sources:
	@mkdir -p $(@D)
	@echo '$(SOURCES)' > $@
$(ARCHIVES) $(SHLIB) $(BUILD)/install/libggu.a $(BUILD)/gen/arch_data.c: $(BUILD)/sources

# an archive too: a program gets only what it uses
$(BUILD)/libtools.a: $(TOOL_OBJS)
$(BUILD)/libggu.a: $(call objs,libgguf)
# what is installed: the format, the numbers, importance matrices
LIBGGU_OBJS = $(call objs,libgguf) $(call objs,quant) $(call objs,imatrix)
$(SHLIB): $(LIBGGU_OBJS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $(SHLIB_FLAGS) -o $@ $(filter %.o,$^) $(LDLIBS) -lm -pthread
# as an archive: one object, so that names of ours which are not exported cannot meet a user's. Without groups, of which
# a linker keeps one in all objects: those of 32-bit x86 have hidden functions, which are local now.
# From -flto's objects GCC would make another such object, which no other compiler reads and objcopy leaves as it is.
NOT_LTO = $(if $(findstring -flto,$(CFLAGS)),$(shell $(CC) -flinker-output=nolto-rel -E -x c /dev/null \
  > /dev/null 2>&1 && echo -flinker-output=nolto-rel))
$(BUILD)/install/libggu.a: $(LIBGGU_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	$(CC) $(CFLAGS) $(NOT_LTO) -r -nostdlib -o $(@D)/libggu.o $(filter %.o,$^)
	-$(OBJCOPY) --remove-section=.group --localize-hidden $(@D)/libggu.o
	$(AR) rcs $@ $(@D)/libggu.o
$(BUILD)/libquant.a: $(call objs,quant)
$(BUILD)/libmodel.a: $(foreach r,util arch vocab eval,$(call objs,model/$(r))) $(OBJ)/model/arch_data.o
$(BUILD)/libimatrix.a: $(call objs,imatrix)
$(BUILD)/libconvert.a: $(call objs,convert)
$(BUILD)/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/bin/%: $(OBJ)/tools/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

# Files of an instruction set are called NAME_avx2.c and so on, and compiled with FLAGS_x86_avx2; no others have such
# flags. $(call sets,x86,DIR): objects in DIR.
sets = $(foreach v,$(filter FLAGS_$(1)_%,$(.VARIABLES)),$(eval $(2)/quant/%$(v:FLAGS_$(1)%=%).o: ISA = $$($(v))))
FLAGS_x86_avx2 = -mavx2 -mfma -mf16c
FLAGS_x86_avxvnni = -mavx2 -mfma -mf16c -mavxvnni
FLAGS_x86_avx512 = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
FLAGS_x86_avx512bw = $(FLAGS_x86_avx512)
FLAGS_x86_avx512vbmi = $(FLAGS_x86_avx512) -mavx512vnni -mavx512vbmi -mgfni
FLAGS_x86_zen4 = $(FLAGS_x86_avx512vbmi)
FLAGS_x86_amx = $(FLAGS_x86_avx512) -mavx512vnni -mamx-tile -mamx-int8
FLAGS_arm_dotprod = -march=armv8.2-a+dotprod
FLAGS_arm_i8mm = -march=armv8.2-a+dotprod+i8mm
ifneq ($(filter x86_64 i%86 amd64,$(ARCH)),)
$(call sets,x86,$(OBJ))
$(patsubst %,$(OBJ)/quant/%_avx512.o,panel row attn gram): ISA = $(FLAGS_x86_avx512) -mavx512vnni
endif
ifneq ($(filter aarch64 arm64,$(ARCH)),)
$(call sets,arm,$(OBJ))
endif

# The search's loops are short and many: -O3 in place of the default, -O2, makes the encoders a quarter faster.
$(OBJ)/quant/enc_%.o: OPT = $(if $(filter -O2,$(CFLAGS)),-O3)
# -O3 also helps the loops over columns that unpack, and those of rows and panels.
$(foreach k,codes row books panel fill,$(OBJ)/quant/$(k)_%.o): OPT = $(if $(filter -O2,$(CFLAGS)),-O3)
# It unpacks the codes of checkpoints and turns them at half the time.
$(OBJ)/convert/coded_read.o $(OBJ)/convert/view.o: OPT = $(if $(filter -O2,$(CFLAGS)),-O3)
# Row products fill AVX2's sixteen registers. GCC needs fewer if it orders instructions before it assigns registers.
SPARE = -fschedule-insns -fsched-pressure
$(OBJ)/quant/row_avx2.o: OPT = $(if $(filter -O2,$(CFLAGS)),-O3 $(shell $(CC) -Werror $(SPARE) -E -x c /dev/null \
  > /dev/null 2>&1 && echo $(SPARE)))

# The lists of what an object depends on name it by $(BUILD), so that they hold whether that is a relative path or not.
DEPS = -MMD -MP -MT '$$(BUILD)/$(@:$(BUILD)/%=%)'
$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(OPT) $(ISA) $(if $(ISA)$(filter quant/%_c.c,$<),$(KERNEL_CFLAGS)) $(DEPS) -c -o $@ $<

# architecture descriptions, as text, into the programs
$(BUILD)/gen/arch_data.c: $(ARCHS) $(BUILD)/host/embed
	@mkdir -p $(@D)
	$(BUILD)/host/embed arch_data $(ARCHS) > $@.tmp && mv $@.tmp $@
$(OBJ)/model/arch_data.o: $(BUILD)/gen/arch_data.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -I. $(DEPS) -c -o $@ $<
# runs while we build, so it is compiled for this machine, as CC's programs may not be
HOSTCC ?= $(or $(shell command -v cc 2>/dev/null),$(CC))
$(BUILD)/host/embed: model/arch/embed/embed.c
	@mkdir -p $(@D)
	$(HOSTCC) -O1 -o $@ $<

# ---- tests ----
UNIT = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c) $(wildcard tests/kernels/test_*.c))
TEST_HELPERS = $(patsubst tests/%.c,$(OBJ)/tests/%.o,$(wildcard tests/lib/*.c))
TEST_PROGS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/*/tool_*.c))
# fuzz targets without a fuzzer
TEST_PROGS += $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/tests/fuzz/replay_%,$(wildcard tests/fuzz/fuzz_*.c))
$(BUILD)/tests/fuzz/replay_%: $(OBJ)/tests/fuzz/fuzz_%.o $(patsubst %,$(OBJ)/tests/fuzz/%.o,fuzz msg replay) $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS)
$(BUILD)/tests/%: $(OBJ)/tests/%.o $(TEST_HELPERS) $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS) -lcmocka
.PRECIOUS: $(OBJ)/%.o
# faults are injected by preloading, which does not go together with sanitizers
ifneq ($(and $(findstring linux,$(shell $(CC) -dumpmachine)),$(if $(findstring -fsanitize,$(CFLAGS)),,yes)),)
TEST_PROGS += $(BUILD)/tests/fault.so
endif
$(BUILD)/tests/fault.so: tests/fault/fault.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O1 -fno-builtin -fPIC -shared -o $@ $< -ldl

PROVE ?= prove
# one job more than there are cores, because tests wait for the programs they start and for disks
CHECK_JOBS ?= $(shell expr $$(nproc) + 1)
# the longest tests first, so that no core is idle at the end
LONG = tests/fault/fault.t tests/reference/divergence.t tests/reference/determinism.t \
  $(filter $(BUILD)/tests/kernels/% %/test_progress,$(UNIT)) tests/reference/tokenizers.t \
  $(patsubst %,tests/cli/%.t,calibrate man plan)
CHECKS = $(LONG) $(filter-out $(LONG),$(sort $(wildcard tests/*/*.t)) $(UNIT))
check: all $(UNIT) $(TEST_PROGS) ## unit, kernel, command, malformed and reference tests
	BUILD="$(abspath $(BUILD))" CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -j$(CHECK_JOBS) --timer $(PROVE_FLAGS) $(CHECKS)

# sanitizers and a fuzzer need their own objects: the same rules under another $(BUILD)
SANITIZE = -fsanitize=address,undefined,float-cast-overflow \
  -fno-sanitize-recover=undefined,float-cast-overflow
# (SANITIZED: tests that evaluate much do less of the same)
ASAN = SANITIZED=1 ASAN_OPTIONS=allocator_may_return_null=1 $(MAKE) check \
  CFLAGS="-O1 -g1 -fno-omit-frame-pointer $(SANITIZE)"
check-asan: ## make check under AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan
	+$(ASAN) BUILD=$(BUILD)/asan
# the tests of what reads outside files and of what writes files
ASAN_QUICK = $(patsubst tests/%.c,$(BUILD)/asan-quick/tests/%,$(wildcard tests/unit/test_*.c)) tests/fuzz/replay.t \
  tests/malformed/malformed.t \
  $(patsubst %,tests/cli/%.t,cat check convert describe diff edit hash hub info names opt split torch)
# Kernels have no sanitizer here, or they would be two thirds of what there is to compile. Their own tests, with pages
# around buffers that may not be touched, are in check, and with both sanitizers in check-asan.
PLAIN_KERNELS = -fno-sanitize=all
check-asan-quick: ## the quicker half of check-asan, without kernels, encoders and whole models
	+$(ASAN) BUILD=$(BUILD)/asan-quick KERNEL_CFLAGS=$(PLAIN_KERNELS) \
	  UNIT="$(filter $(BUILD)/%,$(ASAN_QUICK))" CHECKS="$(ASAN_QUICK)"
# what uses threads: the pool, its sums and products, the first calls of libggu, factors that are made ahead, works that
# run side by side
TSAN_QUICK = $(patsubst %,$(BUILD)/tsan/tests/%,kernels/test_gram \
  $(patsubst %,unit/test_%,belt covariance factors ggu_quant hold imatrix plan_read pool state teams turns))
check-tsan: ## threads under ThreadSanitizer, in build/tsan
	+SANITIZED=1 TSAN_OPTIONS=exitcode=66 $(MAKE) check BUILD=$(BUILD)/tsan \
	  CFLAGS="-O1 -g1 -fno-omit-frame-pointer -fsanitize=thread" UNIT="$(TSAN_QUICK)" \
	  CHECKS="$(TSAN_QUICK)" TEST_PROGS=
# AVX-VNNI as the same instructions of AVX-512, AMX as it is, with a handler of SIGILL that carries out its instructions
# (tests/lib/amx_trap.c): for machines that have AVX-512 with VNNI and not these. One make builds whatever is wanted of
# it: two would write the same objects at once.
STAND_INS = $(patsubst %,$(BUILD)/stand-ins/tests/%,$(patsubst %,kernels/test_%,multiply every gram) unit/test_limits)
stand-ins: FORCE
	$(MAKE) $(STAND_INS) BUILD=$(BUILD)/stand-ins CFLAGS="$(CFLAGS) -DCPU_STAND_INS" \
	  FLAGS_x86_avxvnni="$(FLAGS_x86_avx512) -mavx512vnni"
$(STAND_INS): stand-ins
check-stand-ins: stand-ins ## the kernels of AVX-VNNI and AMX on a machine with AVX-512, in build/stand-ins
	CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -j$(CHECK_JOBS) --timer $(STAND_INS)

# needs an AArch64 compiler and qemu-user, and no library: what quant/ is made of, linked with its tests; tests/arm
# stands in for cmocka, and a hash needs no more than its header
ARM_CC ?= aarch64-linux-gnu-gcc
ARM_RUN ?= qemu-aarch64
ARM_TESTS = $(patsubst tests/%.c,$(BUILD)/arm/%,$(wildcard tests/kernels/test_*.c) \
  $(patsubst %,tests/unit/test_%.c,encode lattice sizes vec))
ARM_OBJS = $(patsubst %.c,$(BUILD)/arm/obj/%.o,$(patsubst %,tests/lib/%.c,guard kerntest slow slow_attention) \
  $(patsubst %,libgguf/%.c,error types pool topology cpus zeros) \
  $(filter-out $(patsubst %,quant/%.c,recipe recode remake factors ggu_quant),$(wildcard quant/*.c)))
$(BUILD)/arm/include/xxhash.h:
	@mkdir -p $(@D)
	cp $(or $(shell $(PKG_CONFIG) --variable=includedir libxxhash),/usr/include)/xxhash.h $@
$(call sets,arm,$(BUILD)/arm/obj)
$(BUILD)/arm/obj/%.o: %.c | $(BUILD)/arm/include/xxhash.h
	@mkdir -p $(@D)
	$(ARM_CC) $(filter-out $(PKG_CFLAGS),$(ALL_CFLAGS)) $(ISA) -DXXH_INLINE_ALL -Itests/arm -I$(BUILD)/arm/include \
	  $(DEPS) -c -o $@ $<
$(BUILD)/arm/%: $(BUILD)/arm/obj/tests/%.o $(ARM_OBJS)
	@mkdir -p $(@D)
	$(ARM_CC) -static -o $@ $^ -lm
.PRECIOUS: $(BUILD)/arm/obj/%.o
# older CPUs must not run instructions that they lack
ARM_OLDER = cortex-a57 neoverse-n1
ARM_TOOL = $(BUILD)/arm/kernels/tool_encode
check-arm: all $(ARM_TESTS) $(ARM_TOOL) ## kernels, encoders' bytes and vector functions as AArch64 programs
	CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -j$(CHECK_JOBS) --timer -e '$(ARM_RUN)' $(ARM_TESTS)
	for cpu in $(ARM_OLDER); do \
	  TEST_STOP=1 $(ARM_RUN) -cpu $$cpu $(BUILD)/arm/kernels/test_decode >/dev/null || exit 1; done
	BUILD="$(abspath $(BUILD))" TOOL_ENCODE="$(ARM_RUN) $(abspath $(ARM_TOOL))" DETERMINISM=short \
	  $(PROVE) tests/reference/determinism.t

BENCH = $(BUILD)/tests/kernels/tool_bench $(BUILD)/tests/kernels/tool_attend
bench: $(BENCH) ## every type and type of cache beside the machine's limits; TYPES="q4_K f16", GGUF_CPU=avx2
	for b in $(BENCH); do $$b $(TYPES) || exit 1; done

check-compilers: ## the same bytes from gcc and clang at -O0, -O2, -O3 and -O3 -march=native
	sh scripts/check-compilers

check-mutants: ## deliberate faults in the kernels, each of which the kernel tests must catch
	sh scripts/check-mutants

check-every: $(BUILD)/tests/kernels/test_every ## products of every number of tokens with more outputs and columns
	MULTIPLY=long $<

CHECKS_FULL = check check-every check-asan check-tsan check-arm check-stand-ins check-compilers check-mutants
check-full: $(CHECKS_FULL) ## every check there is

FUZZ_SECONDS ?= 60
FUZZERS ?= $(sort $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_CFLAGS = -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=undefined
# (Clang takes many minutes for a kernel with sanitizers. What files can ask of kernels is checked before they run.)
FUZZ_TOOLS = $(BUILD)/tests/malformed/tool_ggtxt $(patsubst %,$(BUILD)/tests/cli/tool_%,mkgguf torch)
fuzz: $(FUZZ_TOOLS) ## FUZZ_SECONDS (60) of libFuzzer for each target, or for FUZZERS="gguf expr"; needs clang
	$(MAKE) $(FUZZERS:%=$(BUILD)/fuzz/fuzz_%) BUILD=$(BUILD)/fuzz CC=clang CFLAGS="$(FUZZ_CFLAGS)" \
	  KERNEL_CFLAGS="$(PLAIN_KERNELS)"
	for f in $(FUZZERS); do \
	  BUILD="$(abspath $(BUILD))" tests/fuzz/corpus.sh $$f $(BUILD)/fuzz/corpus-$$f && \
	  $(BUILD)/fuzz/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=4096 \
	    -artifact_prefix=$(BUILD)/fuzz/$$f- $(BUILD)/fuzz/corpus-$$f || exit 1; done
$(BUILD)/fuzz_%: $(OBJ)/tests/fuzz/fuzz_%.o $(OBJ)/tests/fuzz/fuzz.o $(OBJ)/tests/fuzz/msg.o $(ARCHIVES)
	$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(ALL_LDLIBS)

# ---- install ----
# ggu.h as it is installed has the list of types written out
$(BUILD)/install/ggu.h: libgguf/ggu.h libgguf/qtypes.def
	@mkdir -p $(@D)
	awk -F '[(, ]+' '/^QTYPE/ { printf "%s\tGGU_TYPE_%s = %s", n++ ? ",\n" : "", $$3, $$2 } END { print "" }' \
	  libgguf/qtypes.def > $(@D)/types
	sed -e '/^#define QTYPE/d' -e '/^#undef QTYPE/d' \
	  -e '/^#include "qtypes.def"/{' -e 'r $(@D)/types' -e 'd' -e '}' libgguf/ggu.h > $@
$(BUILD)/install/ggu_quant.h: quant/ggu_quant.h
	@mkdir -p $(@D)
	sed 's,"../libgguf/ggu.h","ggu.h",' $< > $@
# folders in $(prefix) are named by it, so that pkg-config --define-prefix finds them where the tree was moved to
in_prefix = $(patsubst $(prefix)/%,$${prefix}/%,$(1))
PC = 'prefix=$(prefix)' 'libdir=$(call in_prefix,$(libdir))' 'includedir=$(call in_prefix,$(includedir))' '' \
  'Name: libggu' \
  'Description: Read, write and quantize GGUF model files' 'Version: $(VERSION)' \
  'Libs: -L$${libdir} -lggu' 'Libs.private: -lm -pthread' 'Cflags: -I$${includedir}'
MANS = $(wildcard man/*.1 man/*.3 man/*.5 man/*.7)
HEADERS = ggu.h ggu_quant.h
# every file that `install` makes
NAMES = $(notdir $(PROGS))
INSTALLED = $(NAMES:%=$(bindir)/%) $(foreach m,$(MANS),$(mandir)/man$(patsubst .%,%,$(suffix $(m)))/$(notdir $(m))) \
  $(NAMES:%=$(BASH_DIR)/%) $(NAMES:%=$(ZSH_DIR)/_%) $(NAMES:%=$(FISH_DIR)/%.fish) $(HEADERS:%=$(includedir)/%) \
  $(libdir)/libggu.a $(addprefix $(libdir)/,$(notdir $(SHLIB)) $(SHLIB_LINKS)) $(libdir)/pkgconfig/ggu.pc
INSTALL ?= install
# completions come from the programs' own tables of options: RUN runs a program where it is not one of this machine
RUN ?=
BASH_DIR = $(datadir)/bash-completion/completions
ZSH_DIR = $(datadir)/zsh/site-functions
FISH_DIR = $(datadir)/fish/vendor_completions.d

INSTALL_FROM = $(BUILD)/install/libggu.a $(HEADERS:%=$(BUILD)/install/%)
# DESTDIR may have blanks; the folders in it may not, as make's lists cannot hold them
WITH_BLANKS = $(strip $(foreach v,prefix bindir libdir includedir datadir mandir,$(if $(word 2,$($(v))),$(v))))
check-blanks:
	$(if $(WITH_BLANKS),$(error $(WITH_BLANKS): folders whose names have blanks cannot be installed to))
install: check-blanks all $(INSTALL_FROM) ## programs, pages, library, headers under $DESTDIR$PREFIX (/usr/local)
	umask 022; for d in $(sort $(dir $(INSTALLED))); do $(INSTALL) -d "$(DESTDIR)$$d" || exit 1; done
	$(INSTALL) -m 755 $(PROGS) "$(DESTDIR)$(bindir)"
	umask 022; for p in $(NAMES); do \
	  $(RUN) $(BUILD)/bin/$$p --completion bash > "$(DESTDIR)$(BASH_DIR)/$$p" && \
	  $(RUN) $(BUILD)/bin/$$p --completion zsh > "$(DESTDIR)$(ZSH_DIR)/_$$p" && \
	  $(RUN) $(BUILD)/bin/$$p --completion fish > "$(DESTDIR)$(FISH_DIR)/$$p.fish" || exit 1; done
	for m in $(MANS); do $(INSTALL) -m 644 $$m "$(DESTDIR)$(mandir)/man$${m##*.}/" || exit 1; done
	$(INSTALL) -m 644 $(BUILD)/install/libggu.a "$(DESTDIR)$(libdir)"
	$(INSTALL) -m 755 $(SHLIB) "$(DESTDIR)$(libdir)"
	for l in $(SHLIB_LINKS); do ln -sf $(notdir $(SHLIB)) "$(DESTDIR)$(libdir)/$$l" || exit 1; done
	$(INSTALL) -m 644 $(HEADERS:%=$(BUILD)/install/%) "$(DESTDIR)$(includedir)"
	umask 022; printf '%s\n' $(PC) > "$(DESTDIR)$(libdir)/pkgconfig/ggu.pc"

uninstall: check-blanks ## remove what install made
	for f in $(INSTALLED); do rm -f "$(DESTDIR)$$f" || exit 1; done

demo: all ## run scripts/demo
	sh scripts/demo

lint: ## include edges, headers alone, white space, cppcheck, shellcheck, mandoc
	sh scripts/lint

clean: ## remove build/
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

-include $(shell find $(OBJ) $(BUILD)/arm/obj -name '*.d' 2>/dev/null)
FORCE:
.PHONY: FORCE all bench check check-arm check-asan check-asan-quick check-blanks check-compilers check-every \
  check-full check-mutants check-stand-ins check-tsan clean demo fuzz help install lint stand-ins uninstall
.DELETE_ON_ERROR:
