#!/bin/sh
# What gguf-convert makes of the reference checkpoints, against what llama.cpp's converter writes for them: names,
# types, shapes and data of the tensors, and the metadata. Keys of ours that llama.cpp leaves out are listed here.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "reference checkpoints"
ARCH=$SHARED/reference/arch
for d in llama llama-dynamic-yarn llama-linear-bias llama-rope-parameters llama3 llama3-tied yi mistral mistral-nemo \
	qwen2 qwen3 gemma gemma2 gemma3 gemma3-rope-parameters phi3 phi3-longrope phi3-longrope-long phi4-mini gpt2; do
	extra=
	case $d in mistral) extra=attention.sliding_window ;; esac
	for t in auto f16 q8_0; do
		# f16 is left out where it is what auto picks
		grep -q "\"$t\": *[{\"]" "$ARCH/$d/expected/gguf.json" || continue
		ok "$d to $t" gguf-convert -q --type $t -o "$TMP/$d.gguf" "$ARCH/$d"
		# shellcheck disable=SC2086
		ok "$d $t equals the reference" "$BUILD/tests/reference/tool_gguf_json" "$TMP/$d.gguf" "$ARCH/$d/expected/gguf.json" $t $extra
	done
done
done_testing
