#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize --calibrate: each tensor is fitted to what those before it became; the bytes do not depend on threads.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
cd "$TMP" || exit 1
q='gguf-quantize -q'
text=$DATA/prose/calibration.txt
gguf-convert -q -o m.gguf "$DATA/wiki-7m" && gguf-quantize -q -o f32.gguf F32 m.gguf &&
	gguf-imatrix -q -m m.gguf --chunks 4 --covariance -o c.gguf "$text" &&
	first_layers 2 two && gguf-convert -q -o two.gguf two || { echo "1..1";
		echo "not ok 1 - a model and its matrix"; exit 1; }

# few windows, so that a test takes seconds
few='--chunks 4'
$q $few --calibrate "$text" -o a.gguf Q4_K_S m.gguf
types() { jq -r '.tensors[] | [.name, .'$1'] | join(" ")' | tr A-Z a-z | sort; }
gguf-quantize --json -n Q4_K_S m.gguf | types to >want
gguf-info --json a.gguf | types type >got
same "types are those of the recipe" got want
# tests of equal bytes need no more than two layers and this, for feedback in rows of 256; determinism.t tries other
# instruction sets
least='--ctx 32 --chunks 8'
$q $least --calibrate "$text" -j 3 -o e.gguf Q4_K_S two.gguf
$q $least --calibrate "$text" -j 1 Q4_K_S two.gguf >b.gguf
same "-j 1" b.gguf e.gguf
if GGUF_CPU=avx2 gguf-info --version >/dev/null 2>&1; then
	GGUF_CPU=avx2 $q $least --calibrate "$text" -o b.gguf Q4_K_S two.gguf
	same "with avx2" b.gguf e.gguf
else skip "with avx2" "this CPU has no avx2"; fi
$q $least --calibrate - -o b.gguf Q4_K_S two.gguf <"$text"
is "from standard input" "$(gguf-cat b.gguf blk.1.ffn_down.weight | cksum)" \
	"$(gguf-cat e.gguf blk.1.ffn_down.weight | cksum)"
is "the text's name is kept" "$(gguf-info --get quantize.imatrix.dataset a.gguf)" calibration.txt
$q $least --calibrate "$text" --shards 2 -o s Q4_K_S two.gguf
is "in shards" "$(gguf-cat s-00001-of-00002.gguf blk.1.ffn_down.weight | cksum)" \
	"$(gguf-cat e.gguf blk.1.ffn_down.weight | cksum)"
is "too many of them are refused before the text is read" \
	"$($q --calibrate none --shards 1000 -o s Q4_K_S two.gguf 2>&1 | sed 's/[0-9]* tensors/N tensors/')" \
	"gguf-quantize: two.gguf: has N tensors, too few for 1000 shards"
$q $least --calibrate "$text" --json -o b.gguf Q4_K_S two.gguf >table.json
is "the table has errors" "$(jq '[.tensors[] | select(.error > 0)] | length' table.json)" 16
small_checkpoint tied && gguf-convert -q -o tied.gguf tied
$q --ctx 32 --chunks 32 --calibrate "$text" --json -o b.gguf Q4_K_S tied.gguf >table.json
ok "an embedding that is the output too is fitted to what it meets there" jq -e '.tensors[] |
	select(.name == "token_embd.weight") | .output_error < 0.9*.output_error_before' table.json

# more windows than are evaluated at once (2048 tokens), by a model that has no position after a window's last
gguf-info --json tied.gguf >vocab.json
for list in tokens:str scores:f32 token_type:i32; do
	jq -c ".metadata[\"tokenizer.ggml.${list%:*}\"]" vocab.json >"vocab.${list%:*}"
	echo "--set-file tokenizer.ggml.${list%:*}=${list#*:}[]:vocab.${list%:*}"
done >vocab.lists
places() # X: what follows the sizes of matrices
{
	"$BUILD/tests/cli/tool_mkgguf" general.architecture=gpt2 gpt2.block_count=1 gpt2.context_length=32 \
		gpt2.embedding_length=64 gpt2.feed_forward_length=64 gpt2.attention.head_count=2 \
		gpt2.attention.layer_norm_epsilon=0.00001 tokenizer.ggml.model=llama token_embd.weight:f16:64x4096 \
		position_embd.weight:f32:64x32 output_norm.weight:f32:64:one output_norm.bias:f32:64:zero \
		blk.0.attn_norm.weight:f32:64:one blk.0.attn_norm.bias:f32:64:zero \
		"blk.0.attn_qkv.weight:f16:64x192$1" blk.0.attn_qkv.bias:f32:192:zero \
		"blk.0.attn_output.weight:f16:64x64$1" blk.0.attn_output.bias:f32:64:zero \
		blk.0.ffn_norm.weight:f32:64:one blk.0.ffn_norm.bias:f32:64:zero \
		"blk.0.ffn_up.weight:f16:64x64$1" blk.0.ffn_up.bias:f32:64:zero \
		"blk.0.ffn_down.weight:f16:64x64$1" blk.0.ffn_down.bias:f32:64:zero >bare
	# shellcheck disable=SC2046
	gguf-edit $(cat vocab.lists) -o places.gguf bare
}
places ""
ok "each window begins at position 0" $q --ctx 32 --chunks 66 --calibrate "$text" -o b.gguf Q4_0 places.gguf
is "a window with more positions than the model: the file is named" \
	"$(gguf-quantize -q --ctx 33 --chunks 1 --calibrate "$text" -o never Q4_0 places.gguf 2>&1)" \
	"gguf-quantize: places.gguf: position_embd.weight: the model has only 32 positions"
places x1x1
$q --ctx 32 --chunks 66 --calibrate "$text" -o d.gguf Q4_0 places.gguf
for w in attn_output ffn_up ffn_down; do
	is "... and $w is the same if its shape has ones at the end" "$(gguf-cat d.gguf blk.0.$w.weight | cksum)" \
		"$(gguf-cat b.gguf blk.0.$w.weight | cksum)"
done

gguf-perplexity -q -m f32.gguf --chunks 4 --save-logits base "$DATA/prose/evaluation.txt" >/dev/null
kld()
{
	gguf-quantize -q --allow-requantize -o d.gguf F32 "$1"
	gguf-perplexity -q -m d.gguf --base base "$DATA/prose/evaluation.txt" | sed -n 's/^kld \([0-9.]*\).*/\1/p'
}
for type in Q4_K_S Q2_K_S; do
	$q -i c.gguf -o b.gguf $type m.gguf
	[ $type = Q4_K_S ] || $q $few --calibrate "$text" -o a.gguf $type m.gguf
	one=$(kld b.gguf) all=$(kld a.gguf)
	echo "# $type: feedback $one, calibrated $all"
	ok "$type: a tenth less divergence than with feedback alone" test "$(echo "$one $all" |
		awk '{ print $2 < 0.9*$1 }')" = 1
done
for type in Q8_0 IQ4_NL IQ2_XS F16; do
	ok "$type" $q --ctx 64 --chunks 4 --calibrate "$text" --pure -o b.gguf $type two.gguf
done

mkdir else && ln -s else/linked.gguf link.gguf
$q $least --calibrate "$text" -o plain.gguf Q4_K_S two.gguf
ok "a link to a file in another folder" $q $least --calibrate "$text" -o link.gguf Q4_K_S two.gguf
same "... which is written" else/linked.gguf plain.gguf
$q $least --calibrate "$text" -o /dev/stdout Q4_K_S two.gguf >b.gguf
same "standard output by name" b.gguf plain.gguf
ok "... a pipe" sh -c "$q $least --calibrate '$text' -o /dev/stdout Q4_K_S two.gguf | cmp - plain.gguf"

is "no room for the output: it is found before anything is computed" \
	"$( (ulimit -f 8; $q $least --calibrate "$text" -o never Q4_K_S two.gguf) 2>&1 |
		sed 's/needs [0-9.]*/needs N/')" \
	"gguf-quantize: never: needs N MiB: File too large"
not_ok "a matrix and a text" 2 $q -i c.gguf --calibrate "$text" -o never Q4_K_S m.gguf
not_ok "a model from a pipe" 2 sh -c "gguf-quantize --calibrate '$text' -o never Q4_K_S <m.gguf"
mkfifo fifo
cat m.gguf >fifo 2>/dev/null &
is "... or a named one" "$(gguf-quantize --calibrate "$text" -o never Q4_K_S fifo 2>&1)" \
	"gguf-quantize: fifo: with --calibrate, the model cannot be a pipe: it is mapped into memory"
wait
ok "a plan and a text, both from standard input" \
	sh -c "gguf-quantize --calibrate - --plan - -o never m.gguf 2>&1 </dev/null | grep -q 'plan and the text'"
not_ok "a model that is quantized" 2 gguf-quantize --allow-requantize --calibrate "$text" -o never Q4_K_S a.gguf
not_ok "no text" 2 gguf-quantize --calibrate nowhere -o never Q4_K_S m.gguf
echo few >short
not_ok "a text shorter than a window" 2 gguf-quantize --calibrate short -o never Q4_K_S m.gguf
not_ok "windows without a text" 2 gguf-quantize --chunks 2 -o never Q4_K_S m.gguf
norm=$(gguf-info --json two.gguf | jq '.data_offset + (.tensors[] | select(.name == "blk.1.ffn_norm.weight").offset)')
cp two.gguf nan.gguf
printf '\000\000\300\177' | dd of=nan.gguf bs=1 seek="$norm" conv=notrunc 2>/dev/null
is "a model that gives NaN: the weight is named" "$(gguf-quantize -q --calibrate "$text" --chunks 1 -o never Q4_K_S \
	nan.gguf 2>&1)" "gguf-quantize: the inputs of blk.1.ffn_up.weight are not finite"
is "and nothing is written" "$(ls never .never* 2>/dev/null)" ""
done_testing
