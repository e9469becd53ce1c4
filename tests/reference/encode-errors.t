#!/bin/sh
# SPDX-License-Identifier: MIT
# The error of every encoder against the better peer's, on real matrices, with importances and without.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/quant/errors.json "errors of the encoders"
need_shared reference/peers/imatrix-wiki-7m.gguf "errors of the encoders"
gguf-convert -q -o "$TMP/m.gguf" "$DATA/wiki-7m" || { echo "1..1"; echo "not ok 1 - a model to work on"; exit 1; }
"$BUILD/tests/reference/tool_encode_errors" "$TMP/m.gguf" "$SHARED/reference/peers/imatrix-wiki-7m.gguf" \
	"$SHARED/reference/quant/errors.json"
