# SPDX-License-Identifier: MIT
# small.sh - for tests/*/*.t: checkpoints that every program reads, smaller than the bundled model.
#
#   small_checkpoint FOLDER     one of one layer of 256 columns: config.json, model.safetensors (1.5 M weights in
#                               bfloat16), tokenizer.model
#   some_weights FILE           a safetensors file of the tensors of standard input, lists of a name and sizes in JSON,
#                               in bfloat16, with the first weights of the bundled model, whatever they mean there
#   first_layers N FOLDER       the bundled model with only its first N layers
#   little_u64 N                N, below 2^24, as eight bytes
little_u64()
{
	# shellcheck disable=SC2059
	printf "\\$(printf %o $(($1 % 256)))\\$(printf %o $(($1/256 % 256)))\\$(printf %o $(($1/65536)))\\0\\0\\0\\0\\0"
}
some_weights()
{
	some_header=$(jq -sr 'reduce .[] as $t ({at: 0, h: {}}; (reduce $t[1:][] as $n (2; .*$n)) as $n
		| .h[$t[0]] = {dtype: "BF16", shape: $t[1:], data_offsets: [.at, .at + $n]} | .at += $n)
		| "\(.at) \(.h)"')
	some_bytes=${some_header%% *} some_header=${some_header#* }
	{
		little_u64 ${#some_header}
		printf %s "$some_header"
		tail -c +$((9 + $(od -A n -t u8 -N 8 "$DATA/wiki-7m/model.safetensors"))) \
			"$DATA/wiki-7m/model.safetensors" | head -c "$some_bytes"
	} >"$1"
}
small_checkpoint()
{
	mkdir "$1"
	cp "$DATA/wiki-7m/tokenizer.model" "$1"
	jq '.num_hidden_layers = 1 | .intermediate_size = 256 | .tie_word_embeddings = true' \
		"$DATA/wiki-7m/config.json" >"$1/config.json"
	jq -nc '["model.embed_tokens", 4096, 256], ["model.norm", 256], ["input_layernorm", 256],
		["post_attention_layernorm", 256], ["self_attn.q_proj", 256, 256], ["self_attn.k_proj", 128, 256],
		["self_attn.v_proj", 128, 256], ["self_attn.o_proj", 256, 256], ["mlp.gate_proj", 256, 256],
		["mlp.up_proj", 256, 256], ["mlp.down_proj", 256, 256]
		| .[0] |= "\(if startswith("model.") then "" else "model.layers.0." end)\(.).weight"' |
		some_weights "$1/model.safetensors"
}
first_layers()
{
	mkdir "$2"
	cp "$DATA/wiki-7m/tokenizer.model" "$2"
	jq ".num_hidden_layers = $1" "$DATA/wiki-7m/config.json" >"$2/config.json"
	first_from=$((9 + $(od -A n -t u8 -N 8 "$DATA/wiki-7m/model.safetensors")))
	# "FROM BYTES" of each tensor that stays, then the new header
	tail -c +9 "$DATA/wiki-7m/model.safetensors" | head -c $((first_from - 9)) |
		jq -r --argjson layers "$1" 'del(.__metadata__)
		| to_entries | map(select(.key | (capture("layers[.](?<i>[0-9]+)") // {i: 0}).i | tonumber < $layers)) |
		sort_by(.value.data_offsets)
		| (.[].value.data_offsets | "\(.[0]) \(.[1] - .[0])"),
		((reduce .[] as $t ({at: 0, h: {}}; ($t.value.data_offsets | .[1] - .[0]) as $n
			| .h[$t.key] = $t.value | .h[$t.key].data_offsets = [.at, .at + $n] | .at += $n)) | .h | tojson)' >"$2/parts"
	{
		little_u64 "$(tail -n 1 "$2/parts" | tr -d '\n' | wc -c)"
		tail -n 1 "$2/parts" | tr -d '\n'
		grep -v '^{' "$2/parts" | while read -r first_at first_n; do
			tail -c +$((first_from + first_at)) "$DATA/wiki-7m/model.safetensors" | head -c "$first_n"
		done
	} >"$2/model.safetensors"
	rm "$2/parts"
}
