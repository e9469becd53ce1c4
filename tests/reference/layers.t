#!/bin/sh
# SPDX-License-Identifier: MIT
# Layers that differ in nearly everything that a description can vary have the logits of plain Python, from which
# they depart if one of these things is left out.
. "$(dirname "$0")/../lib/tap.sh"
command -v python3 >/dev/null || { skip "layers against plain Python" "no python3"; done_testing; exit; }
cd "$TMP" || exit 1
slow="python3 $SRC/tests/reference/slow_layers.py" yaml=$SRC/tests/reference/layers.yaml
$slow model >m.gguf
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%d ", (i*i*7 + 3*i + 5)%50 }' >ids
$slow logits <ids >want
logits() { gguf-logits -q -m m.gguf --arch-file "$1" -o got ids; }
close() { "$BUILD/tests/reference/tool_cmp_f32" got want 1e-4; }
ok "layers of all kinds" logits "$yaml"
ok "... have the logits of plain Python" close
mv got all
for n in 1 7; do
	gguf-logits -q -m m.gguf --arch-file "$yaml" -b "$n" -j 3 -o got ids
	same "... the same bits in batches of $n" got all
done
# without one of these the logits are others, so that none could be ignored: WHAT:SED-COMMAND
while IFS=: read -r what edit; do
	sed "$edit" "$yaml" >a.yaml
	ok "without $what" logits a.yaml
	not_ok "... others" 1 close
done <<'.'
a factor of embeddings:s/scale. 1.5/scale: 1/
a step's scale:/scale. "i == 1/d
a norm of values:/v_norm/d
a window:s/i == 0 ? 5/i == 0 ? 6/
a chunk:s/i == 1 ? 7/i == 1 ? 8/
a clip:/clip/d
a soft cap:/softcap. "/d
a scale of scores:/scale. "i == 2/d
biases by distance:/alibi/d
half of a head turned:s/"i == 2 . 4 . 8"/8/
pairs side by side:s/"i == 0 . 'half' . 'interleaved'"/half/
a condition of rope:s/base. 500, when. i != 1/base: 500/
a condition of a branch's norm:s/when. even}/when: i == 0}/
a branch whose values are its keys:/keys of/s/4/5/;/alike/,/k_norm/s/base. 500/base: 400/
keys of another layer:s/keys_of. i - 1/keys_of: i - 2/
a limit:/limit/d
a slope:/alpha/d
an addend:/up_add/d
the growth of queries:/growth/d
rope before norms:s/rope_first. true,//
a norm of what attention puts out:s/out_norm: {rms: on/out_norm: {layer: on/
a norm of what a feed-forward's last matrix takes in:s/down_norm: {layer/down_norm: {rms/
weights before the experts:/weigh_input/d
a scale of logits:s/, scale. 3//
a soft cap of logits:s/, softcap. 0.5//
.
sed 's/kind: sigmoid/kind: sparsemixer/; s/weigh_input: true/groups: 2/' "$yaml" >a.yaml
not_ok "a router of another kind with groups" 2 logits a.yaml
is "... is refused" "$(grep -c 'kind: sparsemixer has neither groups nor a bias (./a.yaml, line ' "$TMP/.out")" 1
done_testing
