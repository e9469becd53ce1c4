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
if [ -d "$dirs/deepseek-coder" ]; then check deepseek-coder "$dirs/deepseek-coder" ids=s special=bs noparse
else skip deepseek-coder "not among the data"; fi

# a run of equal signs can be cut in two ways with the same score: the original takes either, depending on how it has
# read the scores; SentencePiece and our programs take the second
if [ -d "$dirs/t5-small" ]; then check t5-small "$dirs/t5-small" ids=s special=bs noparse decoded=d -long-eq
else skip t5-small "not among the data"; fi
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
if folder qwen3 "$TMP/dir"; then check qwen3 "$TMP/dir" ids=s; else skip qwen3 "not among the data"; fi

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
if [ ! -f "$g" ]; then skip "published: stablelm" "not among the data"
else is "published: stablelm" "$(jq -c '[.test_string]' "$ref/pre-types.json" | gguf-tokenize -m "$g" --json |
	tr -d '\n' | sed 's/^\[//; s/\]$//; s/,/, /g' | sha256sum | cut -d ' ' -f 1)" \
		"$(jq -r '.table.stablelm2[0]' "$ref/pre-types.json")"
fi

# Names of pre-tokenizers in a GGUF that has nothing else, with GPT-NeoX's vocabulary: sha256 of the ids that tokenizers
# 0.23.3 makes with the patterns. (The text left out has a symbol that PCRE's Unicode may not have yet.)
jq -c '[.texts[].text | select(contains("\uD83D\uDEDC") | not)] + [$pre[0].test_string]' \
	--slurpfile pre "$ref/pre-types.json" "$ref/texts.json" >"$TMP/texts"
if ! gguf-convert -q --vocab-only -o "$TMP/neox" "$dirs/gpt-neox-20b" 2>"$TMP/err"; then
	skip "names of pre-tokenizers" "GPT-NeoX is not among the data"
else while read -r want names; do
	for pre in $names; do
		gguf-edit -q --delete gguf-utils.tokenizer --set "tokenizer.ggml.pre=str:$pre" -o "$TMP/named" \
			"$TMP/neox"
		is "pre-tokenizer by name: $pre" "$(gguf-tokenize -m "$TMP/named" --json --no-bos "$TMP/texts" |
			jq -r 'flatten | map(tostring) | join(" ")' | sha256sum)" "$want  -"
	done
done <<-.
	c2b16c2c04a182ae9ebe33e37759f43b083dcf02bf308fbf859dcff406e863ab pixtral midm-2.0 minicpm5
	e3f73673b280c8398cd33084bbdb8638e4ea0a163d2b30f9dfd38d7b4445c911 megrez kormo ufakzeka
	260768ddce05307bf3ad740602bc8f827c169d0334ac6530ff7ae0a4d7cad413 f2llmv2
	cfbaf2d98e3140faa32d91360858f3e6346488f76d8c2f31b12acc2e3cd281cc seed-coder
	e9465dbe1d43d4e44841c6bd2c4dd80a6c4f605833d9c0f4df757d3e43df0eb6 gigachat a.x-4.0
	e9465dbe1d43d4e44841c6bd2c4dd80a6c4f605833d9c0f4df757d3e43df0eb6 mellum trillion granite-docling
	ebde34d6ffae7f94091f072ff88e264a60a285a6f52d9af49cb7cd3c7f5056b2 mellum2
	776deb67bb9471af5f4397441ddbd6b07a69a8ad3f67dc655b96848e7c84d836 kanana2
	3994a7a15b21e60a5fb9e2ca22cbebb29c8c925dc49d0a8856dd69825d3f383b tiny_aya
	489d5872ac86737d9079a06f8afe13fc87f69599580672f333b9c49ca0abbd8b youtu
	fe388e94997a452165a66e96c8613781ef58b41567eac5b794991e87f79f1f69 poro-chat gpt3-finnish
	938e2c6ab5b2ac61b6559da28c5171fef3849eb15dfac5ebe9259a8eaaaec181 viking
	286e2d32fcb44dcd3e44a0a9c25b2184a57d4b4ce28978965f4860c05535dc96 joyai-llm
.
fi
# which of them put BOS in front if the file does not say, as many files of Llama 3 do not
for pre in llama-bpe:0 tekken:0 pixtral:0 falcon-h1:0 gpt-4o: qwen2: llama-bpe:0:true llama-bpe::false \
	qwen2:0:true; do
	[ -f "$TMP/named" ] || continue
	says=${pre##*:} begins=${pre#*:} begins=${begins%%:*}
	case $says in true|false) say="--set tokenizer.ggml.add_bos_token=bool:$says" ;; *) say= ;; esac
	# shellcheck disable=SC2086
	gguf-edit -q --delete gguf-utils.tokenizer --set "tokenizer.ggml.pre=str:${pre%%:*}" \
		--set tokenizer.ggml.bos_token_id=u32:0 $say -o "$TMP/named" "$TMP/neox"
	is "BOS in front or not: $pre" "$(printf 'one' | gguf-tokenize -m "$TMP/named")" "${begins:+$begins }531"
done
done_testing
