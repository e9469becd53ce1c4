#!/bin/sh
# SPDX-License-Identifier: MIT
# Memory that runs out, disks that fill, devices that fail, a kill at any write: always exit 2 with a message (or, where
# the program can do without, 0 with the right output), never a crash, never anything under the final name.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
FAULT_SO=$BUILD/tests/fault.so
[ -e "$FAULT_SO" ] || { echo "1..0 # SKIP no preloading here"; exit 0; }
cd "$TMP" || exit 1
"$BUILD/tests/cli/tool_gguf" <"$SRC/tests/cli/info.gguf.txt" >m.gguf

faulty() { spec=$1; shift; LD_PRELOAD=$FAULT_SO FAULT=$spec "$@"; }
# the first of $1 calls, the last, and some forty between: a program begins by reading descriptions and ends by writing
sample()
{
	awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++)
		if (i <= 12 || i > n - 24 || i >= next_one) { print i; next_one = i + int(n/28) + 1 } }'
}

# Uses no external program, since it is called thousands of times.
temporary() { for f in .out.*; do [ -e "$f" ] && return 0; done; return 1; }

# walk NAME KIND HOW command...: the output goes to "out", given as -o out by the caller
walk()
{
	name=$1 kind=$2 how=$3; shift 3
	rm -f out count                 # the sandbox lets programs make files, not change them
	LD_PRELOAD=$FAULT_SO FAULT_COUNT=count "$@" >/dev/null 2>&1
	if [ -e out ]; then mv out want; else is "$name without faults" failed "done"; return; fi
	calls=$(sed -n "s/^${kind%1} //p" count)
	[ "$kind" = fsync ] || [ "$kind" = rename ] && calls=1
	bad='' tried=0
	for n in $(sample "${calls:-0}"); do
		tried=$((tried + 1))
		! [ -e out ] && ! temporary || rm -f out .out.*
		faulty "$kind:$n$how" "$@" >stdout 2>stderr
		s=$?
		if [ "$how" = :kill ]; then
			[ $s = 137 ] && [ ! -e out ] || bad="$bad $n(exit $s)"
		elif [ $s = 2 ]; then
			[ -s stderr ] || bad="$bad $n(no message)"
			read -r said <stderr
			case $kind:$said in malloc*"Permission denied"*) bad="$bad $n($said)" ;; esac
			[ ! -e out ] || bad="$bad $n(a file was left)"
			! temporary || bad="$bad $n(a temporary was left)"
		else
			[ $s = 0 ] && cmp -s out want || bad="$bad $n(exit $s)"
		fi
	done
	case $kind in malloc | write) [ "$tried" -gt 0 ] || bad=" none was made" ;; esac
	is "$name, $kind$how, $tried of ${calls:-0} calls" "$bad" ""
}

walk_all()
{
	name=$1; shift
	walk "$name" malloc '' "$@"
	walk "$name" malloc1 '' "$@"
	walk "$name" read :EIO "$@"
	walk "$name" fsync :EIO "$@"
	walk "$name" rename :EACCES "$@"
}
# for other ways through a program that walk_all was given
walk_some()
{
	name=$1; shift
	walk "$name" malloc1 '' "$@"
	walk "$name" read :EIO "$@"
}
walk_writes()
{
	name=$1; shift
	for how in ENOSPC EIO short kill; do walk "$name" write ":$how" "$@"; done
}

walk_all gguf-info gguf-info -o out m.gguf
gguf-info -o want m.gguf
faulty entropy:1:EIO gguf-info -o out m.gguf
same "gguf-info without a source of entropy" out want
walk_all "gguf-info --json" gguf-info --json -o out m.gguf
walk_all "gguf-split --merge" gguf-split --merge -o out m.gguf
walk_writes "gguf-split --merge" gguf-split --merge -o out m.gguf
printf 'kv str general.architecture x\ntensor f32 a 1 64 96\ntensor i8 b 2 33\n' |
	"$BUILD/tests/cli/tool_gguf" >sound.gguf
walk_all gguf-check gguf-check -j1 -o out sound.gguf
walk_all gguf-edit gguf-edit --set test.flag=bool:false -o out m.gguf
walk_writes gguf-edit gguf-edit --set test.flag=bool:false -o out m.gguf
walk_all gguf-hash gguf-hash --sha256 -o out m.gguf
gguf-hash --sha256 -o manifest m.gguf
walk_some "gguf-hash --check" gguf-hash --check manifest -o out m.gguf
walk_all gguf-cat gguf-cat --decode -o out m.gguf token_embd.weight blk.0.ffn_up.weight
walk_writes gguf-cat gguf-cat --decode -o out m.gguf token_embd.weight blk.0.ffn_up.weight
walk_all "gguf-diff" gguf-diff --ignore x -j2 -o out m.gguf m.gguf
walk_all "gguf-diff --values" gguf-diff --values -j2 -o out m.gguf m.gguf
walk_some "gguf-diff --json" gguf-diff --json -j2 -o out m.gguf m.gguf
if [ -x "$BIN/gguf-quantize" ]; then
	sed 's/^tensor [a-z0-9_]*/tensor f32/' "$SRC/tests/cli/info.gguf.txt" | "$BUILD/tests/cli/tool_gguf" >f32.gguf
	walk_all gguf-quantize gguf-quantize -j2 -o out Q4_0 f32.gguf
	walk_writes gguf-quantize gguf-quantize -j2 -o out Q4_0 f32.gguf
	walk_all "gguf-quantize -v --json" gguf-quantize -v --json -j3 -o out Q8_0 f32.gguf
fi
# the library alone
library="$BUILD/tests/fault/tool_library f32.gguf out"
for kind in malloc malloc1; do walk libggu $kind '' $library; done
walk libggu read :EIO $library
for how in ENOSPC EIO short; do walk libggu write ":$how" $library; done
# a checkpoint of one small layer
small_checkpoint small
# a tokenizer is made late, and in a few calls: each of them
mkdir words
echo '{"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]"},
	"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
	"added_tokens": [{"id": 3, "content": "[X]"}]}' >words/tokenizer.json
echo '{"added_tokens_decoder": {"4": {"content": "[Y]"}}}' >words/tokenizer_config.json
rm -f count
LD_PRELOAD=$FAULT_SO FAULT_COUNT=count gguf-convert --no-sandbox -j1 --vocab-only -o want words
calls=$(sed -n 's/^malloc //p' count) bad=''
n=$((calls - 300))
while [ $((n += 1)) -le "$calls" ]; do
	faulty malloc1:$n gguf-convert --no-sandbox -j1 --vocab-only -o out words 2>stderr
	case $? in 0) cmp -s out want ;; 2) grep -q memory stderr && ! grep -q "makes more" stderr ;; *) false ;;
	esac || bad="$bad $n"
	rm -f out
done
is "gguf-convert --vocab-only of WordPiece, malloc1, the last 300 calls" "$bad" ""

# weights that are codes and scales: every 29th call, as walk tries few of those in the middle
mkdir codes floats
cp "$DATA"/wiki-7m/tok*.* "$DATA"/wiki-7m/special*.* codes
for scheme in ct-8-act bnb-nf4; do
	said=$("$BUILD/tests/cli/tool_coded" $scheme 1 "$DATA/wiki-7m" codes floats)
	jq --argjson said "$said" '.num_hidden_layers = 1 | .quantization_config = $said' \
		"$DATA/wiki-7m/config.json" >codes/config.json
	rm -f count
	LD_PRELOAD=$FAULT_SO FAULT_COUNT=count gguf-convert --no-sandbox --dry-run codes >want
	calls=$(sed -n 's/^malloc //p' count) bad='' n=1
	while [ $((n += 29)) -le "$calls" ]; do
		faulty malloc1:$n gguf-convert --no-sandbox --dry-run codes >out 2>stderr
		case $? in 0) cmp -s out want ;; 2) [ -s stderr ] ;; *) false ;; esac || bad="$bad $n"
	done
	is "gguf-convert of codes, $scheme, malloc1, every 29th call" "$bad" ""
	rm out
done
walk_some "gguf-convert of codes" gguf-convert --no-sandbox -j2 -t q4_0 -o out codes

convert() { walk_all "gguf-convert $1" gguf-convert --no-sandbox -j2 -t "$1" -o out small; }
convert auto
convert q4_k_m
walk_writes "gguf-convert q8_0" gguf-convert --no-sandbox -j2 -t q8_0 -o out small
gguf-convert -q -o model.gguf small
walk_some "gguf-info of a model that is evaluated" gguf-info -o out model.gguf
if [ -d /proc/self/fd ]; then
	cp model.gguf shrinks.gguf
	faulty mmap:1:end gguf-info --no-sandbox -o out shrinks.gguf 2>stderr
	is "gguf-info of a model that shrinks" "$? $(cat stderr) $([ ! -e out ] || echo left)" \
		"2 gguf-info: a model's file was truncated, or could not be read, while it was in use "
fi
walk_some "gguf-check of a vocabulary" gguf-check -j1 --json -o out model.gguf
head -c 1500 "$DATA/prose/calibration.txt" >text
gguf-tokenize -m model.gguf text | cut -d " " -f 1-40 >ids
walk_all gguf-imatrix gguf-imatrix --no-sandbox -j2 --ctx 32 --chunks 1 -m model.gguf -o out text
walk_all "gguf-imatrix, windows to each thread" gguf-imatrix --no-sandbox -j2 --ctx 32 --batch 32 --chunks 3 \
	-m model.gguf -o out text
walk_writes gguf-imatrix gguf-imatrix --no-sandbox -j2 --ctx 32 --chunks 1 -m model.gguf -o out text
gguf-imatrix -q --ctx 32 --chunks 1 -m model.gguf -o im.gguf text
# covariances, and feedback by them: its factors are made by a thread of its own, whose failures once were lost
cov="gguf-imatrix -q --no-sandbox -j2 --ctx 32 --chunks 8 --stride 1 --covariance -m model.gguf"
for kind in malloc malloc1; do walk "gguf-imatrix --covariance" $kind '' $cov -o out text; done
$cov -o cov.gguf text
walk_all "gguf-imatrix --merge" gguf-imatrix --merge -o out cov.gguf cov.gguf
walk_some "gguf-imatrix --stats" gguf-imatrix --stats --json -o out cov.gguf
walk_some "gguf-imatrix --dat" gguf-imatrix --merge --dat -o out im.gguf
walk_all "gguf-quantize with feedback" gguf-quantize -j2 -i cov.gguf -o out Q4_K_M model.gguf
for kind in malloc malloc1; do
	walk "gguf-quantize --calibrate" $kind '' gguf-quantize -j2 --ctx 32 --chunks 8 --calibrate text -o out \
		Q4_K_S model.gguf
done
walk_writes "gguf-quantize --calibrate" gguf-quantize -j2 --ctx 32 --chunks 8 --calibrate text -o out Q4_K_S model.gguf
walk_all gguf-plan gguf-plan --no-sandbox -j2 -i im.gguf --kld --types q4_0,q8_0 --effort 1 --bpw 5 -o out model.gguf
# threads that fail at once: a fault early in the reading of weights, as each of them does it
rm -f said
for i in $(seq 25); do
	faulty read:40:EIO gguf-plan --no-sandbox -j4 --types q4_0,q8_0 --effort 1 --bpw 5 model.gguf 2>>said >out
done
is "one of them tells of it" "$(grep -c "^gguf-plan: model.gguf: .*Input/output error$" said) $(wc -l <said)" "25 25"
walk_all "gguf-plan RECIPE" gguf-plan --no-sandbox -j2 -o out Q4_K_M model.gguf
gguf-plan -o plan Q4_K_M model.gguf
walk_some "gguf-quantize --plan" gguf-quantize -j2 --plan plan -o out model.gguf
walk_all gguf-tokenize gguf-tokenize --no-sandbox -m model.gguf -o out text
walk_some "gguf-tokenize of a folder" gguf-tokenize --no-sandbox -m small -o out text
walk_some "gguf-tokenize --decode" gguf-tokenize --no-sandbox -m model.gguf --decode -o out ids
echo '["a", "the city"]' >texts
walk_some "gguf-tokenize --json" gguf-tokenize --no-sandbox -m model.gguf --json -o out texts
walk_all gguf-logits gguf-logits --no-sandbox -j2 -m model.gguf -o out ids
walk_some "gguf-logits --hidden" gguf-logits --no-sandbox -j2 -m model.gguf --hidden -o out ids
walk_writes gguf-logits gguf-logits --no-sandbox -j2 -m model.gguf -o out ids
walk_all gguf-perplexity gguf-perplexity --no-sandbox -j2 --ctx 32 --chunks 1 -m model.gguf -o out text
walk_all "gguf-perplexity, windows to each thread" gguf-perplexity --no-sandbox -j2 --ctx 32 --batch 31 --chunks 3 \
	-m model.gguf -o out text
walk_all "gguf-perplexity --save-logits" gguf-perplexity --no-sandbox -j2 --ctx 32 --chunks 1 --save-logits out \
	-m model.gguf text
# what stdio writes fails where a file may not grow, here at some KiB
gguf-perplexity -q --ctx 32 --chunks 1 --save-logits base -m model.gguf text >/dev/null
bad=
for blocks in 1 50 100 200; do
	(trap '' XFSZ; ulimit -f $blocks; exec gguf-perplexity -q --ctx 32 --chunks 1 --save-logits out -m model.gguf \
		text) >/dev/null 2>stderr
	s=$?
	[ $s = 2 ] && [ -s stderr ] && ! [ -e out ] && ! temporary || bad="$bad $blocks(exit $s)"
done
is "gguf-perplexity --save-logits: a file that may not grow" "$bad" ""
# logits_file.c once tested a pointer that it had given back
walk_all "gguf-perplexity --base LOGITS" gguf-perplexity --no-sandbox -j2 --ctx 32 -m model.gguf --base base -o out text
walk_some "gguf-perplexity --base MODEL" gguf-perplexity --no-sandbox -j2 --ctx 32 --chunks 1 -m model.gguf \
	--base model.gguf -o out text
gguf-perplexity -q --ctx 32 --chunks 2 --partial -m model.gguf -o part text
walk_some "gguf-perplexity --merge" gguf-perplexity --merge --no-sandbox -o out part
walk_all gguf-run gguf-run --no-sandbox -j2 -n 3 -m model.gguf -o out -p The
walk_all "gguf-bench --save" gguf-bench --no-sandbox -j2 --synthetic 1M,q4_0 --save out
# what is measured differs from run to run
rm -f out count
measure="gguf-bench --no-sandbox -j2 --prompt 4 --generate 1 --repeat 1 --profile --json -m model.gguf -o out"
LD_PRELOAD=$FAULT_SO FAULT_COUNT=count $measure
for kind in malloc1 read; do
	bad='' calls=$(sed -n "s/^${kind%1} //p" count)
	for n in $(sample "$calls" | awk 'NR % 8 == 1'); do
		rm -f out .out.*
		faulty "$kind:$n" $measure 2>stderr
		case $? in
		0) jq -e .limits out >/dev/null 2>&1 ;;
		2) [ -s stderr ] && [ ! -e out ] && ! temporary ;;
		*) false ;;
		esac || bad="$bad $n"
	done
	is "gguf-bench, $kind, some of $calls calls" "$bad" ""
done

# a set of shards that cannot be written is not there at all
cut="gguf-split -q --max-tensors 4 -o s m.gguf"
LD_PRELOAD=$FAULT_SO FAULT_COUNT=count $cut
mkdir whole
mv s-0* whole
for how in malloc1: read:EIO write:ENOSPC write:short fsync:EIO rename:EACCES; do
	kind=${how%%:*} bad=''
	calls=$(sed -n "s/^${kind%1} //p" count)
	for n in $(sample "${calls:-12}"); do
		faulty "$kind:$n:${how#*:}" $cut 2>stderr
		case $? in
		0) for f in whole/s-0*; do cmp -s "$f" "${f#whole/}" || bad="$bad $n(bytes)"; done ;;
		2) [ -s stderr ] || bad="$bad $n(no message)"
			[ -z "$(find . -maxdepth 1 -name 's-0*')" ] || bad="$bad $n(a shard was left)" ;;
		*) bad="$bad $n" ;;
		esac
		for f in .s-0*; do [ ! -e "$f" ] || bad="$bad $n($f)"; done
		rm -f s-0* .s-0*
	done
	is "gguf-split to shards, $how" "$bad" ""
done
rm -r whole

# SIGTERM while a file gets its name: a set of shards is there or is not, and no hidden name is left
gguf-split -q --max-tensors 4 -o s m.gguf
shards=$(find . -name 's-0*' | wc -l)
for kind in unlink rename; do
	bad='' ended=0
	for n in $(seq 1 $((2*shards))); do
		rm -f s-0*
		faulty "$kind:$n:term" gguf-split -q --max-tensors 4 -o s m.gguf 2>/dev/null
		[ $? = 143 ] && ended=$((ended + 1))
		left=$(find . -name 's-0*' | wc -l)
		[ "$left" = 0 ] || [ "$left" = "$shards" ] || bad="$bad $n($left of $shards)"
		for f in .s-0*; do [ ! -e "$f" ] || bad="$bad $n($f)"; rm -f "$f"; done
		echo old >out
		faulty "$kind:$n:term" gguf-cat -o out m.gguf token_embd.weight
		[ $? = 143 ] && ended=$((ended + 1))
		! temporary || bad="$bad $n(a temporary was left)"
		rm -f .out.*
	done
	[ "$ended" -gt "$shards" ] || bad="$bad only $ended ended"
	is "SIGTERM before $kind: nothing or all" "$bad" ""
done
done_testing
