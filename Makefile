# SPDX-License-Identifier: MIT
# gguf-utils: `make help` lists the targets. One flat file; everything built lies under build/.

VERSION = 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
AR ?= ar
BUILD ?= build
PKG_CONFIG ?= pkg-config
PKGS = jansson yaml-0.1 libxxhash zlib libpcre2-8 libutf8proc nettle
CFLAGS ?= -O2 -g
# -ffp-contract=off is part of the numeric contract (quant/quant.h), not a matter of taste.
WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wno-missing-field-initializers
ALL_CFLAGS = -std=c11 -Wno-psabi -D_GNU_SOURCE -DGGU_VERSION='"$(VERSION)"' $(WARN) $(CFLAGS) -ffp-contract=off -fno-math-errno -fPIC -pthread $(PKG_CFLAGS)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
LDLIBS += $(PKG_LIBS) -lm -pthread
ARCH := $(shell $(CC) -dumpmachine | sed 's/-.*//')

# ---- sources: a new file in a folder needs no edit here ----
LIBS = libgguf quant model imatrix convert
OBJ = $(BUILD)/obj
objs = $(patsubst %.c,$(OBJ)/%.o,$(wildcard $(1)/*.c))
PROGS = $(patsubst tools/%.c,$(BUILD)/bin/%,$(wildcard tools/gguf-*.c))
TOOL_OBJS = $(patsubst %.c,$(OBJ)/%.o,$(filter-out $(wildcard tools/gguf-*.c),$(wildcard tools/*.c)))
# link order: users before what they use
ARCHIVES = $(BUILD)/libtools.a $(BUILD)/libconvert.a $(BUILD)/libmodel.a $(BUILD)/libimatrix.a $(BUILD)/libquant.a $(BUILD)/libggu.a

all: $(PROGS) ## build every program into build/bin

# an archive too: a program gets only what it uses
$(BUILD)/libtools.a: $(TOOL_OBJS)
$(BUILD)/libggu.a: $(call objs,libgguf)
$(BUILD)/libquant.a: $(call objs,quant)
$(BUILD)/libmodel.a: $(call objs,model) $(OBJ)/model/arch_data.o
$(BUILD)/libimatrix.a: $(call objs,imatrix)
$(BUILD)/libconvert.a: $(call objs,convert)
$(BUILD)/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/bin/%: $(OBJ)/tools/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# the only files with instruction-set flags; NAME_avx2.c and so on
ISA_FLAGS_avx2 = -mavx2 -mfma -mf16c
ISA_FLAGS_avxvnni = -mavx2 -mfma -mf16c -mavxvnni
ISA_FLAGS_avx512 = -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
ISA_FLAGS_neon =
ISA_FLAGS_dotprod = -march=armv8.2-a+dotprod
ISA_FLAGS_i8mm = -march=armv8.2-a+dotprod+i8mm
ifneq ($(filter x86_64 i%86 amd64,$(ARCH)),)
$(OBJ)/quant/%_avx2.o: ISA = $(ISA_FLAGS_avx2)
$(OBJ)/quant/%_avxvnni.o: ISA = $(ISA_FLAGS_avxvnni)
$(OBJ)/quant/%_avx512.o: ISA = $(ISA_FLAGS_avx512)
endif
ifneq ($(filter aarch64 arm64,$(ARCH)),)
$(OBJ)/quant/%_dotprod.o: ISA = $(ISA_FLAGS_dotprod)
$(OBJ)/quant/%_i8mm.o: ISA = $(ISA_FLAGS_i8mm)
endif

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ISA) -MMD -MP -c -o $@ $<

# architecture descriptions, as text, into the programs
ARCHS = $(sort $(wildcard model/arch/*.yaml))
$(BUILD)/gen/arch_data.c: $(ARCHS) $(BUILD)/host/embed
	@mkdir -p $(@D)
	$(BUILD)/host/embed arch_data $(ARCHS) > $@.tmp && mv $@.tmp $@
$(OBJ)/model/arch_data.o: $(BUILD)/gen/arch_data.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -I. -MMD -MP -c -o $@ $<
HOSTCC ?= $(CC)
$(BUILD)/host/embed: model/embed/embed.c
	@mkdir -p $(@D)
	$(HOSTCC) -O1 -o $@ $<

# ---- tests ----
UNIT = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c) $(wildcard tests/kernels/test_*.c))
TEST_HELPERS = $(patsubst tests/%.c,$(OBJ)/tests/%.o,$(wildcard tests/lib/*.c))
TEST_PROGS = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/*/tool_*.c))
$(BUILD)/tests/%: $(OBJ)/tests/%.o $(TEST_HELPERS) $(ARCHIVES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
.PRECIOUS: $(OBJ)/%.o
# fault injection by preloading
ifneq ($(findstring linux,$(shell $(CC) -dumpmachine)),)
TEST_PROGS += $(BUILD)/tests/fault.so
endif
$(BUILD)/tests/fault.so: tests/fault/fault.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O1 -fno-builtin -fPIC -shared -o $@ $< -ldl

PROVE ?= prove
CHECK_JOBS ?= $(shell nproc)
check: all $(UNIT) $(TEST_PROGS) ## unit, kernel, command, malformed and reference tests
	BUILD=$(abspath $(BUILD)) CMOCKA_MESSAGE_OUTPUT=TAP $(PROVE) -j$(CHECK_JOBS) --timer $(PROVE_FLAGS) \
	  $(UNIT) $(sort $(wildcard tests/*/*.t))

demo: all ## run scripts/demo
	sh scripts/demo

lint: ## include edges, headers alone, white space, cppcheck, shellcheck, mandoc
	sh scripts/lint

clean: ## remove build/
	rm -rf $(BUILD)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all check demo lint clean help
.DELETE_ON_ERROR:
