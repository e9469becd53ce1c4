#!/bin/sh
# SPDX-License-Identifier: MIT
# Mistakes seen in other programs for GGUF files, each of which is avoided here: output that is not
# complete, files that cannot be read again, an exit status of 0 after a failure, crashes.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
cd "$TMP" || exit 1
mk=$BUILD/tests/cli/tool_mkgguf
small_checkpoint small
gguf-convert -q -o m.gguf small
head -c 3000 "$DATA/prose/calibration.txt" >text
names() { gguf-info --json "$1" | jq -c '[.tensors[].name]'; }

# ---- quantizing ----
gguf-quantize -q -o q.gguf Q4_K_M m.gguf
cat m.gguf | gguf-quantize -q Q4_K_M | cat >p.gguf
same "from a pipe into a pipe: the header is there, the bytes are those of the file" p.gguf q.gguf
not_ok "a full disk" 2 gguf-quantize -q -o /dev/full Q8_0 m.gguf
"$mk" general.architecture=llama token_embd.weight:f32:8x16 >narrow.gguf
not_ok "a type that the rows do not fit" 2 gguf-quantize -q --token-embedding-type q4_K -o never.gguf Q8_0 narrow.gguf
ok "... leaves no file" test ! -e never.gguf
ok "rows of 8 do not stop a run to Q8_0" gguf-quantize -q -o n8.gguf Q8_0 narrow.gguf
is "... they become F16" "$(gguf-info --json n8.gguf | jq -r '.tensors[0].type')" f16
gguf-edit --set general.alignment=u32:4096 -o wide.gguf m.gguf
gguf-quantize -q -o w.gguf Q8_0 wide.gguf
is "an alignment of 4096: what is quantized has no defect" "$(gguf-check --profile llama.cpp w.gguf; echo $?)" 0
is "... and the same weights" "$(gguf-hash --whole - <w.gguf)" "$(gguf-quantize -q Q8_0 m.gguf | gguf-hash --whole)"
gguf-split -q --max-tensors 4 -o w w.gguf
gguf-split --merge w-00001-of-*.gguf | cmp -s - w.gguf
is "... and its shards are merged to the same file" $? 0
"$mk" general.architecture=superpoint b.weight:f32:256x4 a.weight:f32:256x4 >superpoint.gguf
ok "an architecture that nobody knows" gguf-quantize -q -o s.gguf Q4_K_M superpoint.gguf
is "... keeps the order of its tensors" "$(names s.gguf)" '["b.weight","a.weight"]'
"$mk" general.architecture=superpoint l0_weights:f32:256x4 >idle.gguf
is "a model without a weight that a recipe quantizes is named" "$(gguf-quantize -o s.gguf Q8_0 idle.gguf 2>&1)" \
	"gguf-quantize: idle.gguf: has no tensor that recipes quantize (several rows, a name that ends in \
weight): all stay as they are"
is "... and one without tensors is not" "$("$mk" general.architecture=llama | gguf-quantize Q8_0 2>&1 >s.gguf)" ""
is "... nor one that is copied" "$(gguf-quantize COPY idle.gguf 2>&1 >s.gguf)" ""
is "words go to standard error" "$(gguf-quantize -v -o q.gguf Q4_K_M m.gguf 2>/dev/null | wc -c | tr -d ' ')" 0
gguf-edit --set x.n=i32:-7 --set "x.s=str:$(printf '%0300d' 0)" --set "$(printf 'k%0200d' 0)=u8:1" -o edited.gguf m.gguf
is "a number keeps its sign, a string and a key their length" \
	"$(gguf-info --json edited.gguf | jq -c '.metadata | [."x.n", (."x.s" | length), ([keys[] | length] | max)]')" \
		'[-7,300,201]'
mkdir secret
gguf-imatrix -q -m m.gguf --ctx 32 --chunks 2 -o secret/im.gguf "$PWD/text"
gguf-quantize -q -i "$PWD/secret/im.gguf" -o q.gguf Q4_K_M m.gguf
is "no path gets into a model" "$(gguf-info --json q.gguf |
	jq '[.metadata | .. | strings | select(contains("secret") or contains("/gguf-test"))] | length')" 0

# ---- importance matrices ----
long=blk.0.$(printf '%080d' 0).weight
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=32 "$long.in_sum2:f32:4:one" \
	"$long.counts:f32:1:one" >long.gguf
ok "a name of more than 63 bytes" gguf-imatrix --merge -o merged.gguf long.gguf
is "... is not cut" "$(names merged.gguf)" "[\"$long.in_sum2\",\"$long.counts\"]"
for batch in 7 32; do gguf-imatrix -q -m m.gguf --ctx 32 --chunks 2 --batch $batch -o "im$batch.gguf" text; done
same "sums do not depend on the batch" im7.gguf im32.gguf
not_ok "a text shorter than a window" 2 sh -c 'echo short | gguf-imatrix -q -m m.gguf -o never.gguf'

# ---- perplexity ----
pp() { gguf-perplexity -q -m m.gguf --ctx 32 "$@"; }
pp --chunks 2 --save-logits base text >/dev/null
not_ok "a text that is too short" 2 sh -c 'echo short | gguf-perplexity -q -m m.gguf'
not_ok "no text" 2 gguf-perplexity -q -m m.gguf /dev/null
not_ok "a base that is missing" 2 pp --base nowhere text
not_ok "a base that is neither model nor logits" 2 pp --base text text
head -c 20000 base >part
not_ok "a base that was cut short" 2 pp --base part text
{ head -c 12 base; printf '\144\0\0\0'; tail -c +17 base; } >other
not_ok "a base of another vocabulary" 2 pp --base other text
is "figures go to standard output" "$(pp --chunks 1 text 2>/dev/null | cut -d ' ' -f 1)" ppl

# ---- splitting ----
gguf-split -q --max-tensors 4 -o s m.gguf
cat s-0* >sums
# (the names are those of all shards on purpose)
not_ok "merging with all shards named by a pattern" 2 sh -c 'gguf-split --merge -o merged s-0*'
is "... zeroes none of them" "$(cat s-0* | cmp - sums 2>&1)" ""
last=$(echo s-0* | sed 's/.* //')
cp "$last" whole
head -c -1000 whole >"$last"
not_ok "merging with a shard that was cut short" 2 gguf-split --merge -o never.gguf s-00001-of-*
ok "... leaves no file" test ! -e never.gguf

# ---- a tensor of 2^64 - 4 bytes, which become 0 when they are padded: the next one would lie on it ----
"$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/malformed/gguf/pad-wrap.ggtxt" >wrap.gguf
for p in "info" "check" "hash" "split --max-tensors 1 -n -o x" "split --max-tensors 1 -o x" "split --merge -o x" \
	"quantize -o x Q8_0" "plan Q4_K_M" \
	"edit --set a=u8:1 -o x" "cat -o x" "diff m.gguf" \
		"logits -m" "tokenize -m" "perplexity -m" "run -p a -m" "imatrix --stats"; do
	want=2
	[ "$p" != check ] || want=1
	tensor=
	[ "$p" != "cat -o x" ] || tensor=a
	# shellcheck disable=SC2086
	not_ok "an overflow of the padding is refused: gguf-$p" $want gguf-$p wrap.gguf $tensor </dev/null
done
is "... and nothing is written" "$(find . -name 'x*')" ""

# ---- files that a splitter took, though the loader beside it refuses them; data that is not there ----
for f in bool-2 alignment-1; do
	"$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/malformed/gguf/$f.ggtxt" >bad.gguf
	not_ok "gguf-split refuses $f" 2 gguf-split --max-tensors 1 -o x bad.gguf
	not_ok "... and merging, too" 2 gguf-split --merge -o x bad.gguf
done
"$mk" general.architecture=7 a.weight:f32:32x4 >bad.gguf
not_ok "an architecture that is a number is a defect" 1 gguf-check bad.gguf
not_ok "... which no model is evaluated with" 2 sh -c 'echo 1 | gguf-logits -m bad.gguf'
head -c -1000 m.gguf >short.gguf
not_ok "data past the end of the file gets into no quantized model" 2 gguf-quantize -q -o x Q8_0 short.gguf
not_ok "... nor from a pipe" 2 sh -c 'gguf-quantize -q -o x Q8_0 <short.gguf'
is "... and no file is left" "$(find . -name 'x*')" ""

# ---- progress that stands still for a large tensor ----
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	"$mk" general.architecture=x a.weight:f32:256x65536 >large.gguf
	echo '{ for i in 1 2 3 4 5 6; do head -c 10000000; sleep 0.4; done; cat; } <large.gguf |
		gguf-quantize -o l.gguf Q8_0 -' >slow
	is "progress moves within a tensor" "$(TERM=xterm script -qec 'sh slow' /dev/null </dev/null |
		grep -o '[0-9]* %' | sort -u | awk 'END { print (NR > 1) }')" 1
else skip "progress moves within a tensor" "no script(1)"
fi
done_testing
