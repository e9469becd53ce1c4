#!/bin/sh
# SPDX-License-Identifier: MIT
# What the numeric contract rules out is refused when it is compiled.
. "$(dirname "$0")/../lib/tap.sh"
cd "$SRC" || exit 1

cc=${CC:-cc}
compile() { $cc -std=c11 -D_GNU_SOURCE -fsyntax-only "$@" "${from:-quant/scalar.c}"; }
refused()
{
	why=$1; shift
	! compile "$@" 2>"$TMP/err" && grep -q "error.*$why" "$TMP/err"
}
ok "the usual options" compile -O2
for o in -ffast-math -ffinite-math-only; do ok "$o is refused" refused ffast-math $o; done
# Clang has no macro for these
for o in ASSOCIATIVE RECIPROCAL; do
	set -- "-f$(echo $o | tr A-Z a-z)-math" -fno-signed-zeros -fno-trapping-math
	if $cc "$@" -dM -E -x c /dev/null 2>/dev/null | grep -q $o; then ok "$1 is refused" refused ffast-math "$@"
	else skip "$1 is refused" "this compiler does not tell of it"; fi
done
ok "floats that are computed as something wider" refused "floats that are computed as floats" \
	-U__FLT_EVAL_METHOD__ -D__FLT_EVAL_METHOD__=2
for from in quant/scalar.c libgguf/cursor.c imatrix/imatrix_gguf.c tools/check_data.c; do
	ok "numbers with their highest byte first, $from" refused little-endian \
		-U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__
done
done_testing
