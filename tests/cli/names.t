#!/bin/sh
# SPDX-License-Identifier: MIT
# No architecture's name is in the C code: what tells one from another stands in model/arch/*.yaml. Two tables of facts
# are keyed by such names because the format is: recipes, and tokenizers (tokenizer.ggml.model). Operators have names of
# their own, and the random model that gguf-bench makes is of one architecture.
. "$(dirname "$0")/../lib/tap.sh"
cd "$SRC" || exit 1
# (bases, which have no classes, are called by plain words)
names=$(grep -l '^classes:' model/arch/*.yaml | xargs sed -n 's/^arch: *\([^ #]*\).*/\1/p' | paste -sd '|' -)
# names_in FILE...: lines with a string that is an architecture's name, or begins with it as metadata keys do
names_in() { grep -nE "\"($names)(\"|\.[a-z_]+[\".])" "$@" /dev/null |
	grep -vE '"[a-z0-9-]+\.(yaml|cpp)"|^[^:]*/op_[a-z0-9]+\.c:[0-9]+:const struct op '; }
is "there are names to look for" "$(echo "$names" | tr '|' '\n' | grep -cx llama)" 1
printf 'if (!strcmp(a->name, "llama")) x();\nkey("gemma3.attention.scale");\n"llama.yaml"\n' >"$TMP/bad.c"
is "one that is there is found" "$(names_in "$TMP/bad.c" | wc -l | tr -d ' ')" 2
find libgguf quant imatrix model convert tools -name '*.[ch]' ! -path 'model/vocab/*' ! -name recipe.c \
	! -name check_tokenizer.c ! -name synthetic.c | sort >"$TMP/files"
# shellcheck disable=SC2046 # words
is "none is in the code" "$(names_in $(cat "$TMP/files"))" ""
done_testing
