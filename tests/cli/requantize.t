#!/bin/sh
# SPDX-License-Identifier: MIT
# From every type to every type, through a file and through a pipe, against the long way: decoded to a file of floats,
# which is then quantized. A type to itself keeps its bytes. Layer K of the model is for the K-th type.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
q="gguf-quantize -q --effort 1"
mk=$BUILD/tests/cli/tool_mkgguf
"$mk" output.weight:f32:256x1 >one.gguf
types=$(gguf-quantize --tensor-type '.=none' F32 one.gguf 2>&1 >/dev/null | sed -n 's/.*the types are://p')
is "types that can be made" "$(echo "$types" | wc -w | tr -d ' ')" 28

# layers TEXT...: each of the texts 28 times, with the number of a layer in place of &
layers() { for arg; do seq 0 27 | sed "s/.*/$arg/"; done; }
# shellcheck disable=SC2046 # words
"$mk" $(layers blk.\&.ffn_up.weight:f32:512x5 blk.\&.ffn_down_exps.weight:f32:256x3x2 \
	blk.\&.ffn_norm.weight:f32:96) >f.gguf
# shellcheck disable=SC2046
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 \
	$(layers blk.\&.ffn_up.weight.in_sum2:f32:512:square \
	blk.\&.ffn_up.weight.counts:f32:1:one blk.\&.ffn_down_exps.weight.in_sum2:f32:256x2:square \
		blk.\&.ffn_down_exps.weight.counts:f32:1x2:one) >im.gguf
k=0
for type in $types; do
	for part in ffn_up ffn_down_exps; do printf -- '- {tensor: blk.%d.%s.weight, type: %s}\n' $k $part "$type"; done
	k=$((k + 1))
done >plan
quantize() { $q -i im.gguf --allow-requantize "$@"; }
# digests FILE: of each tensor, "BLOCK.PART digest"
digests() { gguf-hash --tensors "$1" | sed 's/^xxh3 *\([0-9a-f]*\) .*:blk\.\([0-9]*\)\.\(.*\)\.weight$/\2.\3 \1/' |
	sort; }
k=0
for from in $types; do
	quantize --tensor-type ".=$from" F32 f.gguf >from.gguf
	quantize --tensor-type .=f32 F32 from.gguf >floats.gguf
	quantize --plan plan from.gguf >file.gguf
	# shellcheck disable=SC2002  # a pipe is the point
	cat from.gguf | quantize --plan plan - | cat >pipe.gguf
	quantize --plan plan floats.gguf >long.gguf
	digests file.gguf >got
	{ digests long.gguf | grep -v "^$k\.ffn_[ud]"; digests from.gguf | grep "^$k\.ffn_[ud]"; } | sort >want
	is "from $from to $(gguf-info --json file.gguf | jq '[.tensors[].type] | unique | length') types" \
		"$(wc -l <got) $(diff want got)" "84 "
	same "... through a pipe" pipe.gguf file.gguf
	k=$((k + 1))
done
done_testing
