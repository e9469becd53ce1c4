#!/bin/sh
# SPDX-License-Identifier: MIT
# Ids of 168 texts equal those of the original libraries for every vocabulary with BPE, WordPiece or Unigram; the
# vectors that llama.cpp publishes come out too. README.md of the references says what a row's ids, special and noparse
# are.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/folders.sh"
need_shared reference/tokenizers "ids of the original tokenizers"
ref=$SHARED/reference/tokenizers
dirs=$SHARED/data/tokenizers
wiki=$SHARED/data/wikitext-2-raw/wiki.test.raw
tool=$BUILD/tests/reference/tool_ids

# check NAME DIR MODE=FLAGS... [-SKIP]: rows of the reference, as tool_ids --folder has them, and 200 KB of text
check()
{
	name=$1 dir=$2; shift 2
	ok "$name: $*" "$tool" --folder "$dir" "$ref/texts.json" "$ref/$name.json" "$wiki/ids=s" "$wiki/noparse" "$@"
}
# ... and the ids that the program makes
"$tool" --texts "$ref/texts.json" >"$TMP/texts"
gguf-tokenize -m "$dirs/gpt2" --json --no-bos "$TMP/texts" >"$TMP/got"
ok "gguf-tokenize: ids" "$tool" "$ref/texts.json" "$ref/gpt2.json" ids "$TMP/got"
gguf-tokenize -m "$dirs/gpt2" --json --no-bos --no-special "$TMP/texts" >"$TMP/got"
ok "gguf-tokenize: noparse" "$tool" "$ref/texts.json" "$ref/gpt2.json" noparse "$TMP/got"
jq -c '[.texts[].ids]' "$ref/gpt2.json" >"$TMP/ids"
gguf-tokenize -m "$dirs/gpt2" --json --decode "$TMP/ids" >"$TMP/got"
ok "gguf-tokenize: decoded" "$tool" "$ref/texts.json" "$ref/gpt2.json" decoded "$TMP/got"

# deepseek-coder is not decoded: its added tokens hold letters of the byte alphabet by mistake, which the original
# decodes to bytes that are no text, and we to the letters that stood there
for name in falcon gpt-neox-20b gpt2 llama2 minicpm3 mistral-7b-v0.2 phi-2 phi-3-medium phi-3-mini \
	roberta-base tinystories-2048 whisper-large-v3 qwen2.5; do
	[ -d "$dirs/$name" ] || { skip "$name" "not among the data"; continue; }
	check "$name" "$dirs/$name" ids=s special=bs noparse decoded=d
done
[ ! -d "$dirs/deepseek-coder" ] || check deepseek-coder "$dirs/deepseek-coder" ids=s special=bs noparse

# a run of equal signs can be cut in two ways with the same score: the original takes either, depending on how it has
# read the scores; SentencePiece and our programs take the second
[ ! -d "$dirs/t5-small" ] || check t5-small "$dirs/t5-small" ids=s special=bs noparse decoded=d -long-eq
# ... which SentencePiece's own file shows, with its own way of normalizing; the tokens that only tokenizer.json adds
# are texts to it
if folder t5-small+asm "$TMP/dir"; then
	rm -f "$TMP/dir/tokenizer.json"
	check t5-small "$TMP/dir" spm
	gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
	"$BUILD/tests/reference/tool_vocab" --bare "$TMP/v.gguf" "$TMP/bare.gguf"
	gguf-tokenize -m "$TMP/bare.gguf" --json --no-bos --no-special "$TMP/texts" >"$TMP/got"
	ok "t5-small: tokenizer.* alone" "$tool" "$ref/texts.json" "$ref/t5-small.json" spm "$TMP/got"
else skip t5-small "not among the data"
fi

# SentencePiece never sees special tokens in a text; which ones the references have in front was chosen when they were
# made, whatever the folder says. Those of yi have BOS, which the folder's add_bos_token denies: ours is told to add it.
for name in baichuan2 chatglm3 internlm2 llama2.c mistral-common-v1 mistral-common-v2 mistral-common-v3 \
	mistral-common-v7; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	case $name in
	mistral*) check "$name" "$TMP/dir" ids special=b ;;
	*) check "$name" "$TMP/dir" ids special=b decoded=d ;;
	esac
done
if folder yi "$TMP/dir"; then
	check yi "$TMP/dir" ids decoded=d
	jq '.add_bos_token = true' "$dirs/yi/tokenizer_config.json" >"$TMP/dir/tokenizer_config.json"
	check yi "$TMP/dir" special=b
else skip yi "not among the data"
fi

# folders that hold a vocabulary and merges, as they are (without the added tokens that only the model's code knows) and
# with a tokenizer.json made of the pipeline that the reference states
for name in phi-4-mini starcoder-wizardcoder llama3.2-ollama; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	rm -f "$TMP/dir/config.json"
	check "$name" "$TMP/dir" ids=s -sp-
done
for name in phi-4-mini starcoder-wizardcoder llama3.2-ollama qwen2.5 qwen3; do
	folder "$name+asm" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	check "$name" "$TMP/dir" ids=s special=bs noparse
done
for name in bert-uncased bert-cased; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	check "$name" "$TMP/dir" ids=s special=bs noparse decoded=d
done
folder qwen3 "$TMP/dir" && check qwen3 "$TMP/dir" ids=s

# bytes that are no UTF-8 are no reason to fail, and byte-level BPE keeps them
for name in gpt2 gpt-neox-20b llama2 llama2.c bert-uncased; do
	[ -d "$dirs/$name" ] || { skip "$name" "not among the data"; continue; }
	keep=
	[ "$name" != gpt2 ] || keep=keep
	# shellcheck disable=SC2086
	ok "$name: bytes that are no UTF-8${keep:+ are kept}" "$tool" --invalid "$dirs/$name" "$ref/texts.json" $keep
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
[ ! -f "$g" ] ||
	is "published: stablelm" "$(jq -c '[.test_string]' "$ref/pre-types.json" | gguf-tokenize -m "$g" --json |
	tr -d '\n' | sed 's/^\[//; s/\]$//; s/,/, /g' | sha256sum | cut -d ' ' -f 1)" \
		"$(jq -r '.table.stablelm2[0]' "$ref/pre-types.json")"
done_testing
