#!/bin/sh
# SPDX-License-Identifier: MIT
# Over the first 100 windows of WikiText-2's test text: the perplexity of the model as it was converted is that of a
# float32 evaluation elsewhere, to 1e-5; and the KL divergence from it that a recipe leaves is at most the better peer's
# and its standard error. One recipe; DIVERGENCE=all measures every one, some minutes, and DIVERGENCE='NAME ...' those
# named. With SANITIZED a few windows are evaluated, and the limits only rule out nonsense.
. "$(dirname "$0")/../lib/tap.sh"
peers=$SHARED/reference/peers/wiki-7m.json
text=$SHARED/data/wikitext-2-raw/wiki.test.raw
need_shared reference/peers/wiki-7m.json "perplexities and divergences of other programs"
[ -f "$text" ] || text=$text.gz
need_shared "data/wikitext-2-raw/$(basename "$text")" "the text"
cd "$TMP" || exit 1
ok "a model to work on" gguf-convert -q -o m.gguf "$DATA/wiki-7m"
ok "limits" sh -c "'$BUILD/tests/reference/tool_kld_limits' '$peers' >limits"
wanted=${DIVERGENCE:-IQ2_XXS}
chunks=100 close=1e-5 error_close=1e-4
if [ "${SANITIZED:-}" ]; then chunks=3 close=0.33 error_close=9; fi
measured=0
# with one thread each, which waits for no other
while read -r recipe mode best limit; do
	case " $wanted " in
	" all " | *" $recipe "*) ;;
	*) continue ;;
	esac
	[ "$mode" = none ] && [ -z "${DIVERGENCE:-}" ] && continue
	measured=$((measured + 1))
	if [ "$mode" = matrix ]; then
		gguf-quantize -q -i "$SHARED/reference/peers/imatrix-wiki-7m.gguf" -o q.gguf "$recipe" m.gguf
	else
		gguf-quantize -q -o q.gguf "$recipe" m.gguf
	fi
	gguf-quantize -q --allow-requantize -o d.gguf F32 q.gguf
	if [ "${SANITIZED:-}" ]; then limit=1; fi
	ok "$recipe, $mode: no more divergence than the better peer leaves" \
		gguf-perplexity -q -j1 -m d.gguf --base m.gguf --chunks "$chunks" --fail-above kld="$limit" --json \
			-o json "$text"
	jq -r --arg best "$best" '"# \(.base.kld), \(.base.kld/($best | tonumber)) of the better peer'\''s"' json
done <limits
ok "there are limits for what was asked" test "$measured" -gt 0
# float32_100.NAME of the references, as the last run had it
like() { jq -e --slurpfile w "$peers" "(.base.$1/\$w[0].float32_100.$1 - 1) | fabs < $2" json; }
ok "perplexity of the model" like ppl "$close"
ok "its error" like ppl_stderr "$error_close"
[ "${SANITIZED:-}" ] || is "scored tokens" "$(jq .n_scored json)" "$(jq .float32_100.n_scored "$peers")"
done_testing
