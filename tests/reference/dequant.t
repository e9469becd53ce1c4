#!/bin/sh
# SPDX-License-Identifier: MIT
# Every block type decodes to exactly the floats of ggml, with every instruction set; the code
# books are what their generator makes.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/quant/dequant "decoded blocks"
for blocks in "$SHARED"/reference/quant/dequant/*.blocks; do
	type=$(basename "$blocks" .blocks)
	ok "$type" "$BUILD/tests/reference/tool_dequant" "$type" "$blocks" "${blocks%.blocks}.f32"
done
"$SRC/scripts/gen-grids" tables "$SHARED/reference/quant/grids" >"$TMP/grids.c"
same "grids.c" "$TMP/grids.c" "$SRC/quant/grids.c"
"$SRC/scripts/gen-grids" runs "$SHARED/reference/quant/grids" >"$TMP/grid_runs.h"
same "grid_runs.h" "$TMP/grid_runs.h" "$SRC/quant/grid_runs.h"
done_testing
