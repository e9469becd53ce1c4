#!/bin/sh
# SPDX-License-Identifier: MIT
# From every type to every type, through a file and through a pipe, against the long way: decoded to a file of floats,
# which is then quantized. A type to itself keeps its bytes. With SANITIZED a type goes only to itself, to the next one and
# to f32, so that each is read and made once or more.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
q="gguf-quantize -q --effort 1"
mk=$BUILD/tests/cli/tool_mkgguf
"$mk" blk.0.ffn_up.weight:f32:512x5 blk.0.ffn_down_exps.weight:f32:256x3x2 blk.0.ffn_norm.weight:f32:96 >f.gguf
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 blk.0.ffn_up.weight.in_sum2:f32:512:square blk.0.ffn_up.weight.counts:f32:1:one \
	blk.0.ffn_down_exps.weight.in_sum2:f32:256x2:square blk.0.ffn_down_exps.weight.counts:f32:1x2:one >im.gguf
types=$(gguf-quantize --tensor-type '.=none' F32 f.gguf 2>&1 >/dev/null | sed 's/.*these are://')
is "types that can be made" "$(echo "$types" | wc -w | tr -d ' ')" 28

# to TYPE IN: the model with every weight as TYPE
to() { $q -i im.gguf --allow-requantize --tensor-type ".=$1" F32 "$2"; }
for from in $types; do
	to "$from" f.gguf >from.gguf || { ok "made of floats: $from" false; continue; }
	to f32 from.gguf >floats.gguf
	bad='' to=$types
	if [ "${SANITIZED:-}" ]; then
		next=${types#*"$from"}
		next=${next# }
		to="$from ${next%% *} f32"
	fi
	for type in $to; do
		to "$type" from.gguf >file.gguf || bad="$bad $type(exit)"
		# shellcheck disable=SC2002  # a pipe is the point
		cat from.gguf | to "$type" - | cat >pipe.gguf
		if [ "$type" = "$from" ]; then cp from.gguf want.gguf; else to "$type" floats.gguf >want.gguf; fi
		cmp -s file.gguf want.gguf || bad="$bad $type"
		cmp -s pipe.gguf want.gguf || bad="$bad $type(pipe)"
	done
	is "from $from" "$bad" ""
done
done_testing
