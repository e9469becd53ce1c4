#!/bin/sh
# SPDX-License-Identifier: MIT
# Error feedback from end to end: covariances are collected, stored and used, and nothing but numbers decides what is
# written.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
cd "$TMP" || exit 1
q=gguf-quantize
text=$DATA/prose/calibration.txt
first_layers 2 two && gguf-convert -q -o m.gguf two && gguf-imatrix -q -m m.gguf --chunks 4 \
	--covariance -o c.gguf "$text" &&
	gguf-imatrix -q -m m.gguf --chunks 4 --process-output -o plain.gguf "$text" || { echo "1..1";
		echo "not ok 1 - a model and its matrices"; exit 1; }

gguf-imatrix -q -m m.gguf --chunks 4 --covariance --batch 100 -j 1 -o d.gguf "$text"
same "covariances depend neither on batches nor on threads" d.gguf c.gguf
gguf-info --json c.gguf >info.json
is "weights that share an input share one" "$(grep -c 'blk.0.*in_cov"' info.json)" 4
is "the output matrix has one" "$(grep -c '"output.weight.in_cov"' info.json)" 1
is "importances are those of the text alone" "$(gguf-cat c.gguf blk.1.ffn_up.weight.in_sum2 | cksum)" \
	"$(gguf-cat plain.gguf blk.1.ffn_up.weight.in_sum2 | cksum)"
gguf-imatrix -q -m m.gguf --chunks 4 --covariance --stride 1 -o d.gguf "$text"
n() { gguf-cat "$1" "blk.${2:-1}.ffn_up.weight.in_cov_n" | od -An -tf4 | awk '{ printf "%.0f\n", $1 }'; }
# windows of 255 + 16 or 511 + 32 tokens, their first being a sixteenth, and a quarter as much drawn by lot
is "one token in two, and a fifth is drawn by lot" "$(n c.gguf)" 1356
is "--stride 1: every token" "$(n d.gguf)" 2715
is "half, what the first block gets" "$(n c.gguf 0)" 2170
gguf-imatrix -q -m m.gguf --chunks 6 --covariance -o d.gguf "$text"
is "of two windows that are drawn it gets both" "$(n d.gguf 0)" 3255
is "and the blocks behind it one" "$(n d.gguf)" 2033
gguf-imatrix -q -m m.gguf --chunks 4 --covariance -o f.gguf "$text"
same "the lot is always the same" f.gguf c.gguf
gguf-imatrix --stats --json c.gguf >stats.json
is "--stats knows every covariance" "$(jq '.covariances | length' stats.json)" 9
of() { jq ".covariances[] | select(.name == \"blk.1.attn_output.weight\") | .$1" stats.json; }
# the lower triangle, row by row
gguf-cat c.gguf blk.1.attn_output.weight.in_cov | od -An -v -w4 -tf4 |
	awk -v told="$(of directions)" -v top="$(of top)" '
	{ square += (j < i ? 2 : 1)*$1*$1; if (j == i) { trace += $1; if ($1 > most) most = $1; i++; j = 0 } else j++ }
	END {
		x = trace*trace/square/told
		print (x > 0.9999 && x < 1.0001 && top >= most/trace && top <= sqrt(square)/trace)
	}' >likely
is "directions as they should be, and the largest eigenvalue between its bounds" "$(cat likely)" 1
is "size, a whole number" "$(of bytes)" $((4*256*257/2))
ok "--stats in words" sh -c "gguf-imatrix --stats c.gguf | grep -q '^blk.1.ffn_down.weight  *768  *1356 '"
ok "state is saved" gguf-imatrix -q -m m.gguf --chunks 4 --covariance --checkpoint state --every 1 -o e.gguf "$text"
same "and nothing is lost by it" e.gguf c.gguf
not_ok "the old form has no room for covariances" 2 gguf-imatrix -m m.gguf --chunks 1 --covariance \
	--dat -o never "$text"
not_ok "blocks are multiples of 256" 2 gguf-imatrix -m m.gguf --chunks 1 --covariance --block 300 -o never "$text"
gguf-imatrix -q -m m.gguf --chunks 4 --covariance --block 256 -o b.gguf "$text"
ok "blocks of 256" $q -q -i b.gguf -o x.gguf Q4_K_M m.gguf
gguf-imatrix -q --merge -o sum.gguf c.gguf c.gguf
ok "merged" $q -q -i sum.gguf -o y.gguf Q4_K_M m.gguf

$q -q -i c.gguf -o a.gguf Q4_K_M m.gguf
gguf-imatrix -q --merge -o copy.gguf c.gguf
$q -q -i copy.gguf -o copied.gguf Q4_K_M m.gguf
data() { gguf-cat "$1" blk.1.ffn_down.weight; }
data a.gguf >a; data copied.gguf >copied
same "a copy of the matrix says the same" copied a
$q -q -i c.gguf -o one.gguf --pure Q1_0 m.gguf && $q -q -i c.gguf --no-feedback -o b.gguf --pure Q1_0 m.gguf
same "signs get no feedback in one pass" one.gguf b.gguf
$q -q -i c.gguf -o nine.gguf --pure IQ1_S m.gguf && $q -q -i c.gguf --no-feedback -o b.gguf --pure IQ1_S m.gguf
same "nor does IQ1_S" nine.gguf b.gguf
$q -q -i c.gguf --damp 1 -o b.gguf --pure Q1_0 m.gguf
not_ok "unless it is asked for" 1 cmp -s one.gguf b.gguf
for j in 1 3; do
	$q -q -j $j -i c.gguf Q4_K_M m.gguf >b.gguf
	same "-j $j" b.gguf a.gguf
done
# sanitizers' frames are larger
if [ "${SANITIZED:-}" ]; then skip "a stack of 64 KiB is enough" "sanitizers need more"
else
	sh -c "ulimit -s 64; $q -q -i c.gguf Q4_K_M m.gguf" >b.gguf
	same "a stack of 64 KiB is enough" b.gguf a.gguf
fi
for cpu in c avx2; do
	if GGUF_CPU=$cpu gguf-info --version >/dev/null 2>&1; then
		GGUF_CPU=$cpu $q -q -i c.gguf Q4_K_M m.gguf >b.gguf
		same "with $cpu" b.gguf a.gguf
	else skip "with $cpu" "this CPU has no $cpu"; fi
done
cat m.gguf | $q -q -i c.gguf Q4_K_M >b.gguf
same "through pipes" b.gguf a.gguf
$q -q --damp 1 -i c.gguf -o b.gguf Q4_K_M m.gguf
not_ok "damping matters" 1 cmp -s a.gguf b.gguf
not_ok "damping needs something to damp" 2 $q --damp 1 Q4_K_M m.gguf
not_ok "and feedback" 2 $q --damp 1 --no-feedback -i c.gguf Q4_K_M m.gguf
$q --damp 1 -i plain.gguf -o b.gguf Q4_K_M m.gguf 2>said
is "a matrix without covariances is reported" "$(grep -c 'plain.gguf: it has no covariances' said)" 1
$q -q --no-feedback -i c.gguf -o b.gguf Q4_K_M m.gguf
$q -q -i plain.gguf -o p.gguf Q4_K_M m.gguf
data b.gguf >b; data p.gguf >p
same "--no-feedback leaves importances" b p
not_ok "which are something else" 1 cmp -s a b
$q -q --json -i c.gguf -o b.gguf Q3_K_M m.gguf | tr -d ' \n' | sed 's/{"name":"/\n/g' |
	sed -n 's/^\([^"]*\)".*"output_error_before":\([^,]*\),"output_error":\([^,}]*\).*/\1 \2 \3/p' >errors
is "every weight that is multiplied has feedback" "$(grep -c . errors)" 15
is "and less error by it" "$(awk '$3 < $2*0.95' errors | wc -l | tr -d ' ')" 15
is "the embedding has none" "$(grep -c token_embd errors)" 0
# the matrix is opened before the model, and covariances are read as they are needed
cp c.gguf shrinks.gguf && mkfifo model
$q -i shrinks.gguf -o never Q4_K_M model 2>said &
pid=$!
exec 9>model
truncate -s "$(gguf-info --json c.gguf | jq .data_offset)" shrinks.gguf
cat m.gguf >&9 2>/dev/null
exec 9>&-
wait $pid
is "a matrix that shrinks: exit 2, no output" "$? $([ -e never ] && echo left)" "2 "
is "... and the message names it" \
	"$(sed 's/byte [0-9]*: blk[^:]*in_cov: the file is truncated: [0-9]* bytes/.../' said)" \
	"gguf-quantize: shrinks.gguf: ... are missing"
for type in Q8_0 Q4_0 Q5_1 IQ4_NL IQ2_XS IQ1_M TQ2_0; do
	ok "$type" $q -q --pure -i c.gguf -o b.gguf "$type" m.gguf
	ok "$type can be read" gguf-quantize -q --allow-requantize -o x.gguf F16 b.gguf
done
done_testing
