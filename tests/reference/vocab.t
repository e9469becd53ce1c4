#!/bin/sh
# SPDX-License-Identifier: MIT
# Every tokenizer.* key that gguf-convert --vocab-only writes is what llama.cpp's converter writes for the same folder
# and the same config.json.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/tokenizers/vocab "metadata of vocabularies"
for name in gpt2 llama2 llama2.c mistral-7b-v0.2 qwen2.5 tinystories-2048; do
	ref=$SHARED/reference/tokenizers/vocab/$name.json
	rm -rf "$TMP/dir"
	cp -r "$SHARED/data/tokenizers/$name" "$TMP/dir"
	chmod -R u+w "$TMP/dir"
	jq .config "$ref" >"$TMP/dir/config.json"
	ok "$name: convert" gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
	ok "$name: keys" "$BUILD/tests/reference/tool_vocab" "$TMP/v.gguf" "$ref"
done
done_testing
