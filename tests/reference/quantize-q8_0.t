#!/bin/sh
# SPDX-License-Identifier: MIT
# Q8_0 is rounded as ggml rounds it: sha256 of every such tensor of some converted checkpoints.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch/llama/expected/gguf.json "Q8_0 as ggml"
for arch in llama qwen2 qwen3 gemma2 phi3 gpt2; do
	dir=$SHARED/reference/arch/$arch
	gguf-convert -q --type f32 -o "$TMP/c.gguf" "$dir" && gguf-quantize -q -o "$TMP/q.gguf" Q8_0 "$TMP/c.gguf"
	# a line for each tensor: name and digest
	sed -n '/^"q8_0": {/,/^}/p' "$dir/expected/gguf.json" |
		sed -n 's/.*"name": "\([^"]*\)".*"type": "Q8_0".*"sha256": "\([^"]*\)".*/\1 \2/p' >"$TMP/want"
	while read -r name _; do
		echo "$name $(gguf-cat "$TMP/q.gguf" "$name" | sha256sum | cut -d' ' -f1)"
	done <"$TMP/want" >"$TMP/got"
	ok "$arch: there are some" test -s "$TMP/want"
	same "$arch" "$TMP/got" "$TMP/want"
done
done_testing
