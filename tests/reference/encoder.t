#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs on a model with an encoder (a tiny T5): gguf-run's tokens are those of gguf-logits; importances are of
# both stacks; what has no meaning for such a model is refused; memory is estimated.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch/t5 "a tiny checkpoint with an encoder"
cd "$TMP" || exit 1
ok "convert" gguf-convert -q --type f32 -o m.gguf "$SHARED/reference/arch/t5"
# A tied head of random weights would repeat each token: with its sign changed, what it says depends on the source.
sed 's|1 / sqrt(embedding_length)|-1 / sqrt(embedding_length)|' "$SRC/model/arch/t5.yaml" >turned.yaml
run() { gguf-run -q -m m.gguf --arch-file turned.yaml --cache-type-k f32 --cache-type-v f32 --temp 0 -n 6 --ids "$@"; }
for prompt in "hello world" "The quick brown fox jumps over the lazy dog."; do
	printf %s "$prompt" | gguf-tokenize -m m.gguf >source
	is "the prompt of the encoder ends with EOS" "$(sed 's/.* //' source)" 1
	run -p "$prompt" >got
	echo 0 >ids
	for i in 1 2 3 4 5 6; do
		id=$(gguf-logits -m m.gguf --arch-file turned.yaml --source source ids |
			"$BUILD/tests/reference/tool_argmax" 344 $((i - 1)))
		[ "$id" = 1 ] && break
		echo "$id" >>want
		sed "s/\$/ $id/" ids >more.ids
		mv more.ids ids
	done
	same "greedy tokens for $(wc -w <source | tr -d ' ')" got want
	run -p "$prompt" -j 3 >got2
	same "... with three threads" got2 got
	cat got >>all
	rm want
done
is "... which depend on the prompt" "$(sort -u all | wc -l | awk '{ print ($1 > 3) }')" 1
printf 'hello world' >prompt
run prompt >got
run -p "hello world" >want
same "a prompt from a file" got want
gguf-run -q -m m.gguf --arch-file turned.yaml --temp 0 -n 6 -p "hello world" >text
gguf-tokenize -m m.gguf --decode got >decoded 2>"$TMP/err" || cat "$TMP/err"
same "the answer as text, without the prompt" text decoded
ok "a prompt longer than a batch" gguf-run -q -m m.gguf --temp 0 -n 2 -o long "$DATA/prose/README.md"

# the gated form, which has no reference values, against plain Python, which reproduces those of the other form
if command -v python3 >/dev/null; then
	slow="python3 $SRC/tests/reference/slow_t5.py" t5=$SHARED/reference/arch/t5
	$slow logits "$t5" >slow
	ok "plain Python gives the reference's logits" "$BUILD/tests/reference/tool_cmp_f32" slow \
		"$t5/expected/logits.f32" 1e-4
	ok "a checkpoint with gated GELU and a head of its own" $slow gated "$t5" gated
	ok "... is converted" gguf-convert -q --type f32 -o gated.gguf gated
	$slow logits gated >slow
	for part in sequences decoder_sequences; do jq -r ".${part}[] | map(tostring) | join(\" \")" \
		"$t5/expected/tokens.json" >$part; done
	gguf-logits -m gated.gguf --source sequences decoder_sequences >fast
	ok "... and its logits are those of plain Python" "$BUILD/tests/reference/tool_cmp_f32" fast slow 1e-4
else skip "T5 with gated GELU" "no python3"; fi
sed 's/      start: .*//' "$SRC/model/arch/t5.yaml" >startless.yaml
not_ok "nothing to begin with" 2 gguf-run -q -m m.gguf --arch-file startless.yaml -p a
cp .out message
ok "... is said" grep -q 'm.gguf: names no start token for the decoder' message

head -c 20000 "$DATA/prose/calibration.txt" >text.txt
ok "importances" gguf-imatrix -q -m m.gguf --ctx 64 -o im.gguf text.txt
is "... of the weights of both stacks, by number" "$(gguf-imatrix --stats --json im.gguf |
	jq -r '[.tensors[].name | split(".")[0]] | group_by(.) | map("\(.[0]) \(length)") | join(" ")')" "dec 20 enc 12"
ok "... in small batches" gguf-imatrix -q -m m.gguf --ctx 64 --batch 7 -j 3 -o im7.gguf text.txt
same "... the same" im7.gguf im.gguf
# the decoder's first product takes the normed embeddings of its tokens: the start, and the second halves but for their
# last
is "... of the decoder's own tokens" "$(gguf-imatrix --stats --json im.gguf |
	jq '[.tensors[] | select(.name | test("blk.0.attn_[qkv].weight")) | .mean] | unique | length')" 2
ok "Q4_0 with them" gguf-quantize -q --imatrix im.gguf -o q.gguf Q4_0 m.gguf
ok "... makes logits" gguf-logits -m q.gguf --source source -o logits ids
ok "covariances" gguf-imatrix -q -m m.gguf --ctx 64 --chunks 8 --covariance -o cov.gguf text.txt
for p in "gguf-perplexity -m m.gguf text.txt" "gguf-bench -m m.gguf" \
	"gguf-quantize --calibrate text.txt -o c.gguf Q4_0 m.gguf"; do
	# shellcheck disable=SC2086
	not_ok "${p%% *} is refused" 2 $p
	cp .out message
	ok "... for the encoder" grep -q 'm.gguf: has an encoder; this program evaluates decoders only' message
done
gguf-info --json --ctx 512 m.gguf >info
is "the estimate's cache is that of both stacks" "$(jq .estimate.kv_cache_bytes info)" \
	"$(( (512/64)*(2*64*2*144 + 3*64*2*144 + 2*64 ) + 2*512*4 ))" # 144: 4 heads of 16 numbers and a scale
# what is predicted of the memory, as layers this narrow leave some of it untouched (gguf-info(1))
predicted() { near_peak "$1" "$(gguf-info --json --ctx "$2" "$3" | jq .estimate.total_bytes)" 1.12; }
head -c 8000 "$DATA/prose/evaluation.txt" >prompt
n=$(gguf-tokenize -q -m m.gguf prompt | wc -w)
if [ -n "${SANITIZED:-}" ]; then skip "memory as predicted" "a sanitizer's memory comes on top"; else
	peak gguf-run -q -j 2 -m m.gguf --temp 0 --ids -n $((n - 1)) prompt >answer
	is "a prompt and an answer of $n tokens" "$(wc -l <answer)" $((n - 1))
	predicted "... take the memory that is predicted" "$n" m.gguf
	head -c 30000 "$DATA/prose/evaluation.txt" >prompt
	n=$(gguf-tokenize -q -m m.gguf prompt | wc -w)
	peak gguf-run -q -j 2 -m m.gguf --temp 0 --ids -n 2 prompt >answer
	predicted "a prompt of $n tokens, whose scratch memory is freed before the answer" "$n" m.gguf
	ok "an encoder alone" gguf-convert -q -o e.gguf "$SHARED/reference/arch/modernbert"
	yes 5 | head -n 4000 | tr '\n' ' ' >text
	peak gguf-logits -q -j 2 -m e.gguf -o rows text
	predicted "... takes the memory that is predicted for the whole text" 4000 e.gguf
fi
# a model without logits has no output.weight that importances could be of
for m in bert modernbert; do
	gguf-convert -q --type f32 -o e.gguf "$SHARED/reference/arch/$m"
	ok "$m: importances" gguf-imatrix -q -m e.gguf --ctx 64 --chunks 8 -o plain.gguf text.txt
	ok "... and of the output that it lacks" gguf-imatrix -q -m e.gguf --ctx 64 --chunks 8 --process-output \
		-o output.gguf text.txt
	same "... are the same" output.gguf plain.gguf
	ok "... and covariances" gguf-imatrix -q -m e.gguf --ctx 64 --chunks 8 --covariance -o cov.gguf text.txt
	is "... are of the same weights" "$(gguf-imatrix --stats --json cov.gguf | jq -c '[.tensors[].name]')" \
		"$(gguf-imatrix --stats --json plain.gguf | jq -c '[.tensors[].name]')"
	ok "Q4_0 by importances" gguf-quantize -q -i plain.gguf -o plain.q.gguf Q4_0 e.gguf
	ok "Q4_0 by covariances" gguf-quantize -q -i cov.gguf -o cov.q.gguf Q4_0 e.gguf
	not_ok "... is another" 1 cmp plain.q.gguf cov.q.gguf
done
done_testing
