#!/bin/sh
# SPDX-License-Identifier: MIT
# SIGKILL at random instants: under its final name an output is complete, or still the old file. KILLS=1000 kills each
# program so often (6); TEST_SEED chooses the instants.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
tool=$BUILD/tests/cli/tool_kill
kills=${KILLS:-6}
seed=${TEST_SEED:-$$}
echo "# TEST_SEED=$seed"
cd "$TMP" || exit 1
small_checkpoint small
gguf-convert -q -o m.gguf small
head -c 2000 "$DATA/prose/calibration.txt" >text
gguf-tokenize -m m.gguf text | head -c 200 >ids
echo 'before' >before

# instants COMMAND...: as many microseconds as there are kills, up to a little more than the command takes
instants()
{
	took=$("$tool" 0 "$@")
	awk -v n="$kills" -v t="$took" -v seed="$seed" \
		'BEGIN { srand(seed); for (i = 0; i < n; i++) print 1 + int(rand()*t*1.1) }'
}
# whole A WANT: whether file A is what it was before, or WANT
whole() { cmp -s "$1" before || cmp -s "$1" "$2"; }

# killed NAME COMMAND...: writes "out", over what is there
killed()
{
	name=$1; shift
	cp before out
	instants "$@" >moments
	mv out want
	bad='' ended=0
	if cmp -s before want; then bad=" nothing was written"; fi
	while read -r t <&3; do
		cp before out
		"$tool" "$t" "$@" >/dev/null 2>&1 && ended=$((ended + 1))
		whole out want || bad="$bad $t"
	done 3<moments
	is "$name: $kills instants, $((kills - ended)) before the end" "$bad" ""
	rm -f .out.*
}
killed gguf-convert gguf-convert -q -o out small
killed gguf-quantize gguf-quantize -q -o out Q4_K_M m.gguf
killed gguf-edit gguf-edit --set general.name=str:x -o out m.gguf
killed gguf-cat gguf-cat --decode -o out m.gguf token_embd.weight
killed gguf-logits gguf-logits -m m.gguf -o out ids
killed gguf-imatrix gguf-imatrix -q -m m.gguf --ctx 32 --chunks 2 -o out text
killed gguf-plan gguf-plan --bpw 5 -o out m.gguf
killed gguf-info gguf-info --json -o out m.gguf
killed gguf-hash gguf-hash --sha256 -o out m.gguf
killed "gguf-perplexity --save-logits" gguf-perplexity -q -m m.gguf --ctx 32 --chunks 2 --save-logits out text

# shards: one that has its final name is whole, and if the first one has it, all have
cut="gguf-split -q --max-tensors 4 -o s m.gguf"
# shellcheck disable=SC2086
instants $cut >moments
for f in s-0*; do mv "$f" "want${f#s}"; done
shards=$(find . -name 'want-0*' | wc -l)
bad=
[ "$shards" -gt 1 ] || bad=" nothing was written"
while read -r t <&3; do
	# shellcheck disable=SC2086
	"$tool" "$t" $cut >/dev/null 2>&1
	for f in s-0*; do [ ! -e "$f" ] || cmp -s "$f" "want${f#s}" || bad="$bad $t($f)"; done
	[ ! -e s-00001-of-0000"$((shards))".gguf ] || [ "$(find . -name 's-0*' | wc -l)" = "$shards" ] ||
		bad="$bad $t(a shard is missing)"
	rm -f s-0* .s-0*
done 3<moments
is "gguf-split: $kills instants" "$bad" ""

# in place: old or new; or marked, which every program refuses until gguf-edit -I has brought the old header back
gguf-edit -I --reserve 4k m.gguf
cp m.gguf before
cp m.gguf e.gguf
edit="gguf-edit -I --set general.name=str:another e.gguf"
# shellcheck disable=SC2086
instants $edit >moments
mv e.gguf want
bad='' undone=0
if cmp -s before want; then bad=" nothing was edited"; fi
while read -r t <&3; do
	cp before e.gguf
	# shellcheck disable=SC2086
	"$tool" "$t" $edit >/dev/null 2>&1
	if ! whole e.gguf want; then
		undone=$((undone + 1))
		! gguf-info e.gguf >/dev/null 2>&1 || bad="$bad $t(half edited, and read)"
		gguf-edit -I e.gguf 2>/dev/null
		cmp -s e.gguf before || bad="$bad $t(not undone)"
	fi
	rm -f .e.gguf.*
done 3<moments
is "gguf-edit -I: $kills instants, $undone of them in the middle" "$bad" ""
done_testing
