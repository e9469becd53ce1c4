#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-tokenize: forms of input and output, refusals, and texts that would take for ever in quadratic time.
. "$(dirname "$0")/../lib/tap.sh"
M=$DATA/wiki-7m

is "a text" "$(printf 'The house' | gguf-tokenize -m "$M" | gguf-tokenize -m "$M" --decode)" "<s> The house"
is "nothing in front" "$(printf 'The house' | gguf-tokenize -m "$M" --no-bos | gguf-tokenize -m "$M" \
	--decode)" "The house"
is "no text" "$(gguf-tokenize -m "$M" --no-bos </dev/null)" ""
is "strings" "$(echo '["a","","b\u0000"]' | gguf-tokenize -m "$M" --no-bos --json | gguf-tokenize -m "$M" \
	--json --decode)" '["a","","b\u0000"]'
is "strings that are no UTF-8" "$(echo '[[260],[238],[3,238]]' | gguf-tokenize -m "$M" --json --decode | jq -ac .)" \
	'["he",{"text":"\ufffd","raw":"eb"},{"text":"\u0000\ufffd","raw":"00eb"}]'
is "ids with commas" "$(echo '1, 2' | gguf-tokenize -m "$M" --decode)" "<s></s>"
is "a special token's text" "$(printf '<s>' | gguf-tokenize -m "$M" --no-bos)" "1"
ok "... is plain text if asked for" test "$(printf '<s>' | gguf-tokenize -m "$M" --no-bos --no-special)" != 1

echo '["x"' >"$TMP/bad.json"
not_ok "no JSON" 2 gguf-tokenize -m "$M" --json "$TMP/bad.json"
for bad in '\n x:2' '["a", b]:6' '["a"] xy:6' '[[1],[99999999999999999999]]:6'; do
	printf %b "${bad%:*}" >"$TMP/bad.json"
	is "... the byte is where the bad token starts: ${bad%:*}" \
		"$(gguf-tokenize -m "$M" --json "$TMP/bad.json" 2>&1 | sed 's/.*byte \([0-9]*\):.*/\1/')" "${bad##*:}"
done
echo '[7]' >"$TMP/bad.json"
not_ok "no string" 2 gguf-tokenize -m "$M" --json "$TMP/bad.json"
not_ok "rows that are no ids" 2 gguf-tokenize -m "$M" --json --decode "$TMP/bad.json"
echo '["\ud800"]' >"$TMP/bad.json"
not_ok "half a surrogate pair" 2 gguf-tokenize -m "$M" --json "$TMP/bad.json"
for ids in 99999999 -1 x 4294967296 99999999999999999999; do
	echo "1 $ids" >"$TMP/ids"
	not_ok "id $ids" 2 gguf-tokenize -m "$M" --decode "$TMP/ids"
	cp "$TMP/.out" "$TMP/message"
	ok "... is named with its byte" grep -q "ids: byte 2: .*$ids" "$TMP/message"
	echo "[[1],[1,$ids]]" >"$TMP/ids"
	not_ok "id $ids in JSON" 2 gguf-tokenize -m "$M" --decode --json "$TMP/ids"
done
not_ok "no vocabulary" 2 gguf-tokenize "$TMP/ids"
is "a broken gzip stream" "$(printf '\037\213nope' | gguf-tokenize -m "$M" 2>&1 | head -n 1)" \
	"gguf-tokenize: (stdin): byte 4: gzip: unknown compression method"
printf 'Hello ' | gzip -c >"$TMP/a.gz"
printf 'world' | gzip -c >"$TMP/b.gz"
cat "$TMP/a.gz" "$TMP/b.gz" >"$TMP/ab.gz"
hello=$(printf 'Hello world' | gguf-tokenize -m "$M")
is "two gzip streams are one text" "$(gguf-tokenize -m "$M" "$TMP/ab.gz")" "$hello"
is "... from a pipe that gives a byte at a time" "$(dd if="$TMP/ab.gz" bs=1 2>/dev/null | gguf-tokenize -m "$M")" \
	"$hello"
is "zeros after a gzip stream are nothing" "$(head -c 99999 /dev/zero | cat "$TMP/ab.gz" - | gguf-tokenize -m "$M")" \
	"$hello"
size=$(wc -c <"$TMP/ab.gz" | tr -d ' ')
after() { { cat "$TMP/ab.gz"; printf "$1"; } | gguf-tokenize -m "$M" 2>&1; }
behind() { echo "gguf-tokenize: (stdin): byte $((size + $1)): unexpected data after the gzip stream"; }
is "a text after it is refused" "$(after 'more text')" "$(behind 0)"
is "... and after zeros" "$(after '\0\0\0\037\213')" "$(behind 3)"
is "... and half of a stream's beginning" "$(after '\037')" "$(behind 0)"
is "a gzip stream that is cut short" "$(head -c $((size - 3)) "$TMP/ab.gz" | gguf-tokenize -m "$M" 2>&1)" \
	"gguf-tokenize: (stdin): byte $((size - 3)): the gzip stream is truncated"
is "the two bytes of gzip alone" "$(printf '\037\213' | gguf-tokenize -m "$M" 2>&1)" \
	"gguf-tokenize: (stdin): byte 2: the gzip stream is truncated"
is "the first of them is a text" "$(printf '\037' | gguf-tokenize -m "$M" --decode 2>&1)" \
	"gguf-tokenize: (stdin): byte 0: '\x1F' is not a token id"
strange()
{
	is "$1 for a text" "$(printf "$2 and more" | gguf-tokenize -m "$M" 2>&1)" \
		"gguf-tokenize: (stdin): byte 0: is $1, neither a text nor a gzipped one"
}
strange "an xz file" '\3757zXZ\0'
strange "a zstd file" '(\265/\375'
strange "a bzip2 file" 'BZh91AY&SY'
strange "a zip archive" 'PK\3\4'
strange "a Parquet file" 'PAR1\025'
strange "a GGUF file" 'GGUF\3\0\0\0'
is "a text that begins like one" \
	"$(printf 'PK' | gguf-tokenize -m "$M" --no-bos | gguf-tokenize -m "$M" --decode | tail -c 2)" PK
is "a folder for a text" "$(gguf-tokenize -m "$M" "$TMP" 2>&1)" "gguf-tokenize: $TMP: Is a directory"
mkdir "$TMP/dir"
not_ok "an empty folder" 2 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
for file in sentencepiece.bpe.model tekken.json; do
	rm -f "$TMP"/dir/*
	echo '{}' >"$TMP/dir/$file"
	not_ok "a folder with $file alone" 2 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
	cp "$TMP/.out" "$TMP/message"
	ok "... is named" grep -q "$file: .* is not supported" "$TMP/message"
done
rm -f "$TMP"/dir/*

# vocab.json with merges.txt: messages name the file that is at fault
echo '#version' >"$TMP/dir/merges.txt"
echo '{"a": -1}' >"$TMP/dir/vocab.json"
not_ok "an id in vocab.json that is no id" 2 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
cp "$TMP/.out" "$TMP/message"
ok "... is named" grep -q 'vocab.json: an id is not a number from 0 to ' "$TMP/message"
echo '{"a": 0}' >"$TMP/dir/vocab.json"
echo '{"b": 4194304}' >"$TMP/dir/added_tokens.json"
not_ok "an id beyond all in added_tokens.json" 2 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
cp "$TMP/.out" "$TMP/message"
ok "... is named" grep -q 'added_tokens.json: b: has no id from 0 to 4194303$' "$TMP/message"
rm "$TMP/dir/added_tokens.json"
printf '{\n "a": 1,\n b}' >"$TMP/dir/vocab.json"
not_ok "broken JSON" 2 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
cp "$TMP/.out" "$TMP/message"
ok "... is reported with its byte and line" grep -q 'vocab.json: byte 12: line 3: ' "$TMP/message"
rm -f "$TMP"/dir/*

# Qwen 2's class has its own patterns: line breaks in a row are one word, and not the last apart from those before
echo 'Ċ Ċ' >"$TMP/dir/merges.txt"
echo '{"a": 0, "Ċ": 1, "ĊĊ": 2}' >"$TMP/dir/vocab.json"
is "vocab.json with merges.txt is GPT-2's" "$(printf 'a\n\na' | gguf-tokenize -m "$TMP/dir")" "0 1 1 0"
for class in Qwen2Tokenizer Qwen2TokenizerFast; do
	echo "{\"tokenizer_class\": \"$class\"}" >"$TMP/dir/tokenizer_config.json"
	is "... or Qwen 2's: $class" "$(printf 'a\n\na' | gguf-tokenize -m "$TMP/dir")" "0 2 0"
done
rm -f "$TMP"/dir/*

# what is white space, and what makes a word, to a tokenizer.json: its own engines' view, not PCRE's
words()         # PRE-TOKENIZER TEXT: ids, of a vocabulary of words
{
	jq -n --argjson pre "$1" \
		'{pre_tokenizer: $pre, model: {type: "WordPiece", unk_token: "?", vocab: (["?", "a", "b",
		"\u180e", "##\u180e", "##b", "e\u0301", "\u00bd"] | to_entries | map({(.value): .key}) | add)}}' \
		>"$TMP/dir/tokenizer.json"
	printf "$2" | gguf-tokenize -m "$TMP/dir"
}
split() { printf '{"type": "Split", "behavior": "Removed", "pattern": {"Regex": "%s"}}' "$1"; }
mark='a\341\240\216b'          # U+180E in the middle
is "Whitespace keeps a Mongolian vowel separator" "$(words '{"type": "Whitespace"}' "$mark")" "1 3 2"
is "WhitespaceSplit does not split there" "$(words '{"type": "WhitespaceSplit"}' "$mark")" "1 4 5"
is "... nor does \\s" "$(words "$(split '\\s+')" "$mark b")" "1 4 5 2"
is "... nor in a class" "$(words "$(split '[-\\s-]+')" "$mark-b \302\240a")" "1 4 5 2 1"
is "\\S goes over it" "$(words "$(split '\\S+b')" "a $mark a")" "0 0"
is "... in a class, too" "$(words "$(split '[\\S]+b')" "a $mark a")" "0 0"
is "a dollar is the end of a line" "$(words "$(split '\\nb$')" 'a\nb\na')" "1 0"
is "\\h is a hexadecimal digit" "$(words "$(split '\\h')" 'a b')" "0"
is "two classes meet" "$(words "$(split '[ab&&[^b]]')" bab)" "2 2"
is "... negated" "$(words "$(split '[^ab&&b]')" bab)" "2 2"
is "a negated class in a class" "$(words "$(split '[a[^ab]]')" "b$mark")" "2 2"
is "... negated" "$(words "$(split '[^b[^ab]]')" bab)" "2 2"
is "\\W in a class" "$(words "$(split '[\\W]')" 'a b')" "1 2"
is "[:punct:] has symbols" "$(words "$(split '[[:punct:]]')" 'a\302\242b')" "1 2"
is "... and [:^punct:] has none" "$(words "$(split '[[:^punct:]]')" 'b\302\242')" "0"
is "[:space:] lacks the vowel separator" "$(words "$(split '[[:space:]]')" "$mark")" "1 4 5"
# characters of which PCRE thinks otherwise, and one on which both agree
has()           # CLASS WITHIN WITHOUT: a, WITHIN, b, WITHOUT with the class's characters removed
{
	is "$1 has $2 and not $3" "$(jq -n --arg class "$1" '[range(33; 127), range(161; 173), range(174; 256),
		range(256; 324)] as $letters | {pre_tokenizer: {type: "Sequence", pretokenizers: [
			{type: "Split", pattern: {Regex: $class}, behavior: "Removed"},
			{type: "ByteLevel", add_prefix_space: false, use_regex: false}]}, decoder: {type: "ByteLevel"},
		model: {type: "BPE", vocab: ([$letters[] | [.] | implode] | to_entries | map({(.value): .key}) | add),
			merges: []}}' >"$TMP/dir/tokenizer.json"
		printf '%s\n%s' "$2" "$3" | gguf-tokenize -m "$TMP/dir" | gguf-tokenize -m "$TMP/dir" --decode |
		tr -d '\n')" "$3"
}
has '[[:upper:]]' AÉⅣⒶ aªⅳ
has '[[:lower:]]' aéªʰⅳ AⅣ
has '[[:alpha:]]' aªⅣʰְ '1½'
has '[[:alnum:]]' 'aⅣְ1१' '½²-'
has '[[:graph:]]' "a½$(printf '\356\200\200\341\240\216\342\201\246')" "$(printf ' \302\240\343\200\200')"
has '[[:print:]]' "a $(printf '\356\200\200\342\201\246')" "$(printf '\342\200\250\302\205')"
has '[[:^alpha:]]' '1½' aªⅣְ
has '[[:^graph:]]' "$(printf ' \302\240')" "$(printf 'a\356\200\200')"
has '\w' 'a²¼1' -
has '[\w]' a1 '²¼-'
has '\W' - 'a²¼'
has '[\W]' '-²¼' a
# quantifiers, options and escapes that mean another thing to PCRE
has '[0-9]{1,3}+3' 12343 x3
has '^a{,2}b' aab c
has '(?m:a.b)' "$(printf 'a\nb')" a
has '\QE' QE .
for pattern in '[0-9]{2}+' '[0-9]{2}?'; do
	words "$(split "$pattern")" a >"$TMP/message" 2>&1
	ok "$pattern is refused" grep -q 'pattern: .* braces are followed by + or ?' "$TMP/message"
done
has '\p{Han}' 〇一々㐀 '、。〈あ'
has '\pL' pL é
has '\P{Han}' '、あ' 一
has '\p{^Hiragana}' 'ー、' あ
has '[x\p{Greek}]' xα "$(printf '\315\202')"
has '\u00e9\u0061' éa ea
has '[\u0041-\u0043]' B D
for pattern in '\\u41' '\\ud800'; do
	words "$(split "$pattern")" a >"$TMP/message" 2>&1
	ok "$pattern is refused" grep -qF 'pattern: an escape that is not supported; \u wants a character as four' \
		"$TMP/message"
done
has '\v' "$(printf '\v')" "$(printf '\f\302\205')"
is "[:word:] has marks" "$(words "$(split '[[:word:]]+')" 'ae\314\201b')" ""
is "no word ends before an accent" "$(words "$(split 'e\\b')" 'e\314\201')" "6"
is "... and one goes on there" "$(words "$(split 'e\\B')" 'e\314\201')" "0"
is "nor does one end before a fraction" "$(words "$(split 'a\\b')" 'a\302\275')" "0"
is "a word ends at its end" "$(words "$(split '\\ba\\b')" a)" ""
words "$(split '[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]')" a >"$TMP/message" 2>&1
ok "a deep class is refused" grep -q 'pattern: a class does not end, or is nested too deeply' "$TMP/message"
is "an accent belongs to the word, a fraction does not" \
	"$(words '{"type": "Whitespace"}' 'e\314\201\302\275')" "6 7"
rm -f "$TMP"/dir/*
mkfifo "$TMP/dir/tokenizer.json"
not_ok "a pipe is not waited for" 2 timeout 10 gguf-tokenize -m "$TMP/dir" "$TMP/ids"
rm -f "$TMP"/dir/*

# byte-level BPE of 256 bytes and some merges, with added tokens that begin alike
jq -n '([range(256) | select((. >= 33 and . <= 126) or (. >= 161 and . <= 172) or . >= 174)]
		+ [range(256; 324)]) as $letters
	| ["aa", "aaaa", "ĠĠ", "ĊĊ", "00"] as $more
	| {model: {type: "BPE",
		vocab: ([$letters[] | [.] | implode] + $more | to_entries | map({(.value): .key}) | add),
		merges: ["a a", "aa aa", "Ġ Ġ", "Ċ Ċ", "0 0"]},
	pre_tokenizer: {type: "ByteLevel", add_prefix_space: false, use_regex: true}, decoder: {type: "ByteLevel"},
	added_tokens: [range(2000) | {id: (300 + .), content: "<<<<<<<<<\(.)>", special: true, normalized: false}]}' \
		>"$TMP/dir/tokenizer.json"

for keeps in 'a\0374b:.' 'ab:.model.vocab |= with_entries(if .key == "ü" then .key = "aab" else . end)'; do
	mkdir "$TMP/bytes"
	jq "${keeps#*:}" "$TMP/dir/tokenizer.json" >"$TMP/bytes/tokenizer.json"
	printf 'a\374b' | gguf-tokenize -m "$TMP/bytes" >"$TMP/ids"
	is "a byte that no UTF-8 contains, with a token for it or without: $keeps" \
		"$(gguf-tokenize -m "$TMP/bytes" --decode "$TMP/ids" | od -A n -t o1)" \
		"$(printf %b "${keeps%%:*}" | od -A n -t o1)"
	rm -r "$TMP/bytes"
done

# a vocabulary of characters, with bytes for those it lacks: bytes of no character, whole or cut off, take nothing of
# the one after them, here a blank, which merges with its word
mkdir "$TMP/bytes"
jq -n '{model: {type: "BPE", byte_fallback: true, merges: ["▁ a"],
	vocab: (["▁", "a", "▁a"] + [range(256) | "0123456789ABCDEF"[. / 16 | floor:][:1] as $high
		| "<0x\($high)\("0123456789ABCDEF"[. % 16:][:1])>"] | to_entries | map({(.value): .key}) | add)},
	normalizer: {type: "Replace", pattern: {String: " "}, content: "▁"},
	decoder: {type: "Sequence", decoders: [{type: "Replace", pattern: {String: "▁"}, content: " "},
		{type: "ByteFallback"}, {type: "Fuse"}]}}' >"$TMP/bytes/tokenizer.json"
for bytes in '\0326' '\0344\0270' '\0360\0237\0230' '\0377'; do
	printf %b "$bytes a" >"$TMP/text"
	gguf-tokenize -m "$TMP/bytes" "$TMP/text" >"$TMP/ids"
	is "a word after $bytes" "$(tr ' ' '\n' <"$TMP/ids" | sed -n '/./h; ${g; p;}')" 2
	gguf-tokenize -m "$TMP/bytes" --decode "$TMP/ids" >"$TMP/back"
	same "... and all bytes come back" "$TMP/back" "$TMP/text"
done
rm -r "$TMP/bytes"

# parts of pipelines that none of the vocabularies has: normalizer, pre-tokenizer, text, ids of tokenizers 0.23.3, and
# an added token that must stand alone
mkdir "$TMP/part"
while IFS= read -r row; do
	printf '%s\n' "$row" | jq -j '.[2]' >"$TMP/text"
	jq --argjson row "$row" '.normalizer = $row[0] |
		.added_tokens = [$row[4] // empty | {id: 261, content: ., single_word: true}] |
		.pre_tokenizer = if $row[1].type == "ByteLevel" then $row[1] else
		{type: "Sequence", pretokenizers: [$row[1] // empty,
			{type: "ByteLevel", add_prefix_space: false, use_regex: false}]} end' \
		"$TMP/dir/tokenizer.json" >"$TMP/part/tokenizer.json"
	is "$(printf '%s\n' "$row" | jq -rc '.[:2]')" "$(gguf-tokenize -m "$TMP/part" "$TMP/text")" \
		"$(printf '%s\n' "$row" | jq -r '.[3] | join(" ")')"
done <<'END'
[{"type": "Strip"}, null, " \u3000aa\n aa \u00a0\n", [256, 198, 220, 256]]
[{"type": "Strip", "strip_right": false}, null, "  aa  ", [256, 258]]
[{"type": "Strip", "strip_left": false}, null, "  aa  ", [258, 256]]
[{"type": "Strip"}, null, " \t ", []]
[null, {"type": "Whitespace"}, "aa00 aaaa!!\u00e9 00_00\n", [256, 260, 257, 0, 0, 127, 102, 260, 62, 260]]
[null, {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}, "aa  aa   aa", [256, 220, 220, 256, 220, 220, 220, 256]]
[null, {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext"}, "aa  aa   aa", [256, 220, 220, 256, 220, 220, 220, 256]]
[null, {"type": "Split", "pattern": {"Regex": "[a[0-9]]+"}, "behavior": "Isolated"}, "aaaa00  aa00", [257, 260, 258, 256, 260]]
[null, {"type": "Split", "pattern": {"Regex": "[a[:digit:]]"}, "behavior": "Isolated"}, "aaaa00  aa00", [64, 64, 64, 64, 15, 15, 258, 64, 64, 15, 15]]
[null, {"type": "Split", "pattern": {"Regex": "[a[[:digit:]]]"}, "behavior": "Isolated"}, "aaaa00  aa00", [64, 64, 64, 64, 15, 15, 258, 64, 64, 15, 15]]
[null, {"type": "Split", "pattern": {"Regex": "[^a[[:digit:]]]"}, "behavior": "Contiguous"}, "aaaa00  \n\naa00", [257, 260, 258, 259, 256, 260]]
[null, {"type": "Split", "pattern": {"Regex": "[^[^a]0]+"}, "behavior": "Isolated"}, "aaaa00  aa00", [257, 260, 258, 256, 260]]
[null, {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}, "aa aa", [220, 256, 220, 256]]
[null, {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false}, " aa", [220, 256]]
[{"type": "Lowercase"}, null, "\u0130A\u0391", [72, 136, 229, 64, 138, 109]]
[null, {"type": "Split", "pattern": {"Regex": "aa"}, "behavior": "Isolated", "invert": true}, "aaaa 00  aaaaaa", [256, 256, 220, 260, 258, 256, 256, 256]]
[null, {"type": "Split", "pattern": {"Regex": "aa"}, "behavior": "MergedWithPrevious", "invert": true}, "aaaa 00  aaaaaa", [256, 256, 220, 260, 258, 256, 256, 256]]
[null, {"type": "Split", "pattern": {"Regex": "[ 0]"}, "behavior": "MergedWithNext", "invert": true}, "aaaa 00  aaaaaa", [257, 220, 15, 15, 220, 220, 257, 256]]
[null, {"type": "Split", "pattern": {"Regex": "aa"}, "behavior": "Contiguous", "invert": true}, "aaaa 00  aaaaaa", [257, 220, 260, 258, 257, 256]]
[null, null, "a\n\n\n\n\n\n0", [64, 259, 261, 259, 15], "\n\n"]
[null, null, "\u00e9\n\n-", [127, 102, 259, 12], "\n\n"]
[null, null, "-\n\n\n", [12, 261, 198], "\n\n"]
END

# what the vocabulary's metadata takes from the small files, and from the size alone (facts of llama.cpp's converter)
metadata() { gguf-convert -q --vocab-only "$TMP/dir" | gguf-info --json - | jq -c ".metadata | [$1]"; }
echo '{"architectures": ["LlamaForCausalLM"], "vocab_size": 49152}' >"$TMP/dir/config.json"
is "49152 tokens: no BOS" "$(metadata '."tokenizer.ggml.add_bos_token", (."tokenizer.ggml.tokens" | length)')" \
	"[false,49152]"
echo '{"architectures": ["LlamaForCausalLM"], "vocab_size": 32016, "eos_token_id": [7, 8]}' >"$TMP/dir/config.json"
is "32016 tokens: end of turn; the first of two ends" \
	"$(metadata '."tokenizer.ggml.eot_token_id", ."tokenizer.ggml.eos_token_id"')" "[32010,7]"
echo jinja >"$TMP/dir/chat_template.jinja"
is "a template of its own file" "$(metadata '."tokenizer.chat_template"')" '["jinja\n"]'
mkdir "$TMP/dir/additional_chat_templates"
printf 'a\r\nb\rc\n' >"$TMP/dir/additional_chat_templates/tool_use.jinja"
echo rag >"$TMP/dir/additional_chat_templates/rag-2.jinja"
echo none >"$TMP/dir/additional_chat_templates/README.md"
templates='."tokenizer.chat_template", ."tokenizer.chat_templates", ."tokenizer.chat_template.rag_2",
	."tokenizer.chat_template.tool_use"'
is "... with named ones beside it, whose lines end alike" "$(metadata "$templates")" \
	'["jinja\n",["rag_2","tool_use"],"rag\n","a\nb\nc\n"]'
printf 'a\377' >"$TMP/dir/additional_chat_templates/rag-2.jinja"
not_ok "a template that is no text" 2 gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
is "... is named, with the byte" "$(grep -c "additional_chat_templates/rag-2.jinja: byte 1: is not text in UTF-8" \
	"$TMP/.out")" 1
rm -r "$TMP/dir/additional_chat_templates"
echo '{"chat_template": [{"name": "rag", "template": "1"}, {"name": "default", "template": "2"},
	{"name": "rag", "template": "3"}, {"name": "", "template": "4"}, {"name": "t/\u00e9", "template": "5"}]}' \
	>"$TMP/dir/tokenizer_config.json"
is "a list of named ones" "$(metadata '."tokenizer.chat_template", ."tokenizer.chat_templates",
	."tokenizer.chat_template.rag", ."tokenizer.chat_template.t__",
	(keys | map(select(endswith("template.")))[])')" \
	'["2",["rag","t__"],"3","5"]'
echo '{"chat_template": "config", "add_prefix_space": true, "bos_token": {"content": "<<<<<<<<<5>"},
	"add_bos_token": true}' >"$TMP/dir/tokenizer_config.json"
is "tokenizer_config.json wins" \
	"$(metadata '."tokenizer.chat_template", ."tokenizer.ggml.add_space_prefix", ."tokenizer.ggml.bos_token_id"')" \
	'["config",true,305]'
echo '{"architectures": ["LlamaForCausalLM"], "vocab_size": 4194305}' >"$TMP/dir/config.json"
not_ok "too many tokens" 2 gguf-convert -q --vocab-only -o "$TMP/v.gguf" "$TMP/dir"
rm -f "$TMP"/dir/*config.json "$TMP"/dir/*.jinja

# Half a MiB of each: well under a second where time is n log n, half an hour or more where it is quadratic.
size=524288
repeat() { yes "$1" | tr -d '\n' | head -c $size >"$TMP/text"; }
# the same where patterns are not compiled to machine code: each match may look at no more than it needs
mkdir "$TMP/slow"
jq '("(*NO_JIT)\u0027s|\u0027t|\u0027re|\u0027ve|\u0027m|\u0027ll|\u0027d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
	+ "\\s+(?!\\S)|\\s+") as $gpt2 | .pre_tokenizer = {type: "Sequence", pretokenizers: [
	{type: "Split", pattern: {Regex: $gpt2}, behavior: "Isolated"},
	{type: "ByteLevel", add_prefix_space: false, use_regex: false}]}' "$TMP/dir/tokenizer.json" \
		>"$TMP/slow/tokenizer.json"
for m in "$M" "$TMP/dir" "$TMP/slow"; do
	for what in a ' ' 0 '<' 😀 'ab ' lines words bytes ff; do
		case $what in
		lines) head -c $size /dev/zero | tr '\0' '\n' >"$TMP/text" ;;
		words) seq 150000 | tr -d '\n' | tr 0-9 a-j | head -c $size >"$TMP/text" ;;
		bytes) cat "$BIN"/gguf-* | head -c $size >"$TMP/text" ;;
		ff) head -c $size /dev/zero | tr '\0' '\377' >"$TMP/text" ;;
		*) repeat "$what" ;;
		esac
		ok "half a MiB of $what in time, $(basename "$m")" \
			sh -c "ulimit -t 30; gguf-tokenize -m '$m' --no-bos '$TMP/text' >'$TMP/ids'"
		if [ "$m" = "$TMP/dir" ]; then cp "$TMP/ids" "$TMP/ids.$what"; fi
		if [ "$m" = "$TMP/slow" ]; then same "... as fast patterns have it" "$TMP/ids" "$TMP/ids.$what"; fi
		[ "$m" = "$M" ] || {
			sh -c "ulimit -t 30; gguf-tokenize -m '$m' --decode '$TMP/ids' >'$TMP/back'"
			ok "... and back" cmp "$TMP/back" "$TMP/text"
		}
	done
done
# a letter with marks that its normal form sorts, and so many that swapping neighbours would not end
mkdir "$TMP/nfc"
jq '.normalizer = {type: "NFC"}' "$TMP/dir/tokenizer.json" >"$TMP/nfc/tokenizer.json"
{ printf x; yes "$(printf '\314\225\314\200')" | tr -d '\n' | head -c $size; } >"$TMP/text"
{ printf x; for mark in '\314\200' '\314\225'; do
	yes "$(printf "$mark")" | tr -d '\n' | head -c $((size/2))
done; } >"$TMP/sorted"
ok "half a MiB of marks in time" \
	sh -c "ulimit -t 30; gguf-tokenize -m '$TMP/nfc' --no-bos '$TMP/text' >'$TMP/ids'"
ok "... in the order of their classes" \
	sh -c "gguf-tokenize -m '$TMP/nfc' --decode '$TMP/ids' | cmp - '$TMP/sorted'"
if [ -n "${SANITIZED:-}" ]; then skip "memory of one letter" "a sanitizer's memory comes on top"; else
	head -c 4000000 /dev/zero | tr '\0' a >"$TMP/text"
	peak gguf-tokenize -m "$TMP/dir" "$TMP/text" >"$TMP/ids"
	ok "4 MB of one letter take less than 45 times as much: $peak" test "$peak" -lt 180000000
fi
# SentencePiece takes a whole text for one piece: memory is that of the text a few times over, and its ids
# are those of its parts, cut where no token lies across
cat "$DATA"/prose/*.txt "$DATA"/prose/*.txt "$DATA"/prose/*.txt "$DATA"/prose/*.txt >"$TMP/4"
for _ in 1 2 3; do cat "$TMP/4" "$TMP/4" >"$TMP/8"; mv "$TMP/8" "$TMP/4"; done
kib=$(($(wc -c <"$TMP/4")/1024))
if [ -n "${SANITIZED:-}" ]; then skip "$kib KiB of text in 16 times the memory" "a sanitizer maps terabytes"
else ok "$kib KiB of text in 16 times the memory" \
	sh -c "ulimit -v $((40000 + 16*kib)); gguf-tokenize -m '$M' --no-sandbox '$TMP/4' >'$TMP/ids'"
fi

# ids NAME JSON TEXTS WANTED: those that a tokenizer.json makes, from the folder and from a GGUF of it
ids()
{
	rm -rf "$TMP/own"
	mkdir "$TMP/own"
	printf '%s\n' "$2" >"$TMP/own/tokenizer.json"
	is "$1" "$(printf '%s\n' "$3" | gguf-tokenize -m "$TMP/own" --no-bos --json)" "$4"
	gguf-convert -q --vocab-only -o "$TMP/own.gguf" "$TMP/own"
	is "... from a GGUF" "$(printf '%s\n' "$3" | gguf-tokenize -m "$TMP/own.gguf" --no-bos --json)" "$4"
}
ids "merges of tokens that hold blanks" '{"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, " ": 2,
	" a": 3, "  ": 4, "  a": 5, "a ": 6}, "merges": [[" ", "a"], [" ", " "], [" ", " a"], ["a", " "]]}}' \
	'[" a","   a","a b"]' '[[3],[4,3],[6,0]]'

ids "tokens that hold NUL" '{"added_tokens": [{"id": 6, "content": "\u0000x", "single_word": false, "lstrip": false,
	"rstrip": false, "normalized": false, "special": false}],
	"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "\u0000" : 2,
	"a\u0000": 3, "\\u0000": 4, "a\u0000\u0000\\": 5}, "merges": [["a", "\u0000"]]}}' \
	'["a","\u0000","a\u0000\u0000","\u0000x"]' '[[1],[2],[3,2],[6]]'
is "... and back" "$(echo '[[5,3],[2,1],[4]]' | gguf-tokenize -m "$TMP/own" --json --decode | jq -ac .)" \
	'["a\u0000\u0000\\a\u0000","\u0000a","\\u0000"]'

rm -rf "$TMP"/dir/*
echo '{"a": 0, "\u0000a": 1, "\u0000": 2}' >"$TMP/dir/vocab.json"
printf '\000 a\n' >"$TMP/dir/merges.txt"
echo '[[0,1,2]]' >"$TMP/ids"
is "vocab.json: tokens that hold NUL" "$(gguf-tokenize -m "$TMP/dir" --json --decode "$TMP/ids")" \
	'["a\u0000a\u0000"]'
rm -f "$TMP"/dir/*

# The kinds of vocabulary of SentencePiece's models usually have BOS in front or EOS behind, but to transformers a
# tokenizer.json says what is put there, unless a class adds to it.
added='"added_tokens": [{"id": 1, "content": "<1>", "special": true}, {"id": 2, "content": "<2>", "special": true}]'
bpe='{"type": "BPE", "byte_fallback": true, "vocab": {"?": 0, "<1>": 1, "<2>": 2, "a": 3}, "merges": []}'
unigram='{"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["<1>", 0], ["<2>", 0], ["a", -1]]}'
decoder='{"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}'
around()        # NAME MODEL POST-PROCESSOR CLASS WANTED
{
	rm -rf "$TMP/own"
	mkdir "$TMP/own"
	echo "{$added, \"post_processor\": $3, \"decoder\": $decoder, \"model\": $2}" >"$TMP/own/tokenizer.json"
	[ -z "$4" ] || echo "{\"tokenizer_class\": \"$4\"}" >"$TMP/own/tokenizer_config.json"
	is "$1" "$(printf a | gguf-tokenize -m "$TMP/own")" "$5"
	gguf-convert -q --vocab-only -o "$TMP/own.gguf" "$TMP/own"
	is "... from a GGUF" "$(printf a | gguf-tokenize -m "$TMP/own.gguf")" "$5"
}
front='{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<2>"}}, {"Sequence": {"id": "A"}}],
	"special_tokens": {"<2>": {"ids": [2]}}}'
both='{"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "BertProcessing", "cls": ["<2>", 2],
	"sep": ["<1>", 1]}]}'
around "BPE: no post-processor, no BOS" "$bpe" null "" "3"
around "... nor with the general class" "$bpe" null PreTrainedTokenizerFast "3"
around "... but with Llama's" "$bpe" null LlamaTokenizerFast "1 3"
around "... and what it says" "$bpe" "$both" "" "2 3 1"
around "Unigram: no post-processor, no EOS" "$unigram" null "" "3"
around "... nor with one that has a token in front alone" "$unigram" "$front" TokenizersBackend "2 3"
around "... but with T5's class" "$unigram" null T5TokenizerFast "3 1"
around "... and what it says" "$unigram" "$both" "" "2 3 1"

# Metaspace as the decoder takes all marks from the first token that has text, wherever they are
model='{"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["\u2581\u2581", 0], ["a\u2581b", 0], ["", 0], [" c", 0]]}'
for scheme in first always never; do
	printf '{"decoder": {"type": "Metaspace", "replacement": "\\u2581", "prepend_scheme": "%s"}, "model": %s}' \
		$scheme "$model" >"$TMP/dir/tokenizer.json"
	case $scheme in never) want='["  a b"," ca b","a b  "," c"]' ;; *) want='["a b"," ca b","ab  "," c"]' ;; esac
	is "the first token's marks: $scheme" "$(echo '[[1,2],[4,2],[2,1],[3,4]]' | gguf-tokenize -m "$TMP/dir" --json \
		--decode)" "$want"
done

# matches of no bytes
model='"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "1": 1, "11": 2, "A": 3, "a": 4, "Aa": 5, "aA": 6},
	"merges": [["1", "1"], ["A", "a"], ["a", "A"]]}'
pre() { printf '{"pre_tokenizer": {"type": "Split", "pattern": {%s}, "behavior": "%s"}, %s}' "$1" "$2" "$model"; }
ids "digits are split into threes from behind" "$(pre '"Regex": "(?=(\\d{3})+(?!\\d))"' Isolated)" \
	'["11","11111","111111"]' '[[2],[2,2,1],[2,1,2,1]]'
for behavior in Isolated Removed MergedWithPrevious MergedWithNext Contiguous; do
	ids "$behavior: where a capital follows" "$(pre '"Regex": "(?=A)"' $behavior)" '["aAaA","AaA"]' \
		'[[4,5,3],[5,3]]'
done
ids "an expression of no or more bytes" "$(pre '"Regex": "1*"' MergedWithNext)" '["1111aAaaA"]' '[[2,2,4,3,4,4,3]]'

# ids of tokenizers 0.23.3
replaced()      # EXPRESSION WANTED: matches in three texts become hyphens
{
	ids "matches of '$1' are replaced" "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"$1\"},
		\"content\": \"-\"}, \"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0,
		\"-\": 1, \"a\": 2, \"b\": 3, \"x\": 4, \"\\n\": 5}, \"merges\": []}}" \
		'["","xxab","a\nb\n","a\u00e9"]' "$2"
}
replaced 'x*' '[[],[1,2,1,3,1],[1,2,1,5,1,3,1,5,1],[1,2,1,0,1]]'
replaced '$' '[[],[4,4,2,3,1],[2,1,5,3,1,5,1],[2,0,1]]'
replaced '^' '[[],[1,4,4,2,3],[1,2,5,1,3,5],[1,2,0]]'
replaced '(?=b)' '[[],[4,4,2,1,3],[2,5,1,3,5],[2,0]]'
replaced '' '[[],[1,4,1,4,1,2,1,3,1],[1,2,1,5,1,3,1,5,1],[1,2,1,0,1]]'
step()          # NAME NORMALIZER PRE-TOKENIZER VOCABULARY MERGES TEXTS WANTED
{
	ids "$1" "{\"normalizer\": $2, \"pre_tokenizer\": $3, \"model\": {\"type\": \"BPE\", \"unk_token\": \"?\",
		\"vocab\": {$4}, \"merges\": [$5]}}" "$6" "$7"
}
step "StripAccents drops marks of all kinds" '{"type": "StripAccents"}' null '"?": 0, "a": 1, "é": 2' '' \
	'["a\u0301\u0903\u20dda","\u00e9\u0301"]' '[[1,1],[2]]'
step "Nmt drops control characters and makes others blanks" '{"type": "Nmt"}' null '"?": 0, " ": 1, "a": 2' '' \
	'["a\u000e\u007fa","a\u200b\u2581\ufeff\t\u000b\u3000"]' '[[2,2],[2,1,1,1,1,0]]'
step "ByteLevel as a normalizer" '{"type": "ByteLevel"}' null '"?": 0, "Ġ": 1, "a": 2, "Ã": 3, "©": 4, "É": 5' '' \
	'["a \u00e9"]' '[[2,1,3,4]]'
step "pieces of a fixed length" null '{"type": "FixedLength", "length": 2}' \
	'"?": 0, "a": 1, "é": 2, "\n": 3, "aa": 4, "é\n": 5' '["a", "a"], ["é", "\n"]' \
	'["aaaaa","\u00e9\n\u00e9","a\u00e9\naa"]' '[[4,4,1],[5,2],[1,2,3,1,1]]'
step "a character between pieces" null '{"type": "CharDelimiterSplit", "delimiter": "é"}' \
	'"?": 0, "a": 1, "é": 2, "aa": 3' '["a", "a"]' '["aa\u00e9a\u00e9aaa","\u00e9\u00e9"]' '[[3,1,3,1],[]]'
for bad in '"FixedLength", "length": 0' '"FixedLength", "length": "2"' '"CharDelimiterSplit"'; do
	echo "{\"pre_tokenizer\": {\"type\": $bad}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0},
		\"merges\": []}}" >"$TMP/own/tokenizer.json"
	not_ok "refused: $bad" 2 gguf-tokenize -m "$TMP/own" "$TMP/ids"
done

# Metaspace's "first" is the start of the raw text
late()          # NORMALIZER WANTED
{
	step "no mark in front if what was there is dropped: $1" "$1" '{"type": "Metaspace",
		"replacement": "\u2581", "prepend_scheme": "first", "split": true}' \
		'"?": 0, "\u2581": 1, "a": 2, "b": 3' '' '["a"," a","\u0301a","\u0001a","ba","a b"]' "$2"
}
late '{"type": "Strip"}' '[[1,2],[2],[1,0,2],[1,0,2],[1,3,2],[1,2,1,3]]'
late '{"type": "StripAccents"}' '[[1,2],[1,2],[2],[1,0,2],[1,3,2],[1,2,1,3]]'
late '{"type": "Nmt"}' '[[1,2],[1,2],[1,0,2],[2],[1,3,2],[1,2,1,3]]'
late '{"type": "BertNormalizer", "lowercase": true}' '[[1,2],[1,2],[2],[2],[1,3,2],[1,2,1,3]]'
late '{"type": "Replace", "pattern": {"String": "b"}, "content": ""}' '[[1,2],[1,2],[1,0,2],[1,0,2],[2],[1,2,1]]'
late '{"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "b"}' \
	'[[1,3],[1,3],[1,0,3],[1,0,3],[3],[1,3,1,3]]'
late '{"type": "Sequence", "normalizers": [{"type": "Strip"}, {"type": "Prepend", "prepend": "b"}]}' \
	'[[1,3,2],[3,2],[1,3,0,2],[1,3,0,2],[1,3,3,2],[1,3,2,1,3]]'
late '{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "b"}, {"type": "Replace",
	"pattern": {"String": "a"}, "content": ""}]}' '[[1,3],[1,3,1],[1,3,0],[1,3,0],[1,3,3],[1,3,1,3]]'

ids "neighbours of a character that has neither a token nor bytes merge" '{"model": {"type": "BPE",
	"byte_fallback": true, "vocab": {"a": 0, "b": 1, "ab": 2, "<0xC3>": 3, "<0xA9>": 4}, "merges": [["a", "b"]]}}' \
	'["a\u00e9b","a\u00e8b","ab","axb","ax\u00e9xb"]' '[[0,3,4,1],[2],[2],[2],[0,3,4,1]]'
ids "an empty text is everywhere" "$(pre '"String": ""' Isolated)" '["aAa"]' '[[4,3,4]]'

ids "a mark for the first piece alone, wherever pieces come from" "{\"pre_tokenizer\": {\"type\": \"Sequence\",
	\"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\",
	\"prepend_scheme\": \"first\", \"split\": true}]}, \"model\": {\"type\": \"BPE\", \"unk_token\": \"?\",
	\"vocab\": {\"?\": 0, \"a\": 1, \"\\u2581\": 2}, \"merges\": []}}" '["a a"," a a"]' '[[2,1,1],[1,1]]'

ids "pieces for bytes in a Unigram vocabulary of tokenizer.json" '{"model": {"type": "Unigram", "unk_id": 0,
	"byte_fallback": true, "vocab": [["?", 0], ["a", -1], ["<0xC3>", -5], ["<0xA9>", -5]]}}' \
	'["a\u00e9a","\u00e8"]' '[[1,2,3,1],[0]]'
is "... have the type of bytes" "$(gguf-info --json --metadata "$TMP/own.gguf" |
	jq -c '.metadata["tokenizer.ggml.token_type"]')" '[2,1,6,6]'
ids "bytes for a whole run of unknown characters, the unknown piece among them" '{"model": {"type": "Unigram",
	"unk_id": 0, "byte_fallback": true, "vocab": [["?", 0], ["a", -1], ["<0x3F>", -5], ["<0x62>", -5]]}}' \
	'["?","??","?b","b?","a?a","bb","z","zb","bz?a"]' '[[0],[2,2],[2,3],[3,2],[1,0,1],[3,3],[0],[0],[0,1]]'

ids "no word beside a token that stands alone: letters, connectors, joiners" '{"added_tokens": [
	{"id": 3, "content": "ab", "special": false, "normalized": false, "single_word": true, "lstrip": false,
	"rstrip": false}], "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2},
	"merges": []}}' '["\u00bdab","\u2462ab","\u24d0ab","\u203fab","\u200dab"]' \
	'[[0,3],[0,3],[0,1,2],[0,1,2],[0,1,2]]'

ids "words that are special tokens or look like the rest of a word" '{"pre_tokenizer": {"type": "WhitespaceSplit"},
	"added_tokens": [{"id": 1, "content": "1", "special": true, "normalized": false, "single_word": true,
	"lstrip": false, "rstrip": false}], "model": {"type": "WordPiece", "unk_token": "?",
	"continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
	"vocab": {"?": 0, "1": 1, "##3": 2, "a": 3, "##a": 4, "#": 5,
	"###": 6}}}' \
	'["13 1 a13","##a a##a","\u2581a ###3"]' '[[1,2,1,0],[4,3,6,6,4],[0,6,2]]'

# as old versions of tokenizers wrote it, such as that of bert-base-uncased
ids "WordPiece that does not say so" '{"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"unk_token": "?",
	"continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"?": 0, "a": 1, "##b": 2}}}' \
	'["ab a b"]' '[[1,2,1,0]]'

# tokens that only the list of added tokens has: not even a text of theirs becomes one if special tokens are plain text
added='"added_tokens": [{"id": 3, "content": "ab", "special": true, "normalized": false}]'
while IFS= read -r row; do
	ids "$(printf '%s' "$row" | jq -r .type): an added token" "{$added, \"model\": $row}" '["aba"]' '[[3,1]]'
	for m in "$TMP/own" "$TMP/own.gguf"; do
		is "... is unknown to the model itself, $(basename "$m")" \
			"$(printf ab | gguf-tokenize -m "$m" --no-special)" "$(printf '%s' "$row" | jq -r .want)"
	done
done <<'END'
{"want": "1 2", "type": "BPE", "ignore_merges": true, "vocab": {"?": 0, "a": 1, "b": 2}, "merges": []}
{"want": "0", "type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}}
{"want": "1 2", "type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -10000], ["b", -10000]]}
END
ids "... nor does a score that it has not count" "{$added, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0,
	\"vocab\": [[\"?\", 0], [\"b\", 20], [\"cb\", -1]]}}" '["cb"]' '[[0,1]]'

ids "what is unknown counts ten less than the lowest of scores that are all above 0" '{"model": {"type": "Unigram",
	"unk_id": 0, "vocab": [["?", 20], ["a", 24], ["b", 13], ["ab", 24], ["abz", 30]]}}' \
	'["abzab", "abzz", "zabz", "abc"]' '[[1,2,0,1,2],[1,2,0],[0,1,2,0],[1,2,0]]'
ids "pieces that begin with U+2581, which marks where words begin in a GGUF" '{"pre_tokenizer":
	{"type": "WhitespaceSplit"}, "added_tokens": [{"id": 12, "content": "<x\u2581>", "normalized": false}],
	"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
	"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "a": 1,
	"##\u2581": 2, "##\u2581b": 3, "\u2581": 4, "\u2581b": 5, "##b": 6, "##a": 7, "\u2581a\u2581": 8}}}' \
	'["a\u2581","a\u2581b","\u2581b","\u2581","\u2581a\u2581b","aa\u2581\u2581ba","a <x\u2581>b"]' \
	'[[1,2],[1,3],[5],[4],[8,6],[1,7,2,3,7],[1,12,0]]'
for m in "$TMP/own" "$TMP/own.gguf"; do
	is "... and back, $(basename "$m")" "$(echo '[[1,2],[4],[8,6],[1,4,5,12,1,6],[6,1],[2,1],[12,1]]' |
		gguf-tokenize -m "$m" --json --decode | jq -c .)" \
		'["a▁","▁","▁a▁b","a ▁ ▁b <x▁> ab","##b a","##▁ a","<x▁> a"]'
done

# ids of tokenizers 0.23.3 around added tokens that take the blanks beside them, which are searched for more tokens
beside()        # NAME JQ-OBJECTS-OF-ADDED-TOKENS TEXTS WANTED
{
	ids "$1" "$(jq -nc "{added_tokens: [$2 | .special //= false | .normalized = false],
		model: {type: \"BPE\", unk_token: \"?\", merges: [],
		vocab: {\"?\": 0, a: 1, b: 2, \" \": 3, \"\t\": 4}}}")" "$3" "$4"
}
right='{id: 5, content: "X", rstrip: true}'
beside "a token takes the blanks behind it" "$right" '["aX \tb","X "]' '[[1,5,2],[5]]'
beside "... a token may begin there" "$right, {id: 6, content: \" b\"}" '["aX b","aX  ba"]' '[[1,5,6],[1,5,6,1]]'
beside "... or lie there, and what follows it is text" "$right, {id: 4, content: \"\t\"}" '["aX \t b","X\t"]' \
	'[[1,5,4,3,2],[5,4]]'
beside "... and is taken with the blanks if it takes them too" \
	"$right, {id: 4, content: \"\t\", lstrip: true}" '["aX\t","aX \tb"]' '[[1,5],[1,5,2]]'
beside "each blank that takes those behind it counts" '{id: 3, content: " ", rstrip: true}' '["a   b"]' '[[1,3,3,3,2]]'
is "a special token that is plain text holds no other token" "$(jq -nc '{added_tokens: [{id: 3, content: "<a>",
	special: true}, {id: 4, content: "a>"}, {id: 5, content: "<a>b"}], model: {type: "BPE", unk_token: "?",
	merges: [], vocab: {"?": 0, a: 1, b: 2}}}' >"$TMP/own/tokenizer.json"
	echo '["<a>","a>a","<a>b"]' | gguf-tokenize -m "$TMP/own" --json --no-special)" '[[0,1,0],[4,1],[5]]'
repeat ' '
mkdir "$TMP/blanks"
jq -nc '{added_tokens: [{id: 1, content: " ", lstrip: true, rstrip: true}], model: {type: "BPE", merges: [],
	vocab: {a: 0}}}' >"$TMP/blanks/tokenizer.json"
ok "half a MiB of blanks that take each other in time" \
	sh -c "ulimit -t 30; gguf-tokenize -m '$TMP/blanks' '$TMP/text' >'$TMP/ids'"

# the unknown token's text, as transformers has it but for the mark that it leaves out before " b"
is "<unk> in a text is that token" "$(printf 'a <unk> b' | gguf-tokenize -m "$M")" "1 261 4002 0 4002 283"
is "... unless it is plain text" "$(printf 'a <unk> b' | gguf-tokenize --no-special -m "$M")" \
	"1 261 4002 63 3342 65 283"

# of WordPiece, a GGUF file of llama.cpp's says which tokens are [CLS] and [SEP], and not that they are added
bert()          # ARG... of gguf-edit: the ids of "ab c"
{
	"$BUILD/tests/cli/tool_mkgguf" general.architecture=bert tokenizer.ggml.model=bert |
		gguf-edit --set 'tokenizer.ggml.tokens=str[]:["[UNK]", "[CLS]", "[SEP]", "▁a", "b", "▁c"]' \
			--set 'tokenizer.ggml.token_type=i32[]:[3, 3, 3, 1, 1, 1]' "$@" -o "$TMP/bert.gguf"
	printf 'ab c' | gguf-tokenize -m "$TMP/bert.gguf"
}
is "[CLS] and [SEP] are around a text" \
	"$(bert --set tokenizer.ggml.cls_token_id=u32:1 --set tokenizer.ggml.seperator_token_id=u32:2)" "1 3 4 5 2"
is "... also by the name of BOS" \
	"$(bert --set tokenizer.ggml.bos_token_id=u32:1 --set tokenizer.ggml.seperator_token_id=u32:2)" "1 3 4 5 2"
is "... unless nothing shall be added" "$(printf 'ab c' | gguf-tokenize -m "$TMP/bert.gguf" --no-bos)" "3 4 5"
is "... or there are none with their usual ids" "$(bert)" "3 4 5"

gguf-convert -q "$M" | gguf-split -q --max-tensors 20 -o "$TMP/shard"
cp -r "$M" "$TMP/model"
for pair in "shard-00001-of-00003.gguf shard-00002-of-00003.gguf" "model model/tokenizer.model"; do
	cksum "$TMP/${pair#* }" >"$TMP/want"
	not_ok "output over a file of the model" 2 gguf-tokenize -m "$TMP/${pair% *}" -o "$TMP/${pair#* }" "$TMP/ids"
	is "... ${pair#* } is kept" "$(cksum "$TMP/${pair#* }")" "$(cat "$TMP/want")"
done
gguf-edit -I --set tokenizer.ggml.tokens=u8:1 "$TMP/shard-00001-of-00003.gguf"
for i in 1 2; do
	for program in gguf-tokenize gguf-run; do
		is "no vocabulary: $program, given shard $i, names the one with the metadata" \
			"$(echo 1 | $program -m "$TMP/shard-0000$i-of-00003.gguf" 2>&1 | sed 's/byte [0-9]*/byte N/')" \
			"$program: $TMP/shard-00001-of-00003.gguf: byte N: tokenizer.ggml.tokens: is not a list of\
 strings"
	done
done

not_ok "--decode: NUL among the ids" 2 sh -c "printf '1 2\\0 3' | gguf-tokenize --decode -m '$DATA/wiki-7m'"
done_testing
