#!/bin/sh
# SPDX-License-Identifier: MIT
# Logits, residual stream and greedy tokens of tiny checkpoints equal Hugging Face's: within 1e-4 of the logits'
# standard deviation, ten times the noise between float32 implementations (README.md of the references).
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "tiny checkpoints with reference logits"
cmp_f32=$BUILD/tests/reference/tool_cmp_f32
# rows NAME MODEL IDS OPTIONS...: logits; $TMP/source: what goes into the encoder of a model with two stacks
rows()
{
	case $1 in
	t5) m=$2 ids=$3; shift 3; gguf-logits -m "$m" --source "$TMP/source" "$@" "$ids" ;;
	*) m=$2 ids=$3; shift 3; gguf-logits -m "$m" "$@" "$ids" ;;
	esac
}
# greedy TITLE: $m after the prompt of $dir and the tokens so far, where the largest logit is the next one
greedy()
{
	vocab=$(jq .vocab_size "$dir/expected/tokens.json")
	prompt=$(jq '.sequences[0] | length' "$dir/expected/tokens.json")
	jq -r --slurpfile g "$dir/expected/greedy.json" \
		'.sequences[0] + $g[0].tokens[:-1] | map(tostring) | join(" ")' "$dir/expected/tokens.json" |
		gguf-logits -m "$m" | "$BUILD/tests/reference/tool_argmax" "$vocab" $((prompt - 1)) |
			tr '\n' ' ' >"$TMP/greedy"
	is "$1: greedy tokens" "$(cat "$TMP/greedy")" "$(jq -r '.tokens | map(tostring) | join(" ")' \
		"$dir/expected/greedy.json") "
}
for name in llama llama-dynamic-yarn llama-linear-bias llama-rope-parameters llama3 llama3-tied yi mistral \
	mistral-nemo \
	qwen2 qwen3 gemma gemma2 gemma3 gemma3-rope-parameters phi3 phi3-longrope phi3-longrope-long phi4-mini gpt2 \
	mixtral qwen2_moe qwen3_moe dbrx deepseek_v2 deepseek_v2-lite deepseek_v3 gpt_oss gpt_oss-mxfp4 \
		gpt_oss-truncate phimoe \
	mamba mamba2 falcon_h1 falcon falcon-new gpt_neox mpt bloom cohere2 bert modernbert t5 \
	gpt_bigcode phi2 stablelm stablelm2-12b ernie4_5 ernie4_5_moe olmo olmo3 nemotron granitemoe \
		granitemoehybrid dots1; do
	dir=$SHARED/reference/arch/$name
	m=$TMP/$name.gguf
	# float32 weights stay float32, where the automatic type would round them to f16, and so do those that take in
	# factors
	type=auto
	case $name in gpt2|falcon_h1) type=f32 ;; esac
	ok "$name: convert" gguf-convert -q --type $type -o "$m" "$dir"
	# products with blocks round the activations: what is compared is the same weights as floats
	if [ "$name" = gpt_oss-mxfp4 ]; then gguf-quantize -q --allow-requantize -o "$TMP/floats" F32 "$m";
		mv "$TMP/floats" "$m"; fi
	jq -r '(.decoder_sequences // .sequences)[] | map(tostring) | join(" ")' "$dir/expected/tokens.json" >"$TMP/ids"
	jq -r '.sequences[] | map(tostring) | join(" ")' "$dir/expected/tokens.json" >"$TMP/source"
	entry=$(jq '.hidden.shape[-2:] | .[0]*.[1]*4' "$dir/expected/tokens.json")
	rows "$name" "$m" "$TMP/ids" >"$TMP/logits" 2>"$TMP/err"
	want=$dir/expected/logits.f32
	[ -f "$want" ] || want=$dir/expected/last_hidden_state.f32
	ok "$name: logits" "$cmp_f32" "$TMP/logits" "$want" 1e-4
	# the last entry of hidden.f32 stands after the final norm, which the residual stream does not have; the first
	# is the output of the first layer for Mamba, its input for all others
	head -1 "$TMP/ids" >"$TMP/first"
	case $name in
	t5) head -1 "$TMP/source" | gguf-logits -m "$m" --source - --hidden "$TMP/first" >"$TMP/hidden" ;;
	*) gguf-logits -m "$m" --hidden "$TMP/first" >"$TMP/hidden" ;;
	esac
	want=$dir/expected/hidden.f32 last=$entry
	case $name in
	mamba*)
		tail -c +$((entry + 1)) "$TMP/hidden" >"$TMP/later"
		mv "$TMP/later" "$TMP/hidden"
		head -c -"$entry" "$want" >"$TMP/want"
		want=$TMP/want last=0 ;;
	bert) last=0 ;;
	esac
	ok "$name: residual stream" "$cmp_f32" "$TMP/hidden" "$want" 1e-4 "$last"
	for n in 1 7; do
		rows "$name" "$m" "$TMP/ids" --batch $n -j 3 >"$TMP/logits2"
		same "$name: the same bits in batches of $n" "$TMP/logits2" "$TMP/logits"
	done
	[ -f "$dir/expected/greedy.json" ] || continue
	greedy "$name"
done

# as it is released, with its blocks: products round the activations to 12 bits, where the references' bound for 8 is
# "some 1e-2"
name=gpt_oss-mxfp4 dir=$SHARED/reference/arch/gpt_oss-mxfp4 m=$TMP/blocks.gguf
ok "$name with its blocks: convert" gguf-convert -q -o "$m" "$dir"
is "$name with its blocks: all experts are in MXFP4" "$(gguf-info --json "$m" |
	jq -c '[.tensors[] | select(.name | test("_exps.weight")).type] | unique')" '["mxfp4"]'
jq -r '.sequences[] | map(tostring) | join(" ")' "$dir/expected/tokens.json" >"$TMP/ids"
gguf-logits -m "$m" "$TMP/ids" >"$TMP/logits"
ok "$name with its blocks: logits" "$cmp_f32" "$TMP/logits" "$dir/expected/logits.f32" 1e-2
gguf-logits -m "$m" --batch 7 -j 3 "$TMP/ids" >"$TMP/logits2"
same "$name with its blocks: the same bits in batches of 7" "$TMP/logits2" "$TMP/logits"
greedy "$name with its blocks"
ok "$name by a recipe" gguf-convert -q -t Q4_K_M -o "$TMP/recipe.gguf" "$dir"
is "... keeps its blocks" "$(gguf-info --json "$TMP/recipe.gguf" |
	jq -c '[.tensors[] | select(.name | test("_exps.weight")).type] | unique')" '["mxfp4"]'
gguf-quantize -q -o "$TMP/quantized.gguf" Q4_K_M "$m"
same "... and is the same in two steps" "$TMP/quantized.gguf" "$TMP/recipe.gguf"
done_testing
