#!/bin/sh
# SPDX-License-Identifier: MIT
# The perplexity of 100 windows of wikitext-2 is that of a float32 evaluation elsewhere, to 1e-5. With SANITIZED it is
# that of 3 windows, to a third.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/peers/wiki-7m.json "perplexities of other programs"
text=$SHARED/data/wikitext-2-raw/wiki.test.raw
[ -f "$text" ] || text=$text.gz
need_shared "data/wikitext-2-raw/$(basename "$text")" "the text"
ok "convert" gguf-convert -q -o "$TMP/m.gguf" "$DATA/wiki-7m"
if [ "${SANITIZED:-}" ]; then
	gguf-perplexity -q -m "$TMP/m.gguf" --chunks 3 --json "$text" >"$TMP/got"
	ok "perplexity of 3 windows" jq -e --slurpfile w "$SHARED/reference/peers/wiki-7m.json" '(.ppl/$w[0].float32_100.ppl - 1) | fabs < 0.33' "$TMP/got"
	done_testing
fi
gguf-perplexity -q -m "$TMP/m.gguf" --chunks 100 --json "$text" >"$TMP/got"
sed -n 1,3p "$TMP/got" | sed 's/^/# /'
ok "perplexity" jq -e --slurpfile w "$SHARED/reference/peers/wiki-7m.json" '(.ppl/$w[0].float32_100.ppl - 1) | fabs < 1e-5' "$TMP/got"
ok "its error" jq -e --slurpfile w "$SHARED/reference/peers/wiki-7m.json" '(.ppl_stderr/$w[0].float32_100.ppl_stderr - 1) | fabs < 1e-4' "$TMP/got"
ok "scored tokens" jq -e --slurpfile w "$SHARED/reference/peers/wiki-7m.json" '.n_scored == $w[0].float32_100.n_scored' "$TMP/got"
done_testing
