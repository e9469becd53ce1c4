#!/bin/sh
# SPDX-License-Identifier: MIT
# corpus.sh NAME FOLDER - the inputs that the fuzz target NAME starts from: tests/fuzz/corpus/NAME, where *.ggtxt is
# compiled (tests/malformed/tool_ggtxt.c) and *.mkgguf are arguments of tests/cli/tool_mkgguf.c, and what the tree has
# elsewhere. For make fuzz and replay.t.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2"
to=$(cd "$2" && pwd)
compile() { for text in "$@"; do "${BUILD:-$src/build}/tests/malformed/tool_ggtxt" <"$text" >"$to/$(basename "$text" \
	.ggtxt)"; done; }
# the words of a text, which may have brackets
make_model() ( set -f; "${BUILD:-$src/build}/tests/cli/tool_mkgguf" $(cat "$1") )
for f in "$src/tests/fuzz/corpus/$1"/*; do
	case $f in
	*'/*') ;;
	*.ggtxt) compile "$f" ;;
	*.mkgguf) make_model "$f" >"$to/$(basename "$f" .mkgguf)" ;;
	*) cp "$f" "$to" ;;
	esac
done
case $1 in
arch) cp "$src"/model/arch/*.yaml "$to" ;;
torch)
	torch() { "${BUILD:-$src/build}/tests/cli/tool_torch" "$@" "$src/tests/data/wiki-7m" 2 3; }
	torch >"$to/plain"
	torch -6 >"$to/64-bit"
	torch -n model_state_dict >"$to/beside"
	torch -o 6a00000000 >"$to/more"
	compile "$src"/tests/malformed/torch/*.ggtxt ;;
split)
	# sets of tests/malformed, as texts with a part for each shard
	cd "$src/tests/malformed/gguf"
	for name in $(ls split-*.ggtxt ok-split-*.ggtxt | sed 's/-0000[1-9]-of-.*//; s/\.ggtxt$//' | sort -u); do
		for text in "$name"*.ggtxt; do
			printf -- '--- %s.gguf\n' "$(basename "$text" .ggtxt)"
			"${BUILD:-$src/build}/tests/malformed/tool_ggtxt" <"$text"
			echo
		done >"$to/$name"
	done ;;
convert | safetensors | vocab | plan | manifest) cp "$src/tests/malformed/$1"/*.txt "$to" ;;
imatrix) compile "$src"/tests/malformed/imatrix/*.ggtxt ;;
gguf) compile "$src"/tests/malformed/gguf/*.ggtxt "$src"/tests/malformed/tokenizer/*.ggtxt ;;
esac
