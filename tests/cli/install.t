#!/bin/sh
# SPDX-License-Identifier: MIT
# make install and uninstall; users of libggu in C and C++ through pkg-config; libggu and its fuzz replay with musl.
. "$(dirname "$0")/../lib/tap.sh"
cd "$SRC" || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
root=$TMP/root prefix=/opt/ggu
cc=${CC:-cc} flags=${CFLAGS:-}
version=$(sed -n "s/^VERSION = //p" Makefile)
ok "make install" make -s install DESTDIR="$root" PREFIX="$prefix" BUILD="$BUILD" ${CC:+CC="$CC"} ${CFLAGS:+CFLAGS="$CFLAGS"}
at=$root$prefix
missing=''
for f in "$BIN"/gguf-*; do [ -x "$at/bin/$(basename "$f")" ] || missing="$missing $f"; done
for f in man/*.[157]; do [ -f "$at/share/man/man${f##*.}/$(basename "$f")" ] || missing="$missing $f"; done
is "all programs and pages are there" "$missing" ""
ok "an installed program runs" "$at/bin/gguf-info" --version

cat >"$TMP/user.c" <<'EOF2'
#include <ggu.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	struct ggu_error err;
	struct ggu_file *f;
	if (argc < 2 || ggu_open(&f, argv[1], &err) != GGU_OK) return 1;
	printf("%s %d %s\n", ggu_version(), (int)ggu_file_n_tensors(f), ggu_type_info(GGU_TYPE_Q2_0)->name);
	ggu_close(f);
	return 0;
}
EOF2
cp "$TMP/user.c" "$TMP/user.cc"
"$BUILD/tests/malformed/tool_ggtxt" <tests/malformed/ok-gap.ggtxt >"$TMP/m.gguf"
export PKG_CONFIG_PATH="$at/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
user() { LD_LIBRARY_PATH=$at/lib DYLD_LIBRARY_PATH=$at/lib "$@"; }
if command -v pkg-config >/dev/null; then
	is "pkg-config knows the version" "$(pkg-config --modversion ggu)" "$version"
	# shellcheck disable=SC2046,SC2086
	ok "a user in C" $cc $flags -Wall -Wextra -Wpedantic -Werror -std=c99 -o "$TMP/user" "$TMP/user.c" $(pkg-config --cflags --libs ggu)
	is "... runs with the shared library" "$(user "$TMP/user" "$TMP/m.gguf")" "$version 2 q2_0"
	# shellcheck disable=SC2046,SC2086
	ok "... and with the archive" $cc $flags -o "$TMP/user-a" "$TMP/user.c" $(pkg-config --cflags ggu) "$at/lib/libggu.a" -pthread
	is "... which runs" "$("$TMP/user-a" "$TMP/m.gguf")" "$version 2 q2_0"
	if command -v c++ >/dev/null; then
		# shellcheck disable=SC2046,SC2086
		ok "a user in C++" c++ $flags -Wall -Wextra -Werror -o "$TMP/user-cc" "$TMP/user.cc" $(pkg-config --cflags --libs ggu)
		is "... runs" "$(user "$TMP/user-cc" "$TMP/m.gguf")" "$version 2 q2_0"
	else
		skip "a user in C++" "no c++"
	fi
else
	skip "users of the library" "no pkg-config"
fi
if [ -e "$at/lib/libggu.so" ]; then
	is "only ggu_ names are exported" "$(nm -D --defined-only "$at/lib/libggu.so" | grep -cv ' ggu_')" 0
	is "all that ggu.h declares is exported" "$(grep -oE '\bggu_[a-z0-9_]+\(' libgguf/ggu.h | tr -d '(' | sort -u | while read -r s; do
		nm -D --defined-only "$at/lib/libggu.so" | grep -q " $s\$" || echo "$s"; done | tr '\n' ' ')" "ggu_tensor_rows "
fi
ok "make uninstall" make -s uninstall DESTDIR="$root" PREFIX="$prefix" BUILD="$BUILD"
is "... leaves nothing" "$(find "$root" ! -type d)" ""

if command -v musl-gcc >/dev/null && [ -z "$flags" ]; then
	mkdir "$TMP/files"
	for t in tests/malformed/*.ggtxt; do "$BUILD/tests/malformed/tool_ggtxt" <"$t" >"$TMP/files/$(basename "$t" .ggtxt)"; done
	ok "musl builds libggu" musl-gcc -std=c11 -D_GNU_SOURCE -Wall -O1 -static -pthread -o "$TMP/replay" \
		libgguf/*.c tests/fuzz/fuzz_gguf.c tests/fuzz/fuzz.c tests/fuzz/replay.c
	ok "... which reads and writes" "$TMP/replay" "$TMP"/files/*
else
	skip "musl" "no musl-gcc, or another build"
fi
done_testing
