#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-quantize: the forms of its command line, what it keeps, what it refuses, and bytes that do not depend on
# threads or instruction sets.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
q=gguf-quantize
ok "a model to work on" gguf-convert -o m.gguf "$DATA/wiki-7m"
ok "recipe first" $q -q -o a.gguf Q4_K_M m.gguf
ok "file first" $q -q -o b.gguf m.gguf q4_k_m
same "either order" a.gguf b.gguf
$q -q Q4_K_M <m.gguf >b.gguf
same "from a pipe" a.gguf b.gguf
for j in 1 3; do
	$q -q -j $j Q4_K_M m.gguf >b.gguf
	same "with $j threads" a.gguf b.gguf
done
for cpu in c avx2 avx512; do
	if GGUF_CPU=$cpu gguf-info --version >/dev/null 2>&1; then
		GGUF_CPU=$cpu $q -q Q4_K_M m.gguf >b.gguf
		same "with $cpu" a.gguf b.gguf
	else skip "with $cpu" "this CPU has no $cpu"; fi
done
ok "copy" $q -q -o c.gguf COPY m.gguf
same "copy keeps all" c.gguf m.gguf

# what is written
types() { gguf-info --json "$1" | tr -d ' \n' | sed 's/.*"tensors":\[//; s/{"name":"/\n/g' |
	sed -n 's/^\([^"]*\)","type":"\([^"]*\)".*/\1 \2/p'; }
of() { types "$1" | sed -n "s/^$2 //p"; }
is "output.weight of Q4_K_M" "$(of a.gguf output.weight)" q6_K
is "token_embd.weight of Q4_K_M" "$(of a.gguf token_embd.weight)" q4_K
is "norms stay" "$(of a.gguf output_norm.weight)" f32
is "order of tensors" "$(types a.gguf | cut -d' ' -f1)" "$(types m.gguf | cut -d' ' -f1)"
$q -q --tensor-type 'ffn_up=q8_0' --tensor-type 'FFN_=q5_0' --output-tensor-type q5_K --token-embedding-type bf16 \
	-o b.gguf Q3_K_S m.gguf
is "first pattern" "$(of b.gguf blk.0.ffn_up.weight)" q8_0
is "second pattern" "$(of b.gguf blk.0.ffn_down.weight)" q5_0
is "output type" "$(of b.gguf output.weight)" q5_K
is "embedding type" "$(of b.gguf token_embd.weight)" bf16
is "the rest" "$(of b.gguf blk.0.attn_q.weight)" q3_K
$q -q --pure --leave-output-tensor -o b.gguf Q5_0 m.gguf
is "left alone" "$(of b.gguf output.weight)" "$(of m.gguf output.weight)"
is "pure" "$(of b.gguf token_embd.weight)" q5_0
printf '%s\n' '- tensor: output.weight' '  type: Q6_K' '- {tensor: blk.1.attn_v.weight, type: q4_1}' >plan.yaml
$q -q --plan plan.yaml -o b.gguf m.gguf
is "plan" "$(of b.gguf output.weight) $(of b.gguf blk.1.attn_v.weight)" "q6_K q4_1"
is "plan: not named" "$(of b.gguf blk.0.attn_v.weight)" "$(of m.gguf blk.0.attn_v.weight)"
$q -q --allow-requantize F32 a.gguf >f.gguf
is "decoded" "$(types f.gguf | cut -d' ' -f2 | sort -u)" f32
$q -q --effort 1 Q4_K_M m.gguf >b.gguf
not_ok "effort changes bytes" 1 cmp -s a.gguf b.gguf
$q -q --objective plain Q3_K_S m.gguf >b.gguf
$q -q --objective default Q3_K_S m.gguf >c.gguf
$q -q Q3_K_S m.gguf >d.gguf
ok "--objective default is the default" cmp c.gguf d.gguf
not_ok "--objective plain minimises something else" 1 cmp -s b.gguf c.gguf
not_ok "--objective wants a name it knows" 2 $q --objective best Q3_K_S m.gguf
for bad in 1,2 '1,2,' 1,2,3,4 ,1,2 -1,0,0 nan,0,0 1,2,3x; do
	not_ok "--objective $bad is neither a name nor three numbers" 2 $q --objective=$bad Q3_K_S m.gguf
done
$q -q --objective 0,0,0 Q3_K_S m.gguf >e.gguf
ok "--objective 0,0,0 is plain" cmp b.gguf e.gguf
$q -q --pure --objective 0.22,0.25,0.2 Q3_K_S m.gguf >e.gguf
$q -q --pure Q3_K_S m.gguf >d.gguf
ok "--objective with the numbers of a type is its default" cmp d.gguf e.gguf

# tables
is "dry run writes a table" "$($q -n Q8_0 m.gguf | grep -c ' -> ')" "$(types m.gguf | grep -c .)"
$q -n -o dry.gguf Q8_0 m.gguf >table
is "... to standard output" "$(grep -c ' -> ' table)" "$(types m.gguf | grep -c .)"
not_ok "... and makes no file" 1 test -e dry.gguf
ok "dry run needs no matrix" $q -n IQ2_XS m.gguf
$q -n --tensor-type 'blk.0.attn_q=q8_0' Q4_K_M m.gguf >t.txt
is "table: arrows stand below one another" "$(awk '/ -> / { print index($0, " -> ") }' t.txt | sort -u | grep -c .)" 1
ok "table: titles first" sh -c 'head -1 t.txt | grep -q "^tensor  *shape  *from  *to  *bytes  *bits$"'
ok "table: an override is marked" grep -q '^blk.0.attn_q.weight .* q8_0 .* as asked$' t.txt
ok "table: sums" \
	sh -c 'tail -1 t.txt |
	grep -Eq "^[0-9]+ tensors, .* weights: .* \(16.*\) became .* \(.*\); the file has [0-9]+ bytes$"'
$q -n --json Q4_K_M m.gguf >t.json
is "json of a dry run: size of the file" "$(sed -n 's/.*"file_bytes": *\([0-9]*\).*/\1/p' t.json)" "$(wc -c <a.gguf |
	tr -d ' ')"
is "verbose: a line for each tensor" "$($q -v -o b.gguf Q6_K m.gguf 2>&1 | grep -c ' -> ')" "$(types m.gguf |
	grep -c .)"
$q --json -o b.gguf Q6_K m.gguf >t.json
is "json: a row for each tensor" "$(grep -c '"name"' t.json)" "$(types m.gguf | grep -c .)"
ok "json has errors" grep -q '"error": ' t.json
"$BUILD/tests/cli/tool_mkgguf" "$(printf 'a\377.weight'):f32:32x4" >odd.gguf
is "json: a name that is not UTF-8" "$($q -n --json Q8_0 odd.gguf |
	jq -ac '.tensors[0] | [.name, .name_raw, .shape]')" '["a\ufffd.weight","61ff2e776569676874",[32,4]]'

# refusals
is "a pipeline whose first part failed" "$(gguf-convert nowhere 2>/dev/null | $q Q8_0 2>&1)" \
	"gguf-quantize: (stdin): byte 0: the file is empty"
not_ok "no recipe" 2 $q m.gguf
not_ok "unknown recipe" 2 $q Q9_K m.gguf
cp .out message
is "... is reported after the list of recipes" "$(sed -n '1p;/^gguf-/p' message)" "Recipes:
gguf-quantize: neither Q9_K nor m.gguf is a recipe"
is "a type with a typo" "$($q --tensor-type x=iq4xs Q8_0 m.gguf 2>&1 | sed 1q)" \
	"gguf-quantize: --tensor-type: 'iq4xs' is not a type that can be encoded; did you mean iq4_xs?"
is "... that may mean several types gets all of them" "$($q --tensor-type x=q9_k Q8_0 m.gguf 2>&1 |
	cut -c -86 | sed 1q)" \
	"gguf-quantize: --tensor-type: 'q9_k' is not a type that can be encoded; the types are:"
not_ok "no regular expression" 2 $q --tensor-type '(=q4_0' -o x.gguf Q4_0 m.gguf
cp .out message
ok "... is reported with its option" grep -q '^gguf-quantize: --tensor-type (=q4_0: not a regular expression: ' message
is "as llama-quantize wants it" "$($q m.gguf y.gguf Q4_K_M 2>&1 | sed 1q)" \
	"gguf-quantize: two input files, m.gguf and y.gguf; name the output with -o"
not_ok "quantized input" 2 $q -o x.gguf Q5_K_M a.gguf
is "quantized input, refused in a dry run too" "$($q -n Q5_K_M a.gguf 2>&1 >/dev/null)" \
	"gguf-quantize: a.gguf: token_embd.weight is already quantized (q4_K); start from the original, or\
 give --allow-requantize"
is "... unless it is allowed" "$($q -n --allow-requantize Q5_K_M a.gguf 2>&1 >/dev/null)" ""
is "more shards than tensors, in a dry run too" "$($q -n --shards 1000 Q5_K_M m.gguf 2>&1 >/dev/null)" \
	"gguf-quantize: m.gguf: has $(types m.gguf | grep -c .) tensors, too few for 1000 shards"
"$BUILD/tests/cli/tool_mkgguf" general.architecture=llama a.weight:f32:256x2 >one.gguf
is "... of a model in a pipe" "$(cat one.gguf | $q --shards 2 -o never Q8_0 2>&1)" \
	"gguf-quantize: (stdin): has 1 tensor, too few for 2 shards"
ok "quantized input that stays as it is" $q -o b.gguf Q4_K_M a.gguf
"$BUILD/tests/cli/tool_mkgguf" blk.0.ffn_up_exps.weight:mxfp4:256x2x2 blk.0.attn_q.weight:f32:256x2 >blocks.gguf
is "MXFP4 stays where the recipe's type is no smaller" "$($q --json -n Q4_K_S blocks.gguf |
	jq -r '.tensors[] | "\(.to) \(.reason)"')" "mxfp4 published
q4_K rule"
is "... as the table says" "$($q -n Q4_K_S blocks.gguf | grep -c 'mxfp4 -> mxfp4 .*  as published$')" 1
$q -q -o b.gguf Q4_K_S blocks.gguf
is "... byte for byte" "$(gguf-cat b.gguf blk.0.ffn_up_exps.weight | cksum)" \
	"$(gguf-cat blocks.gguf blk.0.ffn_up_exps.weight | cksum)"
not_ok "... a smaller one needs consent" 2 $q -o b.gguf Q2_K blocks.gguf
not_ok "... as does decoding" 2 $q -o b.gguf F16 blocks.gguf
not_ok "... as does one that is asked for" 2 $q -o b.gguf --tensor-type exps=q4_k Q4_K_S blocks.gguf
ok "... and gets it" $q -o b.gguf --allow-requantize --tensor-type exps=q4_k Q4_K_S blocks.gguf
not_ok "needs a matrix" 2 $q -o x.gguf IQ2_XXS m.gguf
not_ok "type that does not exist" 2 $q -o x.gguf --tensor-type 'a=q9' Q4_K_M m.gguf
not_ok "bad pattern" 2 $q -o x.gguf --tensor-type '(=q8_0' Q4_K_M m.gguf
not_ok "onto its input" 2 $q -o m.gguf Q4_K_M m.gguf
is "a full disk is reported with the output's name" "$($q -o /dev/full Q4_K_M m.gguf 2>&1)" \
	"gguf-quantize: /dev/full: No space left on device"
not_ok "onto its input, redirected" 2 sh -c 'gguf-quantize -o m.gguf Q4_K_M <m.gguf'
not_ok "onto its plan" 2 $q -o plan.yaml --plan plan.yaml m.gguf
not_ok "json and the model on standard output" 2 $q --json Q4_K_M m.gguf
for out in - /dev/stdout both; do
	is "... named $out" "$($q --json -o $out Q4_K_M m.gguf 2>&1 >both; wc -c <both | tr -d ' ')" \
		"gguf-quantize: --json writes to standard output, where the model goes: give -o FILE
Try 'gguf-quantize -h'.
0"
done
printf '%s\n' '- {tensor: nothing.weight, type: q6_K}' >bad.yaml
not_ok "plan with a tensor that is not there" 2 $q --plan bad.yaml -o x.gguf m.gguf
is "a pattern that matches nothing is reported" "$($q -n --tensor-type 'ffn_dwon=q6_K' --tensor-type 'ffn_up=q6_K' \
	--tensor-type norm=f16 Q4_K_M m.gguf 2>&1 >/dev/null)" \
	"gguf-quantize: --tensor-type ffn_dwon=q6_K: set no tensor's type
gguf-quantize: --tensor-type norm=f16: set no tensor's type"
for wish in --pure --leave-output-tensor '--tensor-type a=f16' '--output-tensor-type q8_0' \
	'--token-embedding-type q8_0'; do
	# shellcheck disable=SC2086  # two words
	not_ok "a plan and $wish" 2 $q --plan plan.yaml $wish -o x.gguf m.gguf
done
not_ok "a plan and a recipe" 2 $q --plan plan.yaml -o x.gguf Q4_K_M m.gguf
# plan NAME WANT: what is said of the plan on standard input
plan() { cat >bad.yaml; is "a plan with $1" "$($q --plan bad.yaml -o x.gguf m.gguf 2>&1)" \
	"gguf-quantize: bad.yaml: $2"; }
plan "a tensor twice" "line 3: output.weight was already given in line 1" <<-END
	- {tensor: output.weight, type: q6_K}
	- {tensor: token_embd.weight, type: q6_K}
	- {tensor: output.weight, type: q4_K}
END
plan "another shape" "line 1: output.weight has another shape in the model: is the plan for another one?" <<-END
	- {tensor: output.weight, shape: [256, 4096, 2], type: q6_K}
END
plan "no type" "line 1: expected tensor and type" <<-END
	- output.weight
END
echo '- {tensor: output.weight, shape: [256, 4096, 1], type: q6_K, bytes: 1}' >good.yaml
ok "a plan with shapes" $q --plan good.yaml -o b.gguf m.gguf
head -c 2000000 m.gguf >short.gguf
not_ok "short input" 2 $q -o x.gguf Q4_K_M short.gguf
not_ok "nothing under the final name" 1 test -e x.gguf

for i in 1 2; do "$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/malformed/gguf/ok-split-0000$i-of-00002.ggtxt" \
	>s-0000$i-of-00002.gguf; done
cksum s-*.gguf >sums
for i in 1 2; do not_ok "onto shard $i of its input" 2 $q -o s-0000$i-of-00002.gguf COPY s-00001-of-00002.gguf; done
is "shards are as they were" "$(cksum s-*.gguf)" "$(cat sums)"
ok "shards in, one file out" $q -o b.gguf COPY s-00001-of-00002.gguf

# a small model for these tests
mk=$BUILD/tests/cli/tool_mkgguf
"$mk" vendor.key=hello split.count=0 general.file_type=1 llama.block_count=1 a.weight:f32:96x4 b.weight:f16:40x3 \
	blk.0.ffn_up_exps.weight:f32:256x4x3 \
	blk.0.ffn_norm.weight:f32:256 blk.0.attn_q.weight:bf16:256x7:huge z.bias:f32:5 \
		blk.0.attn_k.weight:f32:256x3:zero >odd.gguf
$q -o b.gguf Q4_K_M odd.gguf 2>err
is "fall-backs" "$(of b.gguf a.weight) $(of b.gguf b.weight)" "q5_0 f16"
is "fall-backs are summed in a line" "$(grep fall err)" \
	"gguf-quantize: fall-backs, where rows are not a whole number of blocks: 1 tensor from q4_K\
 to q5_0, 1 from q4_K to f16 (-v shows which)"
$q -v -o b.gguf Q4_K_M odd.gguf 2>err
is "... with -v in detail" "$(sed -n 's/^\([^ ]*\) .* -> \([^ ]*\) .* fall-back$/\1 \2/p' err | tr '\n' ' ')" \
	"a.weight q5_0 b.weight f16 "
is "... and -q says nothing" "$($q -q -o b.gguf Q4_K_M odd.gguf 2>&1)" ""
is "experts" "$(of b.gguf blk.0.ffn_up_exps.weight)" q4_K
is "vectors stay" "$(of b.gguf blk.0.ffn_norm.weight) $(of b.gguf z.bias)" "f32 f32"
ok "unknown metadata stay" sh -c 'gguf-info --json b.gguf | grep -q "\"vendor.key\": *\"hello\""'
ok "nothing is said of shards" sh -c 'gguf-info --json b.gguf >b.json && ! grep -q "split\." b.json'
ok "file type" sh -c 'gguf-info --json b.gguf | grep -q "\"general.file_type\": *15"'
# rows of 96, 288, 40 and 8: what every recipe falls back to for the first two, in any case of its name; F16 for the
# others
"$mk" a.weight:f32:96x4 b.weight:f32:288x2 c.weight:f32:40x3 d.weight:f32:8x2 general.type=model >odd2.gguf
while read -r to recipes; do
	for r in $recipes; do
		rest=f16
		case $to in *f*[0-9][0-9]) rest=$to ;; esac
		is "fall-backs of $r" "$($q -q -n "$r" odd2.gguf | sed -n 's/^..weight .* -> \([^ ]*\).*/\1/p' |
			tr '\n' ' ')" "$to $to $rest $rest "
	done
# the first line of iq4_nl is q4_0 with llama.cpp
done <<-END
	f32 F32 COPY
	f16 F16 f16
	bf16 BF16
	q8_0 Q8_0 Q6_K MXFP4_MOE mxfp4_moe
	q5_1 Q5_K_M Q5_K_S Q5_K Q5_1
	q5_0 Q4_K_M Q4_K_S Q4_K Q5_0
	q4_1 Q4_1
	q4_0 Q4_0
	iq4_nl Q3_K_L Q3_K_M Q3_K_S Q3_K Q2_K Q2_K_S TQ1_0 TQ2_0 tq2_0 Q2_0 Q1_0
	iq4_nl IQ4_NL IQ4_XS IQ3_M IQ3_S IQ3_XS IQ3_XXS IQ2_M IQ2_S IQ2_XS iq2_xs Iq2_Xxs IQ1_M IQ1_S
	mxfp4 NVFP4
END
ok "fall-backs can be made" $q -q -o b.gguf IQ1_S odd2.gguf
not_ok "an override that does not fit is refused" 2 $q -o x.gguf --tensor-type '^a=q4_K' Q8_0 odd2.gguf

# types that need a matrix
"$mk" blk.0.attn_q.weight:f32:256x4 output.weight:f32:256x4 token_embd.weight:f32:256x4 >small.gguf
for r in IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ3_XXS IQ3_XS Q2_K_S; do
	$q -o - "$r" small.gguf >x.out 2>err
	is "$r without a matrix: exit 2, nothing written, the tensor named" "$? $(wc -c <x.out |
		tr -d ' ') $(grep -c 'attn_q.weight: .* needs an importance matrix' err)" "2 0 1"
	[ $r = IQ3_XS ] || not_ok "$r --pure without a matrix" 2 $q --pure -o x.gguf "$r" small.gguf
done
ok "IQ3_XS --pure is IQ3_S, which needs none" $q -q --pure -o b.gguf IQ3_XS small.gguf
for r in Q2_K IQ3_S IQ3_M IQ4_XS IQ4_NL TQ1_0 Q3_K_S; do ok "$r needs none" $q -q -o b.gguf "$r" small.gguf; done
not_ok "an override that needs a matrix" 2 $q -o x.gguf --tensor-type attn_q=iq2_s Q8_0 small.gguf
echo '- {tensor: blk.0.attn_q.weight, type: iq1_m}' >bad.yaml
is "a plan that needs a matrix" "$($q --plan bad.yaml -o x.gguf small.gguf 2>&1)" \
	"gguf-quantize: bad.yaml: line 1: blk.0.attn_q.weight as iq1_m needs an importance matrix (-i FILE)"
ok "in a dry run it does not" $q -n --plan bad.yaml small.gguf
im() { "$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 "$1.in_sum2:f32:$2:square" \
	"$1.counts:f32:1:one" >im.gguf; }
im blk.0.attn_q.weight 256
ok "with one" $q -q -i im.gguf -o b.gguf IQ2_XS small.gguf
# sanitizers' frames are larger
if [ "${SANITIZED:-}" ]; then skip "... with a stack of 64 KiB" "sanitizers need more"
else ok "... with a stack of 64 KiB" sh -c "ulimit -s 64; $q -q -i im.gguf -o b.gguf IQ2_XS small.gguf"; fi
ok "pure with one, embedding and output left out of it" $q -q -i im.gguf --pure -o b.gguf IQ1_S small.gguf
is "it says what the matrix lacks, and how to have it" "$($q -i im.gguf -o b.gguf Q4_K_M small.gguf 2>&1)" \
	"gguf-quantize: im.gguf: has no data for these tensors (1), whose columns are weighted equally:\
 output.weight (gguf-imatrix --process-output collects for output.weight)"
mkfifo im.pipe
$q -i im.gguf -o b.gguf IQ2_XS small.gguf
mkdir dash && echo other >dash/-
ok "the matrix through a pipe, beside a file named -" sh -c 'cd dash && cat ../im.gguf |
	gguf-quantize -i - -o ../dash.gguf IQ2_XS ../small.gguf'
is "... is the same but for the sum of a file" "$(gguf-diff --brief -I '^quantize.imatrix.sha256$' dash.gguf b.gguf
	gguf-info --get quantize.imatrix.sha256 dash.gguf 2>&1)" \
	"gguf-info: dash.gguf: no key 'quantize.imatrix.sha256'"
cat im.gguf >im.pipe &
$q -q -i im.pipe -o b.gguf IQ2_XS small.gguf
is "one from a pipe has no hash" "$(gguf-info --json b.gguf |
	jq -c '.metadata | [has("quantize.imatrix.sha256"), ."quantize.imatrix.entries_count"]')" '[false,1]'
im blk.1.attn_q.weight 256
$q -i im.gguf IQ2_XS small.gguf >x.out 2>err
is "a matrix without a tensor that needs it: exit 2, nothing written, the tensor named" "$? $(wc -c <x.out |
	tr -d ' ') $(grep -c 'no data for blk.0.attn_q.weight' err)" "2 0 1"
ok "a matrix without it, for a type that can do without" $q -i im.gguf -o b.gguf Q4_K_M small.gguf
"$mk" blk.0.ffn_up.weight:f32:256x4 per_layer_token_embd.weight:f32:256x4 >tied.gguf
im blk.0.ffn_up.weight 256
ok "no matrix has an embedding" $q -i im.gguf --pure -o b.gguf IQ2_XS tied.gguf
printf '%s\n' '- {tensor: per_layer_token_embd.weight, type: iq2_xs}' >p.yaml
ok "nor does a plan want one for it" $q --plan p.yaml -o b.gguf tied.gguf

# a copy with exceptions: what the metadata say of quantization and matrix
about() { gguf-info --json "$1" |
	jq -c '.metadata | [."general.quantization_version", ."general.file_type", (has("quantize.imatrix.sha256"))]'; }
$q -q -i im.gguf -o iq.gguf IQ2_XS tied.gguf
is "with a matrix" "$(about iq.gguf)" '[2,20,true]'
$q -i im.gguf -o b.gguf COPY iq.gguf
same "a copy is one with a matrix that nothing needs too" b.gguf iq.gguf
$q -o b.gguf --tensor-type up=q4_K COPY tied.gguf
is "a copy with a tensor quantized" "$(about b.gguf)" '[2,null,false]'
$q -i im.gguf -o b.gguf --tensor-type up=q4_K COPY tied.gguf
is "... by a matrix" "$(about b.gguf)" '[2,null,true]'
im blk.0.attn_q.weight 128
$q -i im.gguf Q4_K_M small.gguf >x.out 2>err
is "a matrix of another size: exit 2, nothing written, the tensor named" "$? $(wc -c <x.out |
	tr -d ' ') $(grep -c 'blk.0.attn_q.weight' err)" "2 0 1"
not_ok "a matrix of another size, in a dry run" 2 $q -n -i im.gguf Q4_K_M small.gguf
"$mk" blk.0.ffn_down_exps.weight:f32:256x3x2 >moe.gguf
"$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 \
	blk.0.ffn_down_exps.weight.in_sum2:f32:256x2:square \
	blk.0.ffn_down_exps.weight.counts:f32:1x2:zero >im.gguf
is "experts that no token reached" "$($q -i im.gguf -o b.gguf IQ2_XS moe.gguf 2>&1)" \
	"gguf-quantize: im.gguf: no token reached these matrices, whose columns are weighted equally:\
 2 of 2 in blk.0.ffn_down_exps.weight"
# the old form joins the matrices of experts
experts() { "$mk" general.type=imatrix imatrix.chunk_count=1 imatrix.chunk_size=512 \
	"blk.0.ffn_down_exps.weight.in_sum2:f32:$1:square" "blk.0.ffn_down_exps.weight.counts:f32:$2:one"; }
experts 256x2 1x2 >im.gguf
gguf-imatrix --merge --dat -o im.dat im.gguf
experts 512x1 1x1 >joined.gguf
data() { $q -q -i "$1" $2 moe.gguf | gguf-cat - blk.0.ffn_down_exps.weight | cksum; }
for t in IQ2_XS Q4_K; do
	is "experts in the old form, $t" "$(data im.dat $t)" "$(data im.gguf $t)"
	is "... converted from it, $t" "$(data joined.gguf $t)" "$(data im.gguf $t)"
	experts 256 1 >im.one
	is "... are not all weighed as the first, $t" \
		"$([ "$(data im.one $t)" = "$(data im.gguf $t)" ] && echo same)" ""
done
experts 256x4 1x4 >im.gguf
not_ok "experts of another number" 2 $q -q -i im.gguf -o x.gguf Q4_K moe.gguf
experts 1024 1 >im.gguf
not_ok "... in the old form" 2 $q -q -i im.gguf -o x.gguf Q4_K moe.gguf
not_ok "a matrix that is a model" 2 $q -i small.gguf -o x.gguf Q4_K_M small.gguf

"$mk" fine.weight:f32:256x2 bad.weight:f32:256x3:nan >nan.gguf
not_ok "a weight that is not a number" 2 $q -o x.gguf Q4_K_M nan.gguf
ok "it is named" sh -c 'gguf-quantize -o x.gguf Q4_K_M nan.gguf 2>&1 | grep -q "bad.weight: .*row 1, column 2"'
"$mk" $(for i in 1 2 3 4 5 6 7 8 9; do echo "fine$i.weight:f32:256x9 bad$i.weight:f32:256x9:nan"; done) >nans.gguf
for j in 2 4 8 8 8; do $q -j $j Q4_K_M nans.gguf 2>&1 >/dev/null; done | sort -u >err
is "the first is named, whatever the number of threads" "$(cat err)" "$($q -j 1 Q4_K_M nans.gguf 2>&1 >/dev/null)"
head -c 5000000 m.gguf | $q -j 4 Q4_K_M 2>err >/dev/null
is "a pipe that ends too early: exit 2, with the byte and the tensor" \
	"$? $(grep -Ec '\(stdin\): byte 5000000: [a-z0-9._]*weight: the file is truncated: [0-9]+ bytes are missing' \
	err)" "2 1"
head -c -1 m.gguf | $q Q4_K_M 2>err >/dev/null
is "... if it is one byte" "$(sed 's/.*weight: //' err)" "the file is truncated: 1 byte is missing"
ok "going on all the same" $q --keep-non-finite -o b.gguf Q4_K_M nan.gguf
# finite weights that are too large are reported, and the error is not 0
"$mk" a.weight:f32:256x2:huge b.weight:f32:256x2 >huge.gguf
for r in F16 Q8_0 Q4_K NVFP4 BF16 F32; do
	$q --json -o b.gguf $r huge.gguf >t.json 2>err
	echo "$r $(grep -c 'a.weight: 512 weights of .* or more, which .* may not be able to hold' \
		err) $(jq -c '[.tensors[] | .error | if type == "number" then . > 0.5 else . end]' t.json)"
done >told
is "weights beyond a type's range" "$(cat told)" 'F16 1 ["Infinity",false]
Q8_0 1 ["Infinity",false]
Q4_K 1 [true,false]
NVFP4 1 [true,false]
BF16 0 [false,false]
F32 0 [null,null]'
is "... the first of them is named" "$($q -o b.gguf F16 huge.gguf 2>&1 | sed 's/.*hold//')" \
	"; the first in row 0, column 0"
"$mk" a.weight:f64:256x3:beyond >beyond.gguf
for r in f32:3.40282e+38 f16:65520 bf16:3.39618e+38; do
	is "a weight that no float holds, as ${r%:*}" "$($q -o b.gguf ${r%:*} beyond.gguf 2>&1)" \
		"gguf-quantize: beyond.gguf: \
a.weight: 1 weight of ${r#*:} or more, which ${r%:*} may not be able to hold; the first in row 1, column 2"
done
for r in Q8_0 Q4_K; do
	is "... and as $r" "$($q -o x.gguf $r beyond.gguf 2>&1)" \
		"gguf-quantize: beyond.gguf: a.weight: the weight in row 1, column 2 is beyond the range of f32"
done
is "NaN has no sign" "$($q -q Q8_0 huge.gguf | gguf-diff --values huge.gguf - | grep ^values.a)" \
	"values a.weight: max nan in row 0, column 67, rms nan, relative nan"
ok "floats keep it" $q -o b.gguf F16 nan.gguf
not_ok "nothing under the final name, again" 1 test -e x.gguf
(cat small.gguf && sleep 1 && head -c 200000 /dev/zero; echo $? >status) | $q -q Q4_K_M >b.gguf
is "a pipe is read to its end" "$(cat status)" 0

# memory: 256 MiB of weights with 40 MB, of which the stacks of three threads are 24
"$mk" blk.0.ffn_up.weight:f32:1024x65536 >big.gguf
im blk.0.ffn_up.weight 1024
case ${CFLAGS:-} in
*-fsanitize*) skip "bounded memory" "a sanitizer takes its own" ;;
*) for r in F32 F16 Q8_0 Q4_K_M IQ2_XXS; do
	ok "bounded memory: $r, file to file" \
		sh -c "ulimit -d 40000; $q -q -j 4 -i im.gguf --effort 1 -o b.gguf $r big.gguf"
	# shellcheck disable=SC2002  # a pipe is the point
	ok "bounded memory: $r, pipe to pipe" \
		sh -c "ulimit -d 40000; cat big.gguf | $q -q -j 4 -i im.gguf --effort 1 $r | cmp - b.gguf"
done ;;
esac
rm big.gguf

# many small tensors, the same for every number of threads
awk 'BEGIN { for (i = 0; i < 1500; i++) { print "blk." i ".attn_norm.weight:f32:" i%7*32
	if (i%3 == 0) print "blk." i ".attn_q.weight:f16:64x" i%5 } }' | xargs "$mk" >many.gguf
$q -q -j 1 -o a.gguf Q4_K_M many.gguf
for j in 2 3 8; do
	$q -q -j $j -o b.gguf Q4_K_M many.gguf
	same "2000 tensors, $j threads" b.gguf a.gguf
done
is "none of them is lost" "$(of b.gguf 'blk.1499.attn_norm.weight')" f32

# plans that are pipes
$q -q --plan plan.yaml -o a.gguf m.gguf
$q -q --plan - -o b.gguf m.gguf <plan.yaml
same "a plan from standard input" b.gguf a.gguf
mkfifo plan.fifo
cat plan.yaml >plan.fifo &
$q -q --plan plan.fifo -o c.gguf m.gguf
same "a plan from a named pipe" c.gguf a.gguf
not_ok "plan and model from standard input" 2 $q --plan - -o x.gguf - <plan.yaml

# shards: the model of one file, and each shard alone the bytes of the set's
$q -q -o whole.gguf Q4_K_M m.gguf
for n in 1 3 7; do
	rm -f s-*.gguf p-*.gguf
	$q -q --shards $n -o s Q4_K_M m.gguf
	is "$n shards" "$(ls s-*.gguf | wc -l | tr -d ' ')" $n
	gguf-split -q --merge -o merged.gguf s-00001-of-0000$n.gguf
	ok "$n shards hold the model" gguf-diff merged.gguf whole.gguf
	i=1
	while [ $i -le $n ]; do
		$q -q --part $i/$n -o p Q4_K_M m.gguf
		same "part $i of $n" p-0000$i-of-0000$n.gguf s-0000$i-of-0000$n.gguf
		i=$((i + 1))
	done
done
gguf-split -q --max-tensors 5 -o in m.gguf
$q -q --part 2/3 -o from Q4_K_M in-00001-of-*.gguf
rm -f s-*.gguf
$q -q --shards 3 -o s Q4_K_M m.gguf
same "a part from shards" from-00002-of-00003.gguf s-00002-of-00003.gguf
cat m.gguf | $q -q --part 3/3 -o piped Q4_K_M -
same "a part from a pipe" piped-00003-of-00003.gguf s-00003-of-00003.gguf
sums_up='([.tensors[].bytes] | add) == .bytes and ([.tensors[].bytes_before] | add) == .bytes_before and
	(.bits_per_weight*.weights/8 - .bytes | fabs) < 1 and .file_bytes == $bytes'
$q -q --json --part 2/3 -o t Q4_K_M m.gguf >j
ok "totals in the JSON of a part are those of its tensors" \
	jq -e --argjson bytes "$(wc -c <t-00002-of-00003.gguf)" "$sums_up" j
$q -q -n --json --part 2/3 -o t Q4_K_M m.gguf >dry
is "... and a dry run of the part shows the same tensors and totals" "$(jq -c . dry)" \
	"$(jq -c 'del(.tensors[].error)' j)"
is "... also as a table" "$($q -q -n --part 2/3 Q4_K_M m.gguf | sed '1d;$d' | cut -d ' ' -f 1)" \
	"$(jq -r '.tensors[].name' j)"
$q -q --json --shards 3 -o t Q4_K_M m.gguf >j
ok "... and of shards, of all" jq -e --argjson bytes "$(cat t-*-of-00003.gguf | wc -c)" "$sums_up" j
not_ok "... but no shard appears if it cannot be printed" 2 \
	sh -c "$q -q --json --shards 2 -o full Q4_K_M m.gguf >/dev/full"
is "..., none at all" "$(find . -name '*full-0*')" ""
for bad in 0/3 4/3 3 1/0 1/2x x; do not_ok "--part $bad" 2 $q --part $bad -o p Q4_K_M m.gguf; done
rm -f p-*.gguf
"$BUILD/tests/cli/tool_mkgguf" a:f32:32x1000 b:f32:32x1 c:f32:32x1 >uneven.gguf
$q -q --shards 3 -o uneven F32 uneven.gguf
is "no shard of a very uneven model is empty" "$(gguf-info --json uneven-00001-of-00003.gguf |
	jq -c '[.tensors[].shard]')" "[0,1,2]"
"$BUILD/tests/cli/tool_mkgguf" a:f32:32x1 b:f32:32x1000 >late.gguf
is "a shard for which there is no room is found before another is written" \
	"$( (ulimit -f 100; $q -v --no-sandbox --shards 2 -o never COPY late.gguf) 2>&1)" \
	"gguf-quantize: never-00002-of-00002.gguf: needs 125 KiB: File too large"
seq 300 | sed 's/$/.weight:f32:32x2/' | xargs "$BUILD/tests/cli/tool_mkgguf" >many.gguf
: >rest-00123-of-00300.gguf && chmod 400 rest-00123-of-00300.gguf
ok "more shards than a process may have open" \
	sh -c "ulimit -n 50; $q --shards 300 -o rest Q8_0 many.gguf"
$q -q --part 123/300 -o one Q8_0 many.gguf
same "... each as it would be alone" rest-00123-of-00300.gguf one-00123-of-00300.gguf
is "... with the mode of the file that it replaces" "$(ls -l rest-00123-of-00300.gguf | cut -c 1-10)" "-r--------"
is "... and no other file" "$(find . -name '*rest*' | wc -l | tr -d ' ')" 300
not_ok "more shards than tensors" 2 $q --shards 60 -o p Q4_K_M m.gguf
not_ok "... and a part of them" 2 $q --part 1/60 -o p Q4_K_M m.gguf
is "... leave nothing" "$(echo p-*)" "p-*"
not_ok "shards without a prefix" 2 $q --shards 2 Q4_K_M m.gguf
not_ok "shards and a part" 2 $q --shards 2 --part 1/2 -o p Q4_K_M m.gguf
done_testing
