#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert on folders made here: what it refuses, and what its bytes may not depend on.
. "$(dirname "$0")/../lib/tap.sh"

# checkpoint DIR HEADER BYTES: model.safetensors with this header and so many bytes of data, all of them ?
checkpoint()
{
	n=${#2}
	# shellcheck disable=SC2059
	{ printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\\0\\0\\0\\0\\0\\0"; printf %s "$2";
		head -c "$3" /dev/zero | tr '\0' '?'; } >"$1/model.safetensors"
}
# says NAME TEXT COMMAND...: exit 2 with TEXT on stderr and nothing on stdout
says()
{
	name=$1 text=$2; shift 2
	not_ok "$name" 2 "$@"
	is "$name: message" "$(grep -c -F -- "$text" "$TMP/.out")" 1
	[ "$(grep -c -F -- "$text" "$TMP/.out")" = 1 ] || sed 's/^/# /' "$TMP/.out"
}
fresh() { rm -rf "$TMP/m"; mkdir "$TMP/m"; cp "$DATA/wiki-7m/tokenizer.model" "$TMP/m"; }

# ---- an architecture of our own: experts, split and transposed tensors ----
cat >"$TMP/tiny.yaml" <<'END'
schema: 1
arch: tiny
classes:
  TinyModel: {width: 2}
convert:
  layers: n_layers
  experts: n_experts
  metadata:
    block_count: [u32, n_layers]
    heads: {type: u32, each: i + 3}
    absent: [f32, nothing]
  tensors:
    token_embd.weight: emb
    blk.{i}.ffn_exps.weight: {from: "l.{i}.e.{x}.w", type: f32}
    blk.{i}.a.weight: {from: "l.{i}.ab", transform: "take(0, 0, width)", type: f32}
    blk.{i}.b.weight: {from: "l.{i}.ab", transform: ["take(0, width, 1)", transpose, mul(2)], type: f32}
    blk.{i}.made.weight: {make: "[i, 0.5, width]"}
  strip: {model.: "", old.: l.}
  drop: {"l.{n}.**": true, l.*.mask: true}
END
fresh
echo '{"architectures": ["TinyModel"], "n_layers": 1, "n_experts": 2, "vocab_size": 4096}' >"$TMP/m/config.json"
HEAD=$(tr -d '\n' <<'END'
{"model.emb":{"dtype":"F32","shape":[4096,1],"data_offsets":[0,16384]}
,"l.0.e.0.w":{"dtype":"F32","shape":[2,2],"data_offsets":[16384,16400]}
,"l.0.e.1.w":{"dtype":"F32","shape":[2,2],"data_offsets":[16400,16416]}
,"old.0.ab":{"dtype":"F32","shape":[3,2],"data_offsets":[16416,16440]}
,"l.0.mask":{"dtype":"BOOL","shape":[1],"data_offsets":[16440,16441]}}
END
)
checkpoint "$TMP/m" "$HEAD" 16441
ok "a description of one's own" gguf-convert -q --arch-file "$TMP/tiny.yaml" -o "$TMP/tiny.gguf" "$TMP/m"
gguf-convert --arch-file "$TMP/tiny.yaml" --dry-run -o "$TMP/dry.gguf" "$TMP/m" | sed 's/ x /x/g' >"$TMP/plan"
not_ok "a dry run makes no file" 1 test -e "$TMP/dry.gguf"
is "experts are stacked" "$(awk '$1 == "blk.0.ffn_exps.weight" { print $2, $6, $7, $8, $9, $10 }' "$TMP/plan")" \
	"2x2x2 32 l.0.e.0.w and 1 more"
is "a range of rows" "$(awk '$1 == "blk.0.a.weight" { print $2 }' "$TMP/plan")" 2x2
is "transposed" "$(awk '$1 == "blk.0.b.weight" { print $2 }' "$TMP/plan")" 1x2
is "computed" "$(awk '$1 == "blk.0.made.weight" { print $2, $7 }' "$TMP/plan")" "3 computed"
FALLS="gguf-convert: fall-backs, where rows are not a whole number of blocks: 1 tensor from q8_0 to f16"
is "fall-backs are summed in a line" "$(gguf-convert -t q8_0 --arch-file "$TMP/tiny.yaml" -o "$TMP/f4.gguf" \
	"$TMP/m" 2>&1)" "$FALLS (-v shows which)"
gguf-convert -v -t q8_0 --arch-file "$TMP/tiny.yaml" -o "$TMP/f4.gguf" "$TMP/m" 2>"$TMP/err"
is "... with -v in detail" "$(grep "fall-backs, " "$TMP/err") $(grep 'fall-back$' "$TMP/err" |
	awk '{ print $1, $7 }')" "$FALLS token_embd.weight f16"
changes() { sed -n 's/^\([^ ]*\) .* \([^ ]*\) -> \([^ ]*\) .*/\1 \2 \3/p'; }
for t in q8_0 Q4_K_M; do
	gguf-convert -v -t $t -o "$TMP/v.gguf" "$DATA/wiki-7m" 2>&1 | changes >"$TMP/done"
	gguf-convert -n -t $t "$DATA/wiki-7m" | changes >"$TMP/plan"
	same "$t: -v shows the types of a dry run" "$TMP/done" "$TMP/plan"
done

# MXFP4 with one block to a row, whose scales have gaps between them if every second row is taken
mkdir "$TMP/packed"
echo '{"architectures": ["X"], "n": 1}' >"$TMP/packed/config.json"
echo '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}' \
	>"$TMP/packed/tokenizer.json"
cat >"$TMP/packed/arch.yaml" <<'END'
schema: 1
arch: x
classes: {X: {d: 2}}
convert:
  layers: n
  metadata: {m: [u32, d]}
  tensors:
    even: {from: t, scales: s, pack: mxfp4, transform: ["reshape(2, 2, 1, -1)", "take(1, 0, 1)", "reshape(2, 1, -1)"]}
    odd: {from: t, scales: s, pack: mxfp4, transform: ["reshape(2, 2, 1, -1)", "take(1, 1, 1)", "reshape(2, 1, -1)"]}
END
checkpoint "$TMP/packed" '{"t":{"dtype":"U8","shape":[4,1,16],"data_offsets":[0,64]},
"s":{"dtype":"U8","shape":[4,1],"data_offsets":[64,68]}}' 0
printf %s 0000000000000000111111111111111122222222222222223333333333333333abcd >>"$TMP/packed/model.safetensors"
ok "MXFP4 in rows of one block" gguf-convert -q --arch-file "$TMP/packed/arch.yaml" -o "$TMP/packed.gguf" "$TMP/packed"
# codes are taken in pairs from the halves: 1 3 1 3 ... become 11 33 11 33 ...
is "... has the blocks of its rows, each with its scale" "$(for t in even odd; do
	gguf-cat "$TMP/packed.gguf" $t | od -An -v -tx1 -w17 | cut -c1-15; done | tr -s '\n ' ' ')" \
	" 61 00 33 00 33 63 22 33 22 33 62 11 33 11 33 64 33 33 33 33 "
sed '/even:/d; s/transform: .*}/}/' "$TMP/packed/arch.yaml" >"$TMP/packed/plain.yaml"
checkpoint "$TMP/packed" '{"t":{"dtype":"U8","shape":[4,1,16],"data_offsets":[0,64]},
"s":{"dtype":"U8","shape":[2,2],"data_offsets":[64,68]}}' 0
printf %s 0000000000000000111111111111111122222222222222223333333333333333abcd >>"$TMP/packed/model.safetensors"
says "... whose scales have other dimensions" "t: expected blocks of 16 bytes, with a scale each" \
	gguf-convert --arch-file "$TMP/packed/plain.yaml" -o "$TMP/no.gguf" "$TMP/packed"

# a layer after the last may be dropped
HEAD2=$(printf %s "$HEAD" | sed 's/"l.0.mask"/"l.1.w.more"/')
checkpoint "$TMP/m" "$HEAD2" 16441
ok "a layer behind the last" gguf-convert -q --arch-file "$TMP/tiny.yaml" -o "$TMP/f4.gguf" "$TMP/m"
same "... is dropped" "$TMP/f4.gguf" "$TMP/tiny.gguf"
# an unknown type is no reason to refuse a tensor that is dropped anyway
HEAD2=$(printf %s "$HEAD" | sed 's/"BOOL"/"F4_X2"/')
checkpoint "$TMP/m" "$HEAD2" 16441
ok "an unknown type of a tensor that is dropped" gguf-convert -q --arch-file "$TMP/tiny.yaml" -o "$TMP/f4.gguf" "$TMP/m"
same "... changes nothing" "$TMP/f4.gguf" "$TMP/tiny.gguf"
HEAD2=$(printf %s "$HEAD" | sed 's/"old.0.ab":{"dtype":"F32"/"old.0.ab":{"dtype":"F4_X2"/')
checkpoint "$TMP/m" "$HEAD2" 16441
says "... and of one that is not" "old.0.ab: stored as an unknown type; weights must be" \
	gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/m"

# biases that config.json asks for, and does not
mkdir "$TMP/bias"
cp "$DATA/wiki-7m/tokenizer.model" "$TMP/bias"
cat >"$TMP/bias.yaml" <<'END'
schema: 1
arch: bias
classes: {BiasModel: {biased: false}}
convert:
  layers: 2
  tensors:
    token_embd.weight: emb
    blk.{i}.a.*: {from: "l.{i}.a.*", type: f32, bias: biased}
END
checkpoint "$TMP/bias" "$(tr -d '\n' <<'END'
{"emb":{"dtype":"F32","shape":[4096,1],"data_offsets":[0,16384]}
,"l.0.a.weight":{"dtype":"F32","shape":[2],"data_offsets":[16384,16392]}
,"l.0.a.bias":{"dtype":"F32","shape":[2],"data_offsets":[16392,16400]}
,"l.1.a.weight":{"dtype":"F32","shape":[2],"data_offsets":[16400,16408]}
,"l.1.a.bias":{"dtype":"F32","shape":[2],"data_offsets":[16408,16416]}}
END
)" 16416
for biased in true false; do
	echo '{"architectures": ["BiasModel"], "vocab_size": 4096, "biased": '$biased'}' >"$TMP/bias/config.json"
	ok "biases: $biased" gguf-convert -t f32 --arch-file "$TMP/bias.yaml" -o "$TMP/$biased.gguf" "$TMP/bias"
	sed 's/.*bias: //' "$TMP/.out" >"$TMP/$biased.says"
done
is "... without a warning if it asks" "$(cat "$TMP/true.says")" ""
is "... with one if it does not" "$(cat "$TMP/false.says")" "config.json: asks for no l.0.a.bias, which transformers \
would leave out: 2 such biases are kept"
same "... the same model in any case" "$TMP/true.gguf" "$TMP/false.gguf"
# parts that cannot be joined, or of which one is missing
HEAD2=$(printf %s "$HEAD" | sed 's/"l.0.e.1.w":{"dtype":"F32"/"l.0.e.1.w":{"dtype":"I32"/')
checkpoint "$TMP/m" "$HEAD2" 16441
says "integers for a weight" "l.0.e.1.w: stored as I32; weights must be F64, F32, F16 or BF16" \
	gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/m"
sed 's/^  strip:/    blk.{i}.two.weight: {from: ["l.{i}.mask2", "l.{i}.e.9.w"], optional: true}\n&/' \
	"$TMP/tiny.yaml" >"$TMP/two.yaml"
HEAD2=$(printf %s "$HEAD" | sed 's/"l.0.mask"/"l.0.mask2"/; s/"BOOL"/"F16"/; s/16441/16442/')
checkpoint "$TMP/m" "$HEAD2" 16442
says "an optional tensor of which a part is missing" \
	"l.0.mask2: unknown tensor: architecture tiny has no place for it" gguf-convert --arch-file "$TMP/two.yaml" \
	-o "$TMP/no.gguf" "$TMP/m"
# numbers beyond a float's range: of F64, or made by an operation
tildes() { tr '?' '~' <"$TMP/m/model.safetensors" >"$TMP/x" && mv "$TMP/x" "$TMP/m/model.safetensors"; }
checkpoint "$TMP/m" "$HEAD" 16441
tildes
sed 's/mul(2)/mul(8)/' "$TMP/tiny.yaml" >"$TMP/eight.yaml"
says "a product that no float holds" "old.0.ab: element 0 of it in blk.0.b.weight is beyond the range of f32" \
	gguf-convert --arch-file "$TMP/eight.yaml" -o "$TMP/no.gguf" "$TMP/m"
HEAD2=$(printf %s "$HEAD" |
	sed 's/"F32","shape":\[2,2\],"data_offsets":\[16384,16400\]/"F64","shape":[2,2],"data_offsets":[16384,16416]/
	s/16400,16416/16416,16432/; s/16416,16440/16432,16456/; s/16440,16441/16456,16457/')
checkpoint "$TMP/m" "$HEAD2" 16457
tildes
says "a weight beyond floats, stacked with floats" \
	"l.0.e.0.w: element 0 of it in blk.0.ffn_exps.weight is beyond the range of f32" \
	gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/m"
HEAD2=$(printf %s "$HEAD" |
	sed 's/"F32","shape":\[2,2\]/"F64","shape":[2,2]/g; s/16384,16400/16384,16416/; s/16400,16416/16416,16448/
	s/16416,16440/16448,16472/; s/16440,16441/16472,16473/')
checkpoint "$TMP/m" "$HEAD2" 16473
tildes
is "... stacked with its like" "$(gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/f4.gguf" "$TMP/m" 2>&1 |
	sed 's/.*: blk/blk/' | grep exps)" \
	"blk.0.ffn_exps.weight: 8 weights of 3.40282e+38 or more, which f32 may not be able to hold; the first\
 in row 0, column 0"
checkpoint "$TMP/m" "$HEAD" 16441
for t in "permute(0.5)" "take(0, 0.5, 1)" "swap(0, 1.5)" "reshape(1.5, 4)"; do
	sed "s/mul(2)/\"$t\"/" "$TMP/tiny.yaml" >"$TMP/bad.yaml"
	says "$t" "expected whole numbers" gguf-convert --arch-file "$TMP/bad.yaml" -o "$TMP/no.gguf" "$TMP/m"
done
sed 's/{make: .*}/{type: f32}/' "$TMP/tiny.yaml" >"$TMP/bad.yaml"
says "no source" "bad.yaml: line 17, column 26: expected from or make" gguf-convert --arch-file "$TMP/bad.yaml" \
	-o "$TMP/no.gguf" "$TMP/m"
sed 's/^  strip:/  check: {n_layers: [n_layers == 2, [list]]}\n&/' "$TMP/tiny.yaml" >"$TMP/bad.yaml"
says "a check without a message" "bad.yaml: line 18, column 21: expected [expression, message]" \
	gguf-convert --arch-file "$TMP/bad.yaml" -o "$TMP/no.gguf" "$TMP/m"

sed 's/^  layers:.*/  names: {a: "b + 1", b: "1 + []", c: d, d: c}\n  layers: a/' "$TMP/tiny.yaml" >"$TMP/bad.yaml"
says "a name in a name" "bad.yaml: line 7, column 11: a: b: expected numbers" gguf-convert --arch-file "$TMP/bad.yaml" \
	-o "$TMP/no.gguf" "$TMP/m"
sed -i.was 's/layers: a/layers: c + a/' "$TMP/bad.yaml"
says "names refer to each other" \
	"bad.yaml: line 7, column 11: c + a: c: the names in it refer to each other endlessly" \
	gguf-convert --arch-file "$TMP/bad.yaml" -o "$TMP/no.gguf" "$TMP/m"
cat >"$TMP/bad.yaml" <<'END'
{schema: 1, arch: llama, like: llama, classes: {LlamaForCausalLM: {}},
convert: {metadata: {rope.freq_base: [f32, "rope_thetta ?? 10000.0"]}}}
END
is "a misspelt key of config.json: the one that was meant is missed" \
	"$(gguf-convert --arch-file "$TMP/bad.yaml" --dry-run -o "$TMP/no.gguf" "$DATA/wiki-7m" 2>&1 >"$TMP/plan")" \
	"gguf-convert: $DATA/wiki-7m: config.json: rope_theta: is 10000.0, which $TMP/bad.yaml does not read"
for option in --arch-file --metadata; do
	says "$option: no such file" "gguf-convert: nowhere: No such file" gguf-convert $option nowhere \
		-o "$TMP/no.gguf" "$DATA/wiki-7m"
	says "$option: a folder" "gguf-convert: $TMP: Is a directory" gguf-convert $option "$TMP" -o "$TMP/no.gguf" \
		"$DATA/wiki-7m"
	says "$option: too long" "gguf-convert: /dev/zero: byte" gguf-convert $option /dev/zero -o "$TMP/no.gguf" \
		"$DATA/wiki-7m"
done
sed 's/TinyModel/LlamaForCausalLM/; s/arch: tiny/arch: zz/' "$TMP/tiny.yaml" >"$TMP/class.yaml"
says "a file takes the classes that it lists" "config.json: n_layers: has no value" \
	gguf-convert --arch-file "$TMP/class.yaml" -o "$TMP/no.gguf" "$DATA/wiki-7m"

says "a tensor without a place" "l.0.more" sh -c "
	sed 's/,\"l.0.mask/,\"l.0.more/' '$TMP/m/model.safetensors' >'$TMP/x' && mkdir -p '$TMP/m2' &&
	cp '$TMP/m/config.json' '$TMP/m/tokenizer.model' '$TMP/m2' &&
	mv '$TMP/x' '$TMP/m2/model.safetensors' &&
	gguf-convert --arch-file '$TMP/tiny.yaml' -o '$TMP/no.gguf' '$TMP/m2'"
sed 's/"n_experts": 2/"n_experts": 3/' "$TMP/m/config.json" >"$TMP/m2/config.json"
cp "$TMP/m/model.safetensors" "$TMP/m2"
says "a tensor that is missing" "l.0.e.2.w" gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/m2"
sed 's/"n_layers": 1/"n_layers": "many"/' "$TMP/m/config.json" >"$TMP/m2/config.json"
says "a key of the wrong kind" "n_layers" gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/m2"
ok "nothing is left behind" [ ! -e "$TMP/no.gguf" ]

# ---- refusals ----
says "an unknown class" MistralForCausalLM gguf-convert -o "$TMP/no.gguf" "$TMP/m"
is "... is reported after the list of those that are known" "$(tail -n 1 "$TMP/.out" | sed 's/.* no known/no known/')" \
	"no known architecture has the class $(jq -r '.architectures[0]' "$TMP/m/config.json")"
echo '{"architectures": ["LlamaForCausalLM"], "hidden_act": "relu"' >"$TMP/m/config.json"
says "broken JSON" "$TMP/m: config.json: byte 60" gguf-convert -o "$TMP/no.gguf" "$TMP/m"
echo '{"architectures": ["LlamaForCausalLM"], "hidden_act": "relu"}' >"$TMP/m/config.json"
says "a model that the graph cannot compute" "hidden_act" gguf-convert -o "$TMP/no.gguf" "$TMP/m"
echo '{}' >"$TMP/m/config.json"
says "no class" "architectures" gguf-convert -o "$TMP/no.gguf" "$TMP/m"
rm "$TMP/m/config.json"
says "no such folder" "gguf-convert: nowhere: No such file" gguf-convert -o "$TMP/no.gguf" nowhere
says "a type with a typo" "gguf-convert: --type: q4km is not a recipe; did you mean Q4_K_M?" gguf-convert -t q4km \
	-o "$TMP/no.gguf" "$TMP/m"
says "no config.json" "config.json" gguf-convert -o "$TMP/no.gguf" "$TMP/m"
says "a file of the folder" "model.safetensors: is not a folder" gguf-convert -o "$TMP/no.gguf" \
	"$TMP/m/model.safetensors"
says "no folder" "$TMP/nowhere" gguf-convert -o "$TMP/no.gguf" "$TMP/nowhere"
# lacks KEY WHERE METADATA: a folder without this key of config.json, which is asked for by name
lacks()
{
	rm -rf "$TMP/l"; mkdir "$TMP/l"; ln -s "$DATA"/wiki-7m/* "$TMP/l"; rm "$TMP/l/config.json"
	jq "del(.$1)" "$DATA/wiki-7m/config.json" >"$TMP/l/config.json"
	says "config.json without $1" "config.json: $1: has no value, but llama.$2 needs one (common.yaml, line" \
		gguf-convert -o "$TMP/no.gguf" "$TMP/l"
	ok "... which the vocabulary alone does not need" gguf-convert --vocab-only -o "$TMP/v.gguf" "$TMP/l"
}
lacks intermediate_size feed_forward_length
for v in null '"eight"' -8 0 1.5 '[]'; do
	jq ".num_attention_heads = $v" "$DATA/wiki-7m/config.json" >"$TMP/l/config.json"
	says "num_attention_heads: $v" "config.json: num_attention_heads: " gguf-convert -o "$TMP/no.gguf" "$TMP/l"
done
jq '.rms_norm_eps = null' "$DATA/wiki-7m/config.json" >"$TMP/l/config.json"
says "a null that the evaluator would refuse" "rms_norm_eps: has no value, but llama.attention.layer_norm_rms_epsilon" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/l"
cp "$DATA/wiki-7m/config.json" "$TMP/m"
rm "$TMP/m/model.safetensors"
echo PK >"$TMP/m/pytorch_model.bin"
says "three bytes for an archive" "pytorch_model.bin: byte 3" gguf-convert -o "$TMP/no.gguf" "$TMP/m"
says "an unknown type" "q9_9" gguf-convert --type q9_9 -o "$TMP/no.gguf" "$DATA/wiki-7m"

rm "$TMP/m/pytorch_model.bin"
says "no weights" "m: no model*.safetensors, pytorch_model*.bin, *.pth or *.pt in the folder" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/m"
touch "$TMP/m/consolidated.safetensors"
says "weights under another name" "*.pth or *.pt in the folder, but consolidated.safetensors" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/m"
touch "$TMP/m/training_args.bin" "$TMP/m/adapter_model.safetensors"
says "several of them" "in the folder, but adapter_model.safetensors and 2 more" gguf-convert -o "$TMP/no.gguf" "$TMP/m"

cp -r "$DATA/wiki-7m" "$TMP/size"
sed 's/"vocab_size": 4096/"vocab_size": 4095/' "$DATA/wiki-7m/config.json" >"$TMP/size/config.json"
says "a vocabulary of another size than the embedding" \
	"config.json: vocab_size: is 4095, but the embedding has 4096 rows" gguf-convert -o "$TMP/no.gguf" "$TMP/size"
sed 's/"hidden_size": 256/"hidden_size": 512/' "$DATA/wiki-7m/config.json" >"$TMP/size/config.json"
says "rows of another width than the embedding's" \
	"config.json: llama.embedding_length: is 512, but the embedding has 256 columns" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/size"
sed '/"hidden_size"/d' "$DATA/wiki-7m/config.json" >"$TMP/size/config.json"
says "no width" "config.json: llama.embedding_length: has no value; the embedding has 256 columns" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/size"
echo '{"architectures": ["TinyModel"], "n_layers": 1, "n_experts": 2}' >"$TMP/size/config.json"
checkpoint "$TMP/size" "$(printf %s "$HEAD" | sed 's/4096,1/8192,1/; s/16384\]/32768]/; s/16384,16400/32768,32784/
	s/16400,16416/32784,32800/; s/16416,16440/32800,32824/; s/16440,16441/32824,32825/')" 32825
ok "without vocab_size" gguf-convert -q --arch-file "$TMP/tiny.yaml" -o "$TMP/size.gguf" "$TMP/size"
is "... the vocabulary is padded to the embedding" "$(gguf-info --json --metadata "$TMP/size.gguf" |
	jq '.metadata["tokenizer.ggml.tokens"] | length')" 8192

# tokens that the model has no rows for
checkpoint "$TMP/size" "$(printf %s "$HEAD" | sed 's/4096,1/4093,1/; s/16384\]/16372]/; s/16384,16400/16372,16388/
	s/16400,16416/16388,16404/; s/16416,16440/16404,16428/; s/16440,16441/16428,16429/')" 16429
ok "a smaller embedding" gguf-convert --arch-file "$TMP/tiny.yaml" -o "$TMP/size.gguf" "$TMP/size"
is "... warns of the pieces that are left out" "$(grep -c "size: tokenizer.model: 3 tokens are left out, since the \
model has 4093\$" "$TMP/.out")" 1
is "... which the file does not have" "$(gguf-info --json --metadata "$TMP/size.gguf" |
	jq '.metadata["tokenizer.ggml.tokens"] | length')" 4093
cp -r "$DATA/wiki-7m" "$TMP/few"
echo '{"[A]": 4095, "[B]": 4096, "[C]": 4097}' >"$TMP/few/added_tokens.json"
jq '. + {added_tokens_decoder: {"4097": {content: "[C]"}}}' "$DATA/wiki-7m/tokenizer_config.json" \
	>"$TMP/few/tokenizer_config.json"
ok "added tokens without rows" gguf-convert --vocab-only -o "$TMP/few.gguf" "$TMP/few"
is "... are counted once" "$(grep -c "few: added_tokens.json: 2 tokens are left out, since the model has 4096$" \
	"$TMP/.out")" 1
rm "$TMP/few/config.json"
ok "... have some where no config.json says how many there are" gguf-convert --vocab-only -o "$TMP/few.gguf" "$TMP/few"
is "... in silence" "$(cat "$TMP/.out")" ""
is "... like the others" "$(gguf-info --json --metadata "$TMP/few.gguf" |
	jq -c '.metadata["tokenizer.ggml.tokens"][4095:]')" '["[A]","[B]","[C]"]'

# tokenizer.json beside tokenizer.model: with the same tokens, and with a piece and an added token that differ
cp -r "$DATA/wiki-7m" "$TMP/both"
gguf-convert -q --vocab-only -o "$TMP/both.gguf" "$TMP/both"
gguf-info --json --metadata "$TMP/both.gguf" | jq '.metadata["tokenizer.ggml.tokens"] |
	{model: {type: "BPE", byte_fallback: true, merges: [], vocab: (to_entries | map({(.value): .key}) | add)},
	normalizer: {type: "Prepend", prepend: "\u2581"}}' >"$TMP/both/tokenizer.json"
ok "two files with the same tokens" gguf-convert --vocab-only -o "$TMP/both.gguf" "$TMP/both"
is "... in silence" "$(cat "$TMP/.out")" ""
mv "$TMP/both/tokenizer.json" "$TMP/same"
jq '.model.vocab |= with_entries(if .value == 300 then .key = "[X]" else . end) |
	.added_tokens = [{id: 302, content: "[Y]"}, {id: 4096, content: "[Z]"}]' "$TMP/same" >"$TMP/both/tokenizer.json"
ok "two files with other tokens" gguf-convert --vocab-only -o "$TMP/both.gguf" "$TMP/both"
is "... warns of ids that have others" "$(grep -c "both: tokenizer.json: 2 ids have another token than in the \
SentencePiece model, whose tokens are used; the first is 300\$" "$TMP/.out")" 1
# added tokens of three files: what only one has, and what they disagree on
mkdir "$TMP/added"
jq -n '{model: {type: "BPE", vocab: {a: 0, b: 1, ab: 2}, merges: ["a b"]}, pre_tokenizer: {type: "ByteLevel"},
	added_tokens: [{id: 3, content: "<x>", special: true}]}' >"$TMP/added/tokenizer.json"
jq -n '{added_tokens_decoder: {"3": {content: "<x>"}, "4": {content: "<y>", special: true}}}' \
	>"$TMP/added/tokenizer_config.json"
echo '{"<z>": 5}' >"$TMP/added/added_tokens.json"
added() { gguf-info --json --metadata "$TMP/added.gguf" | jq -c '.metadata["tokenizer.ggml.tokens"][3:]'; }
ok "a token that only tokenizer_config.json has" gguf-convert --vocab-only -o "$TMP/added.gguf" "$TMP/added"
is "... is one" "$(added)" '["<x>","<y>"]'
is "... and found in a text" "$(printf 'ab<y>a' | gguf-tokenize -m "$TMP/added.gguf")" "2 4 0"
is "... in silence" "$(cat "$TMP/.out")" ""
echo '{"<z>": 3, "<y>": 5}' >"$TMP/added/added_tokens.json"
ok "three files that disagree" gguf-convert --vocab-only -o "$TMP/added.gguf" "$TMP/added"
is "... have warnings" "$(sed 's/.*added: //' "$TMP/.out")" "added_tokens.json: 1 id has another token than in \
tokenizer.json, whose tokens are used; the first is 3"
jq -n '{added_tokens_decoder: {"2": {content: "<x>"}, "3": {content: "<z>"}}}' >"$TMP/added/tokenizer_config.json"
ok "a small file that disagrees" gguf-convert --vocab-only -o "$TMP/added.gguf" "$TMP/added"
is "... has a warning, too" "$(grep -c "added: tokenizer_config.json: 2 ids have another token than in tokenizer.json, \
whose tokens are used; the first is 2\$" "$TMP/.out")" 1
is "... and does not count" "$(added)" '["<x>"]'
jq -n '{added_tokens_decoder: {"2": {content: "ab"}}}' >"$TMP/added/tokenizer_config.json"
ok "an added token that is a piece, too" gguf-convert -q --vocab-only -o "$TMP/added.gguf" "$TMP/added"
is "... is of the type of added ones" "$(gguf-info --json --metadata "$TMP/added.gguf" |
	jq -c '.metadata["tokenizer.ggml.token_type"]')" '[1,1,4,3]'
rm "$TMP/added/tokenizer_config.json"
echo '{"<z>": 4}' >"$TMP/added/added_tokens.json"
ok "a token that only added_tokens.json has" gguf-convert --vocab-only -o "$TMP/added.gguf" "$TMP/added"
is "... is one, where no added_tokens_decoder is" "$(added)" '["<x>","<z>"]'
for kind in Unigram WordPiece; do
	jq --arg kind "$kind" '.model.type = $kind | .model.unk_token = "a" | if $kind == "Unigram" then
		.model.vocab = [["a", 0], ["b", 0], ["ab", 0]] else . end' "$TMP/added/tokenizer.json" >"$TMP/kind.json"
	mkdir "$TMP/$kind"
	cp "$TMP/kind.json" "$TMP/$kind/tokenizer.json"
	jq -n '{added_tokens_decoder: {"3": {content: "<z>"}, "4": {content: "<y>"}}}' \
		>"$TMP/$kind/tokenizer_config.json"
	ok "$kind: a contradiction" gguf-convert --vocab-only -o "$TMP/added.gguf" "$TMP/$kind"
	is "$kind: ... has a warning" "$(grep -c "1 id has another token" "$TMP/.out")" 1
	is "$kind: ... and does not count, but the other is a token" "$(added)" '["<x>","<y>"]'
done
echo '{"[A]": "4095"}' >"$TMP/few/added_tokens.json"
says "an id that is no number, beside tokenizer.model" "few: added_tokens.json: [A]: has no id from 0 to 4194303" \
	gguf-convert --vocab-only -o "$TMP/no.gguf" "$TMP/few"
jq -n '{model: {type: "BPE", vocab: {a: 0, b: 8192}, merges: []}, pre_tokenizer: {type: "ByteLevel"}}' \
	>"$TMP/size/tokenizer.json"
rm "$TMP/size/tokenizer.model"
says "more tokens than the embedding has rows" "the tokenizer has 8193 tokens, but the embedding 4093 rows" \
	gguf-convert -q --arch-file "$TMP/tiny.yaml" -o "$TMP/no.gguf" "$TMP/size"

# an adapter, without its model and beside it
mkdir "$TMP/adapter"
echo '{"peft_type": "LORA", "base_model_name_or_path": "wiki-7m"}' >"$TMP/adapter/adapter_config.json"
says "an adapter alone" "adapter: adapter_config.json: the folder holds an adapter, not a model: merge it" \
	gguf-convert -o "$TMP/no.gguf" "$TMP/adapter"
cp "$DATA/wiki-7m"/* "$TMP/adapter"
ok "a model beside an adapter" gguf-convert -o "$TMP/beside.gguf" "$TMP/adapter"
is "... has a warning" "$(sed 's/.*adapter: //' "$TMP/.out")" \
	"adapter_config.json: the adapter is left out: merge it into the model and save that"
# sampling: values that the metadata's types cannot hold say nothing
cp -r "$DATA/wiki-7m" "$TMP/sampling"
echo '{"temperature": 1e300, "top_k": 1099511627776, "top_p": 0.5}' >"$TMP/sampling/generation_config.json"
ok "generation_config.json with huge values" gguf-convert --vocab-only -o "$TMP/sampling.gguf" "$TMP/sampling"
is "... has its others taken" "$(gguf-info --json --metadata "$TMP/sampling.gguf" |
	jq -c '.metadata | with_entries(select(.key | startswith("general.sampling")))')" \
	'{"general.sampling.top_p":0.5}'

# ---- the bytes ----
cp -r "$DATA/wiki-7m" "$TMP/own"
for f in model.safetensors config.json; do
	says "onto its own $f" "same file" gguf-convert -o "$TMP/own/$f" "$TMP/own"
	same "... leaves it alone" "$TMP/own/$f" "$DATA/wiki-7m/$f"
done
echo '{}' >"$TMP/extra.json"
says "onto the keys" "same file" gguf-convert --metadata "$TMP/extra.json" -o "$TMP/extra.json" "$DATA/wiki-7m"
ok "beside them" gguf-convert -q --vocab-only -o "$TMP/own/new.gguf" "$TMP/own"
ok "... a second time, onto the first" gguf-convert -q --vocab-only -o "$TMP/own/new.gguf" "$TMP/own"
(cd "$TMP/own" && gguf-convert -q --vocab-only . >out)
same "... and by standard output" "$TMP/own/out" "$TMP/own/new.gguf"
ok "to a file" gguf-convert -j1 -o "$TMP/a.gguf" "$DATA/wiki-7m"
mkdir "$TMP/elsewhere"
cp -r "$DATA/wiki-7m" "$TMP/elsewhere/Other-Name-7B-v2"
ok "another folder, four threads" gguf-convert -j4 -o "$TMP/b.gguf" "$TMP/elsewhere/Other-Name-7B-v2"
same "same bytes" "$TMP/a.gguf" "$TMP/b.gguf"
from_within() { (cd "$TMP/elsewhere/Other-Name-7B-v2" && gguf-convert . | cat >"$TMP/c.gguf"); }
from_within
same "from within, through a pipe" "$TMP/a.gguf" "$TMP/c.gguf"
# one with a comma in its numbers
comma=$(locale -a 2>/dev/null | grep -iE '^(de_DE|fr_FR)' | head -1)
if [ "$comma" ]; then
	(export LC_ALL="$comma"; from_within)
	same "... in another locale" "$TMP/a.gguf" "$TMP/c.gguf"
else skip "... in another locale" "neither German nor French is installed"; fi
for t in f32 f16 q8_0; do
	gguf-convert -j1 -t $t -o "$TMP/a.$t" "$DATA/wiki-7m"
	gguf-convert -j3 -t $t -o "$TMP/b.$t" "$DATA/wiki-7m"
	same "$t: same bytes for any number of threads" "$TMP/a.$t" "$TMP/b.$t"
done
gguf-convert -t Q8_0 -o "$TMP/b.q8_0" "$DATA/wiki-7m"
same "types in any case" "$TMP/a.q8_0" "$TMP/b.q8_0"
# ---- straight to a recipe ----
sh -c "head -c 30000 '$DATA/prose/calibration.txt' | gguf-imatrix -q -m '$TMP/a.gguf' -o '$TMP/im.gguf'"
for r in Q4_K_M Q3_K_S Q6_K; do
	for im in "" "$TMP/im.gguf"; do
		gguf-convert -q -t $r ${im:+-i "$im"} -o "$TMP/one.gguf" "$DATA/wiki-7m"
		gguf-convert -q "$DATA/wiki-7m" | gguf-quantize -q ${im:+-i "$im"} $r >"$TMP/two.gguf"
		same "$r${im:+ with a matrix}: the bytes of two steps" "$TMP/one.gguf" "$TMP/two.gguf"
	done
done
says "a matrix without a recipe" "-i" gguf-convert -i "$TMP/im.gguf" -o "$TMP/no.gguf" "$DATA/wiki-7m"

ok "without weights" gguf-convert --vocab-only -o "$TMP/v.gguf" "$DATA/wiki-7m"
fresh
ok "without config.json" gguf-convert --vocab-only -o "$TMP/v2.gguf" "$TMP/m"

# ---- names and keys ----
echo '{"general.name": "From JSON", "general.author": "Somebody", "general.license": null, "general.x": 7,
	"general.tags": ["a", "b"]}' >"$TMP/keys.json"
ok "keys from a file" gguf-convert --name "From the line" --metadata "$TMP/keys.json" -o "$TMP/n.gguf" "$DATA/wiki-7m"
gguf-info --metadata "$TMP/n.gguf" >"$TMP/info"
is "the file wins" "$(grep -c 'From JSON' "$TMP/info")" 1
is "null removes" "$(grep -c 'general.license ' "$TMP/info")" 0
ok "--name" gguf-convert --name "From the line" -o "$TMP/n.gguf" "$DATA/wiki-7m"
is "--name is the name" "$(gguf-info --metadata "$TMP/n.gguf" | grep -c 'From the line')" 1
while IFS='|' read -r json message; do
	echo "$json" >"$TMP/keys.json"
	says "--metadata $json" "$TMP/keys.json: $message" \
		gguf-convert --metadata "$TMP/keys.json" -o "$TMP/no.gguf" "$DATA/wiki-7m"
done <<'END'
{"general.name": 7}|general.name: expected a value of its type, str
{"llama.block_count": -1}|llama.block_count: expected a value of its type, u32
{"llama.block_count": [1]}|llama.block_count: expected a value of its type, u32
{"tokenizer.ggml.tokens": "a"}|tokenizer.ggml.tokens: expected at most 1024 strings
{"tokenizer.ggml.scores": ["a"]}|tokenizer.ggml.scores: is an array of f32; only arrays of strings can be set
{"my.key": {}}|my.key: expected a string, a bool, a number or at most 1024 strings
{"my.key": 1e39}|my.key: is beyond the range of f32
{"": 1}|the key is empty or too long
END
ok "nothing is left behind at the end" [ ! -e "$TMP/no.gguf" ]

# side files that are pipes
echo '{"general.description": "from a pipe"}' >"$TMP/keys.json"
gguf-convert -q --metadata "$TMP/keys.json" -o "$TMP/a.gguf" "$DATA/wiki-7m"
gguf-convert -q --metadata - -o "$TMP/b.gguf" "$DATA/wiki-7m" <"$TMP/keys.json"
same "--metadata from standard input" "$TMP/b.gguf" "$TMP/a.gguf"
mkfifo "$TMP/fifo"
cat "$TMP/keys.json" >"$TMP/fifo" &
gguf-convert -q --metadata "$TMP/fifo" -o "$TMP/c.gguf" "$DATA/wiki-7m"
same "--metadata from a named pipe" "$TMP/c.gguf" "$TMP/a.gguf"
cat "$TMP/tiny.yaml" >"$TMP/fifo" &
ok "--arch-file from a named pipe" gguf-convert -q --arch-file "$TMP/fifo" -o "$TMP/d.gguf" "$DATA/wiki-7m"
says "standard input that is not JSON" "gguf-convert: (stdin): byte 0: line 1" \
	gguf-convert --metadata - -o "$TMP/no.gguf" "$DATA/wiki-7m" <"$TMP/tiny.yaml"
done_testing
