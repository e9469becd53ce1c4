# SPDX-License-Identifier: MIT
# folders.sh - sourced by vocab.t and tokenizers.t: the folders that the references of tokenizers were made from.
#
#   folder NAME DIR     fills DIR with what reference NAME was made from; fails if the data is not there
#
# NAME is that of reference/tokenizers/vocab/NAME.json. A name with "+asm" is a completed folder: a tokenizer.json put
# together from vocab.json, merges.txt (or vocab.txt) and the reference's `pipeline`, or the tokenizer.model or
# spiece.model that it lacks. The config.json and tokenizer_config.json that a reference states are written too.

# Llama 3's special tokens, which the reference counts but does not list
llama3_added='[range(256) | . as $i | {id: (128000 + $i), special: true, normalized: false, content: ({"0": "<|begin_of_text|>",
	"1": "<|end_of_text|>", "4": "<|finetune_right_pad_id|>", "6": "<|start_header_id|>", "7": "<|end_header_id|>", "8": "<|eom_id|>",
	"9": "<|eot_id|>", "10": "<|python_tag|>"}["\($i)"] // "<|reserved_special_token_\(if $i < 4 then $i - 2 elif $i == 5 then 2 else $i - 8 end)|>")}]'

folder()
{
	base=${1%+*} from=$SHARED/data/tokenizers
	rm -rf "$2"
	mkdir "$2"
	case $base in
	mistral-common-*) cp "$from"/mistral-common/*."${base##*-}" "$2/tokenizer.model" || return 1 ;;
	*) [ -d "$from/$base" ] && cp -r "$from/$base/." "$2" || return 1 ;;
	esac
	chmod -R u+w "$2"
	case $1 in
	llama3*) mv "$2/encoder.json" "$2/vocab.json" && mv "$2/vocab.bpe" "$2/merges.txt" ;;
	qwen3*) cp "$from/qwen2.5/merges.txt" "$2" ;;
	phi-3*+asm) cp "$from/llama2/tokenizer.model" "$2" ;;
	esac
	case $1 in
	phi-3*) ;;
	t5-*+asm) "$BUILD/tests/reference/tool_spiece" "$2/tokenizer.json" 32000 >"$2/spiece.model" || return 1 ;;
	bert-*+asm)
		jq -n --slurpfile r "$SHARED/reference/tokenizers/$base.json" --rawfile w "$2/vocab.txt" '$r[0].pipeline
			| .model.vocab = ($w | rtrimstr("\n") | split("\n") | to_entries | map({key: .value, value: .key}) | from_entries)' >"$2/tokenizer.json" || return 1 ;;
	*+asm)
		[ ! -f "$2/merges.txt" ] || jq -n --slurpfile r "$SHARED/reference/tokenizers/$base.json" --slurpfile v "$2/vocab.json" --rawfile m "$2/merges.txt" \
			"$llama3_added as \$llama3"' | $r[0].pipeline | .model.vocab = $v[0]
			| .model.merges = ($m | rtrimstr("\n") | split("\n") | if .[0] | startswith("#version") then .[1:] else . end)
			| if .added_tokens | type == "string" then .added_tokens = $llama3 else . end' >"$2/tokenizer.json" || return 1 ;;
	esac
	vocab=$SHARED/reference/tokenizers/vocab/$1.json
	[ -f "$vocab" ] || return 0
	jq -e '.config // empty' "$vocab" >"$TMP/.json" && mv "$TMP/.json" "$2/config.json"
	jq -e '.tokenizer_config // empty' "$vocab" >"$TMP/.json" && mv "$TMP/.json" "$2/tokenizer_config.json"
	return 0
}
