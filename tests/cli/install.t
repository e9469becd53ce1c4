#!/bin/sh
# SPDX-License-Identifier: MIT
# make install and uninstall; users of libggu in C and C++ through pkg-config; libggu and its fuzz replay with musl.
. "$(dirname "$0")/../lib/tap.sh"
cd "$SRC" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
root=$TMP/root prefix=/opt/ggu
cc=${CC:-cc} flags=${CFLAGS:-}
version=$("$BIN"/gguf-info --version | sed -n "1s/.* //p")
in_private() { (umask 077; "$@"); }
ok "make install" in_private make -s install DESTDIR="$root" PREFIX="$prefix" BUILD="$BUILD" ${CC:+CC="$CC"} \
	${CFLAGS:+CFLAGS="$CFLAGS"}
at=$root$prefix
is "... what everybody can read, whatever the umask" "$(find "$at" -type d ! -perm -055 -o -type f ! -perm -044)" ""
missing=''
for f in "$BIN"/gguf-*; do [ -x "$at/bin/$(basename "$f")" ] || missing="$missing $f"; done
for f in man/*.[1357]; do [ -f "$at/share/man/man${f##*.}/$(basename "$f")" ] || missing="$missing $f"; done
is "all programs and pages are there" "$missing" ""
ok "an installed program runs" "$at/bin/gguf-info" --version

cat >"$TMP/user.c" <<'EOF2'
#include <ggu_quant.h>
#include <stdio.h>
#if GGU_VERSION < 100
#error "an older ggu.h"
#endif
int main(int argc, char **argv)
{
	struct ggu_error err;
	struct ggu_file *f;
	unsigned char q8_0[34] = { 0, 0x3c, 2 };        /* scale 1, the first weight 2 */
	float x[32];
	if (argc < 2 || ggu_open(&f, argv[1], &err) != GGU_OK) return 1;
	printf("%s %d %s\n", ggu_version(), (int)ggu_file_n_tensors(f), ggu_type_info(GGU_TYPE_Q2_0)->name);
	ggu_close(f);
	return ggu_decode(GGU_TYPE_Q8_0, q8_0, x, 32, &err) != GGU_OK || (int)x[0] != 2 || (int)x[1] != 0;
}
EOF2
cp "$TMP/user.c" "$TMP/user.cc"
"$BUILD/tests/malformed/tool_ggtxt" <tests/malformed/gguf/ok-gap.ggtxt >"$TMP/m.gguf"
export PKG_CONFIG_PATH="$at/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
user() { LD_LIBRARY_PATH=$at/lib DYLD_LIBRARY_PATH=$at/lib "$@"; }
if command -v pkg-config >/dev/null; then
	is "pkg-config knows the version" "$(pkg-config --modversion ggu)" "$version"
	mkdir -p "$TMP/moved/lib/pkgconfig"
	cp "$at/lib/pkgconfig/ggu.pc" "$TMP/moved/lib/pkgconfig"
	is "... and where a tree that was moved is" "$(unset PKG_CONFIG_SYSROOT_DIR
		PKG_CONFIG_PATH=$TMP/moved/lib/pkgconfig pkg-config --define-prefix --cflags --libs ggu | xargs)" \
		"-I$TMP/moved/include -L$TMP/moved/lib -lggu"
	# shellcheck disable=SC2046,SC2086
	ok "a user in C" $cc $flags -Wall -Wextra -Wpedantic -Werror -std=c99 -o "$TMP/user" "$TMP/user.c" \
		$(pkg-config --cflags --libs ggu)
	is "... runs with the shared library" "$(user "$TMP/user" "$TMP/m.gguf")" "$version 2 q2_0"
	# shellcheck disable=SC2046,SC2086
	ok "... and with the archive" $cc $flags -o "$TMP/user-a" "$TMP/user.c" $(pkg-config --cflags ggu) \
		"$at/lib/libggu.a" -lm -pthread
	is "... which runs" "$("$TMP/user-a" "$TMP/m.gguf")" "$version 2 q2_0"
	if command -v c++ >/dev/null; then
		# shellcheck disable=SC2046,SC2086
		ok "a user in C++" c++ $flags -Wall -Wextra -Wpedantic -Werror -o "$TMP/user-cc" "$TMP/user.cc" \
			$(pkg-config --cflags --libs ggu)
		is "... runs" "$(user "$TMP/user-cc" "$TMP/m.gguf")" "$version 2 q2_0"
	else
		skip "a user in C++" "no c++"
	fi
	# the programs of ggu(3), as the page has them
	awk '/^\.Bd -literal/ { n++; on = 1; next } /^\.Ed/ { on = 0 }
		on { gsub(/\\e/, "\\"); print > ("'"$TMP"'/example" n ".c") }' man/ggu.3
	for i in 1 2; do
		# shellcheck disable=SC2046,SC2086
		ok "program $i of ggu(3)" $cc $flags -Wall -Wextra -Werror -std=c99 -o "$TMP/example$i" \
			"$TMP/example$i.c" $(pkg-config --cflags --libs ggu)
	done
	"$BIN/gguf-convert" -q -o "$TMP/in.gguf" "$DATA/wiki-7m"
	user "$TMP/example2" "$TMP/in.gguf" Q4_K_M >"$TMP/out.gguf"
	is "... quantizes as gguf-quantize does" "$("$BIN/gguf-quantize" -q -o - Q4_K_M "$TMP/in.gguf" |
		cmp - "$TMP/out.gguf" 2>&1)" ""
	is "... lists what is in it" "$(user "$TMP/example1" "$TMP/out.gguf" | awk '{ print $1, $2 }')" \
		"$("$BIN/gguf-info" --json "$TMP/out.gguf" | jq -r '.tensors[] | .name + " " + .type')"
	# (it ends without freeing what it has)
	is "... and says where a pipe ends too early" "$(head -c 200000 "$TMP/in.gguf" |
		ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 user "$TMP/example1" /dev/stdin 2>&1)" \
		"/dev/stdin: token_embd.weight: the file is truncated: 1993504 bytes are missing"
	is "... and why there is nothing to list" "$(user "$TMP/example1" "$TMP/none" 2>&1)" \
		"$TMP/none: open: No such file or directory"
else
	skip "users of the library" "no pkg-config"
fi
if [ -e "$at/lib/libggu.so" ]; then
	nm -D --defined-only "$at/lib/libggu.so" | sed 's/.* //' | LC_ALL=C sort >"$TMP/exported"
	is "what is exported is what libggu.symbols lists" "$(diff libgguf/libggu.symbols "$TMP/exported")" ""
	is "... and what the headers declare" \
		"$(grep -hv '^static inline' "$at"/include/ggu*.h | grep -oE '\bggu_[a-z0-9_]+\(' |
		tr -d '(' | LC_ALL=C sort -u | diff - "$TMP/exported")" ""
	is "it needs the C library only" "$(objdump -p "$at/lib/libggu.so" | sed -n 's/ *NEEDED *//p' |
		grep -vE '^(lib(c|m|pthread)\.|ld-|lib(asan|ubsan)\.)')" ""
	is "it does not ask the locale" "$(nm -D --undefined-only "$at/lib/libggu.so" |
		grep -E 'str(n|)case|strto[df]|__ctype|tolower|toupper|locale')" ""
else skip "what libggu.so exports and needs" "there is none here"; fi
is "the archive defines the same names and no other" "$(nm -g --defined-only "$at/lib/libggu.a" 2>/dev/null |
	sed -n 's/.* T //p' | LC_ALL=C sort | diff libgguf/libggu.symbols -)" ""
# two files of it say enough, one of which has a name that is not exported
lto=$TMP/lto
if echo "int x;" | $cc -flto -x c -c -o "$TMP/lto.o" - 2>"$TMP/lto.err"; then
	ok "an archive from objects of -flto" make -s BUILD="$lto" CFLAGS="-O1 -flto" ${CC:+CC="$CC"} \
		LIBGGU_OBJS="$lto/obj/libgguf/error.o $lto/obj/libgguf/types.o" "$lto/install/libggu.a"
	is "... is machine code" "$(objdump -h "$lto/install/libggu.o" | grep -c lto_)" 0
	is "... with no other names either" "$(nm -g --defined-only "$lto/install/libggu.a" | sed -n 's/.* T //p' |
		grep -vxFf libgguf/libggu.symbols)" ""
else
	skip "an archive from objects of -flto" "the compiler has no -flto"
fi
cross=$TMP/cross arm=${ARM_CC:-aarch64-linux-gnu-gcc}
if command -v "$arm" >/dev/null && [ -z "$flags" ]; then
	ok "a compiler for another machine" make -s BUILD="$cross" CC="$arm" CFLAGS=-O1 \
		LIBGGU_OBJS="$cross/obj/libgguf/error.o $cross/obj/libgguf/types.o" "$cross/gen/arch_data.c" \
		"$cross/install/libggu.a"
	is "... makes an archive with no other names either" "$("$("$arm" -print-prog-name=nm)" -g --defined-only \
		"$cross/install/libggu.a" | sed -n 's/.* T //p' | grep -vxFf libgguf/libggu.symbols)" ""
else
	skip "a compiler for another machine" "no $arm, or another build"
fi
is "the header has the types written out" "$(grep -c '^	GGU_TYPE_[A-Z0-9_]* = [0-9]*,*$' \
	"$at/include/ggu.h") $(grep -cE 'QTYPE|TYPE_COUNT' "$at/include/ggu.h")" \
	"$(grep -c '^QTYPE' libgguf/qtypes.def) 0"
ok "folders of one's own" make -s install DESTDIR="$root" PREFIX=/p BINDIR=/b LIBDIR=/p/lib64 MANDIR=/m BUILD="$BUILD" \
	${CC:+CC="$CC"} ${CFLAGS:+CFLAGS="$CFLAGS"}
ok "... are used" test -x "$root/b/gguf-info" -a -f "$root/p/lib64/libggu.a" -a -f "$root/m/man5/gguf.5" \
	-a -f "$root/p/include/ggu.h"
ok "... and known to pkg-config" grep -q '^libdir=.{prefix}/lib64$' "$root/p/lib64/pkgconfig/ggu.pc"
ok "... and emptied" make -s uninstall DESTDIR="$root" PREFIX=/p BINDIR=/b LIBDIR=/p/lib64 MANDIR=/m BUILD="$BUILD"
gnu="prefix=/g exec_prefix=/e libdir=/e/lib64 includedir=/g/inc mandir=/g/man datadir=/g/data"
# shellcheck disable=SC2086
ok "folders by GNU's names" make -s install DESTDIR="$root" $gnu BUILD="$BUILD" ${CC:+CC="$CC"} \
	${CFLAGS:+CFLAGS="$CFLAGS"}
ok "... are used" test -x "$root/e/bin/gguf-info" -a -f "$root/e/lib64/libggu.a" -a -f "$root/g/man/man5/gguf.5" \
	-a -f "$root/g/inc/ggu.h" -a -f "$root/g/data/bash-completion/completions/gguf-info"
ok "... and known to pkg-config" grep -q '^includedir=.{prefix}/inc$' "$root/e/lib64/pkgconfig/ggu.pc"
# shellcheck disable=SC2086
ok "... and emptied" make -s uninstall DESTDIR="$root" $gnu BUILD="$BUILD"
is "a 'prefix' in the environment is not ours" "$(prefix=/env make -s -n uninstall PREFIX=/p \
	BUILD="$BUILD" | grep -c /env)" 0
ok "make uninstall" make -s uninstall DESTDIR="$root" PREFIX="$prefix" BUILD="$BUILD"
is "... leaves nothing" "$(find "$root" ! -type d)" ""

mkdir "$TMP/a b"
echo >"$TMP/a"
ok "a DESTDIR with blanks" make -s install DESTDIR="$TMP/a b" PREFIX=/p BUILD="$BUILD" ${CC:+CC="$CC"} \
	${CFLAGS:+CFLAGS="$CFLAGS"}
ok "... has everything" test -x "$TMP/a b/p/bin/gguf-info" -a -f "$TMP/a b/p/lib/pkgconfig/ggu.pc"
ok "... and is emptied" make -s uninstall DESTDIR="$TMP/a b" PREFIX=/p BUILD="$BUILD"
is "... while nothing else is" "$(find "$TMP/a b" ! -type d) $(cat "$TMP/a")" " "
not_ok "a PREFIX with blanks is refused" 2 make -s uninstall DESTDIR="$TMP" PREFIX="/a /b" BUILD="$BUILD"
not_ok "... and a BUILD with blanks" 2 make -s clean BUILD="$TMP/a b"
is "... which stays" "$(ls -d "$TMP/a b") $(cat "$TMP/a")" "$TMP/a b "
mkdir -p "$TMP/staged/fish/vendor_completions.d"
ok "what was installed under BUILD does not disturb make" make -s help BUILD="$TMP/staged"

# programs are linked anew in a folder that has what was built as links
mkdir -p "$TMP/again/bin"
for f in "$BUILD"/sources "$BUILD"/obj "$BUILD"/gen "$BUILD"/host "$BUILD"/lib*.a; do ln -s "$f" "$TMP/again"; done
if [ -z "$flags" ]; then
	ok "LDLIBS, LDFLAGS, CFLAGS and CPPFLAGS of one's own leave what a program needs" make -s BUILD="$TMP/again" \
		${CC:+CC="$CC"} LDLIBS=-lm LDFLAGS=-Wl,-O1 CFLAGS=-O1 CPPFLAGS=-DNDEBUG "$TMP/again/bin/gguf-info"
	ok "... which runs" "$TMP/again/bin/gguf-info" --version
else
	skip "LDLIBS of one's own" "another build"
fi

# embed runs here and now
make -n BUILD="$TMP/none" LDFLAGS=-Wl,-O1 FUZZERS=gguf all fuzz 2>/dev/null |
	grep -e ' -o ' | grep -v -e ' -c -o ' -e /host/embed >"$TMP/links"
is "LDFLAGS are for programs, the library and fuzzers" \
	"$(grep -c fuzz_gguf "$TMP/links") $(grep -cv -e -Wl,-O1 "$TMP/links")" "1 0"

# what is in no source any more
mkdir "$TMP/tree"
cp -R Makefile libgguf quant imatrix model convert tools "$TMP/tree"
cd "$TMP/tree" || exit 1
echo 'int gone(void); int gone(void) { return 1; }' >imatrix/gone.c
echo 'schema: 1' >model/arch/gone.yaml
make -s BUILD=b CFLAGS=-O0 ${CC:+CC="$CC"} b/libimatrix.a b/gen/arch_data.c
is "a source and a description of one's own are built" \
	"$(ar t b/libimatrix.a | grep -c gone) $(grep -c gone b/gen/arch_data.c)" "1 1"
rm imatrix/gone.c model/arch/gone.yaml
make -s BUILD=b CFLAGS=-O0 ${CC:+CC="$CC"} b/libimatrix.a b/gen/arch_data.c
is "... and when they are deleted, nothing of them stays" \
	"$(ar t b/libimatrix.a | grep -c gone) $(grep -c gone b/gen/arch_data.c)" "0 0"
ok "... and nothing is made anew after that" make -q BUILD=b CFLAGS=-O0 ${CC:+CC="$CC"} b/libimatrix.a b/gen/arch_data.c
echo '/* */' >>imatrix/imatrix.h
is "a header that has changed is seen by whatever name the folder has" "$(for b in b "$PWD/b"; do
	make -n BUILD="$b" CFLAGS=-O0 ${CC:+CC="$CC"} "$b/libimatrix.a" | grep -c imatrix_file.c; done)" "1
1"
cd "$SRC" || exit 1

if command -v musl-gcc >/dev/null && [ -z "$flags" ]; then
	mkdir "$TMP/files"
	for t in tests/malformed/gguf/*.ggtxt; do "$BUILD/tests/malformed/tool_ggtxt" <"$t" >"$TMP/files/$(basename \
		"$t" .ggtxt)"; done
	ok "musl builds libggu" musl-gcc -std=c11 -D_GNU_SOURCE -Wall -O1 -static -pthread -o "$TMP/replay" \
		libgguf/*.c tests/fuzz/fuzz_gguf.c tests/fuzz/fuzz.c tests/fuzz/replay.c
	ok "... which reads and writes" "$TMP/replay" "$TMP"/files/*
else
	skip "musl" "no musl-gcc, or another build"
fi
done_testing
