#!/bin/sh
# SPDX-License-Identifier: MIT
# Ids of 168 texts equal those of the original libraries for every vocabulary with BPE or WordPiece; the vectors that llama.cpp
# publishes come out too. README.md of the references says what a row's ids, special and noparse are.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/folders.sh"
need_shared reference/tokenizers "ids of the original tokenizers"
ref=$SHARED/reference/tokenizers
dirs=$SHARED/data/tokenizers
tool=$BUILD/tests/reference/tool_ids
"$tool" --texts "$ref/texts.json" >"$TMP/texts"

# check NAME DIR MODE SKIP OPTIONS...: MODE is the row's member
check()
{
	name=$1 dir=$2 mode=$3 prefix=$4; shift 4
	if gguf-tokenize -m "$dir" --json "$@" "$TMP/texts" >"$TMP/got" 2>"$TMP/err"; then
		ok "$name: $mode${prefix:+ without $prefix}" "$tool" "$ref/texts.json" "$ref/$name.json" "$mode" "$TMP/got" ${prefix:+"$prefix"}
	else
		ok "$name: $mode" cat "$TMP/err" /nonexistent
	fi
}
for name in deepseek-coder falcon gpt-neox-20b gpt2 llama2 minicpm3 mistral-7b-v0.2 phi-2 phi-3-medium phi-3-mini \
	roberta-base tinystories-2048 whisper-large-v3 qwen2.5; do
	[ -d "$dirs/$name" ] || { skip "$name" "not among the data"; continue; }
	check "$name" "$dirs/$name" ids "" --no-bos
	check "$name" "$dirs/$name" special ""
	check "$name" "$dirs/$name" noparse "" --no-bos --no-special
done

# SentencePiece never sees special tokens in a text; which it puts in front was asked of it, not of the folder. For yi it
# was asked to put BOS in front, which the folder's add_bos_token denies: its ids are compared with a BOS of ours.
for name in baichuan2 chatglm3 internlm2 llama2.c yi mistral-common-v1 mistral-common-v2 mistral-common-v3 mistral-common-v7; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	check "$name" "$TMP/dir" ids "" --no-bos --no-special
	if [ "$name" = yi ]; then
		jq '.add_bos_token = true' "$dirs/yi/tokenizer_config.json" >"$TMP/dir/tokenizer_config.json"
	fi
	check "$name" "$TMP/dir" special "" --no-special
done

# folders that hold a vocabulary and merges, as they are (without the added tokens that only the model's code knows) and
# with a tokenizer.json made of the pipeline that the reference states
for name in phi-4-mini starcoder-wizardcoder llama3.2-ollama; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	rm -f "$TMP/dir/config.json"
	check "$name" "$TMP/dir" ids sp- --no-bos
done
for name in phi-4-mini starcoder-wizardcoder llama3.2-ollama qwen2.5 qwen3; do
	folder "$name+asm" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	check "$name" "$TMP/dir" ids "" --no-bos
	check "$name" "$TMP/dir" special ""
	check "$name" "$TMP/dir" noparse "" --no-bos --no-special
done
for name in bert-uncased bert-cased; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	check "$name" "$TMP/dir" ids "" --no-bos
	check "$name" "$TMP/dir" special ""
	check "$name" "$TMP/dir" noparse "" --no-bos --no-special
	jq -c '[.texts[].ids]' "$ref/$name.json" >"$TMP/ids"
	gguf-tokenize -m "$TMP/dir" --json --decode "$TMP/ids" >"$TMP/got"
	ok "$name: decoded" "$tool" "$ref/texts.json" "$ref/$name.json" decoded "$TMP/got"
done
folder qwen3 "$TMP/dir" && check qwen3 "$TMP/dir" ids "" --no-bos

# and back, but for deepseek-coder: its added tokens hold letters of the byte alphabet by mistake, which the original
# decodes to bytes that are no text, and we to the letters that stood there
for name in falcon gpt-neox-20b gpt2 llama2 minicpm3 mistral-7b-v0.2 phi-2 phi-3-mini roberta-base tinystories-2048 whisper-large-v3 qwen2.5 \
	baichuan2 chatglm3 internlm2 llama2.c yi; do
	[ -d "$dirs/$name" ] || { skip "$name" "not among the data"; continue; }
	jq -c '[.texts[].ids]' "$ref/$name.json" >"$TMP/ids"
	gguf-tokenize -m "$dirs/$name" --json --decode "$TMP/ids" >"$TMP/got"
	ok "$name: decoded" "$tool" "$ref/texts.json" "$ref/$name.json" decoded "$TMP/got"
done

# bytes that are no UTF-8 are no reason to fail, and byte-level BPE keeps them
for hex in $(jq -r '.invalid_utf8[].hex' "$ref/texts.json"); do
	"$tool" --bytes "$hex" >"$TMP/bytes"
	for name in gpt2 qwen2.5; do
		gguf-tokenize -m "$dirs/$name" --no-bos --no-special "$TMP/bytes" >"$TMP/ids" 2>"$TMP/err"
		ok "$name: bytes $hex" gguf-tokenize -m "$dirs/$name" --decode "$TMP/ids"
		[ "$name" != gpt2 ] || { gguf-tokenize -m "$dirs/$name" --decode "$TMP/ids" >"$TMP/back"; same "$name: ... are kept" "$TMP/back" "$TMP/bytes"; }
	done
	for name in llama2 llama2.c; do ok "$name: bytes $hex" gguf-tokenize -m "$dirs/$name" "$TMP/bytes"; done
done

# published vectors, encoded without BOS
for m in falcon gpt-2 mpt refact starcoder deepseek-coder deepseek-llm llama-spm phi-3; do
	g=$SHARED/data/vocab-gguf/ggml-vocab-$m.gguf
	[ -f "$g" ] || { skip "published: $m" "not among the data"; continue; }
	"$tool" --inputs "$g.inp" >"$TMP/in"
	gguf-tokenize -m "$g" --json --no-bos "$TMP/in" >"$TMP/got" 2>"$TMP/err" || cat "$TMP/err"
	ok "published: $m" "$tool" --published "$g.inp" "$g.out" "$TMP/got"
done

# StableLM 2's vocabulary under the pre-tokenizer's old name makes the ids that llama.cpp's converter knows it by
g=$SHARED/data/vocab-gguf/ggml-vocab-stablelm2.gguf
[ ! -f "$g" ] || is "published: stablelm" "$(jq -c '[.test_string]' "$ref/pre-types.json" | gguf-tokenize -m "$g" --json |
	tr -d '\n' | sed 's/^\[//; s/\]$//; s/,/, /g' | sha256sum | cut -d ' ' -f 1)" "$(jq -r '.table.stablelm2[0]' "$ref/pre-types.json")"
done_testing
