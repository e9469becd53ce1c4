#!/bin/sh
# SPDX-License-Identifier: MIT
# The KL divergence that a recipe leaves, from the float model, over the first 100 windows of WikiText-2's test text:
# at most the better peer's and its standard error. One recipe; DIVERGENCE=all measures every one, some minutes, and
# DIVERGENCE='NAME ...' those named. With SANITIZED a few windows are evaluated, and the limit is that of no nonsense.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/peers/wiki-7m.json "divergence of recipes"
need_shared data/wikitext-2-raw/wiki.test.raw "divergence of recipes"
text=$SHARED/data/wikitext-2-raw/wiki.test.raw
gguf-convert -q -o "$TMP/m.gguf" "$DATA/wiki-7m" && gguf-quantize -q -o "$TMP/f32.gguf" F32 "$TMP/m.gguf" ||
	{ echo "1..1"; echo "not ok 1 - a model to work on"; exit 1; }
"$BUILD/tests/reference/tool_kld_limits" "$SHARED/reference/peers/wiki-7m.json" >"$TMP/limits" || { echo "1..1"; echo "not ok 1 - limits"; exit 1; }
wanted=${DIVERGENCE:-IQ2_XXS}
chunks=100
# with one thread each, which waits for no other
n=0
while read -r recipe mode best limit; do
	case " $wanted " in
	" all " | *" $recipe "*) ;;
	*) continue ;;
	esac
	[ "$mode" = none ] && [ -z "${DIVERGENCE:-}" ] && continue
	n=$((n + 1))
	if [ "$mode" = matrix ]; then
		gguf-quantize -q -i "$SHARED/reference/peers/imatrix-wiki-7m.gguf" -o "$TMP/q.gguf" "$recipe" "$TMP/m.gguf"
	else
		gguf-quantize -q -o "$TMP/q.gguf" "$recipe" "$TMP/m.gguf"
	fi
	gguf-quantize -q --allow-requantize -o "$TMP/d.gguf" F32 "$TMP/q.gguf"
	if [ "${SANITIZED:-}" ]; then chunks=3 limit=1; fi
	if kld=$(gguf-perplexity -q -j1 -m "$TMP/d.gguf" --base "$TMP/f32.gguf" --chunks "$chunks" --fail-above kld="$limit" "$text"); then ok=ok; else ok='not ok'; fi
	kld=$(echo "$kld" | sed -n 's/^kld \([0-9.]*\).*/\1/p')
	echo "$ok $n - $recipe, $mode: $kld, $(echo "$kld $best" | awk '{ printf "%.3f", $1/$2 }') of the better peer's"
	rm -f "$TMP/q.gguf" "$TMP/d.gguf"
done <"$TMP/limits"
echo "1..$n"
