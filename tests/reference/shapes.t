#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-convert refuses a tensor of another shape than config.json and the description's layers want, and names it: the
# reference checkpoints, with each axis of each tensor outside the layers and of the first layer doubled in turn.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "reference checkpoints"
ARCH=$SHARED/reference/arch
# what nobody reads, or reads in either shape: norms of a head or of a whole row, types of tokens beyond those used
EITHER='^(pooler\.|h\.0\.attn\.bias|embeddings\.token_type_embeddings|.*\.[qk]_norm\.weight)'

# variants FILE: a line for each, of the tensor, the file's bytes after the header, and the header
variants()
{
	bytes=$(od -A n -t u8 -N 8 "$1" | tr -d ' ')
	tail -c +9 "$1" | head -c "$bytes" |
		jq -r 'del(.__metadata__) | map_values({dtype, shape, n: (.data_offsets[1] - .data_offsets[0])}) as $all
		| $all | keys_unsorted[] | select(test("[.][1-9][0-9]*[.]") | not) as $t
		| range($all[$t].shape | length) as $axis
		| $all | .[$t].shape[$axis] *= 2 | .[$t].n *= 2
		| reduce keys_unsorted[] as $k ({at: 0, h: .};
			.h[$k] |= {dtype, shape, data_offsets: [0, .n]} | .h[$k].data_offsets[] += .at
			| .at = .h[$k].data_offsets[1])
		| "\($t)\t\(.at)\t\(.h | tojson)"'
}
# write FILE BYTES HEADER
write()
{
	# shellcheck disable=SC2059
	printf "\\$(printf %o $((${#3} % 256)))\\$(printf %o $((${#3} / 256)))\\0\\0\\0\\0\\0\\0" >"$1"
	printf %s "$3" >>"$1"
	truncate -s $((8 + ${#3} + $2)) "$1"
}

some=
[ -n "${SANITIZED:-}" ] ||
	some="qwen3 gemma2 phi3 gpt2 qwen3_moe dbrx deepseek_v3 phimoe mamba falcon gpt_neox mpt bloom cohere2
	modernbert gpt_bigcode phi2 stablelm ernie4_5_moe olmo3 nemotron granitemoe granitemoehybrid dots1"
for d in llama-linear-bias mixtral qwen2_moe deepseek_v2 gpt_oss gpt_oss-mxfp4 mamba2 falcon_h1 falcon-new bert \
	t5 $some; do
	rm -rf "$TMP/m"
	mkdir "$TMP/m"
	for f in "$ARCH/$d"/*; do
		case $f in *.safetensors|*/expected) ;; *) ln -s "$f" "$TMP/m" ;; esac
	done
	variants "$ARCH/$d/model.safetensors" >"$TMP/variants"
	: >"$TMP/passed"
	while IFS='	' read -r tensor bytes header; do
		write "$TMP/m/model.safetensors" "$bytes" "$header"
		gguf-convert -n "$TMP/m" >"$TMP/.out" 2>&1
		s=$?
		# of a weight and its bias, the one or the other
		base=${tensor%.weight}
		case $tensor in
		*embed*|*shared.weight|*wte.weight) grep -q "vocab_size\|embedding_length" "$TMP/.out" && continue ;;
		*_scales) base=${tensor%_scales} ;;
		esac
		[ "$s" = 2 ] && grep -q -F "$base" "$TMP/.out" && continue
		echo "$tensor" | grep -E -q "$EITHER" || echo "$tensor: exit $s: $(head -1 "$TMP/.out")" >>"$TMP/passed"
	done <"$TMP/variants"
	[ -s "$TMP/variants" ] || echo "none was made" >"$TMP/passed"
	is "$d: each of $(wc -l <"$TMP/variants") wrong shapes is refused by name" "$(cat "$TMP/passed")" ""
done

# config.json with fewer layers is no reason to leave one out
mkdir "$TMP/less"
cp -r "$ARCH/deepseek_v2/." "$TMP/less"           # and not a link to the folder, in which this would write
jq '.num_hidden_layers = 1' "$ARCH/deepseek_v2/config.json" >"$TMP/config.json"
chmod -R u+w "$TMP/less"
mv "$TMP/config.json" "$TMP/less"
not_ok "a layer more than config.json says, which nothing says is for predicting further on" 2 \
	gguf-convert -n "$TMP/less"
is "... is named" "$(grep -c 'model.layers.1..*no place for' "$TMP/.out")" 1
# ... but a layer that predicts further tokens is left out
jq '.num_nextn_predict_layers = 1' "$TMP/less/config.json" >"$TMP/config.json"
mv "$TMP/config.json" "$TMP/less"
ok "a layer that is for predicting further on is left out" gguf-convert -n "$TMP/less"
done_testing
