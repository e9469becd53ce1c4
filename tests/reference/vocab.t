#!/bin/sh
# SPDX-License-Identifier: MIT
# Every tokenizer.* key that gguf-convert --vocab-only writes is what llama.cpp's converter writes for the same folder
# and the same config.json. Where ours differs on purpose, the ids of the original library say who is right.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/folders.sh"
need_shared reference/tokenizers/vocab "metadata of vocabularies"
ref=$SHARED/reference/tokenizers
tool=$BUILD/tests/reference/tool_vocab

# The architecture of a reference may be one that is not described: its vocabulary needs no more than the name, and what
# is known of phi2. One that is described is taken for the folders without config.json too.
arch_file()
{
	arch=$(jq -r '.kv[0].value' "$1")
	{
		jq -r '"schema: 1\nfallback: true\narch: \(.kv[0].value)",
			"classes: {\(.config.architectures[0] // "None"): {}}"' "$1"
		if [ -f "$SRC/model/arch/$arch.yaml" ]; then echo "like: $arch"
		elif [ "$arch" = phi2 ]; then echo "convert: {vocab: {add_bos: false}}"
		else echo "convert: {}"
		fi
	} >"$TMP/arch.yaml"
}

# check NAME KEY...: KEYs are not compared
check()
{
	name=$1; shift
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; return; }
	arch_file "$ref/vocab/$name.json"
	ok "$name: convert" gguf-convert -q --vocab-only --arch-file "$TMP/arch.yaml" -o "$TMP/v.gguf" "$TMP/dir"
	ok "$name: keys" "$tool" "$TMP/v.gguf" "$ref/vocab/$name.json" "$@"
}
for name in deepseek-coder falcon gpt-neox-20b gpt2 llama2 llama2.c llama3.2-ollama+asm minicpm3 mistral-7b-v0.2 \
	mistral-common-v1+hf \
	mistral-common-v2+hf mistral-common-v3+hf mistral-common-v7+hf phi-2 phi-3-medium+asm phi-3-mini+asm \
		phi-4-mini+asm \
	qwen2.5 qwen2.5+asm qwen3 qwen3+asm starcoder-wizardcoder starcoder-wizardcoder+asm t5-small+asm \
		tinystories-2048; do
	check "$name"
done
# a number that is right in a type that is wrong is a difference
if folder gpt2 "$TMP/dir"; then
	arch_file "$ref/vocab/gpt2.json"
	gguf-convert -q --vocab-only --arch-file "$TMP/arch.yaml" "$TMP/dir" | gguf-edit -o "$TMP/v.gguf" \
		--set tokenizer.ggml.eos_token_id=u64:50256
	is "gpt2: a type that differs is found" "$("$tool" "$TMP/v.gguf" "$ref/vocab/gpt2.json")" \
		"tokenizer.ggml.eos_token_id: another type"
fi
# keys of BERT's architecture, not of the vocabulary
check roberta-base tokenizer.ggml.token_type_count
check bert-uncased tokenizer.ggml.token_type_count
check bert-uncased+asm tokenizer.ggml.token_type_count

# These say add_dummy_prefix = false, which llama.cpp's converter does not pass on: llama.cpp then puts a blank in front
# and gets other ids than SentencePiece for all 167 texts. With our key the tokenizer.* keys alone give the right ones,
# but for texts with pieces that the model calls user-defined, which token_type does not say in llama.cpp's files.
"$BUILD/tests/reference/tool_ids" --texts "$ref/texts.json" >"$TMP/texts"
for name in baichuan2:18 yi:7; do
	few=${name#*:} name=${name%:*}
	check "$name" tokenizer.ggml.add_space_prefix
	ok "$name: tokenizer.* alone" "$tool" --bare "$TMP/v.gguf" "$TMP/bare.gguf"
	gguf-tokenize -m "$TMP/bare.gguf" --json --no-bos --no-special "$TMP/texts" >"$TMP/got" 2>"$TMP/err" ||
		cat "$TMP/err"
	"$BUILD/tests/reference/tool_ids" "$ref/texts.json" "$ref/$name.json" ids "$TMP/got" |
		grep -c ':$' >"$TMP/count"
	is "$name: ids of tokenizer.* alone: texts that differ" "$(cat "$TMP/count")" "$few"
done

# llama.cpp takes a model called Phi3 for one with </s>, which Phi-4 has not: it does not load one of this name.
for n in 32064 200064; do
	rm -rf "$TMP/dir"
	mkdir "$TMP/dir"
	cp "$SHARED/reference/arch/phi4-mini/tokenizer.json" "$TMP/dir"
	jq ".vocab_size = $n" "$SHARED/reference/arch/phi4-mini/config.json" >"$TMP/dir/config.json"
	if [ $n = 32064 ]; then want=Phi3; else want=Phi; fi
	ok "a model of the architecture phi3 with $n tokens" gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
	is "... is called $want" "$(gguf-info --get general.name "$TMP/v.gguf")" "$want"
done

# llama.cpp puts BOS in front of a text of Llama 3's if the file does not say; where transformers has none, it says so.
for p in '.' '.post_processor = null'; do
	rm -rf "$TMP/dir"
	mkdir "$TMP/dir"
	jq 'del(.add_bos_token)' "$SHARED/reference/arch/llama3/tokenizer_config.json" >"$TMP/dir/tokenizer_config.json"
	cp "$SHARED/reference/arch/llama3/config.json" "$TMP/dir"
	jq "$p" "$SHARED/reference/arch/llama3/tokenizer.json" >"$TMP/dir/tokenizer.json"
	gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
	if [ "$p" = . ]; then want=true; else want=false; fi
	is "Llama 3's vocabulary, $p: BOS is in front" "$(gguf-info --get tokenizer.ggml.add_bos_token "$TMP/v.gguf")" \
		$want
done

# Kinds that are not supported are refused by name.
reason()
{
	case $1 in
	glm4-tiktoken) echo "tokenizer.model: byte 204: is not a SentencePiece model" ;;
	*) echo "no tokenizer.model, tokenizer.json, vocab.json with merges.txt or vocab.txt in the folder" ;;
	esac
}
for name in chatglm3 cl100k glm4-tiktoken qwen1-tiktoken rwkv-world; do
	folder "$name" "$TMP/dir" || { skip "$name" "not among the data"; continue; }
	rm -f "$TMP/dir/config.json"
	case $name in
	chatglm3) ok "$name: its SentencePiece file alone" gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir";
		continue ;;
	esac
	not_ok "$name: refused" 2 gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
	is "$name: the reason" "$(sed "s|.*$TMP/dir: ||" "$TMP/.out")" "$(reason "$name")"
done
done_testing
