#!/bin/sh
# SPDX-License-Identifier: MIT
# GGUF files as other programs and older versions of them write them: what a file leaves out is what llama.cpp takes
# for it, keys have either of their forms, and what a file says beyond its architecture's layers is refused.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
need_shared reference/arch "tiny checkpoints"
# model NAME FILE EDIT...: the checkpoint converted and edited
model()
{
	[ -f "$TMP/$1.gguf" ] || gguf-convert -q -t f32 -o "$TMP/$1.gguf" "$SHARED/reference/arch/$1"
	name=$1 file=$2; shift 2
	cp "$TMP/$name.gguf" "$file"
	[ $# = 0 ] || gguf-edit -q -I "$@" "$file"
}
ids=$(seq 3 62 | tr '\n' ' ')
# logits FILE: of $file, which the last model wrote
logits() { echo "$ids" | gguf-logits -q -m "$file" -o "$1"; }
# alike NAME TITLE EDIT...: logits as before the edit, or as those in $want, which is then forgotten
want=
alike()
{
	name=$1 title=$2; shift 2
	[ "$want" ] || { model "$name" "$TMP/m"; logits "$TMP/as-is"; want=$TMP/as-is; }
	model "$name" "$TMP/m" "$@"
	ok "$name: $title" logits "$TMP/logits"
	same "... is the same" "$TMP/logits" "$want"
	want=
}
# meaning NAME EDIT...: what the next alike is compared with, which has other logits than the model has without it
meaning()
{
	name=$1; shift
	model "$name" "$TMP/m"
	logits "$TMP/as-is"
	model "$name" "$TMP/m" "$@"
	logits "$TMP/meant"
	want=$TMP/meant
	not_ok "$name: $* changes the model" 1 cmp -s "$TMP/as-is" "$want"
}
# refused NAME KEY EDIT...
refused()
{
	name=$1 key=$2; shift 2
	model "$name" "$TMP/m" "$@"
	not_ok "$name: $* is refused" 2 logits "$TMP/logits"
	is "... by name" "$(grep -c "m: $key: " "$TMP/.out")" 1
}

# scaling of rope
s=llama.rope.scaling
alike llama-linear-bias "a factor of rope without its type" --delete $s.type
alike llama-linear-bias "a factor of rope by its first name" --delete $s.type --delete $s.factor \
	--set "llama.rope.scale_linear=f32:$(jq .rope_scaling.factor \
		"$SHARED/reference/arch/llama-linear-bias/config.json")"
alike llama "a factor of rope that is 1" --set $s.factor=f32:1
alike llama "a factor of rope that is 0" --set llama.rope.scale_linear=f32:0
alike llama "a factor of rope without scaling" --set $s.type=str:none --set $s.factor=f32:4
alike llama-dynamic-yarn "YaRN starts from the length of the context" --delete $s.original_context_length \
	--set llama.context_length=u32:"$(jq .rope_scaling.original_max_position_embeddings \
		"$SHARED/reference/arch/llama-dynamic-yarn/config.json")"
f=$(jq .rope_scaling.factor "$SHARED/reference/arch/llama-dynamic-yarn/config.json")
meaning llama-dynamic-yarn --set $s.yarn_attn_factor=f32:1.25
model llama-dynamic-yarn "$TMP/m" --set $s.attn_factor=f32:"$(awk "BEGIN { printf \"%.9g\", 1.25/(1 + .1*log($f)) }")"
logits "$TMP/logits"
want=
ok "a factor of sines and cosines beside YaRN's, and one in its place" \
	"$BUILD/tests/reference/tool_cmp_f32" "$TMP/logits" "$TMP/meant" 1e-4
refused falcon rope.scaling.attn_factor --set falcon.rope.scaling.attn_factor=f32:1.5
refused falcon rope.scaling.type --set falcon.rope.scaling.factor=f32:2
refused deepseek_v2 rope.scaling.type --set deepseek2.rope.scaling.type=str:linear

# windows
meaning gemma2 --set gemma2.attn_logit_softcapping=f32:50
alike gemma2 "a cap of scores left out" --delete gemma2.attn_logit_softcapping
meaning gemma2 --set gemma2.final_logit_softcapping=f32:30
alike gemma2 "a cap of logits left out" --delete gemma2.final_logit_softcapping
meaning gemma2 --set gemma2.attention.sliding_window=u32:4096
alike gemma2 "a window left out" --delete gemma2.attention.sliding_window
meaning gemma3 --set gemma3.attention.sliding_window_pattern=u32:1
alike gemma3 "without a window all layers are full ones" --delete gemma3.attention.sliding_window
meaning modernbert --set modern-bert.attention.sliding_window_pattern=u32:1
alike modernbert "without a window all layers are full ones" --delete modern-bert.attention.sliding_window
alike modernbert "which layers are full left out" --delete modern-bert.attention.sliding_window_pattern
alike olmo3 "which layers are full left out" --delete olmo2.attention.sliding_window_pattern
# layers NAME ARCH PATTERN N: a list of layers gives the same as every N-th layer
layers()
{
	n=$(gguf-info --get "$2.block_count" "$TMP/$1.gguf")
	list=$(jq -cn "[range($n) | $3]")
	alike "$1" "a flag for each layer: $list" --set "$2.attention.sliding_window_pattern=bool[]:$list"
	alike "$1" "every so many layers" --set "$2.attention.sliding_window_pattern=u32:$4"
	if [ "$1" != modernbert ]; then first=true; else first=false; fi
	meaning "$1" --set "$2.attention.sliding_window_pattern=bool[]:$(echo "$list" | jq -c "map($first)")"
	want=
}
for name in cohere2 gpt_oss; do model $name "$TMP/m"; done
layers gemma2 gemma2 '(. + 1) % 2 != 0' 2
layers gemma3 gemma3 '(. + 1) % 6 != 0' 6
layers cohere2 cohere2 '(. + 1) % 4 != 0' 4
layers gpt_oss gpt-oss '(. + 1) % 2 != 0' 2
layers olmo3 olmo2 '(. + 1) % 4 != 0' 4
layers modernbert modern-bert '. % 3 != 0' 3

# what the 27 B models of Gemma divide scores by, which llama.cpp's files leave to the number of layers
# tall NAME LAYERS: the checkpoint with other weights, so many layers, and heads of 8 in place of width/heads, 16
tall()
{
	mkdir "$TMP/$1-tall"
	for f in "$SHARED/reference/arch/$1"/token*; do ln -s "$f" "$TMP/$1-tall"; done
	jq ".num_hidden_layers = $2 | .num_attention_heads = 4 | .num_key_value_heads = 2 | .head_dim = 8
		| .query_pre_attn_scalar = 8 | .intermediate_size = 32" \
		"$SHARED/reference/arch/$1/config.json" >"$TMP/$1-tall/config.json"
	jq -nc '["model.embed_tokens.weight", 344, 64], ["model.norm.weight", 64], (range('"$2"') as $i
		| ["input_layernorm", 64], ["post_attention_layernorm", 64], ["pre_feedforward_layernorm", 64],
			["post_feedforward_layernorm", 64], ["self_attn.q_proj", 32, 64], ["self_attn.k_proj", 16, 64],
			["self_attn.v_proj", 16, 64], ["self_attn.o_proj", 64, 32], ["mlp.gate_proj", 32, 64],
			["mlp.up_proj", 32, 64], ["mlp.down_proj", 64, 32],
			(["self_attn.q_norm", 8], ["self_attn.k_norm", 8] | select("'"$1"'" == "gemma3"))
		| .[0] |= "model.layers.\($i).\(.).weight")' | some_weights "$TMP/$1-tall/model.safetensors"
	gguf-convert -q -t f32 -o "$TMP/$1-tall.gguf" "$TMP/$1-tall"
}
for name in gemma2.46 gemma3.62; do
	a=${name%.*} n=${name#*.}
	tall "$a" "$n"
	is "$a of $n layers: the root of a head's size is not left out" \
		"$(gguf-info --get "$a.attention.scale" "$TMP/$a-tall.gguf")" 0.35355338
	meaning "$a-tall" --set "$a.attention.scale=f32:0.25"
	alike "$a-tall" "... where no scale is said, it is the root of the width of all heads divided by their number" \
		--delete "$a.attention.scale"
done

alike modernbert "GELU, which is not said" --delete modern-bert.hidden_activation
# of all layers that have a window, none is left with another base
for base in 10000 500; do
	meaning gemma2 --set gemma2.attention.sliding_window_pattern=u32:1000 --set gemma2.rope.freq_base=f32:500
	alike gemma2 "the base of layers with a window, where the others have $base" \
		--set gemma2.rope.freq_base=f32:$base --set gemma2.rope.freq_base_swa=f32:500 \
		--set gemma2.attention.sliding_window_pattern=u32:1000
done

# layers and experts
n=$(jq .num_hidden_layers "$SHARED/reference/arch/deepseek_v2/config.json")
alike deepseek_v2 "a layer that predicts further on, which the number of layers counts" \
	--set deepseek2.nextn_predict_layers=u32:1 --set deepseek2.block_count=u32:$((n + 1))
alike deepseek_v3 "experts chosen by sigmoids, which only their bias tells" --delete deepseek2.expert_gating_func
alike deepseek_v2 "experts chosen by softmax, which nothing tells" --delete deepseek2.expert_gating_func
alike ernie4_5_moe "the number of experts for every token left out" --delete ernie4_5-moe.expert_shared_count
refused mamba ssm.dt_b_c_rms --set mamba.ssm.dt_b_c_rms=bool:true
refused modernbert hidden_activation --set modern-bert.hidden_activation=str:relu
refused modernbert rope.dimension_count --set modern-bert.rope.dimension_count=u32:8
refused modernbert attention.head_count_kv --set modern-bert.attention.head_count_kv=u32:1
refused deepseek_v2 rope.scaling.attn_factor --set deepseek2.rope.scaling.attn_factor=f32:1.5
refused qwen2 attention.causal --set qwen2.attention.causal=bool:false

# tensors: DeepSeek with keys and values of the latent vector in one, as files of before April 2025 have them
{
	printf '%s\n' "schema: 1" "arch: deepseek2" "like: deepseek2" \
		"classes: {DeepseekV2ForCausalLM: {}, DeepseekV3ForCausalLM: {}}" "convert:" "  metadata:" \
		"    attention.head_count_kv: [u32, n_head]" \
		"    attention.key_length: {value: nope + qk_rope_head_dim}" \
		"    attention.value_length: {value: v_head_dim}" \
		"    attention.key_length_mla: null" "    attention.value_length_mla: null" "  tensors:" \
		"    blk.{i}.attn_k_b.weight: null" "    blk.{i}.attn_v_b.weight: null" \
		"    blk.{i}.attn_kv_b.weight: {from: \"model.layers.{i}.self_attn.kv_b_proj.weight\"}"
} >"$TMP/deepseek2.yaml"
for name in deepseek_v2 deepseek_v2-lite deepseek_v3; do
	model $name "$TMP/m"
	logits "$TMP/want"
	ok "$name as it was first published: convert" gguf-convert -q -t f32 --arch-file "$TMP/deepseek2.yaml" \
		-o "$TMP/m" "$SHARED/reference/arch/$name"
	is "... has keys and values in one" "$(gguf-info --json "$TMP/m" | jq -r '.tensors[].name |
		capture("(?<n>attn_(k|v|kv)_b)").n' | sort -u)" attn_kv_b
	logits "$TMP/got"
	same "... its logits are those of keys and values apart" "$TMP/got" "$TMP/want"
	gguf-quantize -q --tensor-type attn_kv_b=q8_0 -o "$TMP/q8_0" "$TMP/m" f32
	gguf-quantize -q --allow-requantize -o "$TMP/f32" "$TMP/q8_0" f32
	file=$TMP/q8_0
	ok "... in Q8_0" logits "$TMP/got"
	file=$TMP/f32
	logits "$TMP/want"
	ok "... they are those of its decoded copy, but for the rounding of activations" \
		"$BUILD/tests/reference/tool_cmp_f32" "$TMP/got" "$TMP/want" 0.01
	file=$TMP/m
done
echo '    blk.{i}.attn_kv_b.bias: {from: "model.layers.{i}.self_attn.kv_b_proj.weight", transform: ["take(1, 0, 1)"]}' \
	>>"$TMP/deepseek2.yaml"
not_ok "a bias of both is refused" 2 gguf-convert -q -t f32 --arch-file "$TMP/deepseek2.yaml" -o "$TMP/no" \
	"$SHARED/reference/arch/deepseek_v2"
is "... by name" "$(grep -c "kv_b: has a bias" "$TMP/.out")" 1

# tensors: q, k and v in one, as Phi-2 was first published, and as llama.cpp's converter writes them if it is told to
# fused PART: weight or bias, from tensors whose names begin with $from
fused()
{
	echo "    blk.{i}.attn_qkv.$1: {from: ["
	for x in $parts; do echo "      {from: \"$from$x.$1\"},"; done
	echo "      ]}"
}
for name in phi2 phimoe qwen2 qwen3 gemma2 bert stablelm nemotron; do
	model $name "$TMP/m"
	logits "$TMP/want"
	arch=$(gguf-info --get general.architecture "$TMP/m")
	from="model.layers.{i}.self_attn." parts="q_proj k_proj v_proj"
	[ $name != bert ] || from="encoder.layer.{i}.attention.self." parts="query key value"
	{
		printf '%s\n' "schema: 1" "arch: $arch" "like: $arch" \
			"classes: {$(jq -r '.architectures[0]' "$SHARED/reference/arch/$name/config.json"): {}}" \
			"convert:" "  ignore: {use_qkv_bias: true}" "  tensors:"
		for x in q k v; do echo "    blk.{i}.attn_$x.*: null"; done
		fused weight
		case $name in qwen3|gemma2|nemotron) ;; *) fused bias ;; esac
	} >"$TMP/fused.yaml"
	ok "$name with q, k and v in one: convert" \
		gguf-convert -q -t f32 --arch-file "$TMP/fused.yaml" -o "$TMP/m" "$SHARED/reference/arch/$name"
	is "... has them in one" "$(gguf-info --json "$TMP/m" | jq '[.tensors[].name | select(test("attn_[qkv]+[.]"))] |
		map(sub("[.]weight|[.]bias|blk[.][0-9]+[.]"; ""; "g")) | unique | join(" ")')" '"attn_qkv"'
	ok "... is evaluated" logits "$TMP/logits"
	same "... as with q, k and v" "$TMP/logits" "$TMP/want"
done
# nothing takes the place of values that are missing
grep -v attn_v "$SRC/tests/fuzz/corpus/model/qwen3.mkgguf" | xargs "$BUILD/tests/cli/tool_mkgguf" >"$TMP/m"
file=$TMP/m ids="1 2 3"
not_ok "values that are missing are refused" 2 logits "$TMP/logits"
is "... by name" "$(grep -c "m: blk.0.attn_v.weight: is missing" "$TMP/.out")" 1
done_testing
