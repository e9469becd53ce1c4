#!/bin/sh
# SPDX-License-Identifier: MIT
# The error of every encoder against the better peer's on matrices of many kinds: heavy tails, outlier columns, dead
# columns, importances of zero or over many decades, constant rows; see tests/lib/matrices.c.
. "$(dirname "$0")/../lib/tap.sh"
"$BUILD/tests/reference/tool_matrix_errors" "$SRC/tests/reference/peer_errors.txt"
