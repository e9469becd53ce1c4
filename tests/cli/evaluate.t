#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-perplexity, gguf-logits and gguf-run on a small model: results, pipes, JSON, bounds, saved logits, prompts, and
# what is refused.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
text=$DATA/prose/evaluation.txt
ok "a model" gguf-convert -q -o m.gguf "$DATA/wiki-7m"
ok "a smaller one" gguf-quantize -q -o q.gguf Q4_0 m.gguf
[ -s q.gguf ] || exit 1         # without them, readers of pipes would wait for ever
head -c 20000 "$text" >text

# value NAME: of the last --json
value() { jq -r "$1" json; }
holds() { jq -e "$1" json >/dev/null; }

gguf-perplexity -q -m m.gguf --chunks 2 text >plain
ok "text" grep -qE '^ppl [0-9]+\.[0-9]{4} \+- [0-9]+\.[0-9]{4}$' plain
is "... is one line" "$(wc -l <plain | tr -d ' ')" 1
head -c 8000 text >short
is "fewer windows than --chunks" "$(gguf-perplexity -m m.gguf --ctx 2048 --chunks 99 short 2>&1 >/dev/null)" \
	"gguf-perplexity: short: has only 1 window
gguf-perplexity: m.gguf: was trained for 512 positions, fewer than the 2048 of this context"
is "... and than --from and --chunks" \
	"$(gguf-perplexity -m m.gguf --ctx 512 --from 3 --chunks 99 short 2>&1 >/dev/null)" \
	"gguf-perplexity: short: has only 1 window from 3 on"
is "a prompt that goes beyond what the model was trained for" \
	"$(gguf-run -m m.gguf --ids -p In -n 600 2>&1 >/dev/null | head -1)" \
	"gguf-run: m.gguf: was trained for 512 positions, fewer than the 602 of this context"
is "... does not, in a context that it does not fill" "$(gguf-run -m m.gguf --ids -p In -n 3 \
	--ctx 9000 2>&1 >/dev/null)" ""
is "ids that go beyond it, in the longest of three lines" \
	"$(awk 'BEGIN { print 1; for (i = 0; i < 513; i++) printf "5 "; print ""; print 2, 3 }' |
	gguf-logits -m m.gguf 2>&1 >/dev/null)" \
	"gguf-logits: m.gguf: was trained for 512 positions, fewer than the 513 of this context"
is "from a pipe" "$(cat text | gguf-perplexity -q -m m.gguf --chunks 2 -)" "$(cat plain)"
is "without operand" "$(cat text | gguf-perplexity -q -m m.gguf --chunks 2)" "$(cat plain)"
gzip -c text >text.gz
is "gzip" "$(gguf-perplexity -q -m m.gguf --chunks 2 text.gz)" "$(cat plain)"
is "a prompt without an end" "$(yes | gguf-run -m m.gguf 2>&1)" \
	"gguf-run: (stdin): is longer than the limit of 256 MiB"
is "other batches and threads" "$(gguf-perplexity -q -m m.gguf --chunks 2 --batch 100 -j 3 text)" "$(cat plain)"
is "one thread" "$(gguf-perplexity -q -m m.gguf --chunks 2 -j 1 text)" "$(cat plain)"
for n in 2 7 9; do
	for side in "--batch 31" "--base q.gguf --batch 40" "--base q.gguf --batch 62 --cache-type-k f16"; do
		gguf-perplexity -q -m m.gguf --ctx 32 --chunks $n $side -j 1 --partial text >one
		for j in 2 3 4; do
			gguf-perplexity -q -m m.gguf --ctx 32 --chunks $n $side -j $j --partial text
		done >others
		is "$n windows $side, to each thread its own: the same scores" "$(cat others)" "$(cat one one one)"
	done
done
gguf-perplexity -q -m m.gguf --ctx 1024 --chunks 3 -j 1 --partial text >one
is "the same of windows that are long" "$(gguf-perplexity -q -m m.gguf --ctx 1024 --chunks 3 -j 2 --partial text)" \
	"$(cat one)"
is "portable code" "$(GGUF_CPU=c gguf-perplexity -q -m q.gguf --ctx 64 --chunks 1 text)" "$(gguf-perplexity \
	-q -m q.gguf --ctx 64 --chunks 1 text)"

# without tokens that the text does not have
gguf-edit -q --set tokenizer.ggml.add_bos_token=bool:false -o never-bos.gguf m.gguf
gguf-perplexity -q -m m.gguf --ctx 64 --chunks 3 --no-bos text >got
is "--no-bos is what a vocabulary without BOS gives" "$(cat got)" \
	"$(gguf-perplexity -q -m never-bos.gguf --ctx 64 --chunks 3 text)"
ok "... and not what others give" sh -c '! gguf-perplexity -q -m m.gguf --ctx 64 --chunks 3 text | cmp -s - got'
# tokens OPTIONS: those of the windows, as they are in a file of logits, behind magic and three sizes
tokens()
{
	gguf-perplexity -q -m m.gguf --ctx 8 --chunks 2 --save-logits saved "$@" marked >/dev/null &&
		od -A n -j 20 -N 64 -t d4 saved | xargs
}
{ printf 'A text <s> with </s> marks. '; head -c 300 "$text"; } >marked
for how in "" --no-bos --no-special "--no-bos --no-special"; do
	# shellcheck disable=SC2086
	is "${how:-neither option}: the tokens are gguf-tokenize's" "$(tokens $how)" \
		"$(gguf-tokenize -m m.gguf $how marked | cut -d ' ' -f 1-16)"
done
gguf-tokenize -m m.gguf --no-special marked >ids
ok "... and differ" sh -c '! gguf-tokenize -m m.gguf marked | cmp -s - ids'
gguf-perplexity -q -m m.gguf --ctx 8 --chunks 2 --partial marked >part-1
gguf-perplexity -q -m m.gguf --ctx 8 --from 2 --chunks 2 --no-bos --partial marked >part-2
not_ok "parts with BOS and without are not put together" 2 gguf-perplexity --merge part-1 part-2
ok "--json" sh -c 'gguf-perplexity -q -m m.gguf --chunks 2 --json text >json'
ok "... counts" holds '.n_tokens == 1024 and .n_scored == 510 and .n_ctx == 512'
ok "... has an error, and no base" holds '.ppl_stderr > 0 and (has("base") | not)'
is "... is what the text says" "$(printf '%.4f' "$(value .ppl)")" "$(sed 's/^ppl //;s/ .*//' plain)"
ok "--ctx" sh -c 'gguf-perplexity -q -m m.gguf --ctx 64 --chunks 3 --json text >json'
ok "... scores the second half" holds '.n_scored == 93'

gguf-perplexity -q -m m.gguf --base m.gguf --chunks 2 --json text >json
ok "--base with itself: no divergence" holds '.base.kld == 0 and .base.kld_max == 0 and .base.rms_delta_p == 0'
ok "... the same tokens, the same perplexity" holds '.base.top1 == 1 and .base.ratio == 1 and .base.ppl == .ppl'
gguf-perplexity -q -m q.gguf --base m.gguf --chunks 2 --json text >json
ok "--base: a smaller model diverges" holds '.base.kld > 0.0001 and
	.base.kld_max >= .base.kld_p999 and .base.kld_p999 >= .base.kld_p99 and .base.kld_p99 >= .base.kld_median'
ok "... but not far" holds '.base.kld < 0.5 and .base.top1 > 0.5 and .base.top1 < 1'

# a base whose vocabulary is as large, and another: first in a token that the text has not, then in one that it has
last=$(gguf-tokenize -m m.gguf text | cut -d ' ' -f 64)
gguf-info --json m.gguf | jq -c '.metadata["tokenizer.ggml.tokens"] | .[1] = "odd"' >tokens.json
gguf-edit -q --set-file 'tokenizer.ggml.tokens=str[]:tokens.json' -o renamed.gguf m.gguf
is "--base with a token of another name that does not occur" \
	"$(gguf-perplexity -q -m m.gguf --no-bos --base renamed.gguf --ctx 64 --chunks 1 --json text)" \
	"$(gguf-perplexity -q -m m.gguf --no-bos --base m.gguf --ctx 64 --chunks 1 --json text)"
gguf-info --json m.gguf | jq -c ".metadata[\"tokenizer.ggml.tokens\"] | .[$last] = \"odd\"" >tokens.json
gguf-edit -q --set-file 'tokenizer.ggml.tokens=str[]:tokens.json' -o renamed.gguf m.gguf
is "... that is the last of the windows: they cannot be compared" \
	"$(gguf-perplexity -q -m m.gguf --base renamed.gguf --ctx 64 --chunks 1 text 2>&1; echo $?)" \
	"gguf-perplexity: m.gguf: token $last is '$(gguf-info --json m.gguf |
	jq -r ".metadata[\"tokenizer.ggml.tokens\"][$last]")', but 'odd' in renamed.gguf: they cannot be compared
2"

# scores from the logits of a window, which begins anew at the start of a text; in F16 the model lacks only what is
# subnormal there, and diverges by less than sums of floats can tell
ok "nearly the same model" gguf-convert -q --type f16 -o f.gguf "$DATA/wiki-7m"
gguf-tokenize -m m.gguf text >ids
{ cut -d ' ' -f 1 ids; cut -d ' ' -f 10-16 ids; } | tr '\n' ' ' >window
for m in q m f; do gguf-logits -q -m $m.gguf window | tail -c +$((4*4*4096 + 1)) | od -A n -v -w4 -t f4 >$m.rows; done
for pair in "q m" "f m"; do
	m=${pair% *} base=${pair#* }
	gguf-perplexity -q -m "$m.gguf" --base "$base.gguf" --ctx 8 --from 1 --chunks 1 --partial text >part
	paste "$m.rows" "$base.rows" | awk -v ids="$(cut -d ' ' -f 14-16 ids)" '
		function scores(row,   i, q, p, d) {
			for (i = 0; i < 4096; i++) { q += exp(x[i] - x[top_x]); p += exp(y[i] - y[top_y]) }
			q = x[top_x] + log(q); p = y[top_y] + log(p)
			for (i = 0; i < 4096; i++) d += exp(y[i] - p)*(y[i] - p - (x[i] - q))
			printf "%.8f %.8f %.9g %d\n", q - x[id[row]], p - y[id[row]], d, top_x == top_y
		}
		BEGIN { n = split(ids, id, " ") }
		{ i = (NR - 1)%4096; x[i] = $1; y[i] = $2; if (!i) top_x = top_y = 0 }
		x[i] > x[top_x] { top_x = i }
		y[i] > y[top_y] { top_y = i }
		i == 4095 && NR/4096 <= n { scores(NR/4096) }' >want
	jq -r '.scores | [.nll, .base_nll, .kld, .same_top] | transpose[] | join(" ")' part | paste -d ' ' - want |
		awk '{ for (i = 1; i <= 4; i++) close_by += ($i - $(i + 4))^2 < (i == 3 ? 1e-10*$7^2 + 1e-26 : 1e-12) }
		END { print NR, close_by }' >is
	is "scores of $m are those of the logits: likelihood of the right token, divergence, agreement" \
		"$(cat is)" "3 12"
done
# every result, and its standard error, from the scores: an odd number of them, and an even one, with enough for p999
for windows in "--ctx 32 --chunks 7" "--ctx 64 --chunks 32"; do
	# shellcheck disable=SC2086
	gguf-perplexity -q -m q.gguf --base m.gguf $windows --partial text >part
	is "results are those of the scores, $windows" "$(jq -r '
		def mean: add/length;
		def error: mean as $m | map(pow(. - $m; 2)) | add/(length - 1)/length | sqrt;
		def at($share): .[$share*(length - 1) + 0.5 | floor];
		.scores as $s | ([$s.nll, $s.base_nll] | transpose) as $both | ($s.kld | sort) as $kld
		| ($s.nll | mean | exp) as $ppl | ($s.base_nll | mean | exp) as $base | {
			ppl: $ppl, ppl_stderr: ($ppl*($s.nll | error)),
			base: {
				ppl: $base, ppl_stderr: ($base*($s.base_nll | error)),
				kld: ($kld | mean), kld_stderr: ($kld | error), kld_max: ($kld | max),
				kld_median: ([$kld, ($kld | reverse)] | map(.[length/2 | floor]) | mean),
				kld_p99: ($kld | at(0.99)), kld_p999: ($kld | at(0.999)),
				top1: ($s.same_top | mean), top1_stderr: ($s.same_top | error),
				ratio: ($ppl/$base), ratio_stderr: ($ppl/$base*($both | map(.[0] - .[1]) | error)),
				rms_delta_p: ($both | map(pow((-.[0] | exp) - (-.[1] | exp); 2)) | mean | sqrt)
			}
		} as $want | . as $got | [$want | paths(numbers) | . as $p
			| select(($want | getpath($p)) as $w | ($got | getpath($p)/$w - 1 | fabs) < 1e-9) | join(" ")]
		| length, ($got | del(.scores, .n_tokens, .n_scored, .n_ctx) | [paths(numbers)] | length)' part |
		tr '\n' ' ')" "15 15 "
done

# the model as its own base shows what a cache of another type costs
for t in f16 i16 q8_0; do
	gguf-perplexity -q -m m.gguf --base m.gguf --chunks 1 --cache-type-k $t --cache-type-v $t --json text >json
	ok "--cache-type-k and -v $t: a little" holds '.base.kld > 0 and .base.kld < 0.01'
	gguf-perplexity -q -m m.gguf --base m.gguf --chunks 1 --cache-type-k $t --cache-type-v $t --json --batch 7 \
		-j 3 text >other
	same "... the same in other batches" other json
done
not_ok "--cache-type-k: no such type" 2 gguf-perplexity -q -m m.gguf --chunks 1 --cache-type-k q6_K text
gguf-perplexity -q -m m.gguf --ctx 64 --chunks 9 --json text >json
gguf-perplexity -q -m m.gguf --ctx 64 --chunks 9 --batch 63 --json text >other
same "small windows side by side, and one by one" other json

ok "--fail-above: below" gguf-perplexity -q -m m.gguf --chunks 1 --fail-above ppl=1e9 text
not_ok "--fail-above: above" 1 gguf-perplexity -q -m m.gguf --chunks 1 --fail-above ppl=1e9 --fail-above ppl=1.5 text
not_ok "--fail-above: of the base" 1 gguf-perplexity -q -m q.gguf --base m.gguf --chunks 1 --fail-above kld=0 text
is "--fail-above: not a number" "$(echo '{"n_ctx": 4, "scores": {"of": "x", "from": 0, "windows": 1, "nll": ["NaN"]}}' |
	gguf-perplexity --merge --fail-above ppl=5 - 2>&1; echo $?)" "gguf-perplexity: ppl is nan, not at most 5
ppl nan +- nan
1"
not_ok "--fail-above: no such result" 2 gguf-perplexity -q -m m.gguf --chunks 1 --fail-above kld=0 text
is "... says why" "$(gguf-perplexity -q -m m.gguf --fail-above kld=0 nowhere 2>&1)" \
	"gguf-perplexity: --fail-above kld=0: a measurement without --base gives no such result
Try 'gguf-perplexity -h'."
is "... and what it may be" "$(gguf-perplexity -q -m m.gguf --base m.gguf --fail-above kld_p9=0 nowhere 2>&1 |
	sed 1q)" \
	"gguf-perplexity: --fail-above kld_p9=0: there is no such result; did you mean kld_p99?"
is "... -o that is --save-logits too" "$(gguf-perplexity -q -m m.gguf -o zz --save-logits ./zz text 2>&1)" \
	"gguf-perplexity: ./zz: -o and --save-logits name the same file"
ln -s zz leads
is "... or will be, by a link" "$(gguf-perplexity -q -m m.gguf -o zz --save-logits leads text 2>&1
	gguf-perplexity -q -m m.gguf -o leads --save-logits zz text 2>&1)" \
	"gguf-perplexity: leads: -o and --save-logits name the same file
gguf-perplexity: zz: -o and --save-logits name the same file"
rm leads
not_ok "... reported before anything is read" 2 gguf-perplexity -q -m m.gguf --fail-above no_such=1 nowhere
cp .out message
ok "... by name" grep -q 'no_such=1' message
for x in many nan; do
	not_ok "--fail-above: no number, $x" 2 gguf-perplexity -q -m m.gguf --chunks 1 --fail-above ppl=$x text
done

ok "--save-logits" gguf-perplexity -q -m m.gguf --chunks 2 --save-logits base text
is "... magic" "$(head -c 8 base)" _logits_
gguf-perplexity -q -m m.gguf --base base --json text >json
# the form cuts off what is e^16 times less likely than the likeliest token
ok "... read back: close to the model" holds \
	'.n_scored == 510 and .base.kld < 1e-5 and .base.kld > -1e-5 and .base.top1 == 1'
is "... of another window: what to give is said" \
	"$(gguf-perplexity -q -m m.gguf --ctx 256 --base base text 2>&1; echo $?)" \
	"gguf-perplexity: base: has windows of 512 tokens: use --ctx 512
2"
apart() { gguf-perplexity -q -m m.gguf --ctx 32 --batch 40 --chunks 7 "$@" text; }
apart -j 1 --save-logits saved >alone
for j in 2 3; do
	is "... windows to each of $j threads: the same" "$(apart -j $j --save-logits saved-$j)" "$(cat alone)"
	same "... the same file" saved-$j saved
	is "... read back" "$(apart -j $j --base saved --json)" "$(apart -j 1 --base saved --json)"
	is "... and from window 3 on" "$(apart -j $j --from 3 --base saved --json 2>&1)" \
		"$(apart -j 1 --from 3 --base saved --json 2>&1)"
done
mkfifo pipe
cat pipe >through & apart -j 2 --save-logits pipe >/dev/null
wait
same "... through a pipe, the same file" through saved
# as descriptor 3, a pipe of 4 KiB (F_SETPIPE_SZ) that does not block and is first read when it is full
ok "... through a pipe that does not block" perl -MFcntl -MPOSIX=dup2 -e 'open F, ">", shift;
	pipe R, W; fcntl W, 1031, 4096; fcntl W, F_SETFL, O_WRONLY | O_NONBLOCK;
	if (!fork) { close R; dup2(fileno W, 3); exec @ARGV }
	close W; sleep 1; print F $b while sysread R, $b, 4096; wait; exit $? >> 8' late \
	gguf-perplexity -q -m m.gguf --ctx 32 --batch 40 --chunks 7 -j 2 --save-logits /dev/fd/3 text
same "... the same file" late saved
is "... from one program to the next" "$(apart -j 2 --save-logits - -o sent | apart -j 2 --base - --json)" \
	"$(apart -j 1 --base saved --json)"
is "... which ends well if the other measures fewer windows" \
	"$({ apart --chunks 20 --save-logits - -o sent; echo $? >end; } | apart --chunks 2 --base - --json; cat end)" \
	"$(apart --chunks 2 --base saved --json; echo 0)"
is "... which messages name as other input" "$(head -c 100 saved | apart --base - 2>&1)" \
	"gguf-perplexity: (stdin): byte 100: the file ends within its logits"
is "... also as a file" "$(gguf-perplexity -q -m m.gguf --ctx 64 --base - text 2>&1 <saved)" \
	"gguf-perplexity: (stdin): has windows of 32 tokens: use --ctx 32"
is "... but not a model" "$(apart --base - 2>&1 <m.gguf | sed 1q)" \
	"gguf-perplexity: the model cannot be standard input: it is mapped into memory"
{ echo before; cat saved; } >after
is "... from what another program leaves of a file" \
	"$({ read -r _; apart -j 2 --base - --json; } <after 2>&1)" "$(apart -j 1 --base saved --json)"
is "... from a socket, which does not block and is still empty" "$(perl -MFcntl -MSocket -e 'open F, shift;
	socketpair R, W, AF_UNIX, SOCK_STREAM, 0; fcntl R, F_SETFL, O_RDWR | O_NONBLOCK;
	if (!fork) { close W; open STDIN, "<&R"; exec @ARGV }
	close R; sleep 1; print W $b while sysread F, $b, 4096; close W; wait; exit $? >> 8' saved \
	gguf-perplexity -q -m m.gguf --ctx 32 --batch 40 --chunks 7 -j 2 --base - --json text 2>&1)" \
	"$(apart -j 1 --base saved --json)"
cat saved >pipe & apart -j 2 --from 3 --base pipe --json >from-pipe 2>&1
is "... from a pipe" "$(cat from-pipe)" "$(apart -j 1 --from 3 --base saved --json 2>&1 | sed s/saved/pipe/)"
rm pipe
tail -c +2 text >other
not_ok "... of another text" 2 gguf-perplexity -q -m m.gguf --base base other
{ cat base; echo; } >longer
not_ok "... with more after its end" 2 gguf-perplexity -q -m m.gguf --base longer text
# bytes of the first row's scale and least log probability: 2 windows of 512 tokens stand before them
first_row=$((20 + 4*2*512))
for bytes in '\000\000\200\077' '\000\000\200\277' '\000\000\200\177'; do
	cp base changed
	# shellcheck disable=SC2059
	printf "$bytes" | dd of=changed bs=1 seek=$first_row conv=notrunc 2>/dev/null
	not_ok "... with a scale of $bytes, which no log probabilities have" 2 gguf-perplexity -q -m m.gguf \
		--base changed text
done
cp base changed
printf '\000\000\300\377' | dd of=changed bs=1 seek=$first_row conv=notrunc 2>/dev/null
is "... NaN, whose error is NaN too" \
	"$(gguf-perplexity -q -m m.gguf --base changed text | grep -E '^(kld|ratio) ')" \
	"kld nan +- nan
ratio nan +- nan"
is "... NaN, of which the sign is not shown" "$(gguf-perplexity -q -m m.gguf --base changed text | grep -c '[-]nan')" 0
head -c 1000000 base >short
not_ok "... cut short" 2 gguf-perplexity -q -m m.gguf --base short text
mkfifo fifo
cat base >fifo & gguf-perplexity -q -m m.gguf --base fifo --json text >piped
same "... through a pipe" piped json
cat short >fifo & not_ok "... a pipe cut short" 2 gguf-perplexity -q -m m.gguf --base fifo text
cat m.gguf >fifo & not_ok "... a model in a pipe" 2 gguf-perplexity -q -m m.gguf --base fifo text
cp m.gguf onto.gguf
# 2^24 positions, 2^24 tokens, 2^30 windows: their bytes do not fit 64 bits
printf '_logits_\000\000\000\001\000\000\000\001\000\000\000\100' >huge
gguf-perplexity -q -m m.gguf --base huge text 2>message
ok "... of more bytes than can be" grep -q 'huge: byte 20: the file ends, but its header promises' message
cat huge >fifo & not_ok "... the same through a pipe" 2 gguf-perplexity -q -m m.gguf --base fifo text
# 2^24 positions, 2^8 windows: a machine of 32 bits cannot count their tokens
printf '_logits_\000\000\000\001\001\000\000\000\000\001\000\000\001\002\003' >fifo &
gguf-perplexity -q -m m.gguf --base fifo text 2>message
ok "... of more tokens than come" grep -q 'fifo: byte 23: the file ends within its logits' message
if [ -e "$BUILD/tests/fault.so" ]; then
	is "... and a disk without room for all of them: found out at once" "$(LD_PRELOAD=$BUILD/tests/fault.so \
		FAULT=fallocate:1:ENOSPC gguf-perplexity -q -m m.gguf --chunks 1 --save-logits none text 2>&1)" \
		"gguf-perplexity: none: needs 2.00 MiB: No space left on device"
else skip "... and a disk without room for all of them" "no preloading here"; fi
not_ok "... onto standard output" 2 gguf-perplexity -q -m m.gguf --chunks 1 --save-logits - text
not_ok "... onto the model" 2 gguf-perplexity -q -m onto.gguf --chunks 1 --save-logits onto.gguf text
not_ok "... onto the base" 2 gguf-perplexity -q -m m.gguf --base onto.gguf --chunks 1 --save-logits onto.gguf text
not_ok "... onto saved logits" 2 gguf-perplexity -q -m m.gguf --base base --save-logits base text
not_ok "... onto the text" 2 gguf-perplexity -q -m m.gguf --chunks 1 --save-logits text text
not_ok "gguf-logits onto the model" 2 sh -c 'echo 1 2 | gguf-logits -q -m onto.gguf -o onto.gguf'
same "... leaves it alone" onto.gguf m.gguf
echo 1 2 >some.ids
not_ok "gguf-logits onto the ids" 2 gguf-logits -q -m m.gguf -o some.ids some.ids
not_ok "a text shorter than a window" 2 sh -c 'echo short | gguf-perplexity -q -m m.gguf'
not_ok "no model" 2 gguf-perplexity -q text
not_ok "no such text" 2 gguf-perplexity -q -m m.gguf nowhere
not_ok "standard output is full" 2 sh -c 'gguf-perplexity -q -m m.gguf --chunks 1 --save-logits none text >/dev/full'
not_ok "... no file is left" 1 test -e none
is "gguf-imatrix: it is named" "$(gguf-imatrix -q -m m.gguf --chunks 1 -o - text 2>&1 >/dev/full)" \
	"gguf-imatrix: standard output: No space left on device"
is "gguf-run: the file under -o is" "$(gguf-run -q -m m.gguf -p The -n 1 -o /dev/full 2>&1)" \
	"gguf-run: /dev/full: No space left on device"
is "gguf-tokenize --decode: it is" "$(echo 300 | gguf-tokenize -m m.gguf --decode -o /dev/full 2>&1)" \
	"gguf-tokenize: /dev/full: No space left on device"

# numbers in files, byte by byte, as they must be on every machine: little-endian
gguf-perplexity -q -m m.gguf --ctx 8 --chunks 1 --save-logits few text >/dev/null
od -A n -v -t u1 -w1 few | awk '
	function u16(i) { return b[i] + 256*b[i + 1] }
	function u32(i) { return u16(i) + 65536*u16(i + 2) }
	function f32(i,   u, e, x) {
		u = u32(i); e = int(u/8388608)%256; x = (1 + u%8388608/8388608)*2^(e - 127)
		return u >= 2147483648 ? -x : x
	}
	{ b[NR - 1] = $1 }
	END {
		for (i = 8; i < 52; i += 4) printf "%d ", u32(i)
		for (at = 52; at < NR; at += 8200) {
			for (i = sum = 0; i < 4096; i++) sum += exp(f32(at)*u16(at + 8 + 2*i) + f32(at + 4))
			printf "%.2f ", sum
		}
	}' >is
is "saved logits are little-endian: sizes, tokens, rows of probabilities that add up" "$(cat is)" \
	"8 4096 1 $(gguf-tokenize -m m.gguf text | cut -d ' ' -f 1-8) 1.00 1.00 1.00 "
gguf-quantize -q -o f.gguf F32 m.gguf
echo 258 | gguf-logits -q -m f.gguf --hidden | head -c 1024 >is
gguf-cat f.gguf token_embd.weight | tail -c +$((258*1024 + 1)) | head -c 1024 >want
same "gguf-logits is little-endian: what enters the first layer are the embedding's bytes in the file" is want

ok "-o" gguf-perplexity -q -m m.gguf --chunks 2 --save-logits both -o results text
same "... holds what standard output would" results plain
same "... beside --save-logits" both base
not_ok "... both in one file" 2 gguf-perplexity -q -m m.gguf --chunks 1 --save-logits one -o one text
for out in - /dev/stdout one; do
	is "... both on standard output, named $out" \
		"$(gguf-perplexity -q -m m.gguf --chunks 1 --save-logits $out text 2>&1 >one)" \
		"gguf-perplexity: --save-logits $out is standard output, where the results go: give -o FILE
Try 'gguf-perplexity -h'."
done
{ printf ahead; apart -j 2 --save-logits /dev/stdout -o results; } >behind
{ printf ahead; cat saved; } >want
same "... in a file after something else" behind want
printf ahead >behind
apart -j 2 --save-logits /dev/stdout -o results >>behind
same "... appended to a file" behind want

# parts of a text by several processes
{ cat text; echo more; } >text2
gguf-quantize -q --effort 1 -o other.gguf Q4_0 m.gguf
# the same weights in other models: their positions are others, or the tokens of the text
gguf-edit --set llama.rope.freq_base=f32:500 -o turned.gguf q.gguf
gguf-edit --set llama.rope.freq_base=f32:500 -o turned-base.gguf m.gguf
gguf-edit --set tokenizer.ggml.add_space_prefix=bool:false -o spaceless.gguf q.gguf
pipeline=$(gguf-info --get gguf-utils.tokenizer q.gguf | jq -c '.normalizer = null')
gguf-edit --set "gguf-utils.tokenizer=str:$pipeline" -o raw.gguf q.gguf
gguf-edit --set 'gguf-utils.merges=str[]:["t h"]' -o merges.gguf q.gguf
printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'graph:' '  names: {eps: 0.1}' \
	>rough.yaml
for base in "" "--base m.gguf"; do
	what="parts${base:+ beside a base}"
	gguf-perplexity -q -m q.gguf $base --ctx 32 --chunks 7 --json text >whole
	gguf-perplexity -q -m q.gguf $base --ctx 32 --chunks 3 --partial text >part-a
	gguf-perplexity -q -m q.gguf $base --ctx 32 --from 3 --chunks 1 --partial text >part-b
	gguf-perplexity -q -m q.gguf $base --ctx 32 --from 4 --chunks 3 --partial text >part-c
	is "$what: the numbers of one run" "$(gguf-perplexity --merge --json part-c part-a part-b)" "$(cat whole)"
	gguf-perplexity --merge --partial part-b part-c >part-bc
	is "$what: merged step by step, from a pipe" "$(cat part-bc | gguf-perplexity --merge --json - part-a)" \
		"$(cat whole)"
	for other in "-m q.gguf $base text2" "-m q.gguf $base --cache-type-k f16 text" "-m m.gguf $base text" \
		"-m other.gguf $base text" "-m turned.gguf $base text" "-m spaceless.gguf $base text" \
		"-m raw.gguf $base text" "-m merges.gguf $base text" \
		"-m q.gguf --arch-file rough.yaml $base text" ${base:+"-m q.gguf --base f.gguf text"} \
		${base:+"-m q.gguf --base turned-base.gguf text"}; do
		# shellcheck disable=SC2086
		gguf-perplexity -q --ctx 32 --from 3 --chunks 4 --partial $other >part-d
		not_ok "$what: a part of another measurement, $other" 2 gguf-perplexity --merge part-a part-d
		is "... is named" "$(cat "$TMP/.out")" \
			"gguf-perplexity: part-a and part-d are from different measurements"
	done
	not_ok "$what: a gap" 2 gguf-perplexity --merge part-a part-c
	not_ok "$what: a part twice" 2 gguf-perplexity --merge part-a part-b part-b
done
is "parts with a gap: what is missing is said" "$(gguf-perplexity --merge part-a part-c 2>&1)" \
	"gguf-perplexity: part-c begins with window 4, but those before it end before window 3"
for m in m q; do gguf-perplexity -q -m $m.gguf --ctx 32 --chunks 7 --save-logits of-$m text >/dev/null; done
part() { gguf-perplexity -q -m q.gguf --ctx 32 --partial --base "$@" text; }
part of-m --chunks 7 >together
part of-m --chunks 3 >part-a
part of-m --from 3 --chunks 4 >part-b
part of-q --from 3 --chunks 4 >part-d
is "parts beside saved logits: the numbers of one run" "$(gguf-perplexity --merge --partial part-b part-a)" \
	"$(cat together)"
for at in "--chunks 3" "--from 3 --chunks 4"; do
	# shellcheck disable=SC2086
	is "... the same from a pipe, $at" "$(cat of-m | part /dev/stdin $at)" "$(part of-m $at)"
done
not_ok "... a part beside another model's" 2 gguf-perplexity --merge part-a part-d
is "... is named" "$(cat "$TMP/.out")" "gguf-perplexity: part-a and part-d are from different measurements"
gguf-perplexity -q -m q.gguf --ctx 32 --chunks 3 --partial text >plain-a
not_ok "parts with and without a base" 2 gguf-perplexity --merge plain-a part-b
gguf-perplexity -q -m q.gguf --ctx 64 --from 1 --chunks 1 --partial text >wide
not_ok "parts of other windows" 2 gguf-perplexity --merge plain-a wide
not_ok "--merge --fail-above" 1 gguf-perplexity --merge --fail-above ppl=1.5 plain-a
not_ok "a file that is no part" 2 gguf-perplexity --merge whole
jq -c '.scores.same_top[0] = 2' part-a >odd
not_ok "a part with a share that is neither 0 nor 1" 2 gguf-perplexity --merge odd part-b part-c
: >nothing
is "an empty part: the message names it once" "$(gguf-perplexity --merge nothing 2>&1)" \
	"gguf-perplexity: nothing: byte 0: line 1: '[' or '{' expected near end of file"
not_ok "--from beyond the text" 2 gguf-perplexity -q -m q.gguf --ctx 32 --from 1000000 text
gguf-perplexity -q -m q.gguf --base base --ctx 512 --from 1 --chunks 1 --json text >json
is "--from beside saved logits" "$(jq -c '[.n_scored, .base.ppl]' json)" \
	"$(gguf-perplexity -q -m m.gguf --base base --from 1 --chunks 1 --json text | jq -c '[.n_scored, .base.ppl]')"
for p in "gguf-perplexity -m onto.gguf --chunks 1" "gguf-run -m onto.gguf -n 1" "gguf-tokenize -m onto.gguf"; do
	# shellcheck disable=SC2086
	not_ok "$p onto the model" 2 $p -o onto.gguf text
	# shellcheck disable=SC2086
	not_ok "... onto the text" 2 $p -o text text
done
same "... leaves it alone" onto.gguf m.gguf
ok "gguf-tokenize -o" gguf-tokenize -m m.gguf -o text.ids text
is "... holds what standard output would" "$(cat text.ids)" "$(gguf-tokenize -m m.gguf text)"

# gguf-run
ok "gguf-run -o" gguf-run -q -m m.gguf -p 'The house was' -n 12 -o a.out
is "... holds what standard output would" "$(cat a.out)" "$(gguf-run -q -m m.gguf -p 'The house was' -n 12)"
gguf-run -q -m m.gguf -p 'The house was' -n 12 >a
is "gguf-run --no-mmap --pin: the same" "$(gguf-run -q -m m.gguf -p 'The house was' -n 12 --no-mmap --pin)" "$(cat a)"
ok "gguf-run says something" test -s a
is "gguf-perplexity --no-mmap --pin: the same" "$(gguf-perplexity -q -m m.gguf --chunks 2 --no-mmap --pin text)" \
	"$(cat plain)"
gguf-imatrix -q -m m.gguf --chunks 1 -o plain.imatrix text
gguf-imatrix -q -m m.gguf --chunks 1 --no-mmap --pin -o placed.imatrix text
same "gguf-imatrix --no-mmap --pin: the same" plain.imatrix placed.imatrix
cut -d ' ' -f 1-700 text.ids >some.ids
gguf-logits -q -m m.gguf some.ids >plain.logits
gguf-logits -q -m m.gguf --no-mmap --pin some.ids >placed.logits
same "gguf-logits --no-mmap --pin: the same" plain.logits placed.logits
gguf-run -q -m m.gguf -p 'The house was' -n 12 -j 3 >b
same "... the same with other threads" b a
for j in 1 16; do gguf-run -q -m m.gguf -p "$(head -c 60 text)" -n 4 --temp 0 -j $j >few.$j; done
same "... with more threads than a prompt has tokens" few.16 few.1
printf 'The house was' >prompt
gguf-run -q -m m.gguf -n 12 prompt >b
same "... from a file" b a
gguf-run -q -m m.gguf -n 12 <prompt >b
same "... from a pipe" b a
gguf-run -q -m m.gguf -n 12 --seed 1 prompt >b
not_ok "... another with another seed" 1 cmp -s a b
gguf-run -q -m m.gguf -n 12 --ids prompt >ids
ok "--ids: at most 12" test "$(wc -l <ids)" -le 12
gguf-run -q -m m.gguf -n 6 --temp 0 --ids prompt | head -1 >first
is "an f32 cache: the same token" "$(gguf-run -q -m m.gguf -n 1 --temp 0 --ids --cache-type-k f32 --cache-type-v f32 \
	prompt)" "$(cat first)"
not_ok "--cache-type-v: no such type" 2 gguf-run -q -m m.gguf -n 1 --cache-type-v f64 prompt
gguf-tokenize -q -m m.gguf prompt >prompt.ids
gguf-logits -q -m m.gguf prompt.ids >logits
vocab=$(gguf-info --json m.gguf | jq '.metadata["tokenizer.ggml.tokens"] | length')
for ids in 4096 x 1- 99999999999999999999; do
	not_ok "gguf-logits: id $ids" 2 sh -c "printf '1 2\n\n3,$ids 4' | gguf-logits -q -m m.gguf"
	grep -q "(stdin): byte 7: .*$ids" .out
	ok "... is named with its byte" test $? = 0
done
printf '5 6 7\n\n8\n9 10\n' >lines.ids
gguf-logits -q -m m.gguf lines.ids >together
for ids in '5 6 7' 8 '9 10'; do echo "$ids" | gguf-logits -q -m m.gguf; done >apart
same "gguf-logits: lines side by side, and one by one" together apart
is "gguf-logits: a row for each token" "$(wc -c <logits | tr -d ' ')" $((vocab*4*$(wc -w <prompt.ids)))
is "temperature 0 is the largest logit" "$("$BUILD/tests/reference/tool_argmax" "$vocab" $(($(wc -w <prompt.ids) - 1)) \
	<logits)" "$(cat first)"
is "--top-k 1 too" "$(gguf-run -q -m m.gguf -n 1 --top-k 1 --seed 5 --ids prompt)" "$(cat first)"
ok "-n 0" gguf-run -q -m m.gguf -n 0 prompt
norm=$(gguf-info --json m.gguf |
	jq '.data_offset + (.tensors[] | select(.name == "blk.2.attn_norm.weight").offset)')
cp m.gguf nan.gguf
printf '\000\000\300\177' | dd of=nan.gguf bs=1 seek="$norm" conv=notrunc 2>/dev/null
at=$(($(printf The | gguf-tokenize -q -m m.gguf | wc -w) - 1))
is "a model whose logits are NaN draws no token" "$(gguf-run -m nan.gguf -p The -n 3 --ids -o never 2>&1; echo $?)" \
	"gguf-run: nan.gguf: the logits at position $at are not numbers
2"
not_ok "-p and FILE" 2 gguf-run -q -m m.gguf -p x prompt
not_ok "a prompt longer than --ctx" 2 gguf-run -q -m m.gguf --ctx 2 text
# a model that has learned its positions
"$BUILD/tests/cli/tool_mkgguf" general.architecture=gpt2 gpt2.block_count=1 gpt2.context_length=12 \
	gpt2.embedding_length=64 gpt2.feed_forward_length=64 gpt2.attention.head_count=2 \
	gpt2.attention.layer_norm_epsilon=0.00001 tokenizer.ggml.model=llama token_embd.weight:f16:64x5 \
	position_embd.weight:f32:64x12 output_norm.weight:f32:64:one output_norm.bias:f32:64:zero \
	blk.0.attn_norm.weight:f32:64:one blk.0.attn_norm.bias:f32:64:zero blk.0.attn_qkv.weight:f16:64x192 \
	blk.0.attn_qkv.bias:f32:192:zero blk.0.attn_output.weight:f16:64x64 blk.0.attn_output.bias:f32:64:zero \
	blk.0.ffn_norm.weight:f32:64:one blk.0.ffn_norm.bias:f32:64:zero blk.0.ffn_up.weight:f16:64x64 \
	blk.0.ffn_up.bias:f32:64:zero blk.0.ffn_down.weight:f16:64x64 blk.0.ffn_down.bias:f32:64:zero |
	gguf-edit --set 'tokenizer.ggml.tokens=str[]:["<unk>", "<s>", "b", "a", "c"]' \
		--set 'tokenizer.ggml.scores=f32[]:[0, 0, -1, -2, -3]' \
		--set 'tokenizer.ggml.token_type=i32[]:[2, 3, 1, 1, 1]' --set tokenizer.ggml.eos_token_id=u32:1 \
		--set tokenizer.ggml.add_bos_token=bool:false --set tokenizer.ggml.add_space_prefix=bool:false \
		-o twelve.gguf
for c in '' '--ctx 12' '--ctx 100' '-n 16777216'; do
	is "a text ends at the model's last position: ${c:--n 128}" \
		"$(gguf-run -q -m twelve.gguf -p abcabcabc --ids --temp 0 $c 2>&1 | wc -l | tr -d ' ')" 4
done
is "... where a prompt may end" \
	"$(gguf-run -q -m twelve.gguf -p abcabcabcabc --ids --temp 0 2>&1 | wc -l | tr -d ' ')" 1
is "... but not after it" "$(gguf-run -m twelve.gguf -p abcabcabcabca 2>&1)" \
	"gguf-run: the prompt has 13 tokens, more than the context of 12 positions"
# tokens of bytes: a prompt that ends within a character
gguf-edit --set tokenizer.ggml.model=str:gpt2 --set 'tokenizer.ggml.tokens=str[]:["<|end|>", "a", "Ã", "©", "b"]' \
	--set 'tokenizer.ggml.merges=str[]:[]' --set 'tokenizer.ggml.token_type=i32[]:[3, 1, 1, 1, 1]' \
	--set tokenizer.ggml.eos_token_id=u32:0 --set tokenizer.ggml.bos_token_id=u32:0 -o bytes.gguf twelve.gguf
is "-n 0 leaves what there is of it to the prompt" \
	"$(printf 'ba\303' | gguf-run -q -m bytes.gguf -n 0 | wc -c | tr -d ' ')" 0
for seed in 1 2 3 4; do
	printf 'ba\303' | gguf-run -q -m bytes.gguf -n 8 --temp 5 --seed $seed >a
	printf 'ba\303' | gguf-run -q -m bytes.gguf -n 8 --temp 5 --seed $seed --ids |
		gguf-tokenize -m bytes.gguf --decode >b
	same "... and so does its continuation: seed $seed" a b
done
{ yes 1 2 3 | head -n 600; echo 99999999; } >late.ids
is "gguf-logits: an id that is wrong in the last line: nothing is evaluated" \
	"$(gguf-logits -q -m m.gguf late.ids 2>/dev/null | wc -c | tr -d ' ')" 0
not_ok "gguf-logits: a word" 2 sh -c 'echo 1 two | gguf-logits -q -m m.gguf'
not_ok "gguf-logits: an id beyond the vocabulary" 2 sh -c 'echo 1 99999999 | gguf-logits -q -m m.gguf'
not_ok "gguf-logits: a negative id" 2 sh -c 'echo 1 -1 | gguf-logits -q -m m.gguf'

# models whose metadata is wrong
not_ok "a model without tensors" 2 sh -c 'gguf-convert -q --vocab-only -o v.gguf "$1" &&
	gguf-logits -q -m v.gguf prompt.ids' sh "$DATA/wiki-7m"
# hostile NAME ARGUMENTS...: a model of tool_mkgguf is refused with a message
hostile()
{
	name=$1; shift
	"$BUILD/tests/cli/tool_mkgguf" "$@" >h.gguf
	not_ok "hostile: $name" 2 gguf-logits -q -m h.gguf h.ids
	gguf-logits -q -m h.gguf h.ids >/dev/null 2>message
	ok "... with a message" grep -q "^gguf-logits: .*h\\.gguf" message
}
keys='llama.block_count=1 llama.context_length=64 llama.embedding_length=32 llama.feed_forward_length=64
	llama.attention.head_count=2 llama.attention.layer_norm_rms_epsilon=0'
echo 0 1 >h.ids
hostile "nothing" general.name=x token_embd.weight:f32:32x16
hostile "unknown architecture" general.architecture=nonesuch token_embd.weight:f32:32x16
# shellcheck disable=SC2086 # words
{
hostile "tensors are missing" $keys token_embd.weight:f32:32x16
hostile "no layers" $keys llama.block_count=0 token_embd.weight:f32:32x16
hostile "four thousand million layers" $keys llama.block_count=4294967295 token_embd.weight:f32:32x16
hostile "a key of another type" $keys llama.block_count=many token_embd.weight:f32:32x16
b=blk.0
block="$b.attn_norm.weight:f32:32 $b.attn_k.weight:f32:32x32 $b.attn_v.weight:f32:32x32 $b.attn_output.weight:f32:32x32
	$b.ffn_norm.weight:f32:32 $b.ffn_gate.weight:f32:32x64 $b.ffn_up.weight:f32:32x64 output_norm.weight:f32:32"
q=$b.attn_q.weight:f32:32x32 down=$b.ffn_down.weight:f32:64x32 embd=token_embd.weight:f32:32x16
"$BUILD/tests/cli/tool_mkgguf" $keys $block $q $down $embd >h.gguf
ok "a small model evaluates" gguf-logits -q -m h.gguf -o logits h.ids
is "... to two rows" "$(wc -c <logits | tr -d ' ')" 128
is "... without a cache of blocks that its heads do not fill" \
	"$(gguf-bench -q -m h.gguf --prompt 2 --generate 1 --cache-type-k q8_0 2>&1)" \
	"gguf-bench: h.gguf: keys have heads of 16 numbers, which a cache of type q8_0 in blocks of 32 cannot hold"
hostile "no heads" $keys llama.attention.head_count=0 $block $q $down $embd
hostile "four thousand million heads" $keys llama.attention.head_count=4294967295 $block $q $down $embd
hostile "more heads than the width divides into" $keys llama.attention.head_count=3 $block $q $down $embd
hostile "KV heads that do not divide the heads" $keys llama.attention.head_count_kv=7 $block $q $down $embd
hostile "an embedding of another width" $keys $block $q $down token_embd.weight:f32:64x16
hostile "a query of another width" $keys $block $b.attn_q.weight:f32:64x32 $down $embd
hostile "a query of another height" $keys $block $b.attn_q.weight:f32:32x96 $down $embd
hostile "a matrix with one dimension" $keys $block $q $b.ffn_down.weight:f32:64 $embd
hostile "a matrix with three dimensions" $keys $block $q $b.ffn_down.weight:f32:64x32x2 $embd
ok "... all of which the message states" grep -q 'has shape 64 x 32 x 2, expected 64 x 32' message
hostile "a matrix of no rows" $keys $block $q $down token_embd.weight:f32:32x0
ok "... any number of rows is wanted" grep -q 'expected any x any' message
}

# few_rows FILE TENSOR...: tensors of FILE have 300 rows
few_rows()
{
	few=$1
	shift
	for t; do
		at=$(grep -abo "[a-z0-9_.]*$t" "$few" | grep ":$t\$" | head -n 1 | cut -d: -f1)
		# ne[1], after n_dims and ne[0]
		printf '\054\001' | dd of="$few" bs=1 seek=$((at + ${#t} + 12)) conv=notrunc 2>/dev/null
	done
	gguf-info --json "$few" | jq -c '[.tensors[] | select(.shape[1] == 300) | .name]'
}
# fewer rows than tokens: the window's last token is the only one beyond them
cp m.gguf few.gguf
is "fewer rows than tokens" "$(few_rows few.gguf token_embd.weight output.weight)" \
	'["token_embd.weight","output.weight"]'
printf 'the of city' >beyond
is "... a token beyond them" "$(gguf-tokenize -m m.gguf beyond | cut -d ' ' -f 4)" 1116
not_ok "... is refused where it is scored" 2 gguf-perplexity -q -m few.gguf --ctx 4 beyond
# more embeddings than logits, as of a model whose images have tokens of their own
cp m.gguf images.gguf
is "fewer logits than embeddings" "$(few_rows images.gguf output.weight)" '["output.weight"]'
echo '{schema: 1, arch: llama, like: llama, classes: {}, graph: {output: {rows: 300}}}' >images.yaml
echo '1, 1116, 5' >ids
gguf-logits -m m.gguf ids >all
gguf-logits -m images.gguf ids >got 2>err
is "... are to be described" "$(sed 's/byte [0-9]*/byte N/' err)" \
	"gguf-logits: images.gguf: byte N: output.weight: has shape 256 x 300, expected 256 x 4096"
images="-m images.gguf --arch-file images.yaml"
# shellcheck disable=SC2086
{
gguf-logits $images ids >got
for i in 0 1 2; do tail -c +$((i*4096*4 + 1)) all | head -c 1200; done >want
same "... the logits of the rows that there are" got want
is "... no other token follows" "$(gguf-run $images --ids -p city -n 20 --temp 2 |
	awk '$1 < 300 { n++ } END { print n }')" 20
not_ok "... or is scored" 2 gguf-perplexity -q $images --ctx 4 beyond
is "... of which a message speaks" "$(cat "$TMP/.out")" \
	"gguf-perplexity: images.gguf: token 1116 is in its vocabulary, but it has only 300 logits"
printf 'city of the' >before
is "... before what is scored" "$(gguf-tokenize -m m.gguf before | awk '{ print $2, $4 < 300 }')" "1116 1"
is "... it only needs an embedding" "$(gguf-perplexity -q $images --ctx 4 before)" \
	"$(gguf-tokenize -m m.gguf before | gguf-logits $images | tail -c +2401 | head -c 1200 |
	od -A n -v -w4 -t f4 | awk -v id="$(gguf-tokenize -m m.gguf before | cut -d ' ' -f 4)" '
	{ sum += exp($1) } NR == id + 1 { logit = $1 } END { printf "ppl %.4f +- 0.0000", sum/exp(logit) }')"
}
is "... which it has not here" "$(gguf-perplexity -q -m few.gguf --ctx 4 before 2>&1)" \
	"gguf-perplexity: few.gguf: token 1116 is in its vocabulary, but it has only 300 embeddings"
done_testing
