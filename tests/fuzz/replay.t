#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzz target of the reader on every text of tests/malformed.
. "$(dirname "$0")/../lib/tap.sh"
for text in "$SRC"/tests/malformed/*.ggtxt; do
	"$BUILD/tests/malformed/tool_ggtxt" <"$text" >"$TMP/$(basename "$text" .ggtxt).gguf"
done
ok "replay of $(find "$TMP" -name '*.gguf' | wc -l | tr -d ' ') files" "$BUILD/tests/fuzz/replay_gguf" "$TMP"/*.gguf
done_testing
