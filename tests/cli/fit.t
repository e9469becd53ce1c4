#!/bin/sh
# SPDX-License-Identifier: MIT
# The scripts that choose the encoders' constants: their choice agrees with what the source has.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1

for type in q2_k q4_k q4_0 iq4_xs; do
	SAMPLES=300 sh "$SRC/scripts/fit-starts" $type >list
	is "fit-starts $type: a start a line" "$(awk '$1 ~ /^[0-9]+$/ && NF >= 4' list |
		wc -l)" "$(sed -n '$s/^ *\([0-9]*\).*/\1/p' list)"
	ok "fit-starts $type: no start raises what is left" \
		awk '$1 ~ /^[0-9]+$/ && NF >= 4 { if (last && $(NF - 1) > last) exit 1; last = $(NF - 1) }' list
	# other samples than those that the list in the source was made from: a fiftieth of what is left is between them
	ok "fit-starts $type: the list in the source is as good" \
		awk '$1 == 8 { seen = 1; exit !($NF < 1.02*$(NF - 1)) } END { exit !seen }' list
done
not_ok "fit-starts wants a type with starts" 2 sh "$SRC/scripts/fit-starts" q8_0

gguf-convert -q -o m.gguf "$DATA/wiki-7m"
BUILD=$BUILD sh "$SRC/scripts/fit-objective" -n 1 -d "0 .22" -l 0 q3_K m.gguf - "$DATA/prose/evaluation.txt" >table
is "fit-objective: a line for each choice" "$(wc -l <table)" 4
is "fit-objective: nothing beside the error is plain" "$(awk 'NR == 3 { print $5 }' table)" 1.000
done_testing
