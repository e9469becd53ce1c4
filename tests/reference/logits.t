#!/bin/sh
# SPDX-License-Identifier: MIT
# Logits, residual stream and greedy tokens of tiny checkpoints equal Hugging Face's: within 1e-4 of the logits'
# standard deviation, ten times the noise between float32 implementations (README.md of the references).
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "tiny checkpoints with reference logits"
cmp_f32=$BUILD/tests/reference/tool_cmp_f32
for name in llama llama-dynamic-yarn llama-linear-bias llama-rope-parameters llama3 llama3-tied yi mistral mistral-nemo \
	qwen2 qwen3 gemma gemma2 gemma3 gemma3-rope-parameters phi3 phi3-longrope phi3-longrope-long phi4-mini gpt2; do
	dir=$SHARED/reference/arch/$name
	m=$TMP/$name.gguf
	# float32 weights stay float32: the automatic type would round them to f16
	type=auto; [ "$name" != gpt2 ] || type=f32
	ok "$name: convert" gguf-convert -q --type $type -o "$m" "$dir"
	jq -r '.sequences[] | map(tostring) | join(" ")' "$dir/expected/tokens.json" >"$TMP/ids"
	gguf-logits -m "$m" "$TMP/ids" >"$TMP/logits" 2>"$TMP/err"
	ok "$name: logits" "$cmp_f32" "$TMP/logits" "$dir/expected/logits.f32" 1e-4
	# the last entry of hidden.f32 stands after the final norm, which the residual stream does not have
	head -1 "$TMP/ids" | gguf-logits -m "$m" --hidden >"$TMP/hidden"
	entry=$(jq '.hidden.shape[-2:] | .[0]*.[1]*4' "$dir/expected/tokens.json" 2>/dev/null || echo 0)
	ok "$name: residual stream" "$cmp_f32" "$TMP/hidden" "$dir/expected/hidden.f32" 1e-4 "${entry:-0}"
	for n in 1 7; do
		gguf-logits -m "$m" --batch $n -j 3 "$TMP/ids" >"$TMP/logits2"
		same "$name: the same bits in batches of $n" "$TMP/logits2" "$TMP/logits"
	done
	# greedy: after the prompt and the tokens so far, the largest logit is the next one
	vocab=$(jq .vocab_size "$dir/expected/tokens.json")
	prompt=$(jq '.sequences[0] | length' "$dir/expected/tokens.json")
	jq -r --slurpfile g "$dir/expected/greedy.json" '.sequences[0] + $g[0].tokens[:-1] | map(tostring) | join(" ")' "$dir/expected/tokens.json" |
		gguf-logits -m "$m" | "$BUILD/tests/reference/tool_argmax" "$vocab" $((prompt - 1)) | tr '\n' ' ' >"$TMP/greedy"
	is "$name: greedy tokens" "$(cat "$TMP/greedy")" "$(jq -r '.tokens | map(tostring) | join(" ")' "$dir/expected/greedy.json") "
done
done_testing
