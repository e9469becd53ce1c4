#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-bench: random models of the requested kind, lists of tests, figures that agree with each other.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1

# the model
ok "--save" gguf-bench --synthetic 3M,Q4_K_M --save a.gguf -j 1
ok "... with three threads" gguf-bench --synthetic 3M,Q4_K_M --save b.gguf -j 3
same "... the same bytes" a.gguf b.gguf
ok "... GGUF that evaluates" sh -c 'echo 1 2 3 | gguf-logits -q -m a.gguf -o logits'
is "... to finite numbers" "$(od -An -v -tu4 -w4 logits | awk '$1 % 2147483648 >= 2139095040' | wc -l | tr -d ' ')" 0
is "... of the recipe's types" "$(gguf-info --json a.gguf | jq -r '[.tensors[] | .type] | unique | join(" ")')" \
	"f32 q4_K q6_K"
for size in 1000000 5000000 21000000 44000000 51000000 60000000; do
	gguf-bench --synthetic "${size%000000}M,IQ2_XS" --save c.gguf
	weights=$(gguf-info --json c.gguf | jq '[.tensors[].shape | reduce .[] as $n (1; . * $n)] | add')
	ok "a size near $size: $weights" test "$weights" -gt $((size*4/5)) -a "$weights" -lt $((size*5/4))
done
for type in F16 bf16 q8_0 iq4_xs TQ2_0; do ok "a model of $type" gguf-bench --synthetic 1M,$type --save c.gguf; done

# figures
gguf-bench --synthetic 3M,Q8_0 --prompt 16,40 --generate 3 --depth 0,20 --repeat 2 --json -j 2 >j
ok "prompts by depth and length" \
	sh -c '[ "$(jq -c "[.prompts[] | [.depth, .tokens]]" j)" = "[[0,16],[0,40],[20,16],[20,40]]" ]'
ok "generation by depth" sh -c '[ "$(jq -c "[.generations[] | [.depth, .tokens]]" j)" = "[[0,3],[20,3]]" ]'
ok "the first of each stands out" jq -e '.prompt == .prompts[0] and .generation == .generations[0]' j
ok "lowest, median, highest" \
	jq -e 'all(.prompts[], .generations[];
	0 < .lowest and .lowest <= .tokens_per_s and .tokens_per_s <= .highest)' j
ok "limits are above zero" jq -e '[.limits[] | select(. != null)] | length >= 4 and all(.[]; . > 0)' j
ok "shares are of int16 products" jq -e '.limits as $l | all(.prompts[]; (.share_of_limit*$l.int16_gmacs/.gmacs - 1 |
	fabs) < 1e-9)' j
ok "shares are of what was read beside the test" jq -e 'all(.generations[]; .read_gb_per_s > 0 and
	(.share_of_limit*.read_gb_per_s/.gb_per_s - 1 | fabs) < 1e-9)' j
ok "threads and instruction set" jq -e '.threads == 2 and (.instruction_set | length > 0) and (.cpu | length > 0)' j
gguf-bench --synthetic 3M,F16 --prompt 16 --generate 0 --repeat 1 --json >j
ok "floats: of float products" jq -e '(.prompt.share_of_limit*.limits.f32_gmacs/.prompt.gmacs - 1 | fabs) < 1e-9' j
ok "--generate 0 leaves it out" jq -e '.generations == [] and (has("generation") | not)' j
# multiply-adds of a prompt: all matrices for each token, except those that only the last token needs: the output, and
# those of the last layer, without its keys and values
gguf-bench --synthetic 3M,F16 --save c.gguf
last=$(gguf-info --json c.gguf | jq '[.tensors[].name | select(test("^blk")) | split(".")[1] | tonumber] | max')
macs_of() { gguf-info --json c.gguf |
	jq "[.tensors[] | select(.shape | length == 2) | select(.name | test(\"$1\")) | .shape[0]*.shape[1]] | add"; }
macs=$(macs_of '^blk')
wanted=$(macs_of "^blk[.]${last}[.](ffn|attn_q|attn_output)")
head=$(gguf-info --json c.gguf | jq '.tensors[] | select(.name == "output.weight") | .shape[0]*.shape[1]')
ok "multiply-adds are those of the matrices" jq -e --argjson m "$macs" --argjson f "$wanted" --argjson h "$head" \
	'(.prompt.gmacs*1e9/.prompt.tokens_per_s/($m - $f + ($f + $h)/16) - 1 | fabs) < 1e-3' j
gguf-bench -m a.gguf --prompt 24 --generate 3 --depth 5 --repeat 2 --profile --json >j
ok "a profile's shares make up the whole" jq -e 'all(.prompts[], .generations[]; ([.profile[].share] | add - 1 |
	fabs) < 1e-6)' j
ok "... in order of time" jq -e 'all(.prompts[], .generations[]; [.profile[].seconds] | . == (sort | reverse))' j
ok "... products by name" \
	jq -e '[.prompt.profile[].name] |
	index("attn_q attn_k attn_v") and index("ffn_down") and index("attention") and index("output")' j
ok "... in a pass for each layer and token" jq -e '(.generation.profile[] | select(.name == "ffn_down") |
	.passes) == 3*(.prompt.profile[] | select(.name == "ffn_down") | .passes)' j
ok "--profile as text" sh -c 'gguf-bench -m a.gguf --prompt 8 --generate 2 --repeat 1 --profile |
	grep -q "ffn_up ffn_gate"'
if [ -d "$SHARED/reference/arch/qwen3_moe" ]; then
	gguf-convert -q -o experts.gguf "$SHARED/reference/arch/qwen3_moe"
	is "... experts of a tensor under one name" "$(gguf-bench -m experts.gguf --prompt 8 --generate 0 --repeat 1 \
		--profile --json | jq -r '.prompt.profile[].name | select(test("_exps"))' | sort)" \
		"ffn_down_exps
ffn_up_exps ffn_gate_exps"
else skip "... experts of a tensor under one name" "no reference checkpoint"; fi
gguf-bench -m a.gguf --prompt 8 --generate 2 --repeat 1 >text
ok "text has a line for each test" sh -c \
	'grep -q "^prompt  *8 " text && grep -q "^generate  *2 .* GB/s .*% of [0-9.]*$" text &&
	grep -q "^limits: reads" text'
ok "... which fits into a terminal" sh -c '! grep -qE "^(prompt|generate).{72}" text'
ok "weights in memory of their own" gguf-bench -m a.gguf --prompt 8 --generate 1 --repeat 1 --no-mmap -j 2
ok "a cache of blocks" gguf-bench -m a.gguf --prompt 8 --generate 1 --depth 70 --repeat 1 --cache-type-v q8_0
not_ok "--cache-type-k: no such type" 2 gguf-bench -m a.gguf --cache-type-k q6_K
ok "one thread on one core" gguf-bench -m a.gguf --prompt 8 --generate 0 --repeat 1 --pin -j 1

# an encoder, of whose text every token gets a row
for t in attn_q attn_k attn_v attn_output; do set -- "$@" blk.0.$t.weight:f32:32x32 blk.0.$t.bias:f32:32; done
for t in attn_output_norm layer_output_norm; do set -- "$@" blk.0.$t.weight:f32:32 blk.0.$t.bias:f32:32; done
"$BUILD/tests/cli/tool_mkgguf" "$@" token_embd.weight:f32:32x16 position_embd.weight:f32:32x64 \
	token_types.weight:f32:32x1 token_embd_norm.weight:f32:32 token_embd_norm.bias:f32:32 \
	blk.0.ffn_up.weight:f32:32x64 blk.0.ffn_up.bias:f32:64 \
	blk.0.ffn_down.weight:f32:64x32 blk.0.ffn_down.bias:f32:32 \
	general.architecture=bert bert.block_count=1 bert.context_length=64 bert.embedding_length=32 \
	bert.feed_forward_length=64 bert.attention.head_count=2 bert.attention.layer_norm_epsilon=1e-5 >encoder.gguf
ok "an encoder" sh -c 'gguf-bench -m encoder.gguf --prompt 8,64 --repeat 2 --json >j'
ok "... has prompts and no generation" jq -e '[.prompts[].tokens] == [8, 64] and .generations == []' j
ok "... needs all matrices for each token" jq -e \
	'all(.prompts[]; (.gmacs*1e9/.tokens_per_s/(4*32*32 + 2*32*64) - 1 | fabs) < 1e-6)' j
not_ok "... generates nothing" 2 gguf-bench -m encoder.gguf --generate 3
not_ok "... has no depth" 2 gguf-bench -m encoder.gguf --prompt 8 --depth 8
not_ok "... has positions for so many tokens only" 2 gguf-bench -m encoder.gguf --prompt 65

# a decoder without an output matrix: only tokens after the depth get rows
sed 's/^graph:/&\n  output: {norm: {rms: output_norm, eps: eps}, head: null}\n  ignore: {output.weight: "true"}/' \
	"$SRC/model/arch/llama.yaml" >headless.yaml
ok "a decoder without logits, from a depth on" \
	gguf-bench --synthetic 1M,F16 --arch-file headless.yaml --prompt 4 --depth 512 --repeat 1
is "... generates nothing" \
	"$(gguf-bench --synthetic 1M,F16 --arch-file headless.yaml --prompt 4 --generate 1 2>&1; echo $?)" \
	"gguf-bench: 1M,F16: the model has no logits: --generate is not possible
2"

# refusals
not_ok "neither model" 2 gguf-bench
not_ok "both models" 2 gguf-bench -m a.gguf --synthetic 1M,Q8_0
not_ok "--save without --synthetic" 2 gguf-bench -m a.gguf --save c.gguf
for option in --json --profile '-o d' '--prompt 8' --gen=8 '--depth 8' '--cache-type-v f16' '--repeat 1' --no-mmap; do
	# shellcheck disable=SC2086
	not_ok "--save, which measures nothing, with $option" 2 gguf-bench --synthetic 1M,Q8_0 --save d.gguf $option
done
for spec in 1M '1M,' ,Q8_0 0,Q8_0 999k,Q8_0 x,Q8_0 1M,none 1Q,Q8_0 1e99,Q8_0 nan,Q8_0 1M,COPY -1M,Q8_0; do
	not_ok "--synthetic $spec" 2 gguf-bench --synthetic "$spec" --save c.gguf; done
for list in '' ',' '1,' 1,,2 x 1x 99999999 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
	not_ok "--prompt '$list'" 2 gguf-bench -m a.gguf --prompt "$list"; done
is "a number that is too large names the limit" "$(gguf-bench -m a.gguf --prompt 8,16777217 2>&1 | head -1)" \
	"gguf-bench: '8,16777217' has a number above 16777216"
not_ok "onto the model" 2 gguf-bench -m a.gguf --prompt 8 --generate 0 -o a.gguf
done_testing
