#!/bin/sh
# SPDX-License-Identifier: MIT
# Tensors that a checkpoint has twice, or under another name. What is expected is what transformers 5 does:
# equal ones are one, of two that differ each stands for itself, and either stands for the other if that is missing.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "tiny checkpoints"

header() { tail -c +9 "$1" | head -c "$(od -An -tu8 -N8 "$1" | tr -d ' ')"; }
# bytes FILE TENSOR: its data
bytes()
{
	# shellcheck disable=SC2046
	set -- "$1" $(od -An -tu8 -N8 "$1") $(header "$1" | jq -r --arg t "$2" '.[$t].data_offsets | @tsv')
	tail -c +$((9 + $2 + $3)) "$1" | head -c $(($4 - $3))
}
# given NAME: $TMP/m is the checkpoint, as the first of some shards
given()
{
	rm -rf "$TMP/m"
	mkdir "$TMP/m"
	for f in "$SHARED/reference/arch/$1"/*; do [ -d "$f" ] || cp "$f" "$TMP/m"; done
	chmod -R u+w "$TMP/m"
	mv "$TMP/m/model.safetensors" "$TMP/m/model-1.safetensors"
}
# copy OF NAME DTYPE [N]: shard N (2) that has tensor NAME of the shape of OF and the data of standard input
copy()
{
	head=$(header "$TMP/m/model-1.safetensors" | jq -c --arg of "$1" --arg to "$2" --arg t "$3" '.[$of]
		| (if $t != .dtype then 2 else 1 end) as $more
		| {($to): {dtype: $t, shape, data_offsets: [0, ((.data_offsets[1] - .data_offsets[0])*$more)]}}')
	# shellcheck disable=SC2059
	{ printf "\\$(printf %o ${#head})\\0\\0\\0\\0\\0\\0\\0"; printf %s "$head"; cat; } \
		>"$TMP/m/model-${4:-2}.safetensors"
}
other_first() { head -c 2 | tr "\000-\377" "\001-\377\000"; cat; }
words_to_f32() { printf %b "$(od -v -An -to1 -w2 | sed 's/ \(...\) \(...\)/\\0000\\0000\\0\1\\0\2/' | tr -d '\n')"; }
set_config() { jq "$1" "$TMP/m/config.json" >"$TMP/config" && cp "$TMP/config" "$TMP/m/config.json"; }
convert() { gguf-convert -t f32 -o "$TMP/$1" "$TMP/m"; }

for pair in llama3-tied:model.embed_tokens.weight:lm_head.weight mamba:backbone.embeddings.weight:lm_head.weight \
	bloom:word_embeddings.weight:lm_head.weight falcon:transformer.word_embeddings.weight:lm_head.weight \
		gpt2:wte.weight:lm_head.weight mpt:transformer.wte.weight:lm_head.weight \
		gemma:model.embed_tokens.weight:lm_head.weight cohere2:model.embed_tokens.weight:lm_head.weight \
	t5:shared.weight:lm_head.weight t5:shared.weight:encoder.embed_tokens.weight; do
	name=${pair%%:*} copy=${pair##*:} of=${pair#*:}
	of=${of%:*}
	given "$name"
	ok "$name: as it is" convert want
	type=$(header "$TMP/m/model-1.safetensors" | jq -r --arg of "$of" '.[$of].dtype')
	bytes "$TMP/m/model-1.safetensors" "$of" >"$TMP/data"
	copy "$of" "$copy" "$type" <"$TMP/data"
	ok "$name: $copy has the same values" convert got
	same "... which is left out" "$TMP/got" "$TMP/want"
	is "... in silence" "$(cat "$TMP/.out")" ""
	other_first <"$TMP/data" | copy "$of" "$copy" "$type"
	case $name in
	t5)
		not_ok "$name: $copy differs" 2 convert got
		is "... which this architecture cannot have" \
			"$(grep -c -e "only the output of tied" -e "of which it must be a copy" "$TMP/.out")" 1 ;;
	*)
		ok "$name: $copy differs" convert got
		is "... which is reported" \
			"$(grep -c "config.json: tie_word_embeddings: is true, but $copy differs from $of" \
			"$TMP/.out")" 1
		set_config '.tie_word_embeddings = false'
		ok "... it is what config.json would say" convert want
		same "... of a model that is not tied" "$TMP/got" "$TMP/want"
		is "... with a matrix for the output" "$(gguf-info --json --tensors "$TMP/got" |
			jq -r '.tensors[] | select(.name == "output.weight").name')" output.weight ;;
	esac
	[ "$type" != BF16 ] || {
		given "$name"
		ok "$name again" convert want
		words_to_f32 <"$TMP/data" | copy "$of" "$copy" F32
		ok "$name: $copy has the same values in another type" convert got
		same "... which is left out" "$TMP/got" "$TMP/want"
	}
done

# BERT's norms as they were called in TensorFlow; blanks keep the header's size
given bert
convert want
sed 's/LayerNorm[.]weight"/LayerNorm.gamma" /g; s/LayerNorm[.]bias"/LayerNorm.beta"/g' \
	"$TMP/m/model-1.safetensors" >"$TMP/renamed"
mv "$TMP/renamed" "$TMP/m/model-1.safetensors"
is "bert: norms with gamma and beta" \
	"$(header "$TMP/m/model-1.safetensors" | jq '[keys[] | select(test("[.](gamma|beta)$"))] | length')" \
	"$(jq '4*.num_hidden_layers + 2' "$TMP/m/config.json")"
ok "... are found" convert got
same "... and are weights and biases" "$TMP/got" "$TMP/want"

# the embeddings have taken in a factor, which is not that of the output matrix
given falcon_h1
bytes "$TMP/m/model-1.safetensors" model.embed_tokens.weight >"$TMP/data"
at=$(header "$TMP/m/model-1.safetensors" | jq '."lm_head.weight".data_offsets[0]')
dd if="$TMP/data" of="$TMP/m/model-1.safetensors" bs=1 conv=notrunc status=none \
	seek=$((8 + $(od -An -tu8 -N8 "$TMP/m/model-1.safetensors") + at))
ok "falcon_h1: a head with the values of the embeddings" convert want
set_config '.tie_word_embeddings = true'
ok "... that is tied" convert got
same "... is one of its own in the output" "$TMP/got" "$TMP/want"

# T5 as transformers 5 writes what was published as not tied
given t5
bytes "$TMP/m/model-1.safetensors" shared.weight | other_first | copy shared.weight lm_head.weight "$type"
set_config '.tie_word_embeddings = false'
ok "t5: not tied" convert want
set_config '.tie_word_embeddings = true | .scale_decoder_outputs = false'
ok "... tied, but not scaled, and with a head" convert got
same "... is the same" "$TMP/got" "$TMP/want"
set_config '.scale_decoder_outputs = true'
not_ok "... scaled, and with a head" 2 convert got
rm "$TMP/m/model-2.safetensors"
ok "... scaled, without a head" convert got
set_config '.scale_decoder_outputs = false'
ok "... neither scaled nor with a head" convert got
bytes "$TMP/m/model-1.safetensors" shared.weight | copy shared.weight lm_head.weight "$type"
set_config 'del(.scale_decoder_outputs) | .tie_word_embeddings = false'
ok "... which is as if the head had the values of the embeddings" convert want
same "... the same file" "$TMP/got" "$TMP/want"
rm "$TMP/m/model-2.safetensors"
not_ok "... not tied, without a head" 2 convert got
is "... by name" "$(grep -c "lm_head.weight: not in the checkpoint" "$TMP/.out")" 1
for tie in true false null; do
	set_config ".architectures = [\"MT5ForConditionalGeneration\"] | .feed_forward_proj = \"relu\"
		| .tie_word_embeddings = $tie"
	ok "mt5: without a head, and tie_word_embeddings is $tie" convert got
	same "... is not scaled" "$TMP/got" "$TMP/want"
done
set_config '.scale_decoder_outputs = true'
ok "mt5: and scale_decoder_outputs, which it does not read" convert got
same "... is not scaled" "$TMP/got" "$TMP/want"
set_config 'del(.scale_decoder_outputs)'
set_config '.tie_word_embeddings = true | .architectures = ["UMT5ForConditionalGeneration"]'
not_ok "umt5: biases of the first layer alone" 2 convert got
set_config '.architectures = ["T5ForConditionalGeneration"]'
convert want
logits() { echo "3 4 5 6 | 0 7 8 9" | gguf-logits -q -m "$TMP/$1" >"$TMP/$1.f32"; }
logits want
# biases: those of the second layers are the first ones' after a filter
biases()
{
	n=2
	for stack in encoder decoder; do
		bias=layer.0.SelfAttention.relative_attention_bias.weight
		bytes "$TMP/m/model-1.safetensors" $stack.block.0.$bias | "$@" |
			copy $stack.block.0.$bias $stack.block.1.$bias "$type" $n
		n=$((n + 1))
	done
}
set_config '.architectures = ["UMT5ForConditionalGeneration"]'
biases cat
ok "umt5: the same biases in each layer" convert got
is "... are in the file" "$(gguf-info --json --tensors "$TMP/got" | jq -c \
	'[.tensors[].name | select(contains("attn_rel_b"))] | sort')" '["dec.blk.0.attn_rel_b.weight",'\
'"dec.blk.1.attn_rel_b.weight","enc.blk.0.attn_rel_b.weight","enc.blk.1.attn_rel_b.weight"]'
ok "... which is evaluated" logits got
same "... as one with biases for all layers" "$TMP/got.f32" "$TMP/want.f32"
biases tr '\000-\377' '\001-\377\000'
ok "umt5: other biases in the second layer" convert got
ok "... which is evaluated" logits got
not_ok "... otherwise" 1 cmp "$TMP/got.f32" "$TMP/want.f32"

# the name of the copy alone, which is what safetensors keeps of two names for one tensor; blanks keep the header's size
given llama3-tied
convert want
sed 's/"model.embed_tokens.weight"/"lm_head.weight"           /' "$TMP/m/model-1.safetensors" >"$TMP/renamed"
mv "$TMP/renamed" "$TMP/m/model-1.safetensors"
ok "a tied output matrix without embeddings" convert got
same "... is the embeddings" "$TMP/got" "$TMP/want"
set_config '.tie_word_embeddings = false'
not_ok "... but not where it is not tied" 2 convert got
is "... by name" "$(grep -c "model.embed_tokens.weight: not in the checkpoint" "$TMP/.out")" 1
done_testing
