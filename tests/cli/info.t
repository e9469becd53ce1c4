#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-info: text and JSON of a file with awkward contents, pipes, the estimate.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
"$BUILD/tests/cli/tool_gguf" <"$SRC/tests/cli/info.gguf.txt" >m.gguf

ok "text" gguf-info -o text m.gguf
same "... as expected" text "$SRC/tests/cli/info.expect"
ok "JSON" gguf-info --json -o json m.gguf
same "... as expected" json "$SRC/tests/cli/info.json.expect"
is "nothing but text reaches the terminal" "$(tr -d '\040-\176\n' <text | wc -c | tr -d ' ')" 0

ok "--metadata" gguf-info --metadata -o part m.gguf
is "... has no tensors" "$(grep -c '^tensors' part)" 0
ok "--tensors" gguf-info --tensors -o part m.gguf
is "... has no metadata" "$(grep -c '^general' part)" 0
ok "--json --metadata" gguf-info --json --metadata -o part m.gguf
is "... has no tensors" "$(grep -c '"tensors"' part)" 0
is "--ctx" "$(gguf-info --ctx 256 m.gguf | grep -c 'context of 256 tokens')" 1
is "the KV cache doubles with the context" "$(gguf-info --ctx 256 m.gguf | grep -c 'KV cache *54.0 KiB')" 1
is "... and with the width of its types" "$(gguf-info --ctx 256 --cache-type-k f32 --cache-type-v f32 m.gguf |
	grep -c 'KV cache *96.0 KiB')" 1
is "... each" "$(gguf-info --ctx 256 --cache-type-v q8_0 m.gguf | grep -c 'KV cache *52.5 KiB')" 1
not_ok "a type that no cache has" 2 gguf-info --cache-type-k q6_K m.gguf
is "--bandwidth" "$(gguf-info --bandwidth 100 m.gguf | grep -c '100 GB/s')" 1

is "from a pipe" "$(cat m.gguf | gguf-info --json -)" "$(cat json)"
is "without operand" "$(cat m.gguf | gguf-info)" "$(cat text)"
# values that are read piece by piece, since their length is not known
jq -nc '[range(10000) | "token \(.)"]' >strings.json
jq -nc '[range(5000) | [., 7]]' >lists
head -c 3000000 /dev/zero | tr '\0' x >string
gguf-edit --set-file 'x.strings=str[]:strings.json' --set-file 'x.lists=u16[][]:lists' --set-file x.string=str:string \
	-o long.gguf m.gguf
is "lists and strings of a great length" "$(gguf-info --json long.gguf |
	jq -c '.metadata | [."x.strings"[9999], ."x.lists"[4999], (."x.string" | length)]')" \
	'["token 9999",[4999,7],3000000]'
is "... from a pipe" "$(cat long.gguf | gguf-info --json - | cksum)" "$(gguf-info --json long.gguf | cksum)"
not_ok "... from one that ends in a string" 2 sh -c 'head -c 2500000 long.gguf | gguf-info --json -'
cp m.gguf other.gguf
is "the same text for the same file by another name" "$(gguf-info other.gguf)" "$(cat text)"
mkfifo fifo
{ cat m.gguf; exec sleep 60; } >fifo &
ok "it ends when the header is printed, not with the pipe" timeout 20 gguf-info - <fifo
kill $! 2>/dev/null
is "several files, each with its name" "$(gguf-info m.gguf other.gguf | grep -x '[a-z]*.gguf:' | tr -d '\n')" \
	"m.gguf:other.gguf:"
is "... as JSON, a list" "$(gguf-info --json m.gguf other.gguf | jq -c '[.[] | .file, .version]')" \
	'["m.gguf",3,"other.gguf",3]'
not_ok "a missing file among others" 2 sh -c 'gguf-info nothing.gguf m.gguf gone.gguf other.gguf >others 2>err'
is "... they are shown" "$(cat others)" "$(gguf-info m.gguf other.gguf)"
is "... it is reported" "$(cut -d ' ' -f 2 err)" "nothing.gguf:
gone.gguf:"
is "... as JSON" "$(gguf-info --json nothing.gguf m.gguf 2>err | jq -c '[.[].file]')" '["m.gguf"]'
is "... alone, nothing" "$(gguf-info --json nothing.gguf 2>err)" ""
is "... nor of several that are missing" "$(gguf-info --json nothing.gguf nowhere.gguf 2>err)" ""
not_ok "... with -o" 2 gguf-info -o others.txt nothing.gguf m.gguf
ok "... no file appears" test ! -e others.txt

# one value
is "--get, a string" "$(gguf-info --get general.architecture m.gguf)" llama
gguf-info --json m.gguf | jq -j '.metadata["general.name"]' >want
gguf-info --get general.name m.gguf >got
same "... to its last byte, without a line end" got want
is "--get, a number" "$(gguf-info --get general.file_type m.gguf)" 0
is "--get, an array, a line for each item" "$(gguf-info --get tokenizer.ggml.tokens m.gguf | wc -l | tr -d ' ')" 26
is "... bytes as they are" "$(gguf-info --get tokenizer.ggml.tokens m.gguf | sed -n 2p | od -A n -t x1 |
	tr -d ' ')" 62ff0a
is "... of two files, with their names" "$(gguf-info --get general.architecture m.gguf - <m.gguf)" "m.gguf: llama
(stdin): llama"
odd=$(printf 'a\033[31m\nb')
cp m.gguf "$odd"
is "... which are masked, as above a whole file" "$(gguf-info --get general.architecture "$odd" m.gguf | head -n 1)" \
	'a\x1B[31m\nb: llama'
rm "$odd"
gguf-edit --set 'tokenizer.chat_template=str:a

b
' m.gguf >lines.gguf
is "... before each of several lines" "$(gguf-info --get tokenizer.chat_template lines.gguf - <lines.gguf)" \
	"lines.gguf: a
lines.gguf: 
lines.gguf: b
(stdin): a
(stdin): 
(stdin): b"
is "... for each item" "$(gguf-info --get tokenizer.ggml.tokens m.gguf - <m.gguf | grep -c '^(stdin): ')" 26
not_ok "--get, no such key" 1 gguf-info --get nothing m.gguf
is "... but one with a typo" "$(gguf-info --get general.archtecture m.gguf 2>&1)" \
	"gguf-info: m.gguf: no key 'general.archtecture'; did you mean general.architecture?"
is "... is said" "$(gguf-info --get nothing m.gguf 2>&1)" "gguf-info: m.gguf: no key 'nothing'"
rm -f value
not_ok "... with -o" 1 gguf-info --get nothing -o value m.gguf lines.gguf
ok "... no file appears" test ! -e value
printf old >value
not_ok "... over an old one" 1 gguf-info --get nothing -o value m.gguf
is "... which stays" "$(cat value)" old
gguf-edit --set a=u16[]:[] -o empty.gguf m.gguf
not_ok "... unless another file has the key" 1 gguf-info --get a -o value m.gguf empty.gguf
is "... even if its value is empty" "$(cat value)" ""
not_ok "--get and --json" 2 gguf-info --json --get general.name m.gguf

# tensors
is "--match" "$(gguf-info --json --match 'attn_(q|norm)' m.gguf | jq -c '[.tensors[].name]')" \
	"$(gguf-info --json m.gguf | jq -c '[.tensors[].name | select(test("attn_(q|norm)"))]')"
is "... in the table of types too" "$(gguf-info --tensors --match attn_q m.gguf | grep -c '^  f16 *1 ')" 1
not_ok "... a bad expression" 2 gguf-info --match '(' m.gguf
for by in name offset; do
	is "--sort $by" "$(gguf-info --json --sort $by m.gguf | jq -c "[.tensors[].$by]")" \
		"$(gguf-info --json m.gguf | jq -c "[.tensors[].$by] | sort")"
done
is "--sort type, by its number" "$(gguf-info --json --sort type m.gguf | jq -c "[.tensors[].type]")" \
	'["f32","f32","f32","f16","q4_0"]'
is "--sort bytes, the largest first" "$(gguf-info --json --sort bytes m.gguf | jq -c '[.tensors[].bytes]')" \
	"$(gguf-info --json m.gguf | jq -c '[.tensors[].bytes] | sort | reverse')"
not_ok "--sort by what there is not" 2 gguf-info --sort colour m.gguf

# cut short
head -c 60000 m.gguf >short
is "a pipe is read up to the data" "$(cat short | gguf-info)" "$(cat text)"
gguf-info short >got 2>err
is "a file cut short: exit status" $? 2
same "... the header is shown" got text
is "... and the message" "$(cut -d: -f1-3 err)" "gguf-info: short: byte 1284"
head -c 800 m.gguf >short
gguf-info short >got 2>err
is "a header cut short: exit status" $? 2
ok "... what there is is shown" grep -q 'llama' got
ok "... and the message" grep -q 'byte 800: the file ends' err
not_ok "... with -o" 2 gguf-info -o never short
ok "... makes no file" sh -c '! ls never* .never*'
not_ok "an empty file" 2 gguf-info /dev/null
not_ok "a folder" 2 gguf-info .

# a cache that the model cannot have: 16 heads of 16 numbers, and blocks of 32
gguf-convert -q "$DATA/wiki-7m" | gguf-edit --set llama.attention.head_count=u32:16 \
	--set llama.attention.head_count_kv=u32:8 --set llama.attention.key_length=u32:16 \
	--set llama.attention.value_length=u32:16 --set llama.rope.dimension_count=u32:16 -o narrow.gguf
gguf-run -q -m narrow.gguf -n 1 --cache-type-k q8_0 -p x 2>refused
is "a cache that gguf-run refuses: the estimate says so" "$(gguf-info --cache-type-k q8_0 narrow.gguf 2>&1 >told)" \
	"$(sed 's/^gguf-run/gguf-info/; s/$/; this is estimated from the header/' refused)"
is "... and is made all the same" "$(grep -c 'KV cache .* as q8_0 and i16' told)" 1
is "one that it has" "$(gguf-info --json --cache-type-k f16 narrow.gguf 2>&1 >told)" ""

# the estimate of a model that is evaluated: 6 layers, in which 2 heads have keys and values of 64 numbers
ok "a model" gguf-convert -q -o w.gguf "$DATA/wiki-7m"
is "a generated token reads each matrix but the embeddings, and half of the cache" \
	"$(gguf-info --json --ctx 512 --cache-type-k f32 --cache-type-v f16 w.gguf |
		jq -c '.estimate | [.macs_per_token, .read_bytes_per_token]')" \
	"$(gguf-info --json w.gguf |
		jq -c '.tensors | map(select((.shape | length) == 2 and .name != "token_embd.weight")) |
		[(map(.shape[0]*.shape[1]) | add), (map(.bytes) | add) + 512/2*6*2*64*(4 + 2)]')"
is "... also of a file that is standard input" "$(gguf-info <w.gguf)" "$(gguf-info w.gguf)"
# ... and is what gguf-run takes
if [ -n "${SANITIZED:-}" ]; then skip "memory as predicted" "a sanitizer's memory comes on top"; else
	while read -r bytes k v; do
		head -c "$bytes" "$DATA/prose/evaluation.txt" >prompt
		ids=$(gguf-tokenize -q -m w.gguf prompt | wc -w)
		peak gguf-run -q -j 2 -m w.gguf -n 20 --cache-type-k "$k" --cache-type-v "$v" prompt >/dev/null
		told=$(gguf-info --json --ctx $((ids + 20)) --cache-type-k "$k" --cache-type-v "$v" w.gguf |
			jq .estimate.total_bytes)
		near_peak "memory of $ids tokens and a cache of $k and $v" "$told" 1.05
	done <<-.
		4000 i16 i16
		4000 f32 q8_0
		1200 f32 f32
		2500 f32 f32
		16000 i16 i16
		30000 i16 i16
	.
	head -c 100000000 /dev/zero | tr '\0' x >string
	gguf-edit --set-file x.string=str:string -o long.gguf w.gguf
	peak gguf-info long.gguf >/dev/null
	ok "metadata of 100 MB is in memory once: $peak" test "$peak" -lt 150000000
	rm string long.gguf
fi

# strings as they are shown
gguf-convert -q --vocab-only --name 'say "no" \ yes' -o quotes "$DATA/wiki-7m"
ok "quotes and backslashes in a string are escaped" \
	sh -c "gguf-info --metadata quotes | grep -qF '\"say \\\"no\\\" \\\\ yes\"'"
if command -v script >/dev/null; then
	is "a terminal as input is refused" "$(script -qec 'gguf-info' /dev/null </dev/null | tr -d '\r')" \
		"gguf-info: standard input is a terminal: name a file, or send one through a pipe"
else skip "a terminal as input is refused" "no script(1) here"; fi
done_testing
