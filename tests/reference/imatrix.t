#!/bin/sh
# SPDX-License-Identifier: MIT
# The importance matrix of wiki-7m equals llama-imatrix's: for every tensor, the norm of the difference is under a
# thousandth of the norm. The peer sums float32 squares of activations that went through its own arithmetic.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/peers/imatrix-wiki-7m.gguf "the peer's importance matrix"
cd "$TMP" || exit 1
peer=$SHARED/reference/peers/imatrix-wiki-7m
text=$SHARED/data/prose/calibration.txt
[ -e "$text" ] || text=$DATA/prose/calibration.txt
ok "the model in float32" gguf-convert -q --type f32 -o f32.gguf "$DATA/wiki-7m"
ok "the matrix" gguf-imatrix -m f32.gguf -o ours.gguf "$text"
gguf-diff --values "$peer.gguf" ours.gguf >values
is "they differ, and can be compared" $? 1
is "tensors and shapes are the same" "$(grep -vc '^values' values)" 0
is "the worst is under 1e-3" "$(awk '{ if ($NF > 1e-3) n++ } END { print n + 0 }' values)" 0
echo "# worst: $(awk '{ print $NF, $2 }' values | sort -g | tail -n 1)"
gguf-diff --metadata --ignore datasets "$peer.gguf" ours.gguf >metadata
same "metadata but for the name of the text" metadata /dev/null
ok "the peer's old form is read" gguf-imatrix --merge -o dat.gguf "$peer.dat"
gguf-diff --values "$peer.gguf" dat.gguf >values
is "... and says the same" "$([ $? != 2 ] && awk '$NF > 1e-6' values | wc -l | tr -d ' ')" 0
ok "no path is passed on" sh -c 'gguf-imatrix --merge "$1" | gguf-info --metadata | grep "\"calibration.txt\""' - \
	"$peer.gguf"
done_testing
