#!/bin/sh
# SPDX-License-Identifier: MIT
# Three programs in a pipe write the bytes that they write one after the other, for every recipe: to one file, to shards
# and from shards.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
cd "$TMP" || exit 1
small_checkpoint small
gguf-convert -q -o m.gguf small
gguf-split -q --max-tensors 5 -o m m.gguf
head -c 4000 "$DATA/prose/calibration.txt" | gguf-imatrix -q -m m.gguf --ctx 64 --process-output -o im.gguf
edit='--set general.name=str:piped --set general.license=str:mit'

# shards_differ A B: the shards of A that B does not have alike
shards_differ()
{
	for f in "$1"-0*; do cmp -s "$f" "$2${f#"$1"}" || printf ' %s' "$f"; done
	[ "$(find . -name "$1-0*" | wc -l)" = "$(find . -name "$2-0*" | wc -l)" ] || printf ' count'
}
gguf-quantize nonsense 2>&1 | sed -n 's/^  \([A-Z0-9_]*\)  .*/\1/p' >recipes
ok "recipes are listed" [ "$(wc -l <recipes)" -gt 30 ]
while read -r r <&3; do
	gguf-quantize -q -i im.gguf -o q.gguf "$r" m.gguf
	# shellcheck disable=SC2086
	gguf-edit $edit -o e.gguf q.gguf
	gguf-split -q --max-tensors 4 -o s e.gguf
	# shellcheck disable=SC2086
	gguf-convert -q small | gguf-quantize -q -i im.gguf "$r" | gguf-edit $edit >p.gguf
	is "$r: convert, quantize, edit" "$(cmp p.gguf e.gguf 2>&1)" ""
	# shellcheck disable=SC2086
	gguf-quantize -q -i im.gguf "$r" m-00001-of-*.gguf | gguf-edit $edit | gguf-split -q --max-tensors 4 -o p
	is "$r: shards, quantize, edit, split" "$(shards_differ s p)" ""
	# shellcheck disable=SC2086
	gguf-split --merge m-00001-of-*.gguf | gguf-quantize -q -i im.gguf "$r" | gguf-edit $edit >p.gguf
	is "$r: merge, quantize, edit" "$(cmp p.gguf e.gguf 2>&1)" ""
	rm -f s-0* p-0*
done 3<recipes
done_testing
