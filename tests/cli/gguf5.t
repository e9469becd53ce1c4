#!/bin/sh
# SPDX-License-Identifier: MIT
# The table of tensor types in gguf(5) is that of libgguf/qtypes.def.
. "$(dirname "$0")/../lib/tap.sh"
n='\([0-9]*\)'
page="^\.It $n Ta \([a-zA-Z0-9_]*\) Ta $n Ta $n Ta \([a-z0-9]*\)$"
list="^QTYPE( *$n, *[A-Z0-9_]*, *\"\([^\"]*\)\", *$n, *$n, *\"\([^\"]*\)\".*"
is "types" "$(sed -n "s/$page/\1 \2 \3 \4 \5/p" "$SRC/man/gguf.5")" \
	"$(sed -n "s/$list/\1 \2 \3 \4 \5/p" "$SRC/libgguf/qtypes.def")"
done_testing
