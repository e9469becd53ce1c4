#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints whose weights are codes and scales: what they convert to is what floats of the same values do, and parts
# that do not fit each other are refused by their names. The model is the bundled one with one layer; its weights are
# random.
. "$(dirname "$0")/../lib/tap.sh"

# folders SCHEME SEED [FAULT]: $TMP/coded and $TMP/floats
folders()
{
	rm -rf "$TMP/coded" "$TMP/floats"
	for f in coded floats; do
		mkdir "$TMP/$f"
		for name in "$DATA"/wiki-7m/*; do case $name in *.safetensors) ;; *) cp "$name" "$TMP/$f" ;; esac; done
		chmod -R u+w "$TMP/$f"
		jq '.num_hidden_layers = 1' "$DATA/wiki-7m/config.json" >"$TMP/$f/config.json"
	done
	"$BUILD/tests/cli/tool_coded" "$1" "$2" "$DATA/wiki-7m" "$TMP/coded" "$TMP/floats" "${3:-}" >"$TMP/said" ||
		{ echo "Bail out!  tool_coded $*"; exit 1; }
	jq --slurpfile said "$TMP/said" '.num_hidden_layers = 1 | .quantization_config = $said[0]' \
		"$DATA/wiki-7m/config.json" >"$TMP/coded/config.json"
}
seed=0
for scheme in $(sed -n 's/^	{ "\([a-z0-9-]*\)", .*/\1/p' "$SRC/tests/cli/tool_coded.c"); do
	seed=$((seed + 1))
	folders "$scheme" $seed
	for type in f32 Q4_K; do
		ok "$scheme as $type" gguf-convert -j $((seed%3 + 1)) -t $type -o "$TMP/got.gguf" "$TMP/coded"
		is "... in silence" "$(cat "$TMP/.out")" ""
		gguf-convert -q -t $type -o "$TMP/want.gguf" "$TMP/floats"
		same "... the same bytes as from floats" "$TMP/got.gguf" "$TMP/want.gguf"
	done
	is "$scheme: any box is what the whole has there" "$("$BUILD/tests/cli/tool_boxes" "$TMP/coded" $seed)" "7 7"
done
is "every scheme was tried" "$seed" "$(grep -c '[.]method = ' "$SRC/tests/cli/tool_coded.c")"

# refused NAME TEXT: converting $TMP/coded fails with TEXT on stderr
refused()
{
	not_ok "$1" 2 gguf-convert -q -o "$TMP/no.gguf" "$TMP/coded"
	is "... $2" "$(grep -c -F -- "$2" "$TMP/.out")" 1
	[ "$(grep -c -F -- "$2" "$TMP/.out")" = 1 ] || sed 's/^/# /' "$TMP/.out"
}
for row in 'fp8/scale/_proj.weight_scale_inv: scales do not fit the weights' \
	'fp8/type/_proj.weight: is stored as I16 with the scales model.layers.0.' \
	'fp8/no scale/_proj.weight: stored as F8_E4M3; weights must be F64, F32, F16 or BF16' \
	'ct-nvfp4/factor/_proj.weight_global_scale: is not above 0' \
	'ct-3/shape/_proj.weight_shape: is not the shape of the packed weights' \
	'ct-3/zero/_proj.weight_zero_point: zeros do not fit the scales' \
	'ct-8-act/group/_proj.weight_g_idx: there is no such group' \
	'gptq-2-act/group/_proj.g_idx: there is no such group' \
	'gptq-4/zero/_proj.qweight: has a shape that fits no packed weights' \
	'gptq-4/scale/_proj.qweight: has a shape that fits no packed weights' \
	'gptq-4/type/_proj.qweight: is stored as U32 with the scales model.layers.0.' \
	'awq/zero/_proj.qzeros: zeros do not fit the scales' \
	'mlx/scale/_proj.weight: has a shape that fits no packed weights' \
	'mlx/bias/_proj.biases: biases do not fit the scales' \
	'mlx/no bias/_proj.scales: have no biases' \
	'bnb-nf4/state/_proj.weight.quant_state.bitsandbytes__nf4: does not say shape and blocksize' \
	"bnb-nf4/shape/_proj.weight: does not have the codes of its quant_state's shape" \
	'bnb-nf4/scale/_proj.weight.absmax: scales do not fit the weights' \
	'bnb-nf4/nested/_proj.weight.nested_absmax: expected ' \
	'bnb-fp4/map/_proj.weight: has no tensor .quant_map'; do
	IFS=/ read -r scheme fault text <<-END
	$row
	END
	folders "$scheme" 1 "$fault"
	refused "$scheme, wrong $fault" "$text"
done

# ---- Conv1D: a model whose own weights are [in][out] ----
cat >"$TMP/conv.yaml" <<'END'
schema: 1
arch: conv
like: llama
classes: {ConvForCausalLM: {}}
convert:
  tensors:
    blk.{i}.attn_output.*: {from: "model.layers.{i}.self_attn.o_proj.*", transform: linear}
END
sed 's/linear/transpose/' "$TMP/conv.yaml" >"$TMP/turned.yaml"
# of FOLDER DESCRIPTION: what becomes of the matrix
of()
{
	jq '.architectures = ["ConvForCausalLM"]' "$TMP/$1/config.json" >"$TMP/c" && cp "$TMP/c" "$TMP/$1/config.json"
	gguf-convert -q -t f32 --arch-file "$TMP/$2.yaml" -o "$TMP/conv.gguf" "$TMP/$1" || echo "$1 with $2"
	gguf-cat "$TMP/conv.gguf" blk.0.attn_output.weight | sha256sum
}
for scheme in gptq-4 gptq-2-act awq auto-round-v2 bnb-8 bnb-nf4; do
	folders "$scheme" 1
	gguf-convert -q -t f32 -o "$TMP/want.gguf" "$TMP/floats"
	is "$scheme packs a Conv1D as a Linear" "$(of coded conv)" \
		"$(gguf-cat "$TMP/want.gguf" blk.0.attn_output.weight | sha256sum)"
	is "... floats of a Conv1D are transposed" "$(of floats conv)" "$(of floats turned)"
done
folders ct-8-act 1
is "other codes of a Conv1D are transposed" "$(of coded conv)" "$(of floats turned)"

# ---- other words of config.json ----
folders gptq-4 1
said() { jq ".quantization_config$1" "$TMP/coded/config.json" >"$TMP/c" && cp "$TMP/c" "$TMP/coded/config.json"; }
said ' |= . + {checkpoint_format: "marlin"}'
refused "a packing that is not GPTQ's" "its weights are quantized: convert the original"
folders awq 1
said '.version = "gemv"'
refused "another one of AWQ" "its weights are quantized: convert"
folders bnb-nf4 1
said ' |= (del(.quant_method) | .load_in_4bit = true)'
ok "bitsandbytes without its name" gguf-convert -q -o "$TMP/got.gguf" "$TMP/coded"
folders mlx 1
said " |= (.\"model.layers.0.self_attn.o_proj\" = {group_size: 0})"
refused "MLX without its groups" "_proj.scales: have no group_size in config.json"
folders mlx 1
jq '.quantization = .quantization_config | del(.quantization_config)' "$TMP/coded/config.json" >"$TMP/c"
cp "$TMP/c" "$TMP/coded/config.json"
ok "MLX as it says so first" gguf-convert -q -t f32 -o "$TMP/got.gguf" "$TMP/coded"
gguf-convert -q -t f32 -o "$TMP/want.gguf" "$TMP/floats"
same "... the same bytes" "$TMP/got.gguf" "$TMP/want.gguf"
folders mlx 1
said '.mode = "mxfp4"'
refused "another mode of MLX" "its weights are quantized: convert"
folders auto-round 1
said '.packing_format = "mlx"'
refused "another one of AutoRound" "its weights are quantized: convert"
folders modelopt 1
jq 'del(.quantization_config)' "$TMP/coded/config.json" >"$TMP/c" && cp "$TMP/c" "$TMP/coded/config.json"
refused "FP8 without a word of it" "_proj.weight: stored as F8_E4M3; weights must be"
echo '{"producer": {"name": "modelopt", "version": "0.15"}, "quantization": {"quant_algo": "FP8"}}' \
	>"$TMP/coded/hf_quant_config.json"
ok "in a file of its own, as ModelOpt once wrote it" gguf-convert -q -o "$TMP/got.gguf" "$TMP/coded"
gguf-convert -q -o "$TMP/want.gguf" "$TMP/floats"
same "... the same bytes" "$TMP/got.gguf" "$TMP/want.gguf"
folders fp8 1
jq '.quantization_config' "$TMP/coded/config.json" >"$TMP/q"
jq --slurpfile q "$TMP/q" 'del(.quantization_config) | .compression_config = $q[0]' "$TMP/coded/config.json" >"$TMP/c"
cp "$TMP/c" "$TMP/coded/config.json"
ok "compression_config, as it was once called" gguf-convert -q -o "$TMP/got.gguf" "$TMP/coded"
gguf-convert -q -o "$TMP/want.gguf" "$TMP/floats"
same "... the same bytes" "$TMP/got.gguf" "$TMP/want.gguf"
cp "$TMP/floats/model.safetensors" "$TMP/coded"
ok "floats, of which config.json says that they are coded" gguf-convert -q -o "$TMP/got.gguf" "$TMP/coded"
same "... are taken as they are" "$TMP/got.gguf" "$TMP/want.gguf"
done_testing
