#!/bin/sh
# SPDX-License-Identifier: MIT
# Files that break a rule of their form, and some that only look so, in a folder for each parser, with the message that
# each gets in NAME.expect, or "ok". UPDATE=1 writes these anew.
#
#   gguf/NAME.ggtxt             compiled (see tool_ggtxt.c) and shown by gguf-info, by name and through a pipe. A second
#                               line of .expect, if the pipe's message differs: where a pipe ends is not known
#                               beforehand. A text without .expect is another one's shard
#   imatrix/NAME.ggtxt          the same for gguf-imatrix --stats
#   torch/NAME.ggtxt            compiled to pytorch_model.bin for gguf-convert: zip archives with a pickle
#   tokenizer/NAME.ggtxt        compiled, a GGUF for gguf-tokenize
#   safetensors/, convert/, vocab/NAME.txt      a folder (tests/lib/folder.h) for gguf-convert
#   plan/, manifest/NAME.txt    for gguf-quantize --plan and gguf-hash --check
. "$(dirname "$0")/../lib/tap.sh"
here=$SRC/tests/malformed
tools=$BUILD/tests/malformed
cd "$TMP" || exit 1
for text in "$here"/gguf/*.ggtxt; do
	name=$(basename "$text" .ggtxt)
	"$tools/tool_ggtxt" <"$text" >"$name.gguf" || is "$name compiles" no yes
done

# "ok", or the message without the names of program and file; anything but exit 0 and 2 is added
result()
{
	s=$1 out=$2
	# the list of known classes may be before it
	case $out in "Known classes"*) out=$(printf %s "$out" | sed -n '/^gguf-/,$p') ;; esac
	out=$(printf %s "$out" | sed -n 's/^gguf-[a-z]*: //; s/^\.\///; '"s/^$3: //"'; 1p')
	case $s in 0) echo ok ;; 2) echo "$out" ;; *) echo "exit $s: $out" ;; esac
}
# expect TEXT NAME GOT: the first line of .expect
expect()
{
	if [ -n "${UPDATE:-}" ]; then echo "$3" >"${1%.*}.expect"; else is "$2" "$3" "$(sed -n 1p "${1%.*}.expect")"; fi
}
# both TEXT NAME FILE PROGRAM...: what it says of FILE by name, and through a pipe: the last line of .expect
both()
{
	text=$1 name=$2 path=$3; shift 3
	out=$("$@" "./$path" 2>&1 >/dev/null)
	file=$(result $? "$out" "$path")
	out=$(cat "$path" | "$@" - 2>&1 >/dev/null; echo "$?")
	pipe=$(result "${out##*
}" "$out" '(stdin)')
	expect "$text" "$name" "$file"
	if [ -n "${UPDATE:-}" ]; then
		[ "$pipe" = "$file" ] || echo "$pipe" >>"${text%.ggtxt}.expect"
	else is "$name, by pipe" "$pipe" "$(sed -n '$p' "${text%.ggtxt}.expect")"
	fi
}
for text in "$here"/gguf/*.ggtxt; do
	name=$(basename "$text" .ggtxt)
	[ -e "${text%.ggtxt}.expect" ] || [ -n "${UPDATE:-}" ] || continue
	both "$text" "$name" "$name.gguf" gguf-info
done
for text in "$here"/imatrix/*.ggtxt; do
	"$tools/tool_ggtxt" <"$text" >matrix
	both "$text" "imatrix: $(basename "$text" .ggtxt)" matrix gguf-imatrix --stats
done
mkdir archive
cp "$DATA/wiki-7m/config.json" "$DATA/wiki-7m/tokenizer.model" archive
for text in "$here"/torch/*.ggtxt; do
	"$tools/tool_ggtxt" <"$text" >archive/pytorch_model.bin
	out=$(gguf-convert -n archive 2>&1 >/dev/null)
	expect "$text" "torch: $(basename "$text" .ggtxt)" "$(result $? "$out" archive)"
done
for text in "$here"/tokenizer/*.ggtxt; do
	"$tools/tool_ggtxt" <"$text" >t.gguf
	out=$(echo ab | gguf-tokenize -m t.gguf 2>&1 >/dev/null)
	expect "$text" "tokenizer: $(basename "$text" .ggtxt)" "$(result $? "$out" t.gguf)"
done
for text in "$here"/safetensors/*.txt "$here"/convert/*.txt "$here"/vocab/*.txt; do
	parser=$(basename "$(dirname "$text")")
	rm -rf folder
	mkdir folder
	"$tools/tool_folder" folder <"$text" || is "$text is a folder" no yes
	case $parser in
	vocab) out=$(gguf-convert --vocab-only -o /dev/null folder 2>&1) ;;
	*) out=$(gguf-convert -n $([ -e folder/arch.yaml ] && echo --arch-file folder/arch.yaml) \
		folder 2>&1 >/dev/null) ;;
	esac
	expect "$text" "$parser: $(basename "$text" .txt)" "$(result $? "$out" folder)"
done
"$BUILD/tests/cli/tool_mkgguf" a.weight:f32:32x4 c.weight:f32:256x2 >m.gguf
for text in "$here"/plan/*.txt; do
	cp "$text" plan
	out=$(gguf-quantize -q --plan plan -o q.gguf m.gguf 2>&1)
	expect "$text" "plan: $(basename "$text" .txt)" "$(result $? "$out" plan)"
done
for text in "$here"/manifest/*.txt; do
	cp "$text" manifest
	out=$(gguf-hash --check manifest m.gguf 2>&1)
	expect "$text" "manifest: $(basename "$text" .txt)" "$(result $? "$out" manifest)"
done
done_testing
