#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-imatrix: the bytes depend on nothing but model, text and settings; checkpoints; merging; both forms; refusals.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
head -c 12000 "$DATA/prose/calibration.txt" >text
head -c 20 text >few
gguf-convert -q --type f16 -o m.gguf "$DATA/wiki-7m" || exit 1
im() { gguf-imatrix -m m.gguf --ctx 64 "$@" text; }

ok "a matrix" im --chunks 12 -j1 -o a.gguf
ok "other threads and batches" im --chunks 12 -j3 --batch 7 -o b.gguf
same "... same bytes" b.gguf a.gguf
im --chunks 11 -j1 --partial -o whole.gguf
for j in 2 3 4; do
	im --chunks 11 -j$j --batch 100 --partial -o parts.gguf
	same "windows to each of $j threads: the same bytes" parts.gguf whole.gguf
	im --chunks 11 -j$j --batch 64 --checkpoint state --every 5 --partial -o parts.gguf
	same "... and with checkpoints" parts.gguf whole.gguf
done
for n in 1 4 10; do
	im --chunks $n --partial -o first.gguf
	im --from $n --chunks $((11 - n)) --partial -o second.gguf
	gguf-imatrix --merge --partial -o parts.gguf second.gguf first.gguf
	is "parts of $n and $((11 - n)) windows, in full precision: all but the rests are the same" \
		"$(gguf-diff whole.gguf parts.gguf | grep -v -c '^data [^ ]*[.]in_sum2_rest: ')" 0
	gguf-imatrix --merge -o parts.gguf first.gguf second.gguf
	gguf-imatrix --merge whole.gguf | cmp -s - parts.gguf
	is "... and in single precision everything" $? 0
done
# a network that each layer has twice: its sums have two inputs of each window
printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'graph:' '  layer:' \
	'    again:' '      norm: {rms: ffn_norm, eps: eps}' \
	'      branches: {self: {ffn: {gate: ffn_gate, up: ffn_up, down: ffn_down, act: silu}}}' >twice.yaml
for j in 1 4; do im --arch-file twice.yaml --ctx 8 --batch 8 -j$j --partial -o twice$j.gguf; done
same "weights that are used twice: the same bytes with more threads" twice4.gguf twice1.gguf
ok "the text from standard input, compressed" \
	sh -c 'gzip -c text | gguf-imatrix -m m.gguf --ctx 64 --chunks 12 --dataset text >c.gguf'
same "... same bytes" c.gguf a.gguf
is "the text's base name is recorded" "$(gguf-info --metadata a.gguf | grep -c 'datasets *\["text"\]')" 1
ok "a path is not" sh -c 'gguf-imatrix -m m.gguf --ctx 64 --chunks 1 "$PWD/text" | gguf-info --metadata |
	grep -q "datasets *\[\"text\"\]"'
is "tensors: seven for each of six layers, sums and counts" "$(gguf-info --tensors a.gguf | grep -c '^  blk\.')" 84
is "tokens are counted" "$(gguf-cat --decode a.gguf blk.0.attn_q.weight.counts | od -A n -t f4 | tr -d ' ')" 768
ok "--process-output" im --chunks 1 --process-output -o p.gguf
is "... has output.weight" "$(gguf-info --tensors p.gguf | grep -c 'output.weight.in_sum2')" 7

is "an empty file" "$(gguf-imatrix --stats - </dev/null 2>&1)" "gguf-imatrix: (stdin): byte 0: the file is empty"
# a file that is not a matrix is refused by its first bytes
yes | head -c 1000000 >junk
is "a long file that is no matrix" "$(gguf-imatrix --stats - <junk 2>&1)" \
	"gguf-imatrix: (stdin): byte 0: not an importance matrix, neither in GGUF nor in the old form"
is "... is not read to its end" "$({ gguf-imatrix --stats - 2>no; wc -c; } <junk | awk '{ print ($1 > 900000) }')" 1
model="gguf-imatrix: (stdin): byte 69: general.type: is not an importance matrix"
is "a model through a pipe" "$(gguf-imatrix --stats - <m.gguf 2>&1; cat m.gguf | { gguf-imatrix --stats - 2>&1
	wc -c | awk '{ print ($1 > 1000000) }'; })" "$model
$model
1"
stats() { gguf-imatrix --stats "$@" | sed 1d; }
is "a matrix from standard input that is a file" "$(stats - <a.gguf)" "$(stats a.gguf)"
is "... and from a pipe" "$(cat a.gguf | stats -)" "$(stats a.gguf)"
is "... that delivers it in pieces" "$(dd if=a.gguf bs=100 2>/dev/null | stats -)" "$(stats a.gguf)"
not_ok "--json without --stats" 2 im --chunks 1 --json -o no.gguf
not_ok "--stride without --covariance" 2 im --chunks 1 --stride 4 -o no.gguf
not_ok "--dat with --stats" 2 gguf-imatrix --stats --dat a.gguf

# the program itself, which was started by its own name: killing the subshell of a function would leave it running
kill_at_checkpoint() {
	n=0
	while [ ! -e state ] && [ $n -lt 300 ]; do sleep 0.02; n=$((n + 1)); done
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}
# checkpoints: stopped after a save, then gone on with
gguf-imatrix -m m.gguf --ctx 64 --chunks 12 --checkpoint state --every 3 -j2 -o never.gguf text 2>/dev/null &
kill_at_checkpoint $!
if [ -e state ]; then
	ok "killed: nothing under the final name" test ! -e never.gguf
	not_ok "another model's checkpoint is refused" 2 im --chunks 12 --process-output --checkpoint state \
		-o never.gguf
	# the last byte of the last weight
	{ head -c -1 m.gguf; printf '\252'; } >other.gguf
	not_ok "another weight's checkpoint is refused" 2 gguf-imatrix -m other.gguf --ctx 64 --chunks 12 \
		--checkpoint state -o never.gguf text
	gguf-edit --set llama.rope.freq_base=f32:500 -o turned.gguf m.gguf
	not_ok "the same weights in another model are refused" 2 gguf-imatrix -m turned.gguf --ctx 64 --chunks 12 \
		--checkpoint state -o never.gguf text
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'graph:' \
		'  names: {eps: 0.1}' >rough.yaml
	not_ok "... and as another description has it" 2 im --arch-file rough.yaml --chunks 12 --checkpoint state \
		-o never.gguf
	is "... is said" "$(grep -c 'is from a run with another model, text or setting' "$TMP/.out")" 1
	not_ok "another text's checkpoint is refused" 2 \
		sh -c "tail -c 9000 text | gguf-imatrix -m m.gguf --ctx 64 --chunks 12 --checkpoint state -o never.gguf"
	not_ok "another setting's checkpoint is refused" 2 gguf-imatrix -m m.gguf --ctx 32 --checkpoint state \
		-o never.gguf text
	ok "going on" im --chunks 12 --checkpoint state --every 3 -j1 -o r.gguf
	same "... gives the bytes of an uninterrupted run" r.gguf a.gguf
else
	skip "killed" "finished too soon"
fi
ok "the checkpoint is removed at the end" test ! -e state
mkdir far && ln -s far/state state
im --chunks 3 --checkpoint state --every 1 -o r.gguf 2>said
is "of a link, the file that it leads to" "$(ls far; cat said)" ""
rm -r far state
gguf-imatrix -m m.gguf --ctx 64 --chunks 6 --covariance --checkpoint state --every 1 -o never.gguf text 2>/dev/null &
kill_at_checkpoint $!
if [ -e state ]; then
	im --chunks 6 --covariance -o c.gguf 2>/dev/null
	cp state again
	ok "covariances: going on" im --chunks 6 --covariance --checkpoint state -o r.gguf
	same "... gives the bytes of an uninterrupted run" r.gguf c.gguf
	gguf-imatrix -q -m m.gguf --ctx 64 --chunks 6 --covariance --dataset prose -o c.gguf text
	ok "going on with a text that has been given a name" im --chunks 6 --covariance --checkpoint again \
		--dataset prose -o r.gguf
	same "... gives the bytes of an uninterrupted run" r.gguf c.gguf
else
	skip "covariances: killed" "finished too soon"
fi
rm -f .never*

# merging and the old form
ok "merging with itself" gguf-imatrix --merge -o two.gguf a.gguf ./a.gguf
is "... is reported" "$(cat "$TMP/.out")" "gguf-imatrix: ./a.gguf: is the same file as a.gguf, and counts twice"
is "... doubles the counts" "$(gguf-cat --decode two.gguf blk.0.attn_q.weight.counts | od -A n -t f4 | tr -d ' ')" 1536
ok "merging one" gguf-imatrix --merge -o one.gguf a.gguf
same "... changes nothing" one.gguf a.gguf
ok "to the old form" gguf-imatrix --merge --dat -o a.dat a.gguf
ok "and back" gguf-imatrix --merge --ctx 64 -o back.gguf a.dat
gguf-diff --values a.gguf back.gguf >values
is "... within rounding" "$([ $? != 2 ] && awk '$NF > 1e-6' values | wc -l | tr -d ' ')" 0
ok "the old form written at once" im --chunks 12 --dat -o b.dat
gguf-imatrix --merge --ctx 64 b.dat | gguf-diff --values - a.gguf >values
is "... importance within rounding" "$([ $? != 2 ] && awk '$NF > 1e-6' values | wc -l | tr -d ' ')" 0
gguf-edit --delete imatrix.chunk_size -o sizeless.gguf a.gguf
gguf-imatrix -q --merge -o sums.gguf sizeless.gguf a.gguf
is "a GGUF without imatrix.chunk_size counts tokens like any other" "$(gguf-diff sums.gguf two.gguf)" ""
"$BUILD/tests/cli/tool_mkgguf" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=64 \
	blk.0.attn_q.weight.in_sum2:f32:128:one blk.0.attn_q.weight.counts:f32:1:one >narrow.gguf
is "another model's matrix" "$(gguf-imatrix --merge -o x.gguf a.gguf narrow.gguf 2>&1; echo $?)" \
	"gguf-imatrix: narrow.gguf: blk.0.attn_q.weight: has the shape [128, 1], but before it had [256, 1]
2"
not_ok "a matrix that is missing" 2 gguf-imatrix --merge -o x.gguf a.gguf none
not_ok "a model is no matrix" 2 gguf-imatrix --merge -o x.gguf m.gguf
not_ok "a text is no matrix" 2 gguf-imatrix --merge -o x.gguf text
not_ok "a matrix cut short" 2 sh -c 'head -c 20000 a.dat | gguf-imatrix --merge - >x'

# numbers that no run produces
mk() { "$BUILD/tests/cli/tool_mkgguf" general.type=imatrix "$@" a.in_sum2:f32:3:one a.counts:f32:1:huge >hostile.gguf; }
mk imatrix.chunk_count=many
is "covariances that do not fit: the size is checked after a window" \
	"$( (ulimit -f 100; im --covariance -o never.gguf) 2>&1 | sed 's/needs [0-9.]*/needs N/')" \
	"gguf-imatrix: never.gguf: needs N MiB: File too large"
is "... of --partial too" "$( (ulimit -f 100; im --covariance --partial -o never.gguf) 2>&1 |
	sed 's/needs [0-9.]*/needs N/')" "gguf-imatrix: never.gguf: needs N MiB: File too large"
"$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/malformed/imatrix/covariance-nan.ggtxt" >nan.gguf
is "a covariance that is not finite is found when it is read" \
	"$(gguf-imatrix --merge -o x.gguf nan.gguf 2>&1; echo $?)" \
	"gguf-imatrix: nan.gguf: byte 320: a: a covariance is not finite
2"
for k in counts sums; do
	"$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/fuzz/corpus/imatrix/covariance-$k-beyond-f32.ggtxt" >huge.gguf
	ok "a covariance with huge $k" gguf-imatrix --merge -o x.gguf huge.gguf
	is "... twice is nothing that could be read" \
		"$(cp huge.gguf again.gguf; gguf-imatrix --merge -o y.gguf huge.gguf again.gguf 2>&1; echo $?)" \
		"gguf-imatrix: y.gguf: a: has sums or counts that 32 bits cannot hold
2"
done
not_ok "chunks that are no number" 2 gguf-imatrix --merge -o x.gguf hostile.gguf
mk imatrix.chunk_count=4294967295
not_ok "more chunks than the form has bits for" 2 gguf-imatrix --merge -o x.gguf hostile.gguf hostile.gguf
gguf-imatrix --merge -o x.gguf hostile.gguf hostile.gguf 2>message
ok "... is not reported as lack of memory" grep -q '8589934590 chunks' message
mk imatrix.chunk_size=512
ok "more tokens than there are integers, in the old form" gguf-imatrix --merge --dat -o x.dat hostile.gguf
is "... the number of calls stays what a reader takes" "$(od -A n -j 9 -N 4 -t u4 x.dat | tr -d ' ')" 2147483647
ok "... and is read" gguf-imatrix --stats x.dat

# statistics
ok "--stats" gguf-imatrix --stats -o stats a.gguf
is "... a line for each tensor" "$(grep -c '^blk\.' stats)" 42
is "... and for each layer" "$(grep -cE '^ +[0-5]  ' stats)" 6
ok "--stats --json" gguf-imatrix --stats --json -o json a.gguf
is "... an object for each tensor" "$(grep -c '"entropy_bits"' json)" 42
im --chunks 1 --dataset "$(printf 'caf\351')" -o latin1.gguf
is "... the bytes of a data set's name that is not UTF-8" "$(gguf-imatrix --merge a.gguf latin1.gguf |
	gguf-imatrix --stats --json | jq -c '.datasets[0], .datasets_raw')" '"text"
{"1":"636166e9"}'
ok "--stats of the old form" sh -c 'gguf-imatrix --stats - <a.dat'
is "... says nothing of tokens, which it does not count" "$(gguf-imatrix --stats a.dat | head -1 | sed 's/.*, //')" \
	"12 chunks of $(gguf-imatrix --stats a.gguf | head -1 | sed 's/.* of //')"

# two layers, in one of which no token has reached a matrix: the figures of --stats, computed anew
set --
for t in blk.0.a:40:4 blk.1.a:40:4 blk.1.b:24:1 output:8:1; do
	columns=${t#*:} matrices=${t##*:}
	set -- "$@" "${t%%:*}.weight.in_sum2:f32:${columns%:*}x$matrices:square" \
		"${t%%:*}.weight.counts:f32:1x$matrices:square"
done
"$BUILD/tests/cli/tool_mkgguf" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 "$@" >experts.gguf
counts=$(gguf-info --json experts.gguf |
	jq '.data_offset + (.tensors[] | select(.name == "blk.1.a.weight.counts").offset)')
printf '\000\000\000\000' | dd of=experts.gguf bs=1 seek=$((counts + 8)) conv=notrunc 2>/dev/null
values() { gguf-cat --decode experts.gguf "$1" | od -A n -v -w4 -t f4 | jq -sc .; }
for t in blk.0.a blk.1.a blk.1.b output; do
	echo "{\"name\": \"$t.weight\", \"sums\": $(values $t.weight.in_sum2), \"counts\": $(values $t.weight.counts)}"
done >entries
gguf-imatrix --stats --json experts.gguf >json
is "--stats: every figure is as its definition gives it" "$(jq -c --slurpfile entry entries '
	def mean: add/length;
	def columns: (.sums | length)/(.counts | length);
	def squares: . as $e | [range(.sums | length) as $i | $e.counts[$i/($e | columns) | floor] as $n
		| if $n > 0 then $e.sums[$i]/$n else null end];
	def cosine: map(select(all(. != null))) | (map(.[0]*.[1]) | add)
		/((map(.[0]*.[0]) | add)*(map(.[1]*.[1]) | add) | sqrt);
	def figures: squares as $all | ($all | map(select(.))) as $x | ($x | length) as $n | ($x | add) as $sum
		| ($x | map(pow(. - ($x | mean); 2)) | mean | sqrt) as $sd
		| ($x | map(./$sum | . * log2) | 0 - add) as $bits | {
			name, columns: columns, matrices: (.counts | length),
			matrices_seen: (.counts | map(select(. > 0)) | length), tokens: (.counts | add),
			sum: $sum, min: ($x | min), max: ($x | max), mean: ($x | mean), sd: $sd,
			active: ($x | map(select(. > 1e-5)) | length/$n), entropy_bits: $bits,
			entropy: ($bits/($n | log2)),
			outliers: ($x | map(select(. - ($x | mean) | fabs > $sd)) | length/$n),
			similarity: (if .name == "blk.1.a.weight"
				then [$all, ($entry[0] | squares)] | transpose | cosine else null end)
		};
	def layer($number): ($entry | map(select(.name | startswith("blk.\($number)."))) | map(figures)) as $t
		| ($t | map(.similarity | select(.))) as $alike | {
			layer: $number, tensors: ($t | length), sum: ($t | map(.sum) | add),
			mean: (($t | map(.sum) | add)/($t | map(.columns*.matrices_seen) | add)),
			similarity: (if $alike == [] then null else $alike | mean end)
		};
	{ tensors: ($entry | map(figures)), layers: [layer(0), layer(1)] } as $want
	| . as $got | [$want | paths(type | . != "object" and . != "array") | . as $p
		| [$p, ($want | getpath($p)), ($got | getpath($p))]
		| select(.[1] != .[2] and (.[1:] | all(type == "number") and (.[0] - .[1] | fabs) < 1e-5*.[0] | not))],
	([.tensors, .layers | map(length)] == [$want.tensors, $want.layers | map(length)])' json |
	tr '\n' ' ')" "[] true "
jq -r '.tensors[] | [.name, .sum, .min, .max, .mean, .sd, (.active, .entropy, .outliers)*100, .similarity // "-"]
	| join(" ")' json | awk '{
		printf "%s %.4g %.4g %.4g %.4g %.4g %.1f %.1f %.1f ", $1, $2, $3, $4, $5, $6, $7, $8, $9
		printf $10 == "-" ? "-\n" : "%.4f\n", $10
	}' >want
gguf-imatrix --stats experts.gguf | grep weight | sed 's/ %//g; s/  */ /g' >got
same "... and in words the same" got want
is "... a matrix that no token has reached is said" \
	"$(gguf-imatrix --stats experts.gguf | grep -A 1 'blk[.]1[.]a' | sed 1d)" "  1 of 4 matrices was never used"

norm=$(gguf-info --json m.gguf | jq '.data_offset + (.tensors[] | select(.name == "blk.2.attn_norm.weight").offset)')
cp m.gguf nan.model
printf '\000\000\300\177' | dd of=nan.model bs=1 seek="$norm" conv=notrunc 2>/dev/null
for with in '' --covariance; do
	# shellcheck disable=SC2086
	is "a model that gives NaN${with:+, $with}" \
		"$(gguf-imatrix -q -m nan.model --chunks 1 $with -o never.gguf text 2>&1; echo $?)" \
		"gguf-imatrix: nan.model: blk.2.attn_q.weight: an activation is not finite
2"
done

not_ok "a text shorter than a window" 2 sh -c 'echo short | gguf-imatrix -m m.gguf -o x.gguf'
not_ok "no mode" 2 gguf-imatrix text
not_ok "two modes" 2 gguf-imatrix --merge --stats a.gguf
not_ok "onto the model" 2 im -o m.gguf
not_ok "a checkpoint in no folder is reported before the work" 2 im --chunks 1 --checkpoint nowhere/state -o never.gguf
is "... by name" "$(cat "$TMP/.out")" "gguf-imatrix: nowhere/state: No such file or directory"
not_ok "a checkpoint that is no file" 2 im --chunks 1 --checkpoint /dev/null -o never.gguf
is "... by name" "$(cat "$TMP/.out")" "gguf-imatrix: /dev/null: is not a file that can be replaced"
mkfifo fifo
not_ok "... nor is a FIFO, which nobody need read" 2 \
	timeout 20 gguf-imatrix -m m.gguf --checkpoint fifo -o never.gguf text
is "... in the same words" "$(cat "$TMP/.out")" "gguf-imatrix: fifo: is not a file that can be replaced"
ok "trying whether a checkpoint can be written leaves nothing" sh -c "
	gguf-imatrix -m m.gguf --ctx 64 --chunks 1 --checkpoint tried -o never.gguf few 2>/dev/null
	! ls -d tried .tried* never.gguf 2>/dev/null"
not_ok "onto the checkpoint, which would be removed" 2 im --chunks 1 --checkpoint new.gguf -o ./new.gguf
ln -s new.gguf leads
not_ok "... by a link to what is not there yet" 2 im --chunks 1 --checkpoint leads -o new.gguf
rm leads
not_ok "a full disk" 2 sh -c 'gguf-imatrix --merge a.gguf >/dev/full'
done_testing
