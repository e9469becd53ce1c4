#!/bin/sh
# SPDX-License-Identifier: MIT
# What gguf-convert makes of the reference checkpoints, against what llama.cpp's converter writes for them: names,
# types, shapes and data of the tensors, and the metadata. Keys of ours that llama.cpp leaves out are listed here.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "reference checkpoints"
ARCH=$SHARED/reference/arch
for d in llama llama-dynamic-yarn llama-linear-bias llama-rope-parameters llama3 llama3-tied yi mistral mistral-nemo \
	qwen2 qwen3 gemma gemma2 gemma3 gemma3-rope-parameters phi3 phi3-longrope phi3-longrope-long phi4-mini gpt2 \
	mixtral qwen2_moe qwen3_moe dbrx deepseek_v2 deepseek_v2-lite deepseek_v3 gpt_oss gpt_oss-mxfp4 phimoe mamba \
		mamba2 falcon_h1 \
	falcon falcon-new gpt_neox mpt bloom cohere2 bert modernbert t5 gpt_bigcode phi2 stablelm stablelm2-12b \
		ernie4_5 ernie4_5_moe olmo olmo3 nemotron granitemoe granitemoehybrid dots1; do
	extra=
	case $d in
	mistral) extra=attention.sliding_window ;;
	gpt_oss*) extra=rope.scaling.yarn_truncate ;;
	gpt_neox|mpt) extra=general.file_type ;;
	mamba) extra="~ssm_a" ;;         # see below
	esac
	ok "$d has a reference" test -f "$ARCH/$d/expected/gguf.json"
	for t in auto f16 q8_0; do
		# f16 is left out where it is what auto picks
		grep -q "\"$t\": *[{\"]" "$ARCH/$d/expected/gguf.json" || continue
		ok "$d to $t" gguf-convert -q --type $t -o "$TMP/$d.gguf" "$ARCH/$d"
		# shellcheck disable=SC2086
		ok "$d $t equals the reference" "$BUILD/tests/reference/tool_gguf_json" "$TMP/$d.gguf" \
			"$ARCH/$d/expected/gguf.json" $t $extra
	done
done

# -exp(A_log) is the nearest float32, unlike some of the peer's results, so it is checked against the stored values.
m=$ARCH/mamba/model.safetensors
bytes=$(od -A n -t u8 -N 8 "$m" | tr -d ' ')
tail -c +9 "$m" | head -c "$bytes" |
	jq -r '.["backbone.layers.0.mixer.A_log"].data_offsets | "\(.[0]) \(.[1] - .[0])"' >"$TMP/place"
read -r from n <"$TMP/place"
gguf-convert -q -o "$TMP/mamba.gguf" "$ARCH/mamba"
gguf-cat "$TMP/mamba.gguf" blk.0.ssm_a | od -A n -v -t u4 -w4 >"$TMP/is"
tail -c +$((9 + bytes + from)) "$m" | head -c "$n" | od -A n -v -t u2 -w2 >"$TMP/stored"
is "mamba: ssm_a is -exp(A_log)" "$(paste "$TMP/is" "$TMP/stored" | awk '
	function value(bits, m,   e, x) {       # of a float with so many steps of mantissa
		e = int(bits/m); x = (1 + bits % m/m)*2^(e % 256 - 127)
		return e < 256 ? x : -x
	}
	{ d = value($1, 8388608)/-exp(value($2, 128)) - 1; if (d > 6e-8 || d < -6e-8) bad++ }
	END { print NR, bad + 0 }')" "$((n/2)) 0"
done_testing
