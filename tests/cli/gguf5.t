#!/bin/sh
# SPDX-License-Identifier: MIT
# The table of tensor types in gguf(5) is that of libgguf/qtypes.def.
. "$(dirname "$0")/../lib/tap.sh"
is "types" "$(sed -n 's/^\.It \([0-9]*\) Ta \([a-zA-Z0-9_]*\) Ta \([0-9]*\) Ta \([0-9]*\) Ta \([a-z0-9]*\)$/\1 \2 \3 \4 \5/p' "$SRC/man/gguf.5")" \
	"$(sed -n 's/^QTYPE( *\([0-9]*\), *[A-Z0-9_]*, *"\([^"]*\)", *\([0-9]*\), *\([0-9]*\), *"\([^"]*\)".*/\1 \2 \3 \4 \5/p' "$SRC/libgguf/qtypes.def")"
done_testing
