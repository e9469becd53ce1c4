#!/bin/sh
# SPDX-License-Identifier: MIT
# What programs compute from a model does not depend on the order of its metadata and tensors, nor on the width of its
# integers.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
cd "$TMP" || exit 1
head -c 6000 "$DATA/prose/calibration.txt" >text
# digests and names of tensors, whatever their order and the file's name
digests() { gguf-hash "$1" >all.digests && sed -n 's/ [^ ]*:/ /p' all.digests | sort; }
# what fails leaves nothing to compare
both()
{
	name=$1; shift
	for m in a b; do "$@" $m.gguf >$m.out || rm $m.out; done
	same "$name" b.out a.out
}
quantized()
{
	name=$1; shift
	for m in a b; do
		rm $m.out
		gguf-quantize -q "$@" -o $m.q $m.gguf && digests $m.q >$m.out
	done
	same "$name" b.out a.out
}
plan() { gguf-plan -q "$@" >plan && sort plan; }
logits() { gguf-tokenize -m "$1" text | cut -d' ' -f1-40 | gguf-logits -m "$1"; }
score() { gguf-perplexity -q -m "$1" -c 64 --json text; }
complete() { gguf-run -q -m "$1" --temp 0 -n 8 -p "The house of"; }
matrix() { gguf-imatrix -q -m "$1" -c 32 --covariance -o "$1.im" text && digests "$1.im"; }
estimate() { gguf-info --ctx 64 --json "$1" | jq -e .estimate; }
told_otherwise()
{
	"$BUILD/tests/cli/tool_turn" a.gguf >b.gguf
	ok "$1: the same model" gguf-diff --values a.gguf b.gguf
	digests a.gguf >a.out
	digests b.gguf >b.out
	same "... tensor by tensor" b.out a.out
	not_ok "... in another file" 1 cmp -s a.gguf b.gguf
	both "... logits" logits
	both "... its estimate of memory" estimate
	both "... importances and covariances" matrix
	both "... a plan for a size" plan -i a.gguf.im --bpw 7.5
	both "... and for the divergence" plan -i a.gguf.im --kld --bpw 7.5
	quantized "... quantized by covariances" -i a.gguf.im Q4_K_M
	quantized "... by a recipe of many types" -i a.gguf.im IQ3_M
	quantized "... calibrated" --calibrate text -c 32 --chunks 2 Q4_0
}
decodes()
{
	both "... perplexity" score
	both "... tokens" complete
}
first_layers 2 two && gguf-convert -q --type f32 -o a.gguf two
told_otherwise "the bundled model"
decodes
if [ -d "$SHARED/reference/arch" ]; then
	for arch in qwen2_moe granitemoehybrid gemma2 bert; do
		gguf-convert -q --type f32 -o a.gguf "$SHARED/reference/arch/$arch"
		told_otherwise $arch
		[ $arch = bert ] || decodes
	done
else skip "models of other architectures" "no reference checkpoints"; fi
done_testing
