#!/bin/sh
# SPDX-License-Identifier: MIT
# config.json as transformers 5 writes it makes the same GGUF as the form in which the model was published; values that
# change a model's results in ways that the description does not have are refused. What they do was seen in
# transformers.
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/small.sh"
need_shared reference/arch "tiny checkpoints"
# given NAME FILTER: $TMP/m is the checkpoint with config.json changed by a filter of jq
given()
{
	rm -rf "$TMP/m"
	mkdir "$TMP/m"
	for f in "$SHARED/reference/arch/$1"/*; do ln -s "$f" "$TMP/m"; done
	rm "$TMP/m/config.json"
	jq "$2" "$SHARED/reference/arch/$1/config.json" >"$TMP/m/config.json"
}
# alike NAME TITLE FILTER: converted as the published form is
alike()
{
	given "$1" "$3"
	gguf-convert -q -o "$TMP/want" "$SHARED/reference/arch/$1"
	ok "$1: $2" gguf-convert -q -o "$TMP/got" "$TMP/m"
	same "... is the same file" "$TMP/got" "$TMP/want"
}
# refused NAME KEY FILTER: with a message that names the key
refused()
{
	given "$1" "$3"
	not_ok "$1: $2 is refused: $3" 2 gguf-convert -q -o "$TMP/got" "$TMP/m"
	is "... by name" "$(grep -c "config.json: $2" "$TMP/.out")" 1
}

flat='.rope_parameters = (.rope_scaling // {}) + {rope_type: (.rope_scaling.type // "default"), rope_theta: .rope_theta}
	| del(.rope_scaling, .rope_theta)'
for name in llama-linear-bias llama-dynamic-yarn deepseek_v2 deepseek_v3 phi3-longrope; do
	alike $name "rope_parameters with both names of the type" "$flat"
done
alike phi4-mini "the share of the head that turns, twice" \
	"$flat | .rope_parameters.partial_rotary_factor = .partial_rotary_factor"
alike olmo3 "rope_parameters for each kind of layer" \
	'.rope_parameters = {sliding_attention: {rope_type: "default", rope_theta},
	full_attention: (.rope_scaling + {rope_theta})} | del(.rope_scaling, .rope_theta)'
alike modernbert "rope_parameters for each kind of layer, and a list of layers" \
	'.rope_parameters = {sliding_attention: {rope_type: "default", rope_theta: .local_rope_theta},
		full_attention: {rope_type: "default", rope_theta: .global_rope_theta}}
	| del(.local_rope_theta, .global_rope_theta)
	| .layer_types = [range(.num_hidden_layers) as $i
		| if $i % 3 == 0 then "full_attention" else "sliding_attention" end]'
alike granitemoehybrid "names of kinds of layers" \
	'.layer_types |= map({mamba: "linear_attention", attention: "full_attention"}[.])'
alike granitemoehybrid "kinds of layers under their other name" '.layers_block_type = .layer_types | del(.layer_types)'
alike deepseek_v2 "groups that the greedy choice does not know" '.n_group = 2'
alike deepseek_v2 "groups that are all open" '.topk_method = "group_limited_greedy" | .n_group = 2 | .topk_group = 2'
alike dots1 "groups that are all open" '.n_group = 2 | .topk_group = 2'
alike qwen3_moe "the number of experts under another name" '.num_local_experts = .num_experts | del(.num_experts)'
alike llama-linear-bias "rope_scaling beside rope_parameters that say the same" \
	'.rope_parameters = .rope_scaling + {rope_theta}'
alike dbrx "what any config has, in its parts too" \
	'(.attn_config, .ffn_config) += {id2label: {"0": "LABEL_0"}, dtype: null, is_encoder_decoder: false,
	return_dict: true} | .ffn_config += {hidden_size: .d_model, ffn_act_fn: {name: "silu"}} |
	.num_key_value_heads = .attn_config.kv_n_heads |
	.rope_parameters = {rope_type: "default", rope_theta: 10000.0}'
# silent NAME TITLE FILTER: no key that does not matter is reported
silent()
{
	given "$1" "$3"
	ok "$1: $2" gguf-convert -t f32 -o "$TMP/got" "$TMP/m"
	is "... in silence" "$(cat "$TMP/.out")" ""
}
silent deepseek_v2 "groups that the greedy choice does not know" \
	'.topk_method = "greedy" | .n_group = 1 | .topk_group = 1'
silent granitemoehybrid "a length of the context, which has no positions" '.max_position_embeddings = 77'
for name in bert modernbert; do
	alike $name "tokens that see later ones, as they do in any case" '.is_causal = false'
done
alike qwen2_moe "windows that no layer has" '.use_sliding_window = true | .sliding_window = 8
	| .layer_types = [range(.num_hidden_layers) | "full_attention"]'
alike bert "a head that is tied" '.tie_word_embeddings = true'
alike mistral "the text part of a model that sees" '{architectures: ["Mistral3ForConditionalGeneration"],
	model_type: "mistral3", text_config: (.model_type = "mistral" | del(.architectures))}'
both='tie_word_embeddings: true, text_config: (.tie_word_embeddings = false | del(.architectures))'
alike mistral "... which says twice whether embeddings are tied, as transformers 5 writes it: both are kept" \
	"{architectures: [\"Mistral3ForConditionalGeneration\"], $both}"
alike llama3-tied "... the whole alone says so, and there is no other tensor" \
	"{architectures: [\"LlamaForCausalLM\"], $both}"
alike gemma3 "... and has a cap of its own, which is not used" '{architectures: ["Gemma3ForConditionalGeneration"],
	tie_word_embeddings: true, text_config: (.final_logit_softcapping = 30.0 | del(.architectures))}'
given gemma3 '._sliding_window_pattern = 6 | .sliding_window_pattern = 6'
is "gemma3: its pattern twice, as transformers 5 saves it: in silence" \
	"$(gguf-convert -n "$TMP/m" 2>&1 >"$TMP/plan")" ""
alike llama "a window, which Llama has none of" '.sliding_window = 5'
for name in llama qwen2; do alike $name "... nor one of no tokens" '.sliding_window = 0'; done
for value in false null; do
	given gpt_oss-truncate ".rope_scaling.truncate = $value"
	ok "gpt_oss: a truncate that is $value" gguf-convert -q -o "$TMP/got" "$TMP/m"
	is "... means no" "$(gguf-info --get gpt-oss.rope.scaling.yarn_truncate "$TMP/got")" false
done
for name in llama falcon gpt_neox nemotron phi2 stablelm; do
	alike $name "dynamic scaling, which begins behind the context" \
		'.rope_scaling = {rope_type: "dynamic", factor: 2.0}'
done
alike bloom "slices of one" '.slow_but_exact = true | .pretraining_tp = 1'
alike qwen3_moe "norms of q and k, which it has in any case" '.use_qk_norm = true'
alike dots1 "the method's name for that of the scores, which are sigmoids in any case" '.scoring_func = "noaux_tc"'
alike gemma "the old name of GELU" '.hidden_act = "gelu" | .hidden_activation = null'
alike gemma2 "the old name of GELU beside the new one's" '.hidden_act = "gelu"'
alike mpt "what any config has, in its parts too" \
	'.attn_config += {id2label: {"0": "LABEL_0"}, dtype: null, output_attentions: false, return_dict: true}'
alike llama-dynamic-yarn "the original length beside the scaling, too" \
	'.original_max_position_embeddings = .rope_scaling.original_max_position_embeddings'
alike ernie4_5_moe "-1 for the last layer" '.moe_layer_end_index = -1'
# what classes of transformers take if config.json does not say
alike deepseek_v3 "the factor of the experts left out" 'del(.routed_scaling_factor)'
alike ernie4_5_moe "the first layer with experts and the number for every token left out" \
	'del(.moe_layer_start_index, .moe_num_shared_experts)'
alike granitemoehybrid "no word of positions" 'del(.position_embedding_type)'
# left_out NAME KEY VALUE...: without a key, what comes of it is what VALUE makes of it, a file or a message; so are the
# metadata alone, for which no tensor need fit, and they are not those of twice the number
with=.                  # what other keys have to be for that
made()
{
	rm -f "$TMP/file"
	gguf-convert -q "$@" -o "$TMP/file" "$TMP/m" >"$TMP/out" 2>&1
	cat "$TMP/file" "$TMP/out" 2>/dev/null
}
left_out()
{
	name=$1
	shift
	while [ $# -gt 1 ]; do
		given "$name" "$with | .$1 = $2"
		made >"$TMP/want"
		made --vocab-only >"$TMP/want.metadata"
		given "$name" "$with | del(.$1)"
		made >"$TMP/got"
		made --vocab-only >"$TMP/got.metadata"
		same "$name: $1 left out is $2" "$TMP/got" "$TMP/want"
		same "... in the metadata" "$TMP/got.metadata" "$TMP/want.metadata"
		case $2 in *[!0-9]*) ;; *)
			given "$name" "$with | .$1 = 2*$2"
			made --vocab-only >"$TMP/more"
			not_ok "... and not twice that" 1 cmp -s "$TMP/got.metadata" "$TMP/more" ;;
		esac
		shift 2
	done
}
left_out bert type_vocab_size 2
left_out bloom n_layer 2
left_out deepseek_v2 n_routed_experts 64 moe_intermediate_size 1407
left_out deepseek_v3 max_position_embeddings 4096 num_experts_per_tok 8 n_routed_experts 256 \
	moe_intermediate_size 2048 q_lora_rank 1536 kv_lora_rank 512 \
	qk_nope_head_dim 128 qk_rope_head_dim 64 v_head_dim 128
left_out dots1 max_position_embeddings 2048 num_key_value_heads 32
left_out ernie4_5 num_key_value_heads 2
left_out ernie4_5_moe moe_k 6 moe_num_experts 64 moe_intermediate_size 1536 num_key_value_heads 4
with='.mamba_n_heads = 64 | .mamba_d_head = 16'
left_out falcon_h1 mamba_d_ssm 1024
with='.mamba_d_head = 1'
left_out granitemoehybrid mamba_n_heads 128
with=.
left_out granitemoehybrid mamba_d_conv 4 mamba_d_state 256 shared_intermediate_size 1024 \
	layer_types '["mamba", "mamba"]'
left_out qwen2_moe num_attention_heads 16 intermediate_size 5632
left_out stablelm num_key_value_heads 32
# a Phi-3.5-MoE's original length is beside the scaling, in it, or that of the context
alike phimoe "the original length in the scaling alone" 'del(.original_max_position_embeddings)'
alike phimoe "the original length beside the scaling alone" 'del(.rope_scaling.original_max_position_embeddings)'
given phimoe 'del(.original_max_position_embeddings, .rope_scaling.original_max_position_embeddings)
	| .max_position_embeddings = 1024'
ok "phimoe: no original length" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... is the length of the context" "$(gguf-info --get phimoe.rope.scaling.original_context_length "$TMP/got")" \
	"$(jq .max_position_embeddings "$TMP/m/config.json")"
alike olmo3 "the base of rope left out" 'del(.rope_theta)'
alike falcon-new "names of Falcon 40B's first description" '.architectures = ["RWForCausalLM"]
	| .n_head = .num_attention_heads | .n_layer = .num_hidden_layers | .n_head_kv = .num_kv_heads
	| del(.num_attention_heads, .num_hidden_layers, .num_kv_heads, .new_decoder_architecture, .multi_query)'
alike falcon "what Falcon 7B and 2 11B say besides" '.num_kv_heads = 4 | .ffn_hidden_size = 256 | .ff_factor = 4'
is "... in silence" "$(gguf-convert -n "$TMP/m" 2>&1 >"$TMP/plan")" ""
alike olmo3 "the kinds of layers left out" 'del(.layer_types)'
alike bloom "the other names of heads and layers" '.n_head = .num_attention_heads | .num_hidden_layers = .n_layer
	| del(.num_attention_heads, .n_layer)'
alike gpt_neox "what transformers 4 writes besides" \
	'.rope_theta = .rotary_emb_base | .partial_rotary_factor = .rotary_pct'
alike gpt2 "n_ctx, which says nothing beside n_positions" '.n_ctx = 7'
given stablelm '.architectures = ["StableLMEpochForCausalLM"] | .norm_eps = 0.5 | del(.layer_norm_eps)'
ok "StableLM's first description: an epsilon of norms" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... by another name" "$(gguf-info --get stablelm.attention.layer_norm_epsilon "$TMP/got")" 0.5
gguf-convert -q -o "$TMP/want" "$SHARED/reference/arch/stablelm"
# as llama.cpp's converter writes it if config.json does not say
echo '{"stablelm.use_parallel_residual": true}' >"$TMP/parallel"
ok "StableLM with a norm before the feed-forward, called parallel" \
	gguf-convert -q --metadata "$TMP/parallel" -o "$TMP/got" "$SHARED/reference/arch/stablelm"
for f in got want; do echo 5 6 7 8 | gguf-logits -q -m "$TMP/$f" >"$TMP/$f.logits"; done
same "... is not" "$TMP/got.logits" "$TMP/want.logits"
given falcon '.max_position_embeddings = 8192'
ok "Falcon 2: a longer context" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... is a key" "$(gguf-info --get falcon.context_length "$TMP/got")" 8192
given ernie4_5 'del(.head_dim)'
not_ok "ERNIE 4.5: the size of heads left out" 2 gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... is 128" "$(grep -o 'expected .*' "$TMP/.out")" "expected 64 x 512"
given olmo3 'del(.rope_theta, .rope_scaling, .sliding_window, .layer_types) | .architectures = ["Olmo2ForCausalLM"]'
ok "OLMo 2: the base of rope left out" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... is another one" "$(gguf-info --get olmo2.rope.freq_base "$TMP/got")" 10000
given mamba2 '.time_step_limit = [0.0, "oo"] | .past = "Infinity \" Infinity" | .initializer_range = "-oo" |
	.max_length = "any" | .min_length = "most"'
sed -i 's/"oo"/Infinity/; s/"-oo"/-Infinity/; s/"any"/1000000000000000019884624838656/
	s/"most"/-9223372036854775809/' "$TMP/m/config.json"
ok "mamba2: Infinity and integers of more than 64 bits, as Python writes them" gguf-convert -q -o "$TMP/got" "$TMP/m"
gguf-convert -q -o "$TMP/want" "$SHARED/reference/arch/mamba2"
same "... is the same file" "$TMP/got" "$TMP/want"
is "... and the text in strings stays" \
	"$(gguf-convert -n "$TMP/m" 2>&1 | grep -c 'past: is "Infinity \\" Infinity"')" 1
sed -i 's/"past"/oops/' "$TMP/m/config.json"
not_ok "... an error behind it is found" 2 gguf-convert -n "$TMP/m"
is "... at its byte" "$(grep -o 'byte [0-9]*' "$TMP/.out")" \
	"byte $(grep -abo oops "$TMP/m/config.json" | sed 's/:.*//')"
for name in mamba2 granitemoehybrid falcon_h1; do
	alike $name "Infinity as transformers 5 writes it" '.time_step_limit = [0.0, {"__float__": "Infinity"}]'
done
# Falcon 2, for example, turns by another base, which its first description had no key for
for name in falcon phi2 stablelm gpt_neox; do
	key=rope_theta
	[ $name = gpt_neox ] && key=rotary_emb_base
	given $name ".$key = 500042.0"
	ok "$name: another base of rope" gguf-convert -q -o "$TMP/got" "$TMP/m"
	arch=$(gguf-info --get general.architecture "$TMP/got")
	is "... is a key" "$(gguf-info --get "$arch.rope.freq_base" "$TMP/got")" 500042
	gguf-convert -q -o "$TMP/want" "$SHARED/reference/arch/$name"
	not_ok "... that is not needed for 10000" 1 gguf-info --get "$arch.rope.freq_base" "$TMP/want"
	for f in got want; do echo 5 6 7 8 | gguf-logits -q -m "$TMP/$f" >"$TMP/$f.logits"; done
	not_ok "... and turns" 1 cmp -s "$TMP/got.logits" "$TMP/want.logits"
done
given llama-dynamic-yarn 'del(.rope_scaling.original_max_position_embeddings)'
ok "YaRN without an original length" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... starts from the length of the context" \
	"$(gguf-info --get llama.rope.scaling.original_context_length "$TMP/got")" \
	"$(jq .max_position_embeddings "$TMP/m/config.json")"

# gives NAME FILTER TOKEN LOGIT [N]: transformers 5.23 gives the last row of the reference's tokens, or the N-th from
# the end, this logit, a thousandth or more from what it is if the key is read in another way
gives()
{
	given "$1" "$2"
	gives_as_it_is "$@"
}
# gives_as_it_is NAME TITLE TOKEN LOGIT [N]: so does $TMP/m
gives_as_it_is()
{
	ok "$1: $2" gguf-convert -q -t f32 -o "$TMP/got" "$TMP/m"
	jq -r '.sequences[] | map(tostring) | join(" ")' "$SHARED/reference/arch/$1/expected/tokens.json" >"$TMP/ids"
	row=$(($(jq .vocab_size "$SHARED/reference/arch/$1/expected/tokens.json")*4))
	ok "... is evaluated" sh -c "gguf-logits -m '$TMP/got' '$TMP/ids' >'$TMP/logits'"
	is "... as transformers does" "$(tail -c $((row*${5:-1})) "$TMP/logits" | od -An -v -tf4 -w4 |
		awk -v t="$3" -v x="$4" 'NR == t + 1 { print ($1 - x)^2 < 1e-9 ? x : $1 }')" "$4"
}
gives gpt2 '.activation_function = "gelu"' 285 -2.813126
gives gpt_bigcode '.activation_function = "gelu"' 252 5.209229
gives gpt_bigcode '.scale_attn_weights = false' 263 7.348354
gives gpt_neox '.hidden_act = "gelu_fast"' 226 1.197685
gives gpt_neox '.hidden_act = "gelu_fast" | .use_parallel_residual = false' 244 10.528244
gives gpt2 '.activation_function = "gelu_fast"' 17 3.784182
gives llama3 'del(.rope_scaling.original_max_position_embeddings) | .max_position_embeddings = 64' 109 8.072214
gives phi3-longrope '.rope_scaling.factor = 32.0' 59 9.654455
gives phimoe 'del(.rope_theta)' 102 9.58552
gives deepseek_v2 '.topk_method = "group_limited_greedy" | .n_group = 2 | .topk_group = 1' 303 -0.762935 2
gives deepseek_v3 '.rope_scaling |= (.original_max_position_embeddings = 100 | .truncate = false)' 19 1.612412
gives qwen2 '.use_sliding_window = true | .sliding_window = 8 | .max_window_layers = 1' 19 -0.900594
gives qwen3 '.use_sliding_window = true | .sliding_window = 8 |
	.layer_types = ["sliding_attention", "full_attention"]' 94 9.226925
gives dots1 '.sliding_window = 8 | .max_window_layers = 1' 168 -5.062131
gives llama-dynamic-yarn '.rope_scaling.attention_factor = 1.3' 9 -1.521446
# which is in place of YaRN's own, .1 log 4 + 1, and llama.cpp multiplies it by a factor
is "... a factor of rope as transformers says it, and one beside YaRN's own" \
	"$(for k in yarn_ ""; do gguf-info --get llama.rope.scaling.${k}attn_factor "$TMP/got"; done | tr '\n' ' ')" \
	"1.3 1.1417235 "
given llama-dynamic-yarn '.rope_scaling.attention_factor = 1.1386294361119891'
ok "a factor of rope that is YaRN's own" gguf-convert -q -o "$TMP/got" "$TMP/m"
not_ok "... needs none beside it" 1 gguf-info --get llama.rope.scaling.attn_factor "$TMP/got"
# without LIKE: $TMP/m loses the tensors whose names have LIKE in them
without()
{
	file=$TMP/m/model.safetensors
	size=$(od -An -tu8 -N8 "$file" | tr -d ' ')
	tail -c +9 "$file" | head -c "$size" | jq -c --arg like "$1" 'del(.__metadata__) | to_entries
		| map(select(.key | contains($like) | not)) | sort_by(.value.data_offsets)
		| (.[].value.data_offsets | "\(.[0]) \(.[1] - .[0])"),
		(reduce .[] as $t ({at: 0}; ($t.value.data_offsets | .[1] - .[0]) as $n
			| .all[$t.key] = ($t.value | .data_offsets = null) + {data_offsets: [.at, .at + $n]}
			| .at += $n) | .all)' >"$TMP/parts"
	tail -n 1 "$TMP/parts" | tr -d '\n' >"$TMP/header"
	{
		little_u64 "$(wc -c <"$TMP/header")"
		cat "$TMP/header"
		sed -n 's/^"\(.*\)"$/\1/p' "$TMP/parts" | while read -r at n; do
			tail -c +$((9 + size + at)) "$file" | head -c "$n"
		done
	} >"$TMP/fewer"
	rm "$file"
	mv "$TMP/fewer" "$file"
}
# the small models of Granite 4 have only what goes through every token's expert
given granitemoehybrid '.num_local_experts = 0 | .num_experts_per_tok = 0'
without block_sparse_moe
gives_as_it_is granitemoehybrid "without experts" 300 11.870655
is "... has a feed-forward network of the shared expert's width" \
	"$(gguf-info --json "$TMP/got" | jq -c '[.tensors[].name | select(test("blk.0.ffn_[^n]"))] | sort')" \
	'["blk.0.ffn_down.weight","blk.0.ffn_gate.weight","blk.0.ffn_up.weight"]'
ok "... what config.json says of experts" gguf-convert -o "$TMP/got" "$TMP/m"
is "... is passed over in silence" "$(cat "$TMP/.out")" ""
given gemma2 '.attn_logit_softcapping = null | .final_logit_softcapping = null'
ok "Gemma 2 without caps" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... says so, since readers take 50 and 30 for what is missing" \
	"$(for k in attn final; do gguf-info --get gemma2.${k}_logit_softcapping "$TMP/got"; done | tr '\n' ' ')" "0 0 "

# the names of a base model alone, with blanks for "model." so that the header stays as long
for name in qwen3 qwen2 gemma2; do
	given $name .
	rm "$TMP/m/model.safetensors"
	LC_ALL=C sed 's/"model\.\([a-z_0-9.]*":\)/      "\1/g' "$SHARED/reference/arch/$name/model.safetensors" \
		>"$TMP/m/model.safetensors"
	is "$name as a base model" "$(grep -ac '"model\.' "$TMP/m/model.safetensors")" 0
	gguf-convert -q -o "$TMP/want" "$SHARED/reference/arch/$name"
	ok "... is converted" gguf-convert -q -o "$TMP/got" "$TMP/m"
	same "... to the same file" "$TMP/got" "$TMP/want"
done

# what sentence-transformers writes beside a model: one mode in each of two forms, which llama.cpp's numbers stand for
printf '%s' '[{"path": "", "type": "sentence_transformers.models.Transformer"},
	{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]' >"$TMP/modules.json"
# pooled NAME ARCH WANT JSON
pooled()
{
	given "$1" .
	mkdir "$TMP/m/1_Pooling"
	cp "$TMP/modules.json" "$TMP/m"
	echo "$4" >"$TMP/m/1_Pooling/config.json"
	ok "$1: $4" gguf-convert -q -o "$TMP/got" "$TMP/m"
	is "... is a way of pooling" "$(gguf-info --get "$2.pooling_type" "$TMP/got")" "$3"
}
pooled bert bert 1 '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'
pooled modernbert modern-bert 2 '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
pooled qwen3 qwen3 3 '{"pooling_mode": "lasttoken"}'
given bert .
cp "$TMP/modules.json" "$TMP/m"
not_ok "a way of pooling that is named but not there" 2 gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... is missing by name" "$(grep -c 1_Pooling/config.json "$TMP/.out")" 1
sed -i 's|"1_Pooling"|"../m"|' "$TMP/m/modules.json"
not_ok "a folder outside the checkpoint is refused" 2 gguf-convert -q -o "$TMP/got" "$TMP/m"

for name in qwen2_moe qwen3_moe; do refused $name use_sliding_window \
	'.use_sliding_window = true | .sliding_window = 8'; done
# a window of no tokens, which transformers takes at its word, and readers of GGUF files for none
for name in mistral mixtral gemma2 gemma3 phi3 phimoe gpt_oss cohere2 olmo3 dots1 modernbert; do
	refused $name sliding_window '.sliding_window = 0 | .max_window_layers = 0'
done
refused modernbert local_attention '.local_attention = 0'
refused qwen2 sliding_window '.use_sliding_window = true | .sliding_window = 0 | .max_window_layers = 1'
refused granitemoehybrid layer_types '.layer_types = [.layer_types[] | "attention"]'
# whose layers all have windows, whatever layer_types says
refused qwen3_moe use_sliding_window '.use_sliding_window = true | .sliding_window = 8
	| .layer_types = [range(.num_hidden_layers) | "full_attention"]'
# more TENSOR SIZE...: $TMP/m gets one in every layer, whose number * stands for
more()
{
	mv "$TMP/m/model.safetensors" "$TMP/m/model-1.safetensors"
	layers=$(jq '(.num_hidden_layers // .n_layer) - 1' "$TMP/m/config.json")
	while [ $# -gt 1 ]; do
		for layer in $(seq 0 "$layers"); do echo "[\"$1\", $2]" | sed "s/[*]/$layer/"; done
		shift 2
	done | some_weights "$TMP/m/model-2.safetensors"
}
# biased NAME KEY TOKEN LOGIT TENSOR SIZE...: with KEY these have biases
biased()
{
	given "$1" ".$2 = true"
	name=$1 key=$2 token=$3 logit=$4
	shift 4
	more $(printf '%s %s\n' "$@" | sed 's/^/model.layers.*./; s/ /.bias /')
	gives_as_it_is "$name" "$key" "$token" "$logit"
}
attn='self_attn.q_proj %s self_attn.k_proj %s self_attn.v_proj %s self_attn.o_proj 64'
gives gpt2 '.scale_attn_by_inverse_layer_idx = true' 163 0.042874
gives gpt2 '.scale_attn_weights = false' 251 -3.311598
alike gpt_bigcode "a key of GPT-2 that it does not read" '.scale_attn_by_inverse_layer_idx = true'
given gpt_bigcode '.multi_query = false'
without attn.c_attn
more 'transformer.h.*.attn.c_attn.weight' 192,64 'transformer.h.*.attn.c_attn.bias' 192
gives_as_it_is gpt_bigcode "as many heads of keys as of queries, stored by head" 193 6.248304
given gpt_neox '.attention_bias = false'
without query_key_value.bias
without dense.bias
gives_as_it_is gpt_neox "attention without biases" 118 -1.424937
given gpt_neox '.tie_word_embeddings = true'
without embed_out
gives_as_it_is gpt_neox "tied embeddings" 217 25.576075
given phi2 '.tie_word_embeddings = true'
without lm_head.weight
gives_as_it_is phi2 "tied embeddings" 260 34.347218
given phi2 '.qk_layernorm = true'
more 'model.layers.*.self_attn.q_layernorm.weight' 16 'model.layers.*.self_attn.q_layernorm.bias' 16 \
	'model.layers.*.self_attn.k_layernorm.weight' 16 'model.layers.*.self_attn.k_layernorm.bias' 16
gives_as_it_is phi2 "norms of q and k" 159 3.327503
# shellcheck disable=SC2059,SC2046
while read -r name q kv token logit; do
	biased "$name" attention_bias "$token" "$logit" $(printf "$attn" "$q" "$kv" "$kv")
done <<-END
	gemma 128 32 66 -6.331904
	cohere2 64 32 55 0.584473
	olmo 64 64 209 -2.314444
	olmo3 64 32 235 5.014534
	nemotron 64 32 199 5.395163
END
biased nemotron mlp_bias 147 -4.714291 mlp.up_proj 64 mlp.down_proj 64
# shellcheck disable=SC2059,SC2046
biased ernie4_5 use_bias 184 -2.77502 $(printf "$attn" 128 32 32) mlp.gate_proj 64 mlp.up_proj 64 mlp.down_proj 64
# scalings of rope that no published model of these has
llama3='{rope_type: "llama3", factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0,
	original_max_position_embeddings: 16}'
yarn='{rope_type: "yarn", factor: 4.0, original_max_position_embeddings: 16}'
gives qwen2 ".rope_scaling = $llama3" 119 -7.074723
gives ernie4_5 ".rope_scaling = $llama3" 331 -4.933133
gives gemma ".rope_scaling = $yarn" 78 -4.832664
gives cohere2 ".rope_scaling = $yarn" 291 5.269134
gives gemma2 '.rope_scaling = {rope_type: "linear", factor: 4.0}' 310 4.220027
gives olmo '.rope_scaling = {rope_type: "linear", factor: 4.0}' 46 4.292376
gives olmo3 '.rope_scaling = {rope_type: "linear", factor: 4.0}' 91 3.248326
refused gpt_neox rope_theta '.rope_theta = 500042.0'
refused gpt_neox partial_rotary_factor '.partial_rotary_factor = 0.5'
refused phimoe partial_rotary_factor "$flat | .rope_parameters.partial_rotary_factor = 0.5"
refused gpt2 activation_function '.activation_function = "relu"'
refused gpt_neox hidden_act '.hidden_act = "relu"'
refused gemma hidden_act '.hidden_act = "silu"'
for name in gemma gemma2 gemma3; do refused $name hidden_activation '.hidden_activation = "gelu"'; done
refused olmo3 rope_parameters '.rope_parameters = {sliding_attention: {rope_type: "yarn", factor: 2.0},
	full_attention: {rope_type: "default"}}'
refused modernbert layer_types '.layer_types = [range(.num_hidden_layers) | "full_attention"]'
refused llama rope_parameters.rope_type \
	'.rope_parameters = {rope_type: "default"} | .rope_scaling = {type: "linear", factor: 2.0}'
# rope_scaling is the older name, and where both are given transformers 5 reads it alone
for name in llama gpt_neox gemma3 falcon_h1; do
	refused $name rope_scaling.rope_theta '.rope_theta |= (. // 10000.0) | .rope_scaling = {rope_theta: 500.0}'
done
linear='{rope_type: "linear", factor: 2.0}'
refused llama rope_parameters.rope_theta ".rope_scaling = $linear | .rope_parameters = $linear + {rope_theta: 500.0}"
for name in phi4-mini gpt_neox; do
	refused $name rope_scaling.partial_rotary_factor '.rope_scaling = {partial_rotary_factor: 0.5}'
	refused $name rope_parameters.partial_rotary_factor \
		'.rope_scaling = {rope_type: "default"} | .rope_parameters = {partial_rotary_factor: 0.5}'
done
alike llama-linear-bias "the base of rope in rope_scaling, too" '.rope_scaling.rope_theta = (.rope_theta // 10000.0)'
for name in gemma3 olmo3; do refused $name rope_scaling.type '.rope_scaling = {type: "linear", factor: 2.0}'; done
refused modernbert rope_scaling ".rope_scaling = $linear"
for name in gemma3 modernbert olmo3; do
	refused $name rope_parameters '.rope_parameters = {full_attention: {rope_type: "default"},
		sliding_attention: {type: "linear", factor: 2.0}} | del(.rope_scaling, .rope_local_base_freq)'
done
refused modernbert rope_parameters '.rope_parameters = {full_attention: {type: "linear", factor: 2.0}}'
# transformers 5 reads rope_theta for the layers without windows, and takes its default for the others
refused olmo3 rope_theta '.rope_theta = 10000.0'
own='.rope_parameters = {full_attention: {rope_theta: 500.0, rope_type: "default"},
	sliding_attention: {rope_theta: 100.0, rope_type: "default"}} | del(.rope_theta, .rope_scaling)'
given olmo3 "$own"
ok "olmo3: bases of rope for each kind of layer" gguf-convert -q -o "$TMP/got" "$TMP/m"
olmo2='.architectures = ["Olmo2ForCausalLM"]'
refused olmo3 rope_parameters.sliding_attention "$own | $olmo2 | del(.sliding_window, .layer_types)"
refused olmo3 sliding_window "$olmo2"
refused llama-linear-bias rope_parameters.factor '.rope_parameters = .rope_scaling + {factor: 3.0}'
for key in attn final; do refused gemma2 ${key}_logit_softcapping ".${key}_logit_softcapping = 0.0"; done
refused gemma3 final_logit_softcapping '.final_logit_softcapping = 0.0'
given modernbert '.hidden_activation = "silu"'
ok "modernbert: SwiGLU in place of GeGLU" gguf-convert -q -t f32 -o "$TMP/got" "$TMP/m"
jq -r '.sequences[] | map(tostring) | join(" ")' "$SHARED/reference/arch/modernbert/expected/tokens.json" |
	gguf-logits -q -m "$TMP/got" -o "$TMP/rows"
is "... the ends of its rows, as transformers 5.24 has them" "$(od -A n -t f4 -w4 "$TMP/rows" | sed -n '1,2p; $p' |
	awk '{ printf "%.4f ", $1 }')" "-1.0371 0.6009 -0.2271 "
given dbrx 'del(.attn_config.clip_qkv)'
ok "dbrx: q, k and v that are not clamped" gguf-convert -q -o "$TMP/got" "$TMP/m"
is "... which the file says, as llama.cpp wants to be told" "$(gguf-info --get dbrx.attention.clamp_kqv "$TMP/got")" 0
refused dbrx rope_parameters.rope_theta '.rope_parameters = {rope_type: "default", rope_theta: 20000.0}'
given dbrx '.ffn_config |= del(.moe_normalize_expert_weights)'
ok "dbrx: weights of experts add up to 1 if config.json does not say" gguf-convert -q -o "$TMP/got" "$TMP/m"
for norm in null 2.0; do
	refused dbrx ffn_config.moe_normalize_expert_weights ".ffn_config.moe_normalize_expert_weights = $norm"
done
refused olmo clip_qkv '.clip_qkv = 0.0'
refused dbrx attn_config.clip_qkv '.attn_config.clip_qkv = 0.0'
refused t5 scale_decoder_outputs '.scale_decoder_outputs = null'
refused granitemoe attention_multiplier '.attention_multiplier = 0.0'
refused dbrx num_key_value_heads '.num_key_value_heads = 4'
refused dots1 scoring_func '.scoring_func = "softmax"'
refused dots1 num_experts_per_tok 'del(.num_experts_per_tok) | .n_routed_experts = 16'
refused deepseek_v2 norm_topk_prob '.norm_topk_prob = true'
refused deepseek_v2 topk_method '.topk_method = "noaux_tc" | .n_group = 2'
refused falcon_h1 attention_bias '.attention_bias = true'
for key in mamba_proj_bias projectors_bias; do refused falcon_h1 $key ".$key = true"; done
refused granitemoehybrid mamba_proj_bias '.mamba_proj_bias = true'
refused granitemoehybrid mamba_conv_bias '.mamba_conv_bias = false'
for name in granitemoehybrid falcon_h1; do refused $name time_step_limit '.time_step_limit = [0.0, 0.1]'; done
# a second name that transformers has for a key
refused gpt2 n_head '.num_attention_heads = 2'
refused gpt_bigcode n_head '.num_attention_heads = 2'
refused mpt n_heads '.num_attention_heads = 2 | del(.n_heads)'
refused ernie4_5_moe moe_k '.num_experts_per_tok = 1'
refused ernie4_5_moe moe_layer_interval '.moe_layer_interval = 2'
refused ernie4_5_moe moe_layer_end_index '.moe_layer_end_index = 0'
refused ernie4_5_moe moe_norm_min '.moe_norm_min = 1.0'
refused bloom slow_but_exact '.slow_but_exact = true | .pretraining_tp = 4'
refused phimoe router_jitter_noise '.router_jitter_noise = 0.02'
refused llama is_causal '.is_causal = false'
refused llama-dynamic-yarn original_max_position_embeddings '.original_max_position_embeddings = 7'
for name in llama-linear-bias llama-dynamic-yarn llama3; do
	refused $name rope_scaling.factor '.rope_scaling.factor = null'
done
refused olmo3 rope_parameters.full_attention.truncate '.rope_parameters = {sliding_attention: {rope_type: "default"},
	full_attention: (.rope_scaling + {truncate: false})} | del(.rope_scaling)'
refused olmo3 rope_parameters.full_attention '.rope_parameters = .rope_scaling + {rope_theta} | del(.rope_scaling)'
refused llama rope_scaling.alpha '.rope_scaling = {rope_type: "dynamic", alpha: 1000.0, factor: 1.0}'
refused mistral rope_parameters.llama_4_scaling_beta \
	'.rope_parameters = {rope_type: "default", rope_theta, llama_4_scaling_beta: 0.1}'
# which has YaRN and queries that grow, even if it says nothing of rope
refused mistral model_type '{architectures: ["Mistral3ForConditionalGeneration"],
	model_type: "mistral3", text_config: (.model_type = "ministral3" | del(.architectures))}'
refused deepseek_v3 rope_scaling.mscale 'del(.rope_scaling.mscale)'
refused deepseek_v3 rope_scaling.mscale_all_dim '.rope_scaling.mscale = 0 | .rope_scaling.mscale_all_dim = 0'
refused deepseek_v3 rope_scaling.attention_factor '.rope_scaling.attention_factor = 1.5'
refused deepseek_v3 rope_scaling.attention_factor \
	'.rope_scaling.attention_factor = 1.5 | del(.rope_scaling.mscale, .rope_scaling.mscale_all_dim)'
given deepseek_v3 '.rope_scaling |= (.attention_factor = (.factor | log)*.1 + 1 | del(.mscale, .mscale_all_dim))'
ok "deepseek_v3: ... but not YaRN's own, without mscale_all_dim" gguf-convert -q -o "$TMP/got" "$TMP/m"
ok "... which the evaluator reads" sh -c "echo 1 2 3 | gguf-logits -q -m '$TMP/got' -o '$TMP/rows'"
refused falcon_h1 mamba_norm_before_gate '.mamba_rms_norm = true | .mamba_norm_before_gate = true'
refused falcon_h1 rope_theta 'del(.rope_theta)'
refused gpt_oss rope_scaling '.rope_scaling = null'
refused gpt_oss rope_scaling '.rope_scaling = {}'
refused gpt_oss rope_scaling 'del(.rope_scaling)'
refused llama quantization_config '.quantization_config = {quant_method: "hqq"}'
refused gpt_oss quantization_config '.quantization_config = {quant_method: "gptq", bits: 4}'
refused gpt_oss swiglu_alpha '.swiglu_alpha = 1.0'
done_testing
