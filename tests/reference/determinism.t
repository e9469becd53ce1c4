#!/bin/sh
# SPDX-License-Identifier: MIT
# The same bytes for every number of threads, every instruction set and every batch size; and the bytes that
# determinism.sha256 names, so that a change of them is a decision. To make a new table when it is one:
#
#   RENEW=1 tests/reference/determinism.t
#
# and say in NEWS.md what changed and why. DETERMINISM=long tries all instruction sets with all numbers of threads, and
# the ends of the efforts; DETERMINISM=short, or SANITIZED, only two settings: `make check-compilers` asks that of many
# builds. TOOL_ENCODE names a command that runs tests/kernels/tool_encode on another machine, which must make the same
# blocks.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
table=$SRC/tests/reference/determinism.sha256
form=${DETERMINISM:-${SANITIZED:+short}}
unset GGUF_CPU
sha() { sha256sum | cut -d' ' -f1; }

# Every type that can be written, over the small matrices of the model in turn; the two large ones, which have no
# importances, get the first two.
types='q6_K q5_K q4_0 q4_1 q5_0 q5_1 q8_0 q2_K q3_K q4_K iq4_nl iq4_xs iq3_s iq3_xxs iq2_s iq2_xs iq2_xxs iq1_s iq1_m
	tq1_0 tq2_0 q1_0 q2_0 mxfp4 nvfp4 f16 bf16 f32'
# the types that gguf-quantize refuses without a matrix
ask='iq3_xxs iq2_s iq2_xs iq2_xxs iq1_s iq1_m'
tensors() { gguf-info --tensors "$1" | awk '$4 == "x" { print $1, $2, $3 }'; }
plan()
{
	tensors m.gguf | sort -k1,1r | awk -v types="$types" '
		BEGIN { n = split(types, type) }
		/^(token_embd|output)\./ { print $1, type[++large]; next }
		{ print $1, type[1 + small++ % n] }' | awk '{ print "- tensor: " $1 "\n  type: " $2 }'
}

# All results, in a folder of their own
run()   # FOLDER JOBS BATCH
{
	mkdir "$TMP/$1" && cd "$TMP/$1" || exit 1
	gguf-convert -q -j "$2" -o m.gguf "$DATA/wiki-7m"
	gguf-convert -q -j "$2" --type q8_0 -o q8_0.gguf "$DATA/wiki-7m"
	gguf-imatrix -q -j "$2" -m m.gguf --ctx 64 --chunks 3 -o im.gguf "$DATA/prose/calibration.txt"
	plan >plan.yaml
	gguf-quantize -q -j "$2" -i im.gguf --plan plan.yaml -o matrix.gguf m.gguf
	# again without the matrix, but for the types that ask for one
	awk -v ask=" $ask " '$1 == "type:" && index(ask, " " $2 " ") { sub($2, "q8_0") } { print }' \
		plan.yaml >plain.yaml
	gguf-quantize -q -j "$2" --plan plain.yaml -o plain.gguf m.gguf
	gguf-quantize -q -j "$2" -i im.gguf -o Q4_K_M.gguf Q4_K_M m.gguf
	gguf-quantize -q -j "$2" -i im.gguf --effort 1 -o IQ2_M.gguf IQ2_M m.gguf
	# error feedback: enough tokens for rows of 256, in two layers, which is what portable C has time for
	gguf-convert -q -j "$2" -o two.gguf "$TMP/two"
	gguf-imatrix -q -j "$2" --batch "$3" -m two.gguf --ctx 64 --chunks 5 --covariance --stride 1 -o cov.gguf \
		"$DATA/prose/calibration.txt"
	gguf-quantize -q -j "$2" -i cov.gguf --effort 1 -o feedback.gguf Q4_K_M two.gguf
	gguf-quantize -q -j "$2" --calibrate "$DATA/prose/calibration.txt" --ctx 32 --chunks 7 --effort 1 \
		-o calibrated.gguf Q4_K_M two.gguf
	[ "$form" != long ] || for e in 1 9; do gguf-quantize -q -j "$2" -i im.gguf --effort $e --plan plan.yaml \
		-o effort-$e.gguf m.gguf; done
	awk 'BEGIN {
		for (s = 1; s < 4; s++) {
			for (i = 0; i < 13*s; i++) printf "%d ", (i*i*s + 7*i) % 4096
			print ""
		}
	}' >ids
	for m in m q8_0 matrix Q4_K_M IQ2_M; do gguf-logits -q -j "$2" --batch "$3" -m $m.gguf -o $m.logits ids; done
	sha256sum ./*.gguf ./*.logits >sums
	[ "$1" = first ] || rm -f ./*.gguf ./*.logits
}

first_layers 2 "$TMP/two"
run first 4 512
is "all results are there" "$(wc -l <sums | tr -d ' ')" "$(if [ "$form" = long ]; then echo 18; else echo 16; fi)"
{
	echo "q8_0 of gguf-convert $(gguf-cat q8_0.gguf output.weight blk.0.ffn_down.weight | sha)"
	# shellcheck disable=SC2046
	echo "importance matrix $(gguf-cat im.gguf $(gguf-info --tensors im.gguf | awk '/in_sum2/ { print $1 }') | sha)"
	# shellcheck disable=SC2046
	echo "covariances $(gguf-cat cov.gguf $(gguf-info --tensors cov.gguf | awk '/in_cov/ { print $1 }') | sha)"
	# shellcheck disable=SC2046
	echo "Q4_K_M with feedback $(gguf-cat feedback.gguf $(tensors feedback.gguf | awk '{ print $1 }') | sha)"
	# shellcheck disable=SC2046
	echo "Q4_K_M calibrated $(gguf-cat calibrated.gguf $(tensors calibrated.gguf | awk '{ print $1 }') | sha)"
	for t in $types; do
		names=$(tensors matrix.gguf | awk -v t="$t" '$2 == t { print $1 }')
		[ "$names" ] || echo "no $t"
		# shellcheck disable=SC2086
		echo "$t with matrix $(gguf-cat matrix.gguf $names | sha)"
		# shellcheck disable=SC2086
		case " $ask " in *" $t "*) ;; *) echo "$t without $(gguf-cat plain.gguf $names | sha)" ;; esac
	done
	for m in m q8_0 matrix Q4_K_M IQ2_M; do echo "logits of $m $(sha <$m.logits)"; done
} >"$TMP/table"
if [ "${RENEW:-}" ]; then
	{ sed -n '/^#/p' "$table"; cat "$TMP/table"; } >"$TMP/new" && cp "$TMP/new" "$table"
fi
sed '/^#/d' "$table" >"$TMP/want"
same "the bytes are those of determinism.sha256" "$TMP/table" "$TMP/want"

# Blocks of all tensors of a type, by the tool, with the matrix or without
by_tool()       # TYPE with|without
{
	for name in $(tensors matrix.gguf | awk -v t="$1" '$2 == t { print $1 }'); do
		cols=$(tensors m.gguf | awk -v n="$name" '$1 == n { print $3 }')
		set -- "$1" "$2"
		if [ "$2" = with ] && gguf-cat im.gguf "$name.in_sum2" >sums.f32 2>/dev/null; then
			gguf-cat im.gguf "$name.counts" >counts.f32
			set -- "$1" "$2" sums.f32 counts.f32
		fi
		# the words of the command are split on purpose
		# shellcheck disable=SC2086
		gguf-cat --decode m.gguf "$name" | $TOOL_ENCODE "$1" "$cols" ${3:+"$3" "$4"}
	done
}
if [ "${TOOL_ENCODE:-}" ]; then
	for t in $types; do
		is "$t by $TOOL_ENCODE, with the matrix" "$(by_tool "$t" with | sha)" \
			"$(sed -n "s/^$t with matrix //p" "$table")"
		case " $ask " in *" $t "*) continue ;; esac
		is "$t without" "$(by_tool "$t" without | sha)" "$(sed -n "s/^$t without //p" "$table")"
	done
fi

try()   # JOBS BATCH [CPU]
{
	[ -z "${3:-}" ] || GGUF_CPU=$3 gguf-info --version >/dev/null 2>&1 || return
	[ -z "${3:-}" ] || export GGUF_CPU="$3"
	run "$1-$2-${3:-}" "$1" "$2"
	same "-j $1, batches of $2${3:+, $3}" sums "$TMP/first/sums"
}
if [ "$form" = short ]; then
	try 1 3 c
	done_testing
fi
try 1 512
try 2 1
try 3 7
for cpu in $(sed -n 's/^SET(\([a-z0-9]*\),.*/\1/p' "$SRC/quant/sets.inc"); do
	if [ "$form" = long ]; then
		for j in 1 2 4; do try $j $((32*j)) $cpu; done
	else
		try 2 32 $cpu
	fi
done
done_testing
