#!/bin/sh
# SPDX-License-Identifier: MIT
# What gguf-logits refuses: models whose metadata or tensors make no sense as the graph of their architecture, and
# descriptions of architectures with mistakes, by their place.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
echo 0 1 >ids
mk=$BUILD/tests/cli/tool_mkgguf
keys='llama.block_count=1 llama.context_length=64 llama.embedding_length=32 llama.feed_forward_length=64
	llama.attention.head_count=2'
eps=llama.attention.layer_norm_rms_epsilon
b=blk.0
tensors="token_embd.weight:f32:32x16 output_norm.weight:f32:32 $b.attn_norm.weight:f32:32
	$b.attn_q.weight:f32:32x32 $b.attn_k.weight:f32:32x32 $b.attn_v.weight:f32:32x32
	$b.attn_output.weight:f32:32x32 $b.ffn_norm.weight:f32:32 $b.ffn_gate.weight:f32:32x64
	$b.ffn_up.weight:f32:32x64 $b.ffn_down.weight:f32:64x32"
# shellcheck disable=SC2086 # words
make_model() { "$mk" $keys $tensors "$@" >h.gguf; }
# refused NAME MESSAGE ARGUMENTS...: exit 2, and the message has these words
refused()
{
	name=$1 words=$2; shift 2
	not_ok "$name" 2 gguf-logits -q -m h.gguf "$@" ids
	gguf-logits -q -m h.gguf "$@" ids 2>&1 >/dev/null | grep -qF "$words"
	tap_result $? "... $words"
	gguf-logits -q -m h.gguf "$@" ids 2>&1 >/dev/null | sed 's/^/# /'
}

make_model $eps=1e-5
ok "a model" gguf-logits -q -m h.gguf -o logits ids
make_model
refused "no epsilon" "h.gguf: $eps: the metadata have no value (llama.yaml, line "
for v in nan inf -1.5 2.5; do
	make_model $eps=$v
	refused "an epsilon of $v" "is not between 0 and 1"
done
for v in nan 0.5 -10000.0 inf; do
	make_model $eps=1e-5 llama.rope.freq_base=$v
	refused "a rope base of $v" "base: "
done
make_model $eps=1e-5 llama.rope.freq_base=0.01
refused "a number beyond its bounds, as it was given" "base: 0.01 is not between 1 and 1000000000000 "
make_model $eps=1e-5 llama.attention.head_count=16777217
refused "... in all its digits" "heads: 16777217 is not between 1 and 16777216 "
make_model $eps=1e-5 llama.attention.head_count=1.5
refused "one head and a half" "heads: expected a whole number"
make_model $eps=1e-5
gguf-logits -q -m h.gguf -o logits ids
keys_were=$keys
keys=$(echo "$keys" | sed 's/head_count=2/head_count=[2]/')
make_model $eps=1e-5
gguf-logits -q -m h.gguf -o logits2 ids
same "heads layer by layer, of which there is one" logits2 logits
keys=$(echo "$keys_were" | sed 's/head_count=2/head_count=[2,2]/')
make_model $eps=1e-5
refused "heads of more layers" \
	"h.gguf: llama.attention.head_count: has 2 values, but the number of layers is 1 (common.yaml, line "
keys=$keys_were
# of_experts KEY=VALUE MESSAGE: DeepSeek V3's, of which there are eight in two groups
xargs "$mk" <"$SRC/tests/fuzz/corpus/model/deepseek_v3.mkgguf" >v3.gguf
of_experts()
{
	gguf-edit --set "deepseek2.expert_${1%=*}=u32:${1#*=}" -o h.gguf v3.gguf
	refused "experts: $1" "h.gguf: deepseek2.expert_${1%=*}: $2 (deepseek2.yaml, line "
}
of_experts used_count=9 "is more than the number of experts"
of_experts used_count=5 "is more than the groups that are used have"
of_experts group_count=3 "does not divide the number of experts"
of_experts group_used_count=3 "is more than the number of groups"
make_model $eps=[1]
refused "a list that nobody asked to read layer by layer" "eps: expected a number"
make_model $eps=1e-5 llama.rope.dimension_count=7
refused "an odd rope" "odd number of dimensions"
make_model $eps=1e-5 llama.rope.dimension_count=18
refused "a rope wider than a head" "more than a head has"
# turn_nothing: makes the rope divisors of h.gguf 1e30
turn_nothing()
{
	from=$(gguf-info --json h.gguf |
		jq '.data_offset + (.tensors[] | select(.name == "rope_freqs.weight").offset)')
	for j in 0 1 2 3 4 5 6 7; do printf '\312\362\111\161'; done |
		dd of=h.gguf bs=1 seek="$from" conv=notrunc 2>/dev/null
}
make_model $eps=1e-5 rope_freqs.weight:f32:8:zero
refused "rope divisors of zero" "factor 0 is 0, not between"
make_model $eps=1e-5 rope_freqs.weight:f32:8:huge
refused "rope divisors that are huge or negative" "factor 0 is "
make_model $eps=1e-5 rope_freqs.weight:f32:8:one
turn_nothing
ok "rope divisors of 1e30" gguf-logits -q -m h.gguf -o logits2 ids
sed 's/^\( *\)style: interleaved/&\n\1when: false/' "$SRC/model/arch/llama.yaml" >still.yaml
make_model $eps=1e-5
gguf-logits -q -m h.gguf --arch-file still.yaml -o logits3 ids
same "... turn nothing" logits2 logits3
make_model $eps=1e-5 rope_freqs.weight:f32:7:one
refused "too few rope divisors" "expected 8 numbers"
make_model $eps=1e-5 rope_freqs.weight:f32:2x4:one
refused "rope divisors in two rows" "rope_freqs.weight: has shape 2 x 4, expected 8 numbers"
make_model $eps=1e-5 $b.attn_q.bias:f32:1x32
ok "a bias whose dimensions are 1 but for one" gguf-logits -q -m h.gguf -o logits2 ids
make_model $eps=1e-5 $b.attn_q.bias:f32:8x4
refused "a bias that is a matrix" "blk.0.attn_q.bias: has shape 8 x 4, but its weight has 32 outputs"
keys=$(echo "$keys_were" | sed 's/llama.context_length=64//')
make_model $eps=1e-5 llama.rope.scaling.type=yarn llama.rope.scaling.factor=4
refused "yarn without any length of context" "yarn needs the original context length"
keys=$keys_were
make_model $eps=1e-5 llama.rope.scaling.type=linear llama.rope.scaling.factor=0
refused "linear scaling by zero" "linear: 0 is not between"
make_model $eps=1e-5 llama.attention.head_count_kv=4
refused "more KV heads than heads" "not a multiple of key-value heads"
make_model $eps=1e-5 llama.attention.key_length=4294967295
refused "a head as wide as 2^32" "head_dim: "

make_model $eps=1e-5 llama.rope.scaling.type=longrope
refused "a scaling that the graph does not do" \
	"rope.scaling.type: only linear and yarn are supported (architecture llama)"
for t in $b.attn_q_norm.weight:f32:16 $b.attn_q.scale:f32:1 blk.1.attn_norm.weight:f32:32 extra:f32:2; do
	make_model $eps=1e-5 $t
	refused "a tensor that no layer has a use for" "${t%%:*}: no layer reads it (llama.yaml)"
done
make_model $eps=1e-5 cls.weight:f32:32x32
gguf-logits -q -m h.gguf -o logits2 ids
same "a head of another task changes nothing" logits2 logits
keys=$(echo "$keys_were" | sed 's/block_count=1/block_count=2/')
make_model $eps=1e-5 llama.nextn_predict_layers=1 blk.1.attn_norm.weight:f32:32 blk.1.nextn.enorm.weight:f32:32
gguf-logits -q -m h.gguf -o logits2 ids
same "nor does a layer that predicts tokens further on" logits2 logits
make_model $eps=1e-5 llama.nextn_predict_layers=1 blk.1.attn_norm.weight:f32:32 $b.nextn.enorm.weight:f32:32
refused "such a tensor in a layer that is evaluated" "blk.0.nextn.enorm.weight: no layer reads it (llama.yaml)"
keys=$keys_were
make_model $eps=1e-5 llama.attention.value_length=8
refused "values of another width" "attention.value_length: only values as wide"
make_model $eps=1e-5 llama.expert_count=4
refused "experts without a router" "blk.0.ffn_gate_inp.weight: is missing"

# angles far beyond what sin and cos are exact for: refused or finished, never undefined
make_model $eps=1e-5 rope_freqs.weight:f32:8:one llama.rope.freq_base=1e12
ok "the largest rope base" gguf-logits -q -m h.gguf -o logits ids
make_model $eps=1e-5 output_norm.bias:f32:32:huge $b.attn_q.bias:f32:32:huge $b.attn_k.bias:f32:32:huge
ok "logits that overflow are no error" gguf-logits -q -m h.gguf -o logits ids

# sizes that have their tensors, and whose product would be gigabytes for each sequence
"$mk" general.architecture=mamba2 mamba2.block_count=1 mamba2.embedding_length=1 \
	mamba2.attention.layer_norm_rms_epsilon=1e-5 mamba2.ssm.conv_kernel=1 mamba2.ssm.inner_size=512 \
	mamba2.ssm.state_size=65536 mamba2.ssm.time_step_rank=1 mamba2.ssm.group_count=1 token_embd.weight:f32:1x4 \
	output_norm.weight:f32:1 $b.attn_norm.weight:f32:1 $b.ssm_in.weight:f32:1x132097 \
	$b.ssm_conv1d.weight:f32:1x131584 $b.ssm_conv1d.bias:f32:131584 $b.ssm_dt.bias:f32:1 $b.ssm_a:f32:1x1 \
	$b.ssm_d:f32:1x1 $b.ssm_norm.weight:f32:512 $b.ssm_out.weight:f32:512x1 >h.gguf
refused "a state as large as its sizes allow" "state: asks for more than 2^24 numbers in a sequence"

# matrices that are kept as vectors, in the order that they must have
make_scan() { "$mk" general.architecture=mamba mamba.block_count=1 mamba.embedding_length=4 \
	mamba.attention.layer_norm_rms_epsilon=1e-5 mamba.ssm.conv_kernel=4 mamba.ssm.inner_size=8 \
	mamba.ssm.state_size=$3 mamba.ssm.time_step_rank=1 token_embd.weight:f32:4x16 output_norm.weight:f32:4 \
	$b.attn_norm.weight:f32:4 $b.ssm_in.weight:f32:4x16 $b.ssm_conv1d.weight:f32:$1 $b.ssm_conv1d.bias:f32:8 \
	$b.ssm_x.weight:f32:8x$((2*$3 + 1)) $b.ssm_dt.weight:f32:1x8 $b.ssm_dt.bias:f32:8 $b.ssm_a:f32:$2 \
	$b.ssm_d:f32:8 $b.ssm_out.weight:f32:8x4 >h.gguf; }
make_scan 4x8 16x8 16
ok "a scan" gguf-logits -q -m h.gguf -o logits ids
make_scan 4x8 2000x8 2000
ok "one of many states" gguf-logits -q -m h.gguf -o logits ids
make_scan 4x8 8x16 16
refused "its matrix the other way round" "blk.0.ssm_a: has shape 8 x 16, expected 16 x 8"
make_scan 8x4 16x8 16
refused "its convolution the other way round" "blk.0.ssm_conv1d.weight: has shape 8 x 4, expected 4 x 8"

# a convolution whose width the metadata do not say: that of its tensor, if it is one
make_mamba() { "$mk" general.architecture=mamba2 mamba2.block_count=1 mamba2.embedding_length=4 \
	mamba2.attention.layer_norm_rms_epsilon=1e-5 mamba2.ssm.inner_size=8 mamba2.ssm.state_size=4 \
	mamba2.ssm.time_step_rank=2 mamba2.ssm.group_count=1 token_embd.weight:f32:4x16 output_norm.weight:f32:4 \
	$b.attn_norm.weight:f32:4 $b.ssm_in.weight:f32:4x26 $b.ssm_conv1d.weight:f32:$1x16 $b.ssm_conv1d.bias:f32:16 \
	$b.ssm_dt.bias:f32:2 $b.ssm_a:f32:1x2 $b.ssm_d:f32:1x2 $b.ssm_norm.weight:f32:8 $b.ssm_out.weight:f32:8x4 \
	>h.gguf; }
make_mamba 16
ok "a convolution of 16 tokens" gguf-logits -q -m h.gguf -o logits ids
make_mamba 17
refused "one of 17" "conv: does not have 1 to 16 weights for each channel"

make_model general.architecture=nonesuch
refused "an unknown architecture" "nonesuch: is not a known architecture (known: b"
make_model $eps=1e-5
awk 'BEGIN { for (i = 0; i < 1100; i++) printf "%d ", i % 16 }' >long
gguf-logits -q -j 1 -m h.gguf long >a
gguf-logits -q -j 3 -m h.gguf long >b
same "rope tables that threads share have the same bits" b a
is "... for every position" "$(wc -c <a | tr -d ' ')" $((1100*16*4))

# descriptions: llama's with one mistake each
make_model $eps=1e-5
# mistake NAME MESSAGE SED-COMMAND
mistake()
{
	sed "$3" llama.yaml >a.yaml
	refused "description: $1" "$2" --arch-file a.yaml
}
# keys that it inherits are written out, so that a mistake can be made in them
sed '/^graph:/{
n
a\
    n_kv: attention.head_count\
    eps: attention.layer_norm_rms_epsilon
}' "$SRC/model/arch/llama.yaml" >llama.yaml
cat >>llama.yaml <<END
  layers: block_count
  output: {norm: {rms: output_norm, eps: eps}, head: [output, token_embd]}
END
cp llama.yaml a.yaml
ok "the description as a file" gguf-logits -q -m h.gguf --arch-file a.yaml -o logits ids
sed "s/act: silu,/act: \"n_layer == 0 ? 'relu' : 'silu'\",/" llama.yaml >b.yaml
gguf-logits -q -m h.gguf --arch-file b.yaml -o other ids
same "an activation by an expression" other logits
# a norm that a model may lack; [] is a norm without weights
ffn_norm() { sed "s/norm: {rms: ffn_norm, eps: eps}/norm: {rms: $1, eps: eps$2}/" llama.yaml >b.yaml; }
ffn_norm '[ffn_norm, null]' ''
gguf-logits -q -m h.gguf --arch-file b.yaml -o other ids
same "a norm whose tensor may be missing" other logits
tensors_were=$tensors
tensors=$(echo "$tensors" | sed "s/$b.ffn_norm.weight:f32:32//")
make_model $eps=1e-5
gguf-logits -q -m h.gguf --arch-file b.yaml -o other ids
ffn_norm '[]' ', when: false'
gguf-logits -q -m h.gguf --arch-file b.yaml -o logits2 ids
same "... and is: there is no norm" other logits2
ffn_norm '[]' ''
gguf-logits -q -m h.gguf --arch-file b.yaml -o logits2 ids
not_ok "... where [] would be one without weights" 1 cmp -s other logits2
tensors=$tensors_were
# divisors in some layers: those of 1e30 turn nothing
rope() { sed "s/^\( *\)style: interleaved/&\n\1$1/;s/^graph:/&\n  ignore: {rope_freqs: true}/" llama.yaml; }
keys=$(echo "$keys_were" | sed 's/block_count=1/block_count=2/')
second=$(echo "$tensors" | tr -s ' \t' '\n' | sed -n 's/^blk.0/blk.1/p')
# shellcheck disable=SC2086 # words
make_model $eps=1e-5 $second rope_freqs.weight:f32:8:one
turn_nothing
rope 'divide: {by: rope_freqs, when: i == 1}' >b.yaml
gguf-logits -q -m h.gguf --arch-file b.yaml -o logits2 ids
rope 'divide: null\n\1when: i == 0' >b.yaml
gguf-logits -q -m h.gguf --arch-file b.yaml -o logits3 ids
same "rope divisors of a layer" logits2 logits3
rope 'divide: {by: rope_freqs, when: i < 2}' >b.yaml
gguf-logits -q -m h.gguf --arch-file b.yaml -o logits3 ids
not_ok "... and of both are two" 1 cmp -s logits2 logits3
gguf-logits -q -m h.gguf -o logits2 ids
same "... the latter as without a condition" logits2 logits3
for i in 1 2; do
	sed "s/^            window: .*/            growth: {by: 1, every: 1, when: i == $i}/" llama.yaml >b.yaml
	gguf-logits -q -m h.gguf --arch-file b.yaml -o "grown$i" ids
done
same "growth in no layer" logits2 grown2
not_ok "... and in one" 1 cmp -s logits2 grown1
# layers whose values are their keys lack attn_v; those of layer 1 do here
sed '/ qkv: /d' llama.yaml >c.yaml
# shellcheck disable=SC2086 # words
make_model $eps=1e-5 $second
size=$((32*32*4)) data=$(gguf-info --json h.gguf | jq .data_offset)
tensor_at() { gguf-info --json h.gguf | jq ".tensors[] | select(.name == \"$1\").offset + $data"; }
tail -c +$(($(tensor_at blk.1.attn_k.weight) + 1)) h.gguf | head -c $size >k
dd if=k of=h.gguf bs=1 seek="$(tensor_at blk.1.attn_v.weight)" conv=notrunc 2>/dev/null
gguf-logits -q -m h.gguf -o other ids
sed 's/^\( *\)heads: n_head$/&\n\1keys_of: i - 1/' llama.yaml >d.yaml
gguf-logits -q -m h.gguf --arch-file d.yaml -o logits3 ids
gguf-edit --rename-tensor blk.1.attn_v.weight=v.extra -o i.gguf h.gguf
mv i.gguf h.gguf
ok "a layer without attn_v" gguf-logits -q -m h.gguf --arch-file c.yaml -o logits2 ids
same "... has its keys as values" logits2 other
refused "... unless the description has qkv, where values may be" "blk.1.attn_v.weight: is missing" --arch-file a.yaml
ok "... and the layer has keys of its own" gguf-logits -q -m h.gguf --arch-file d.yaml -o logits2 ids
same "... without which it is as if it had both" logits2 logits3
keys=$keys_were
make_model $eps=1e-5
gguf-logits -q -m h.gguf -o logits ids
line=$(grep -n 'kv_heads: n_kv' a.yaml | sed 's/:.*//')
mistake "a misspelt key" "kv_head: unknown key (./a.yaml, line $line, column 13)" \
	's/kv_heads: n_kv/kv_head: n_kv/'
mistake "a key of another part" "softcap: unknown key" 's/act: silu,/act: silu, softcap: 1,/'
mistake "an unknown part" "outputs: unknown key" 's/^  output:/  outputs:/'
mistake "a key of an operator that this model has not" "use: unknown key (./a.yaml, line " \
	's/used: expert_used_count/use: expert_used_count/'
mistake "... and below it" "gates: unknown key (./a.yaml, line " 's/each: {gate: /each: {gates: /'
mistake "... of a rope that no layer has" "bas: unknown key (./a.yaml, line " \
	's/style: interleaved/when: false/;s/base: rope/bas: rope/'
mistake "... of a norm that no layer has" "epsilon: unknown key (./a.yaml, line " \
	's/norm: {rms: ffn_norm, eps: eps}/norm: {rms: ffn_norm, epsilon: eps, when: false}/'
mistake "an expression for what this model has not" "expression: expert_count + (./a.yaml, line " \
	's/count: expert_count/count: expert_count +/'
mistake "... in a name that nothing uses" "expression: n_ff + (./a.yaml, line " \
	's/^    n_ff_exp: n_ff$/    n_ff_exp: n_ff +/'
mistake "a misspelt name" "effs: no expression reads it (./a.yaml, line " 's/^    eps: .*/    effs: 1e-5/'
mistake "names that are none" "names: expected a mapping (./a.yaml, line " \
	'/^graph:/,/^  check:/{/^    /d;s/names:/& dense/;}'
mistake "an error in an expression, by its place" "expected numbers (./a.yaml, line $line, column 28)" \
	"s/kv_heads: n_kv/kv_heads: n_kv + 'x'/"
mistake "a field left out, by the place of the others" "heads: is missing (./a.yaml, line $((line - 6)), column " \
	's/^\( *\)heads: n_head$/\1/'
mistake "an expression without a value" \
	"llama.nonesuch: the metadata have no value (./a.yaml, line $((line - 1)), column " \
	's/^\( *heads:\) n_head$/\1 nonesuch/'
mistake "a tensor that the model lacks" "blk.0.attn_z.weight: is missing (./a.yaml, line $((line - 6)), column " \
	's/\<attn_q\>/attn_z/'
mistake "an error in quotes" "end of text in expression" "s/kv_heads: n_kv/kv_heads: 'n_kv +'/"
mistake "a name that needs itself" "names refer to each other" 's/^    eps: .*/    eps: eps + 1/'
mistake "a check without a message" "check: expected [expression, message]" \
	's/^    expert_count: null/    expert_count: [true]/'
mistake "no steps" "layer: expected steps by name" \
	's/^  layer: .*/  layer: none/;/^    attn:/,/each: /d;/^    dense: (/d
	/^    n_ff_exp: n_ff$/d;/^    n_kv: /d'
mistake "an unknown activation" "act: expected silu" 's/act: silu,/act: swish,/'
mistake "an activation by an unknown function" "swish: no such function" "s/act: silu,/act: swish('silu'),/"
mistake "chunks of a whole sequence" "chunk: expected mask: causal (./a.yaml, line " \
	's/^  layer:/  mask: none\n&/;s/^            window: .*/            chunk: 3/'
mistake "a condition of rope divisors that is misspelt" "wen: unknown key (./a.yaml, line " \
	's/^\( *\)style: interleaved/&\n\1when: false\n\1divide: {by: rope_freqs, wen: i == 1}/'
mistake "... or has none" "by: is missing" 's/^\( *\)style: interleaved/&\n\1divide: {when: i == 1}/'
mistake "growth without a pace" "llama.nonesuch: the metadata have no value" \
	's/^            window: .*/            growth: {by: 1, every: nonesuch}/'
mistake "... or an amount" "by: is missing" 's/^            window: .*/            growth: {every: 5}/'
mistake "another schema" "expected schema: 1" 's/^schema: 1/schema: 2/'
mistake "broken YAML, by its place" "column " 's/^arch: llama/arch: [llama/'
# each of ten names uses the next one eight times: a thousand million evaluations, if nobody counted
awk '{ print } /^    eps: / {
	for (i = 0; i < 10; i++) { n = "x" i + 1; print "    x" i ": " n "+" n "+" n "+" n "+" n "+" n "+" n "+" n }
	print "    x10: 0" }' llama.yaml | sed 's/kv_heads: n_kv/kv_heads: n_kv + x0/' >a.yaml
refused "description: names that multiply" "names are used too many times" --arch-file a.yaml
# a chain is a tree as deep as it is long: the stack is bounded
mistake "a long chain of operators" "too many operators in a row" \
	"s/kv_heads: n_kv/kv_heads: $(awk 'BEGIN { for (i = 0; i < 300; i++) printf "1 + "; print 1 }')/"

# one factor for all positions, and the same in the scale of the scores
make_model $eps=1e-5 $b.kv_a.weight:f32:32x24 $b.kv_b.weight:f32:16x32 $b.out.weight:f32:16x32
latent()
{
	printf '%s\n' 'schema: 1' 'arch: llama' 'classes: {LlamaForCausalLM: {}}' 'graph:' '  ignore: {blk: true}' \
		'  input: {embed: token_embd}' '  layers: block_count' \
		'  layer: {attn: {branches: {self: {latent_attention: {q: attn_q, kv_a: kv_a, kv_b: kv_b, out: out,' \
		"    heads: 2, rank: 16, nope_dim: 8, rope_dim: 8, value_dim: 8, $1}}}}}" \
		'  output: {norm: {rms: output_norm, eps: 1e-5}, head: token_embd}' >a.yaml
	gguf-logits -q -m h.gguf --arch-file a.yaml -o "$2" ids
}
ok "latent attention" latent "scale: 0.25" plain
ok "... with queries that grow" latent "scale: 0.25, growth: {by: 1 / log(2), every: 9999, from: 9999}" grown
ok "... with a larger scale" latent "scale: 0.5" scaled
same "... is the same" grown scaled
not_ok "... and not as before" 1 cmp -s grown plain
done_testing
