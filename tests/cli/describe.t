#!/bin/sh
# SPDX-License-Identifier: MIT
# Descriptions of architectures: what one that is like another takes from it, which keys are errors, and what becomes of
# keys of config.json that no rule reads.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1

# config JQ: a folder m with wiki-7m's files and its config.json changed
config() { rm -rf m; cp -r "$DATA/wiki-7m" m; chmod -R u+w m; jq "$1" "$DATA/wiki-7m/config.json" >m/config.json; }
# says NAME EXIT TEXT ARGUMENTS...: gguf-convert of m, with TEXT on stderr; "": nothing there
says()
{
	name=$1 want=$2 text=$3; shift 3
	gguf-convert --dry-run "$@" -o no.gguf m >plan 2>err
	is "$name" $? "$want"
	[ "$text" ] || { is "... in silence" "$(cat err)" ""; return; }
	is "... $text" "$(grep -c -F -- "$text" err)" 1
	[ "$(grep -c -F -- "$text" err)" = 1 ] || sed 's/^/# /' err
}
keys() { gguf-info --json --metadata "$1" | jq -r '.metadata | keys[]'; }

# ---- no architecture in C ----
# (kinds of operators may be called as the architecture that brought them)
names=$(grep -l '^classes:' "$SRC"/model/arch/*.yaml | sed 's|.*/||; s/\.yaml//' | paste -sd '|' -)
is "no architecture's name stands in C" "$(cd "$SRC" &&
	grep -nE "\"($names)\"" convert/*.[ch] model/arch/*.c model/eval/*.[ch] model/util/*.[ch] libgguf/*.[ch] |
	grep -v 'const struct op ')" ""

# ---- keys of descriptions ----
config .
for row in 'convert/transfrom/^  tensors:/  transfrom:' \
	'convert/transfrom/transform: permute(n_head)/transfrom: permute(n_head)' \
		'metadata/whem/when: sized/whem: sized' \
	'root/clases/^classes:/clases:'; do
	IFS=/ read -r where word from to <<-END
	$row
	END
	sed "0,/$from/s/$from/$to/" "$SRC/model/arch/llama.yaml" >a.yaml
	line=$(grep -n "$word" a.yaml | sed 's/:.*//;q')
	says "a stray key of $where" 2 "a.yaml: " --arch-file a.yaml
	column=$(sed -n "${line}p" a.yaml | sed "s/$word.*//" | wc -c | tr -d ' ')
	is "... by its place" "$(grep -c "line $line, column $column: .*unknown key" err)" 1
done
sed 's/when: sized/when: sized +/' "$SRC/model/arch/llama.yaml" >a.yaml
says "an expression that cannot be parsed, though it is never evaluated" 2 "end of text in expression: sized +" \
	--arch-file a.yaml
for row in 'rope_thta/^  rope_theta: 10000.0/  rope_thta: 10000.0' \
	'dens/^    dense: n_experts == 0/    dens: n_experts == 0' \
	'sees_al/LlamaForCausalLM: {sees_all: true}/LlamaForCausalLM: {sees_al: true}'; do
	IFS=/ read -r word from to <<-END
	$row
	END
	sed "s/$from/$to/" "$SRC/model/arch/llama.yaml" >a.yaml
	place=$(awk -v w="$word:" 'p = index($0, w) { print "line " NR ", column " p; exit }' a.yaml)
	says "a name or default that nothing reads" 2 "a.yaml: $place: $word: no expression reads it" --arch-file a.yaml
done
printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' \
	'convert: {tensors: {made.*: {make: "[1]", bias: "false"}}}' >a.yaml
says "a bias of numbers that no checkpoint has" 2 "a.yaml: line 5, column 49: numbers that are made have no bias" \
	--arch-file a.yaml
sed 's/^fallback: true/fallback: yes/' "$SRC/model/arch/llama.yaml" >a.yaml
says "a fallback that is neither" 2 "a.yaml: fallback: line 5, column 11: expected true or false" --arch-file a.yaml
for pre in gpt-2 afmoe; do
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' \
		"convert: {vocab: {pre: \"'$pre'\"}}" >a.yaml
	says "a pre-tokenizer that llama.cpp has" 0 "" --arch-file a.yaml
done
sed 's/afmoe/afmo/' a.yaml >b.yaml
says "a pre-tokenizer that it does not have" 2 "b.yaml: line 5, column 24: pre: no pre-tokenizer is called 'afmo'" \
	--arch-file b.yaml
sed 's/^like: .*/like: [common, nobody]/' "$SRC/model/arch/llama.yaml" >a.yaml
says "like an unknown one" 2 "nobody: line 4, column 16: no such description" --arch-file a.yaml
printf '%s\n' 'schema: 1' 'like: llama' 'classes: {LlamaForCausalLM: {}}' >a.yaml
says "no name" 2 "a.yaml: arch: line 1, column 1: is missing: general.architecture" --arch-file a.yaml
printf '%s\n' 'schema: 1' 'arch: llama' 'classes: {LlamaForCausalLM: {}}' >a.yaml
says "nothing that it is like, nor a convert part of its own" 2 "a.yaml: convert: is missing" --arch-file a.yaml
printf 'schema: 1\narch: round\nlike: round\nclasses: {A: {}}\n' >a.yaml
says "like itself" 2 "round: line 3, column 7: no such description" --arch-file a.yaml

sed 's/heads: n_head/heads: n_head +/' "$SRC/model/arch/llama.yaml" >a.yaml
is "a description from standard input is called so in the middle of a message" \
	"$(gguf-convert -n --arch-file - m <a.yaml 2>&1 >plan | sed 's/line .*/line/')" \
	"gguf-convert: m: end of text in expression: n_head + ((stdin), line"
config '.strange = 7'
is "... and in a warning" "$(gguf-convert -n --arch-file - m <"$SRC/model/arch/llama.yaml" 2>&1 >plan)" \
	"gguf-convert: m: config.json: strange: is 7, which (stdin) does not read"
config .

# ---- like ----
gguf-convert -q -o was.gguf m
cat >a.yaml <<'END'
schema: 1
arch: llama
like: llama
classes: {LlamaForCausalLM: {}}
convert:
  metadata: {vocab_size: null, extra: [u32, hidden_size + 1]}
  others: {extra: true}
  tensors: {"blk.{i}.attn_q.*": {transform: null}}
END
ok "like the built-in one of its name" gguf-convert -q --arch-file a.yaml -o m.gguf m
keys was.gguf >was; keys m.gguf >is
is "null removes, new keys are added" "$(diff was is | grep '^[<>]' | tr '\n' ' ')" "> llama.extra < llama.vocab_size "
is "a transform less changes q alone" "$(gguf-diff was.gguf m.gguf | grep -c 'blk.*attn_q.weight')" \
	"$(gguf-info --json was.gguf | jq '.tensors | map(select(.name | contains("attn_q"))) | length')"
# like_llama LINE...: a description like llama with these lines
like_llama() { printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' "$@" >b.yaml; }
like_llama 'defaults: {rope_thta: null}'
says "a default that null cannot remove" 2 \
	"b.yaml: line 5, column 12: rope_thta: there is no such key that null could remove" --arch-file b.yaml
like_llama 'convert:' '  tensors:' '    "blk.{i}.attn_q.*": {transfrom: null}'
says "a misspelt key that null should remove" 2 "b.yaml: line 7, column 26: transfrom: there is no such key" \
	--arch-file b.yaml
like_llama 'convert: {metadata: {logit_scale: [f32, 0.5]}}' 'graph: {output: {scale: logits_scale}}'
says "metadata that no expression of the graph reads" 2 \
	"b.yaml: line 5, column 22: logit_scale: no expression of the graph reads it" --arch-file b.yaml
like_llama 'graph: {layer: {ffn: {norm: null}}}'
says "a graph that leaves out a norm" 2 \
	"model.layers.0.post_attention_layernorm.weight: as blk.0.ffn_norm.weight no layer reads it (./b.yaml)" \
	--arch-file b.yaml
like_llama "graph: {check: {rope.freq_base: [rope.freq_base < 1, is too large]}}"
says "metadata that a graph refuses" 2 "m: rope.freq_base: is too large (architecture llama)" --arch-file b.yaml
sed -i 's/^arch: .*/arch: other/; s/LlamaForCausalLM/MistralForCausalLM/' a.yaml
config '.architectures = ["MistralForCausalLM"]'
says "a class is its own description's" 0 "" --arch-file a.yaml
printf '%s\n' 'schema: 1' 'arch: own' 'like: decoder' 'classes: {OwnForCausalLM: {}}' >b.yaml
config '.architectures = ["OwnForCausalLM"] | .sliding_window = 8'
says "a window, of which a description says nothing" 2 \
	"sliding_window: is 8, which changes the results, but ./b.yaml has" --arch-file b.yaml
sed -i 's/{}/{all_slide: true}/' b.yaml
says "... that all layers have" 0 "" --arch-file b.yaml
config '.architectures = ["NobodyForCausalLM"]'
is "no base is listed" "$(gguf-convert --arch-file a.yaml -n m 2>&1 |
	sed -n 's/^  [A-Za-z0-9]*ForCausalLM  *//p' | grep -xE 'common|llama|other' | sort -u)" "llama
other"
config '.architectures = ["LlamaForCausalLM"]'
ok "... and not that of the ones like it" gguf-convert -q --arch-file a.yaml -o m.gguf m
is "... it is llama" "$(gguf-info --json --metadata m.gguf | jq -r '.metadata["general.architecture"]')" llama
printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' >b.yaml
says "a description whose classes were forgotten" 2 \
	"b.yaml: llama: has no classes, so it is a base and not an architecture" --arch-file b.yaml
not_ok "... where it is evaluated" 2 gguf-logits -m m.gguf --arch-file b.yaml -o no ids
is "... says so, too" "$(cat "$TMP/.out")" \
	"gguf-logits: b.yaml: llama: has no classes, so it is a base and not an architecture"
sed 's/^arch: .*/arch: other/; $s/$/\nclasses: {LlamaForCausalLM: {}}/' b.yaml >c.yaml
says "... unless another description has them" 0 "" --arch-file b.yaml --arch-file c.yaml

# ---- several files ----
mkdir -p bases
printf '%s\n' 'schema: 1' 'arch: mine' 'convert: {metadata: {extra: [u32, 7]}}' 'graph: {names: {eps: 0.25}}' \
	>bases/mine.yaml
printf '%s\n' 'schema: 1' 'arch: llama' 'like: [llama, mine]' 'classes: {LlamaForCausalLM: {}}' >a.yaml
both='--arch-file bases/mine.yaml --arch-file a.yaml'
# shellcheck disable=SC2086 # options
ok "a description like another new one" gguf-convert -q $both -o m.gguf m
is "... has what that brings" "$(gguf-info --get llama.extra m.gguf)" 7
printf '5 6 7 8 9 10 11 12' >ids
# shellcheck disable=SC2086
ok "... where it is evaluated, too" gguf-logits -q -m m.gguf $both -o both ids
like_llama 'graph: {names: {eps: 0.25}}'
gguf-logits -q -m m.gguf --arch-file b.yaml -o one ids
same "... to the same" both one
says "... if it comes after it" 2 "mine: line 3, column 15: no such description" --arch-file a.yaml \
	--arch-file bases/mine.yaml
sed 's/7/8/' bases/mine.yaml >bases/8.yaml
gguf-convert -q --arch-file bases/mine.yaml --arch-file bases/8.yaml --arch-file a.yaml -o m.gguf m
is "the last of a name counts" "$(gguf-info --get llama.extra m.gguf)" 8
# shellcheck disable=SC2086
not_ok "each is kept from being written over" 2 gguf-convert $both -o bases/mine.yaml m
is "... as an input" "$(cat "$TMP/.out")" "gguf-convert: bases/mine.yaml: input and output are the same file"

# ---- keys of config.json ----
config '.strange = 7 | .rope_scaling = null | .clip_qkv = null |
	.layer_types = (.num_hidden_layers | [range(.)] | map("full_attention"))'
says "a key that no rule reads is reported" 0 "config.json: strange: is 7, which llama.yaml does not read"
is "... and no other" "$(wc -l <err | tr -d ' ')" 1
config '.logit_scale = 0.5'
says "one that changes results is refused" 2 "config.json: logit_scale: is 0.5, which changes the results"
config '.logit_scale = 1.0'
says "unless its value is harmless" 0 ""
config '.n_group = 4'
says "groups of experts are refused" 2 "config.json: n_group: is 4, which changes the results"
config '.rope_parameters = {rope_type: "default", partial_rotary_factor: 0.5}'
says "a share of a head, where rope turns whole ones" 2 "config.json: partial_rotary_factor: rope of this architecture"
config '.rope_parameters = {rope_type: "default", partial_rotary_factor: 1.0}'
says "... unless it is all of it" 0 ""
config '.layer_types = ["sliding_attention"]'
says "layers of other kinds" 2 'layer_types: is ["sliding_attention"], which'
config '.strange = "a word and another of forty characters"'
says "a value of 40 characters is shown whole" 0 'is "a word and another of forty characters", which'
config '.strange = "a word and another of forty-two characters"'
says "... a longer one without its end" 0 'is "a word and another of forty-two char..., which'
config '.strange = "a word and another of forty-two cha\u00e9acters"'
says "... between two characters" 0 'is "a word and another of forty-two cha..., which'
for gone in 'del(.num_hidden_layers)' '.num_hidden_layers = null'; do
	config "$gone"
	says "$gone" 2 "config.json: num_hidden_layers: has no value, but the number of layers is needed (common.yaml"
done
config .
modules() { printf '[{"type": "st.models.Transformer", "path": ""}, {"type": "st.models.%s", "path": "2"}]' "$1" \
	>m/modules.json; }
modules Dense
says "a module of sentence-transformers that no description has" 0 "m: modules.json: the module Dense is left out"
modules Normalize
says "one that changes only the length of a row" 0 ""
config '.quantization_config = {quant_method: "hqq"}'
says "quantized weights" 2 \
	"convert the original, or a BF16 copy if it was trained like this (LlamaForCausalLM, architecture llama)"
# yarn KEYS: the file of rope_scaling with these beside what yarn needs
yarn()
{
	config ".rope_scaling = {rope_type: \"yarn\", factor: 4.0, original_max_position_embeddings: 64, $1}"
	says "yarn with $1" 0 ""
	gguf-convert -q -o m.gguf m
}
yarn "mscale: 0.707, mscale_all_dim: 1.5"
is "... a factor of rope" "$(gguf-info --get llama.rope.scaling.yarn_attn_factor m.gguf)" 0.9089915
yarn "mscale: 0.707"
not_ok "... which needs both" 1 gguf-info --get llama.rope.scaling.yarn_attn_factor m.gguf
yarn "mscale_all_dim: 0.707, mscale: 0"
not_ok "... that are not 0" 1 gguf-info --get llama.rope.scaling.yarn_attn_factor m.gguf
yarn "mscale: 0.707, mscale_all_dim: 1.5, attention_factor: 1.25"
is "... and no other" "$(gguf-info --get llama.rope.scaling.yarn_attn_factor m.gguf)" 1.25
yarn "truncate: false"
is "... a key" "$(gguf-info --get llama.rope.scaling.yarn_truncate m.gguf)" false
printf '5 6 7 8 9 10 11 12 %.0s' 1 2 3 4 >ids
gguf-logits -q -m m.gguf ids >apart
config '.rope_scaling = {rope_type: "yarn", factor: 4.0, original_max_position_embeddings: 64, truncate: true}'
says "yarn that truncates" 0 ""
gguf-convert -q -o m.gguf m
gguf-logits -q -m m.gguf ids >whole
not_ok "... turns in another way" 1 cmp -s whole apart
sed 's/^  ignore:$/&\n    stra*e: hidden_size > 0\n    odd.**: true/' "$SRC/model/arch/llama.yaml" >a.yaml
config '.strange = 7 | .odd = {a: {b: 1}, c: 2}'
says "what is ignored" 0 "" --arch-file a.yaml

# of the patterns that fit, the one that gives most of the key decides, in whatever order
for order in 1 2; do
	a='"odd_*": value == 1' b='"odd_one*": value == 2' c='odd_one: value == 3'
	[ $order = 1 ] || a="$c" c='"odd_*": value == 1'
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'convert:' \
		"  matters: {$a, $b, $c}" >a.yaml
	for row in 'odd_one = 3/' 'odd_one = 1/odd_one' 'odd_one = 2/odd_one' 'odd_ones = 2/' 'odd_ones = 1/odd_ones' \
		'odd_two = 1/' 'odd_two = 2/odd_two'; do
		set=${row%%/*}
		config ".$set"
		[ "${row#*/}" ] || { says "$set is harmless" 0 "" --arch-file a.yaml; continue; }
		says "$set is not" 2 "config.json: ${row#*/}: is ${set##* }, which changes" --arch-file a.yaml
	done
done

# ---- values that cannot be meant ----
for row in 'intermediate_size = 0/width: 0 is not between 1 and ' 'head_dim = 0/head_dim: 0 is not between 1 and ' \
	'max_position_embeddings = [2048]/max_position_embeddings: is not a valid u32' \
	'vocab_size = [512]/vocab_size: is not a valid u32' \
	'rope_scaling = {factor: 8.0}/rope_scaling.rope_type: is missing, but there is a scaling factor' \
	'rope_parameters = {factor: 8.0, rope_theta: 10000.0}/rope_scaling.rope_type: is missing' \
	'rope_scaling = {rope_type: "llama3", factor: 0}/arguments out of range' \
	'rope_scaling = {rope_type: "llama3", factor: 1e300}/arguments out of range' \
	'rope_scaling = {rope_type: "llama3", factor: 8, low_freq_factor: -1}/arguments out of range' \
	'rope_scaling = {rope_type: "yarn", factor: 0, original_max_position_embeddings: 64}'\
'/factor: 0 is not between'; do
	config ".${row%%/*}"
	says "${row%%/*}" 2 "${row#*/}"
done
config '.rope_scaling = {} | .rope_parameters = {rope_theta: 10000.0} | del(.rope_theta)'
says "no scaling, in so many words" 0 ""
config .
printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'convert:' \
	'  metadata: {some: [u32, 0.25 * hidden_size]}' '  others: {some: true}' >a.yaml
says "a float where a whole number is wanted" 2 \
	"* hidden_size: is the float $(jq '.hidden_size/4' m/config.json), not a valid u32, which llama.some wants" \
	--arch-file a.yaml
for form in value list; do
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'convert:' \
		"  metadata: {some: {type: u32, $form: '[hidden_size, 7]'}}" '  others: {some: true}' >a.yaml
	case $form in
	value)
		says "a list where one value is wanted" 2 "is not a valid u32, which llama.some wants" \
			--arch-file a.yaml ;;
	list) says "a list where a list is wanted" 0 "" --arch-file a.yaml ;;
	esac
done
gguf-convert -q --arch-file a.yaml -o m.gguf m
is "... is one" "$(gguf-info --json --metadata m.gguf | jq -c '.metadata["llama.some"]')" \
	"$(jq -c '[.hidden_size, 7]' m/config.json)"

# ---- a value for each layer ----
# some LIST EXPR: config.json with a list of some of the layers, and a description that has EXPR
some()
{
	config ".some = $1"
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' 'convert:' \
		'  check_layer: {some: [layer(some) != 9, is 9]}' "  metadata: {some: {type: u32, $2}}" \
		'  others: {some: true}' '  tensors: {"blk.{i}.attn_k.*": {transform: mul(layer(some))}}' >a.yaml
}
n=$(jq .num_hidden_layers "$DATA/wiki-7m/config.json")
for list in "[range($n)]" 3; do
	some "$list" 'each: layer(some)'
	says "a value for each layer: $list" 0 "" --arch-file a.yaml
	gguf-convert -q --arch-file a.yaml -o m.gguf m
	is "... in metadata" "$(gguf-info --json --metadata m.gguf | jq -c '.metadata["llama.some"]')" \
		"$(jq -nc "$list | if type == \"array\" then . else [range($n) | 3] end")"
done
some "[range($n) | if . == 1 then 9 else . end]" 'each: layer(some)'
says "... in a check" 2 "config.json: some: layer 1: is 9" --arch-file a.yaml
some "[range($n + 1)]" 'each: layer(some)'
says "values of more layers" 2 \
	"layer(some) != 9: layer: the list has $((n + 1)) values, but the number of layers is $n" --arch-file a.yaml
some "[range($n)]" 'value: layer(some)'
says "a layer's value where there is no layer" 2 \
	"layer(some): layer: a list has no value outside the layers" --arch-file a.yaml
some 3 'value: layer(some)'
says "... unless all have the same" 0 "" --arch-file a.yaml
some 3 'value: "layer(some, 1)"'
says "two arguments" 2 "layer(some, 1): layer expects one argument" --arch-file a.yaml

# ---- special tokens ----
# tokens EOT: of a description that names tokens by text and id; the files name the first, and nothing has the last
tokens()
{
	printf '%s\n' 'schema: 1' 'arch: llama' 'like: llama' 'classes: {LlamaForCausalLM: {}}' \
		"convert: {vocab: {bos: 9, eot: $1, eom: 5, sep: \"'no such token'\"}}" >a.yaml
}
tokens "\"'<0x0A>'\""
ok "special tokens of a description" gguf-convert -q --arch-file a.yaml -o m.gguf m
is "... by text and id, where the files name none" "$(gguf-info --json m.gguf | jq -c '.metadata |
	[."tokenizer.ggml.bos_token_id", ."tokenizer.ggml.eot_token_id", ."tokenizer.ggml.eom_token_id",
	."tokenizer.ggml.seperator_token_id"]')" "[1,13,5,null]"
tokens 1.5
says "a token that is neither" 2 "eot: has a value of the wrong kind" --arch-file a.yaml
sed 's/{vocab: .*/{vocab: {eoq: 1}}/' a.yaml >b.yaml
says "a token of no kind" 2 "eoq: unknown key" --arch-file b.yaml

# ---- a part of several ----
for part in text_config language_config llm_config; do
	config "{architectures: [\"SeeingModel\"], vision_config: {depth: 3}, image_token_id: 5, $part: .}"
	says "the class and keys of $part" 0 ""
	config "{architectures: [\"LlamaForCausalLM\"], tie_word_embeddings: .tie_word_embeddings,
		vision_config: {depth: 3}, $part: (del(.architectures, .tie_word_embeddings) | .odd = 1)}"
	says "the class of the whole, keys of both" 0 "config.json: odd: is 1, which"
	is "... and no report of other parts" "$(wc -l <err | tr -d ' ')" 1
done
for tied in true false; do
	config "{architectures: [\"LlamaForCausalLM\"], tie_word_embeddings: $tied,
		text_config: (.tie_word_embeddings = false)}"
	[ $tied = true ] && text="is true, but lm_head.weight differs" || text=
	says "a key that the whole and its part have: $tied and false" 0 "$text"
done
# renamed JQ: m's tensors under other names, and a vision_model.a beside them
renamed()
{
	from=$DATA/wiki-7m/model.safetensors to=m/model.safetensors
	n=$(od -An -tu8 -N8 "$from" | tr -d ' ')
	bytes=$(($(wc -c <"$from") - n - 8))
	head=$(tail -c +9 "$from" | head -c "$n" | jq -c "del(.__metadata__) | with_entries($1) |
		.[\"vision_model.a\"] = {dtype: \"U8\", shape: [4], data_offsets: [$bytes, $((bytes + 4))]}")
	rm "$to"
	{ printf "\\$(printf %o $((${#head}%256)))\\$(printf %o $((${#head}/256)))\0\0\0\0\0\0%s" "$head"
		tail -c "$bytes" "$from"; printf abcd; } >"$to"
}
config "{architectures: [\"SeeingModel\"], llm_config: .}"
for prefix in '.key = "language_model." + .key' '.key |= sub("^model[.]"; "model.language_model.")'; do
	renamed "$prefix"
	ok "a text part's tensors: $prefix" gguf-convert -q -o m.gguf m
	ok "... are the model's" gguf-diff was.gguf m.gguf
done
config .
renamed .
says "a tensor of no part is refused" 2 "vision_model.a: unknown tensor: architecture llama has no place for it"
config "{architectures: [\"LlamaForCausalLM\"], quantization_config: {bits: 4}, text_config: .}"
says "quantized weights of the whole" 2 "quantization_config"

# ---- layers one by one ----
if [ -d "$SHARED/reference/arch/gemma3" ]; then
	mkdir g
	cp -r "$SHARED/reference/arch/gemma3/." g
	chmod -R u+w g
	jq '.layer_types = ([range(.num_hidden_layers)] |
		map(if . % 2 == 1 then "full_attention" else "sliding_attention" end))' \
		"$SHARED/reference/arch/gemma3/config.json" >g/config.json
	not_ok "gemma3 of which every second layer is full" 2 gguf-convert --dry-run -o no.gguf g
	is "... names the layer" "$(grep -c 'layer_types: layer 1: only every n-th' "$TMP/.out")" 1
else skip "layer by layer" "no checkpoint of gemma3"
fi
# altered ARCHITECTURE JQ TEXT: a reference checkpoint whose config.json was changed is refused with TEXT
altered()
{
	[ -d "$SHARED/reference/arch/$1" ] || { skip "$1 with $2" "no checkpoint of $1"; return; }
	rm -rf g
	cp -r "$SHARED/reference/arch/$1/." g
	chmod -R u+w g
	jq "$2" "$SHARED/reference/arch/$1/config.json" >g/config.json
	not_ok "$1 with $2" 2 gguf-convert --dry-run -o no.gguf g
	is "... $3" "$(grep -c -F -- "$3" "$TMP/.out")" 1
}
for arch in gpt_oss granitemoehybrid olmo3 gemma3-rope-parameters; do
	altered "$arch" '.layer_types += .layer_types' \
		"num_hidden_layers: does not match the length of layer_types"
done
# a condition that is llama's, of classes of three architectures
for row in llama/LlamaForCausalLM/llama mixtral/MixtralForCausalLM/llama gemma/GemmaForCausalLM/gemma \
	qwen3/Qwen3ForCausalLM/qwen3; do
	class=${row#*/}
	altered "${row%%/*}" '.rope_scaling = {rope_type: "ntk", factor: 2}' \
		"only dynamic, linear, llama3 and yarn are supported (${class%/*}, architecture ${class#*/})"
done
altered cohere2 '.layer_types = [range(.num_hidden_layers + 1) |
	if . % 4 == 3 then "full_attention" else "sliding_attention" end]' \
	"does not match the length of layer_types"
altered gemma3 'del(.layer_types) | .head_dim = 0' "head_dim: 0 is not between 1 and "
altered gpt_neox '.rotary_pct = 0' "dims: 0 is not between 1 and "
altered t5 '.d_kv = 0' "head_dim: 0 is not between 1 and "
altered mamba2 '.conv_kernel = 0' "kernel: 0 is not between 1 and "
altered mamba2 '.time_step_limit = [0.0]' "time_step_limit: this architecture has none"
altered falcon_h1 '.ssm_multipliers += [1]' "mlp_multipliers: expected 2 of these and 5 ssm_multipliers"
altered phi3-longrope 'del(.rope_scaling.type)' "rope_scaling.rope_type: is missing, but there is a scaling factor"
altered qwen3 '.vocab_size |= tostring' "vocab_size: is not a number of tokens; the embedding has 304 rows"
altered qwen3 '.per_layer_config = {"1": {"rms_norm_eps": 0.01}}' "per_layer_config.1.rms_norm_eps: is 0.01"
altered qwen3_moe '.intermediate_size = [64]' "intermediate_size: is not a valid u32"
done_testing
