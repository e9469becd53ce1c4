#!/bin/sh
# SPDX-License-Identifier: MIT
# Experts as transformers 5 has them in memory and saves them if it is told so: one tensor for all down projections,
# one for all gates and ups, and some routers by other names. The same model must come out of it as of the reference.
. "$(dirname "$0")/../lib/tap.sh"
need_shared reference/arch "tiny checkpoints"

bytes_of_header() { od -An -tu8 -N8 "$1" | tr -d ' '; }

# restack NAME FILTER: $TMP/m is checkpoint NAME with stacked experts; the filter of jq changes names
restack()
{
	from=$SHARED/reference/arch/$1/model.safetensors
	rm -rf "$TMP/m"
	mkdir "$TMP/m"
	for f in "$SHARED/reference/arch/$1"/*; do
		case $f in *.safetensors | */expected) ;; *) cp "$f" "$TMP/m" ;; esac
	done
	size=$(bytes_of_header "$from")
	tail -c +9 "$from" | head -c "$size" | jq -c "del(.__metadata__) | with_entries(.key |= ($2))" >"$TMP/names"
	jq -c 'to_entries | map(. as $e | .key
			| (capture("^(?<before>.*)\\.experts\\.(?<x>[0-9]+)\\.(?<name>[a-z0-9_]+)") // {name: null})
			| (.name | IN("down_proj", "w2")) as $down
			| if .name == null then $e + { to: $e.key } else $e + {
				to: "\(.before | sub("block_sparse_moe$"; "mlp")).experts.\(
					if $down then "down_proj" else "gate_up_proj" end)",
				x: (.x | tonumber), at: [(.x | tonumber), (.name | IN("up_proj", "w3"))] } end)
		| group_by(.to) | map(sort_by(.at) | map(.value) as $v | .[-1].x as $x | {
			to: .[0].to, dtype: $v[0].dtype, from: ($v | map(.data_offsets)),
			bytes: ($v | map(.data_offsets[1] - .data_offsets[0]) | add),
			shape: ($v[0].shape | if $x == null then . else
				[$x + 1, ($v | length)/($x + 1)*.[0], .[1]] end) })' "$TMP/names" >"$TMP/plan"
	jq -cj 'reduce .[] as $t ({at: 0, all: {}}; .all[$t.to] = ($t | {dtype, shape}) + {
		data_offsets: [.at, .at + $t.bytes]} | .at += $t.bytes) | .all' "$TMP/plan" >"$TMP/header"
	n=$(wc -c <"$TMP/header")
	{
		# shellcheck disable=SC2059
		printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\\0\\0\\0\\0\\0\\0"
		cat "$TMP/header"
		jq -r '.[].from[] | @tsv' "$TMP/plan" | while read -r first end; do
			tail -c +$((9 + size + first)) "$from" | head -c $((end - first))
		done
	} >"$TMP/m/model.safetensors"
}

same_model()
{
	restack "$1" "$2"
	ok "$1: experts are stacked" grep -q 'experts.gate_up_proj' "$TMP/header"
	gguf-convert -q -t f32 --name x -o "$TMP/want" "$SHARED/reference/arch/$1"
	ok "... which are converted" gguf-convert -q -t f32 --name x -o "$TMP/got" "$TMP/m"
	same "... to the same file" "$TMP/got" "$TMP/want"
}
for name in qwen2_moe qwen3_moe dots1 deepseek_v2 deepseek_v3; do same_model $name .; done
same_model mixtral 'sub("block_sparse_moe"; "mlp")'
same_model phimoe 'sub("block_sparse_moe.gate"; "mlp.router")'
same_model ernie4_5_moe 'sub("mlp.moe_statics"; "mlp.gate.moe_statics")'
same_model granitemoe 'sub("input_linear.weight"; "experts.gate_up_proj")
	| sub("output_linear.weight"; "experts.down_proj") | sub("router.layer"; "router")'
done_testing
