#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-plan: recipes written out, the best types for a size, plans that go back into gguf-quantize.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
bits() { gguf-info --json "$1" | jq .bits_per_weight; }
gguf-convert -q -o m.gguf "$DATA/wiki-7m"
head -c 8000 "$DATA/prose/calibration.txt" >calibration.txt
gguf-imatrix -q -m m.gguf --ctx 128 -o im.gguf calibration.txt

# a recipe's plan makes what the recipe makes
for r in Q4_K_M Q2_K iq4_xs Q5_1; do
	gguf-plan -i im.gguf -o $r.plan $r m.gguf
	gguf-quantize -q --effort 1 -i im.gguf -o a.gguf $r m.gguf
	gguf-quantize -q --effort 1 -i im.gguf --plan $r.plan -o b.gguf m.gguf
	ok "$r: by its plan the same tensors" gguf-diff -I general.file_type -I quantization a.gguf b.gguf
done
is "a line for each tensor" "$(grep -c '^- {tensor:' Q4_K_M.plan)" "$(gguf-info --json m.gguf | jq '.tensors | length')"
is "its name, shape, type and size" "$(sed -n '/"output.weight"/p' Q5_1.plan)" \
	'- {tensor: "output.weight", shape: [256, 4096], type: q6_K, bytes: 860160}'
is "from a pipe" "$(cat m.gguf | gguf-plan -i im.gguf Q4_K_M)" "$(cat Q4_K_M.plan)"
gguf-convert -q --vocab-only -o vocab.gguf "$DATA/wiki-7m"
for how in Q8_0 '--bpw 4'; do
	# shellcheck disable=SC2086
	gguf-plan $how vocab.gguf | gguf-quantize --plan - -o same.gguf vocab.gguf
	ok "a model without tensors, $how: the plan is one" gguf-diff -I general.file_type vocab.gguf same.gguf
	rm -f same.gguf
done
is "with wishes" "$(gguf-plan --tensor-type 'attn_v=q8_0' --output-tensor-type q5_K Q4_K_S m.gguf |
	grep -c 'attn_v.*type: q8_0\|"output.weight".*type: q5_K')" 7
sed -i 's/\("output.weight".*\)type: q6_K/\1type: q8_0/' Q4_K_M.plan
gguf-quantize -q --effort 1 -i im.gguf --plan Q4_K_M.plan -o b.gguf m.gguf
is "an edited plan" "$(gguf-info --json b.gguf | jq -r '.tensors[] | select(.name == "output.weight").type')" q8_0

# the old form joins the matrices of experts, each of which has its own weights
mk=$BUILD/tests/cli/tool_mkgguf
"$mk" blk.0.ffn_down_exps.weight:f32:256x64x4 >moe.gguf
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 \
	blk.0.ffn_down_exps.weight.in_sum2:f32:256x4:square blk.0.ffn_down_exps.weight.counts:f32:1x4:one >experts.gguf
gguf-imatrix --merge --dat -o experts.dat experts.gguf
is "experts in the old form" "$(gguf-plan -i experts.dat --bpw 4 moe.gguf)" \
	"$(gguf-plan -i experts.gguf --bpw 4 moe.gguf)"
is "... weigh the error" "$([ "$(gguf-plan -i experts.dat --bpw 4 moe.gguf)" = "$(gguf-plan --bpw 4 moe.gguf)" ] &&
	echo same)" ""

"$mk" blk.0.ffn_down_exps.weight:f32:128x64x4 >other.gguf
for how in Q4_K_M '--bpw 8'; do
	# shellcheck disable=SC2086
	is "a matrix of another model, $how" "$(gguf-plan -i experts.gguf $how other.gguf 2>&1)" \
		"gguf-plan: experts.gguf: blk.0.ffn_down_exps.weight has 256 columns of 4 matrices, the model's tensor \
128 of 4: is it from another model?"
done

# for a size
for b in 6 4.5 2.5; do
	gguf-plan -i im.gguf --bpw $b -o p m.gguf
	gguf-quantize -q --effort 1 -i im.gguf --plan p -o b.gguf m.gguf
	is "--bpw $b: not more, and not much less" "$(bits b.gguf | awk -v b=$b \
		'{ print ($1 <= b), ($1 > b*0.985) }')" "1 1"
done
gguf-plan -i im.gguf --size 4M -o p m.gguf
gguf-quantize -q --effort 1 -i im.gguf --plan p -o b.gguf m.gguf
is "--size: not more, and not much less" "$(wc -c <b.gguf | awk '{ print ($1 <= 4000000), ($1 > 3900000) }')" "1 1"
gguf-plan --bpw 1 m.gguf 2>err
least=$(sed -n 's/.* --bpw //p' err)
ok "too few bits: the message says how many it takes, $least" gguf-plan --bpw "$least" m.gguf
gguf-plan --size 1M m.gguf 2>err
least=$(sed -n 's/.* --size \([0-9]*\),.*/\1/p' err)
ok "too small: the message says what is possible, $least" gguf-plan --size "$least" m.gguf
not_ok "... and a byte less is not" 2 gguf-plan --size $((least - 1)) m.gguf

# the header of one shard is not that of the whole
"$BUILD/tests/cli/tool_mkgguf" $(seq -f blk.%g.a_tensor_with_a_name.weight:f16:256x8 300) >many.gguf
gguf-split -q --max-tensors 10 -o many many.gguf
gguf-plan --size 500k --effort 1 many-00001-of-00030.gguf | gguf-quantize -q --plan - -o b.gguf many.gguf
is "--size of shards: not more, and not much less" "$(wc -c <b.gguf | awk '{ print ($1 <= 500000), ($1 > 490000) }')" \
	"1 1"
is "any number of threads" "$(gguf-plan -j1 -i im.gguf --bpw 4 m.gguf)" "$(gguf-plan -j5 -i im.gguf --bpw 4 m.gguf)"
is "without a matrix no type that needs one" "$(gguf-plan --bpw 3 m.gguf | grep -cE 'type: (iq1|iq2|iq3_xxs)')" 0
is "--types" "$(gguf-plan --types q4_0,q8_0 --bpw 6 m.gguf | sed -n 's/.*type: \([a-z0-9_]*\), .*error.*/\1/p' |
	sort -u | tr '\n' ' ')" "q4_0 q8_0 "
is "what the user fixes stays" "$(gguf-plan --tensor-type 'ffn_down=q8_0' --bpw 5.5 m.gguf | grep 'ffn_down' |
	grep -vc 'type: q8_0')" 0
gguf-plan -i im.gguf --bpw 4.5 -o p m.gguf
gguf-quantize -q -i im.gguf --plan p m.gguf >a.gguf
gguf-convert -q "$DATA/wiki-7m" | gguf-quantize -q -i im.gguf --plan p >b.gguf
same "a plan in a pipe of three" a.gguf b.gguf

# the error of a line is that of what gguf-quantize makes; the matrix has no importances of c
"$mk" a.weight:f32:256x200 b.weight:f16:512x64 c.weight:f32:64x32 >three.gguf
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 a.weight.in_sum2:f32:256:square \
	a.weight.counts:f32:1:one b.weight.in_sum2:f32:512:square b.weight.counts:f32:1:one >three.imatrix
floats() { gguf-cat --decode "$@" | od -A n -v -w4 -t f4; }
for with in '' '-i three.imatrix'; do
	# shellcheck disable=SC2086
	{
	gguf-plan $with --bpw 5.2 --types q4_0,q5_1,q6_K,q8_0 -o p three.gguf
	gguf-quantize -q --effort 3 $with --plan p -o b.gguf three.gguf
	}
	for t in a:256 b:512 c:64; do
		floats three.gguf ${t%:*}.weight >x
		floats b.gguf ${t%:*}.weight | paste x - >both
		yes 1 | head -n "${t#*:}" >importance
		case $with$t in -*[ab]:*) floats three.imatrix ${t%:*}.weight.in_sum2 >importance ;; esac
		awk 'NR == FNR { weight[columns++] = $1; next }
			{ w = weight[(FNR - 1)%columns]; error += w*($1 - $2)^2; norm += w*$1^2 }
			END { printf "%.4g\n", sqrt(error/norm) }' importance both
	done >want
	is "the error is that of what gguf-quantize makes${with:+, weighted by importance}" \
		"$(sed -n 's/.*error: \(.*\)}/\1/p' p)" "$(cat want)"
done

# a plan of a size diverges less than any recipe of that size or less
head -c 5000 "$DATA/prose/evaluation.txt" >evaluation.txt
kld() { gguf-perplexity -q -m "$1" --base m.gguf --ctx 128 evaluation.txt | sed -n 's/^kld \([0-9.]*\).*/\1/p'; }
gguf-plan -i im.gguf --bpw 4.5 --kld -o p m.gguf
gguf-quantize -q -i im.gguf --plan p m.gguf >b.gguf
plan=$(kld a.gguf) energy=$(kld b.gguf)
for r in Q3_K_L IQ3_M; do
	gguf-quantize -q -i im.gguf -o r.gguf $r m.gguf
	is "4.5 bits per weight diverge less than $r" "$(bits r.gguf | awk -v k="$(kld r.gguf)" -v p="$plan" \
		'{ print ($1 <= 4.5), (p < k) }')" "1 1"
done
is "--kld diverges less still" "$(echo "$energy $plan" | awk '{ print ($1 < $2) }')" 1

# rows that fit no super-block
"$BUILD/tests/cli/tool_mkgguf" blk.0.ffn_up.weight:f16:96x64 blk.0.ffn_down.weight:f16:64x96 >odd.gguf
is "rows of 96: IQ4_NL stands for Q4_0" "$(gguf-plan Q2_K odd.gguf | grep -c 'type: iq4_nl')" 2
ok "a size for them" sh -c 'gguf-plan --bpw 5 odd.gguf | gguf-quantize --plan - -o o.gguf odd.gguf'

# names that YAML cannot hold, or a terminal should not: what is written is what is read
printf '%s\n' 'kv str general.architecture llama' \
	'tensor f16 b\xff\x22\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\xa0.weight 1 64 64' |
	"$BUILD/tests/cli/tool_gguf" >bytes.gguf
gguf-plan Q8_0 bytes.gguf >bytes.plan
is "bytes of a name that are no UTF-8, and characters that hide, are escaped" \
	"$(sed -n 's/, shape.*//p' bytes.plan)" '- {tensor: "b\xff\"\x9b\u202e\U000e0020.weight"'
is "... and read back" "$(gguf-quantize -n --plan bytes.plan bytes.gguf | grep -c " q8_0 ")" 1

not_ok "too small" 2 gguf-plan --bpw 1 m.gguf
not_ok "smaller than the metadata" 2 gguf-plan --size 1k m.gguf
not_ok "for nothing" 2 gguf-plan m.gguf
is "... is reported after the list of recipes" "$(gguf-plan m.gguf 2>&1 | sed -n '1p;$p')" "Recipes:
Try 'gguf-plan -h'."
not_ok "for two things" 2 gguf-plan --bpw 4 --size 4M m.gguf
not_ok "--kld without a matrix" 2 gguf-plan --kld --bpw 4 m.gguf
not_ok "a type that cannot be encoded" 2 gguf-plan --types q4_K,q9 --bpw 4 m.gguf
not_ok "no types" 2 gguf-plan --types '' --bpw 4 m.gguf
cp odd.gguf q4_0
ok "for a size, a model that is called like a recipe" gguf-plan --bpw 5 q4_0
printf -- '- {tensor: "blk.0.ffn_up.weight\\0x", type: f16}' >nul.plan
not_ok "a tensor's name with a NUL in it" 2 gguf-quantize -n --plan nul.plan odd.gguf
gguf-edit --rename-tensor "blk.0.ffn_up.weight=$(printf '%040d' 0).weight" -o zeros.gguf odd.gguf
is "a regular expression without an answer is not one without a match" \
	"$(gguf-quantize -n --tensor-type '^(0+)+[.]$=q8_0' q4_0 zeros.gguf 2>&1 >no |
	sed 's/: cannot be matched with .*//')" \
		"gguf-quantize: --tensor-type ^(0+)+[.]\$=q8_0"
not_ok "--ctx without --calibrate" 2 gguf-quantize -n --ctx 512 q4_0 odd.gguf
not_ok "measuring through a pipe" 2 sh -c 'cat m.gguf | gguf-plan --bpw 4'
not_ok "output over the model" 2 gguf-plan -o m.gguf Q4_K_M m.gguf
not_ok "a malformed model" 2 gguf-plan Q4_K_M p
done_testing
