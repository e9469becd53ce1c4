#!/bin/sh
# SPDX-License-Identifier: MIT
# Models of an encoder and a decoder: ids for both, what is refused, and descriptions with mistakes, by their place.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
keys='general.architecture=t5 t5.block_count=1 t5.context_length=64 t5.embedding_length=32 t5.feed_forward_length=64
	t5.attention.head_count=2 t5.attention.relative_buckets_count=8 t5.attention.layer_norm_rms_epsilon=1e-5'
block()
{
	b=$1.blk.0
	echo "$b.attn_norm.weight:f32:32 $b.attn_q.weight:f32:32x32 $b.attn_k.weight:f32:32x32
		$b.attn_v.weight:f32:32x32 $b.attn_o.weight:f32:32x32 $b.attn_rel_b.weight:f32:2x8
		$b.ffn_norm.weight:f32:32 $b.ffn_up.weight:f32:32x64
		$b.ffn_down.weight:f32:64x32 $1.output_norm.weight:f32:32"
}
c=dec.blk.0.cross_attn
tensors="token_embd.weight:f32:32x16 $(block enc) $(block dec)"
cross="${c}_norm.weight:f32:32 ${c}_q.weight:f32:32x32 ${c}_k.weight:f32:32x32
	${c}_v.weight:f32:32x32 ${c}_o.weight:f32:32x32"
# shellcheck disable=SC2086 # words
make_model() { "$BUILD/tests/cli/tool_mkgguf" $keys $tensors "$@" >m.gguf; }
refused()
{
	name=$1 words=$2; shift 2
	not_ok "$name" 2 gguf-logits -q -m m.gguf "$@"
	gguf-logits -q -m m.gguf "$@" 2>&1 >/dev/null | grep -qF "$words"
	tap_result $? "... $words"
	gguf-logits -q -m m.gguf "$@" 2>&1 >/dev/null | sed 's/^/# /'
}
# shellcheck disable=SC2086
make_model $cross t5.decoder_start_token_id=1
printf '1 2 3 4\n\n5 6\n7\n' >source
printf '1 8\n1 9 10\n1\n' >ids
ok "logits" gguf-logits -m m.gguf --source source -o logits ids
is "... of each of the decoder's tokens" "$(wc -c <logits | tr -d ' ')" $((6*16*4))
for n in 1 2; do
	gguf-logits -m m.gguf --source source --batch $n -o logits2 ids
	same "... the same in batches of $n" logits2 logits
done
ok "the residual stream" gguf-logits -m m.gguf --source source --hidden -o hidden ids
is "... is the decoder's" "$(wc -c <hidden | tr -d ' ')" $((2*6*32*4))
printf '1 2 3 4 | 1 8\n\n \t\n5 6|1 9,10\r\n7 |1' >both
ok "a line for both" gguf-logits -m m.gguf -o logits2 both
same "... gives the same logits" logits2 logits
gguf-logits -m m.gguf --hidden both | cmp -s - hidden
tap_result $? "... the same residual stream"
is "no calibration" "$(echo text | gguf-quantize -q --calibrate - -o q.gguf Q8_0 m.gguf 2>&1)" \
	"gguf-quantize: m.gguf: has an encoder; this program evaluates decoders only"
refused "no ids for the encoder" "ids: byte 0: no '|' between ids for the encoder and ids for the decoder of m.gguf" ids
both_refused()
{
	printf "$2" >few
	refused "both lists, $1" "few: byte $3" few
}
both_refused "none for the encoder" '1 | 1\n, | 3\n' "6: no ids for the encoder before '|'"
both_refused "none for the decoder" '1 | 1\n1 |\n' "8: no ids for the decoder after '|'"
both_refused "a third" '1 | 1 | 2\n' "6: '|' is not a token id"
both_refused "a token beyond the vocabulary" '1 | 16' "4: token 16 is not in the vocabulary"
head -2 ids >few
refused "too many sources" "source: has more sequences" --source source few
head -1 source >few
refused "too few sources" "few: has fewer sequences" --source few ids
not_ok "ids for both on standard input" 2 sh -c 'gguf-logits -m m.gguf --source - <source'
ok "ids for the encoder on standard input" sh -c 'gguf-logits -m m.gguf --source - ids <source | cmp - logits'
echo 16 >few
refused "a source that is no token" "few: byte 0: token 16 is not in the vocabulary" --source few ids

# shellcheck disable=SC2086
make_model $cross t5.attention.relative_buckets_count=16
refused "fewer biases than buckets" "enc.blk.0.attn_rel_b.weight: has shape 2 x 8, expected 2 x 16" \
	--source source ids
tensors_were=$tensors
tensors=$(echo "$tensors" | sed 's/\(rel_b.weight:f32:\)2x8/\18x2/g')
# shellcheck disable=SC2086
make_model $cross
refused "biases by head, not by bucket" "enc.blk.0.attn_rel_b.weight: has shape 8 x 2, expected 2 x 8" \
	--source source ids
tensors=$tensors_were
# shellcheck disable=SC2086
make_model $cross t5.decoder_start_token_id=4294967295
refused "a start beyond any token" "start: 4294967295 is not between -1 and 15" --source source ids
tensors_were=$tensors
tensors=$(echo "$tensors $cross" | sed 's/\(attn_[qkv].weight:f32:32x\)32/\11024/g; s/\(attn_o.weight:f32:\)32/\11024/g
	s/rel_b.weight:f32:2/rel_b.weight:f32:1024/')
make_model t5.attention.head_count=1024 t5.attention.key_length=1 t5.attention.relative_max_distance=65536
refused "half a gigabyte of biases by distance" "relative: the biases of all heads for all distances are too many" \
	--source source ids
tensors=$tensors_were
# shellcheck disable=SC2086
make_model $cross t5.decoder_start_token_id=1

# descriptions: T5's with one mistake each
cp "$SRC/model/arch/t5.yaml" t5.yaml
mistake()
{
	sed "$3" t5.yaml >a.yaml
	refused "description: $1" "$2" --arch-file a.yaml --source source ids
}
line=$(grep -n '^    encoder:' t5.yaml | sed 's/:.*//')
mistake "a stack of another name" "middle: unknown key" 's/^    encoder:/    middle:/'
mistake "an encoder alone" "stacks: expected an encoder and a decoder" '/^    decoder:/,$d'
mistake "an encoder that sees the past alone" "encoder: expected mask: none (./a.yaml, line $((line + 1))" \
	's/mask: none/mask: causal/'
mistake "a decoder that sees all" "decoder: expected mask: causal" 's/^      blocks: dec.blk/&\n      mask: none/'
mistake "a misspelt key of a stack" "block: unknown key" 's/^      blocks: dec.blk/      block: dec.blk/'
mistake "tensors of another name" "dek.blk.0.attn_norm.weight: is missing" \
	's/^      blocks: dec.blk/      blocks: dek.blk/'
mistake "blocks that are no name" "blocks: expected a prefix of tensor names" \
	's/^      blocks: dec.blk/      blocks: [dec]/'
mistake "a bias that is not there" "enc.blk.7.attn_rel_b.weight: is missing" \
	's|bias: \[attn_rel_b, /enc.blk.0.attn_rel_b\]|bias: /enc.blk.7.attn_rel_b|'
mistake "a start that is no token" "start: 16 is not between -1 and 15" 's/start: decoder_start_token_id/start: 16/'
mistake "a start between tokens" "start: expected a token id" 's/start: decoder_start_token_id/start: 1.5/'
mistake "a decoder that never looks at the encoder" "decoder: never attends to the encoder" \
	'/^        cross:/,/^        ffn:/{/^        ffn:/!d;}'
across='cross_attention: {q: attn_q, k: attn_k, v: attn_v, out: attn_o, heads: 2}'
mistake "an encoder that looks across" "cross_attention: there is no encoder to attend to" \
	"/^    encoder:/,/^    decoder:/s/^      layer:/&\n        cross: {branches: {encoder: {$across}}}/"
mistake "keys of another layer in an encoder" "keys_of: of a whole sequence" \
	'/^    encoder:/,/^    decoder:/s/scale: 1/&\n                keys_of: 0/'
mistake "queries that are missing" "q: is missing" '/^                q: cross_attn_q$/d'
mistake "heads that do not go together" "not a multiple of key-value heads" \
	's/^                out: cross_attn_o$/&\n                kv_heads: 3/'
mistake "keys of another width" "cross_attn_k.weight: has shape 32 x 32, expected 32 x 16" \
	's/^                out: cross_attn_o$/&\n                kv_heads: 1/'
make_model
refused "a model without the tensors of cross-attention" "dec.blk.0.cross_attn_norm.weight: is missing" \
	--source source ids

"$BUILD/tests/cli/tool_mkgguf" general.architecture=llama llama.block_count=1 llama.embedding_length=32 \
	llama.attention.head_count=2 llama.attention.layer_norm_rms_epsilon=1e-5 token_embd.weight:f32:32x16 \
		output_norm.weight:f32:32 \
	blk.0.attn_norm.weight:f32:32 blk.0.attn_q.weight:f32:32x32 blk.0.attn_k.weight:f32:32x32 \
		blk.0.attn_v.weight:f32:32x32 \
	blk.0.attn_output.weight:f32:32x32 blk.0.ffn_norm.weight:f32:32 blk.0.ffn_gate.weight:f32:32x64 \
		blk.0.ffn_up.weight:f32:32x64 \
	blk.0.ffn_down.weight:f32:64x32 >m.gguf
refused "a source for a model without an encoder" "m.gguf: has no encoder" --source source ids
done_testing
