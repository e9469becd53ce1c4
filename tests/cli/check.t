#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-check: every defect, with the number of its rule; the reader's, and one of each of its own.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
compile() { "$BUILD/tests/malformed/tool_ggtxt"; }

# gguf-check first reports what gguf-info refuses, in the same words
for text in "$SRC"/tests/malformed/gguf/*.ggtxt; do compile <"$text" >"$(basename "$text" .ggtxt).gguf"; done
for text in "$SRC"/tests/malformed/gguf/*.ggtxt; do
	name=$(basename "$text" .ggtxt)
	expect=$(sed -n 1p "${text%.ggtxt}.expect" 2>/dev/null)
	case $expect in
	'' | *': No such file'*) continue ;;
	ok)
		gguf-check --header "$name.gguf" >out
		is "$name: nothing that the reader refuses" "$(grep -cE '\[(1?[0-9]|20)\]$' out)" 0 ;;
	*)
		gguf-check --header "./$name.gguf" >out 2>err
		s=$?                            # 2: a shard is missing, too
		is "$name: exit status" "$([ $s = 1 ] || grep -q 'No such file' err; echo $?)" 0
		case $name in split-*)          # shards are read in order here
			ok "$name" grep -q '\[20\]$' out
			continue
		esac
		is "$name" "$(sed -n '1{s/^\.\///; s/^'"$name"'.gguf: //; s/ \[[0-9]*\]$//; p;}' out)" "$expect" ;;
	esac
done

# a sound model
gguf-convert -q -o m.gguf "$DATA/wiki-7m"
is "a model of our own has no defect" "$(gguf-check m.gguf; echo $?)" 0
is "... nor for llama.cpp" "$(gguf-check --profile llama.cpp m.gguf; echo $?)" 0
is "... through a pipe" "$(gguf-check <m.gguf; echo $?)" 0
is "... quantized" "$(gguf-quantize -q Q4_K_M m.gguf | gguf-check --profile llama.cpp; echo $?)" 0
gguf-split --max-tensors 20 -o s m.gguf
is "... in shards" "$(gguf-check --profile llama.cpp s-00001-of-*.gguf; echo $?)" 0
if [ -d "$SHARED/data/vocab-gguf" ]; then
	bad=
	for f in "$SHARED"/data/vocab-gguf/*.gguf; do
		case $f in *dbrx*) continue ;; esac     # which has a key twice
		gguf-check -q --profile llama.cpp "$f" >out || bad="$bad $(basename "$f"): $(head -1 out)"
	done
	is "vocabularies of llama.cpp have no defect" "$bad" ""
else skip "vocabularies of llama.cpp have no defect" "no ../shared"; fi

# several defects at once
compile <<'END' >many.gguf
header 4 3
key "general.architecture" str
str "x"
key "general.architecture" str
str "y"
key "" u8
u8 1
tensor "a" f32 0 2
tensor "b" 99 0 2
tensor "c" f32 4 2
tensor "d" f32 2^40 2
pad 32 f32 1 f32 2 f32 3 f32 4 f32 5 f32 6 f32 7 f32 8 f32 9
END
gguf-check many.gguf >out
is "all defects of a file, by their rules" "$(sed 's/.*\[//; s/\]//' out | sort -n | tr '\n' ' ')" "5 6 15 17 18 19 "
is "... from a pipe all but that the data is beyond its end" "$(cat many.gguf | gguf-check | sed 's/.*\[//; s/\]//' |
	sort -n | tr '\n' ' ')" "5 6 15 17 19 "

# breaks NAME RULES LINES...: a sound file plus those lines breaks the RULES
breaks()
{
	name=$1 want=$2; shift 2
	for line in "kv str general.architecture x" "$@"; do printf '%s\n' "$line"; done | make_gguf >b.gguf
	gguf-check ${profile:-} b.gguf >out
	is "$name" "$(sed 's/.*\[//; s/\]//' out | sort -n | tr '\n' ' ')" "$want"
}
breaks "21: a string that is not UTF-8" "21 " 'kv str k \xff'
is "... with the byte of its key" "$(cut -d' ' -f2-3 out)" "byte 65:"
breaks "21: of an array, reported once" "21 " 'kv str[] k a \xff \xfe'
breaks "21: the name of a tensor" "21 " 'tensor f32 a\xff 1 4'
breaks "22: a key with a blank" "22 " 'kv u8 a\x20b 1'
breaks "23: a name of 65 bytes" "23 " "tensor f32 $(printf '%065d' 0) 1 4"
breaks "23: one of 64 is allowed" "" "tensor f32 $(printf '%064d' 0) 1 4"
breaks "24: quantized, and no version" "24 " 'tensor q8_0 a 1 32'
breaks "25: a name that is a number" "25 " 'kv u32 general.name 5'
breaks "25: tags that are no strings" "25 " 'kv u32[] general.tags 5'
breaks "25: an id of another type" "25 " 'kv u16 tokenizer.ggml.bos_token_id 0'
breaks "26: a tokenizer without tokens" "26 " 'kv str tokenizer.ggml.model llama'
vocab='kv str[] tokenizer.ggml.tokens a b ab'
breaks "a vocabulary" "" 'kv str tokenizer.ggml.model gpt2' "$vocab" 'kv str[] tokenizer.ggml.merges a\x20b' \
	'kv i32[] tokenizer.ggml.token_type 1 1 1'
breaks "26: gpt2 without merges" "26 " 'kv str tokenizer.ggml.model gpt2' "$vocab"
breaks "27: fewer scores than tokens" "27 " 'kv str tokenizer.ggml.model llama' "$vocab" \
	'kv f32[] tokenizer.ggml.scores 0 0'
breaks "27: more types than tokens" "27 " 'kv str tokenizer.ggml.model llama' "$vocab" \
	'kv i32[] tokenizer.ggml.token_type 1 1 1 1'
breaks "28: ids behind the tokens" "28 28 " 'kv str tokenizer.ggml.model llama' "$vocab" \
	'kv u32 tokenizer.ggml.bos_token_id 3' 'kv u32 tokenizer.ggml.eot_token_id 4294967295' \
	'kv u32 tokenizer.ggml.eos_token_id 2'
breaks "29: a type of token that is unknown" "29 " 'kv str tokenizer.ggml.model llama' "$vocab" \
	'kv i32[] tokenizer.ggml.token_type 1 7 -1'
breaks "30: merges of what is not a token" "30 " 'kv str tokenizer.ggml.model gpt2' "$vocab" \
	'kv str[] tokenizer.ggml.merges a\x20b a\x20c ab'
breaks "31: an embedding with fewer rows than tokens" "31 " 'kv str tokenizer.ggml.model llama' "$vocab" \
	'tensor f32 token_embd.weight 1 4 2'
printf 'kv str general.type imatrix\n' | make_gguf >b.gguf
ok "24: an importance matrix needs no architecture" gguf-check b.gguf
printf 'kv str general.type model\n' | make_gguf >b.gguf
is "24: a model does" "$(gguf-check b.gguf)" "b.gguf: general.architecture: is missing [24]"
compile <<'END' >b.gguf
header 2 1
key "general.architecture" str
str "x"
tensor "a" f32 0 1
tensor "b" f32 32 1
bytes "x"
pad 32 f32 1 zeros 3 bytes "x" pad 32 f32 1
END
is "32: padding that is not zero" "$(gguf-check b.gguf | sed 's/.*\[//' | tr -d '\n')" "32]32]"
gguf-check b.gguf | cut -d: -f2- >want
is "... of a file that is standard input" "$(gguf-check <b.gguf | cut -d: -f2-)" "$(cat want)"
is "... which was read up to there" "$( (printf ahead; cat b.gguf) >c.gguf
	{ dd bs=1 count=5 of=/dev/null 2>/dev/null; gguf-check; } <c.gguf | cut -d: -f2-)" "$(cat want)"
"$BUILD/tests/cli/tool_mkgguf" a:f32:64x8:nan b:q8_0:64x8:huge general.quantization_version=2 >b.gguf
gguf-check b.gguf >out
is "33: weights that are not finite, in a float tensor and in blocks" \
	"$(sed 's/.*: \([ab]: [0-9]* of\).*\[/\1 [/' out)" "a: 1 of [33]
b: 512 of [33]"
is "... with row and column" "$(grep -o 'row 1, column 2' out)" "row 1, column 2"
is "... through a pipe" "$(gguf-check <b.gguf | cut -d: -f2-)" "$(cut -d: -f2- out)"
is "... with any number of threads" "$(gguf-check -j5 b.gguf)" "$(cat out)"
ok "... not with --header" gguf-check --header b.gguf
"$BUILD/tests/cli/tool_mkgguf" a:f64:64x8:beyond b:f64:64x8:nan general.architecture=x >b.gguf
is "... but not those of f64 that are beyond the range of f32" \
	"$(gguf-check b.gguf | sed 's/.*: \([ab]: [0-9]* of\).*\[/\1 [/')" "b: 1 of [33]"

profile='--profile llama.cpp'
breaks "llama.cpp: 23: a name of 64 bytes" "23 " "tensor f32 $(printf '%064d' 0) 1 4"
breaks "llama.cpp: 37: a context length of u64" "37 " 'kv u64 x.context_length 5' 'kv u32 x.block_count 5' \
	'kv u32[] x.feed_forward_length 5 6'
profile=
for c in ok-gap:34 ok-deep-8:35; do
	is "llama.cpp: ${c#*:}: ${c%:*}" "$(gguf-check --header --profile llama.cpp "${c%:*}.gguf" |
		grep -c "\[${c#*:}\]$")" 1
	is "... not the specification's" "$(gguf-check --header "${c%:*}.gguf" | grep -c "\[${c#*:}\]$")" 0
done
compile <<'END' >b.gguf
big
bytes "GGUF"
u32 3 u64 0 u64 1
key "general.architecture" str
str "x"
END
is "llama.cpp: 36: big-endian" "$(gguf-check --profile llama.cpp b.gguf | sed 's/.*\[//')" "36]"

# each shard has an alignment and a byte order of its own
for i in 0 1; do
	for line in "kv str general.architecture x" "kv u32 general.alignment $((4096 >> 6*i))" "kv u16 split.no $i" \
		"kv u16 split.count 2" "kv i32 split.tensors.count 4" "tensor i8 a$i 1 8" "tensor i8 b$i 1 8"; do
		echo "$line"
	done | make_gguf >own-0000$((i + 1))-of-00002.gguf
done
is "shards of other alignments: nothing but padding has to be zero, and there are no gaps" \
	"$(gguf-check --profile llama.cpp own-00001-of-00002.gguf)" ""
compile <<'END' >own-00002-of-00002.gguf
big
bytes "GGUF"
u32 3 u64 2 u64 3
key "split.no" u16 u16 1
key "split.count" u16 u16 2
key "split.tensors.count" i32 i32 4
tensor "c" i8 0 8
tensor "d" i8 32 8
pad 32 zeros 64
END
is "llama.cpp: 36: a big-endian shard among others" "$(gguf-check --profile llama.cpp own-00001-of-00002.gguf |
	sed 's/:.*\[/ [/')" "own-00002-of-00002.gguf [36]"

# what a set does not show of its shards; by the name of the first and by that of the second
# shards NUMBER LINES...: a model of two, the second of which has LINES too
shards()
{
	no=$1; shift
	for i in 0 1; do
		{
			[ $i = 1 ] || echo "kv str general.architecture x"
			echo "kv $no split.no $i"
			printf '%s\n' "kv u16 split.count 2" "kv i32 split.tensors.count 2" "tensor i8 a$i 1 8"
			[ $i = 0 ] || printf '%s\n' "$@"
		} | make_gguf >two-0000$((i + 1))-of-00002.gguf
	done
	for i in 1 2; do gguf-check --profile llama.cpp two-0000$i-of-00002.gguf >found$i; done
}
shards u16
is "two shards without a defect" "$(cat found1 found2)" ""
shards u32
is "25: numbers of shards that llama.cpp does not read" "$(cat found1)" \
	"two-00001-of-00002.gguf: byte 65: split.no: is u32, not u16 [25]
two-00002-of-00002.gguf: byte 24: split.no: is u32, not u16 [25]"
same "... in whichever shard, whichever is named" found2 found1
shards u16 'kv str general.name \xff' 'kv u8 general.url 1' 'kv u8 a\x20b 1'
is "21, 22, 25: metadata of another shard than the first" "$(sed 's/: byte.*\[/ [/' found1 | tr '\n' ' ')" \
	"two-00002-of-00002.gguf [21] two-00002-of-00002.gguf [25] two-00002-of-00002.gguf [22] "
same "... whichever is named" found2 found1
{ printf '%s\n' "kv u32 split.no 0" "kv u16 split.count 1" "kv i32 split.tensors.count 0"
	echo "kv str general.architecture x"; } | make_gguf >one.gguf
cp one.gguf one-00001-of-00001.gguf
is "25: one shard, with the name of a shard and without" \
	"$(gguf-check one-00001-of-00001.gguf one.gguf | sed 's/: byte.*\[/ [/' | tr '\n' ' ')" \
	"one-00001-of-00001.gguf [25] one.gguf [25] "

# shards, files cut short, several files
cp s-00002-of-*.gguf keep && truncate -s -4096 s-00002-of-*.gguf
gguf-check s-00001-of-*.gguf >out
is "a shard that was cut short" "$? $(sed 's/.*\(s-0000.\).*\[/\1 [/' out | sort -u)" "1 s-00002 [18]"
gguf-check s-00002-of-*.gguf >out2
same "... the same by whichever shard's name" out2 out
cp s-00001-of-*.gguf first && gguf-edit -I --set general.name=u8:1 s-00001-of-*.gguf
is "defects of the first are not reported of the one that is named" \
	"$(gguf-check --header s-00002-of-*.gguf | sed 's/:.*\[/ [/' | tail -n 1)" "$(echo s-00001-of-*) [25]"
mv first "$(echo s-00001-of-*)"
mv keep "$(echo s-00002-of-*)"
{ echo 'kv str k \xff'; echo 'tensor f32 a 1 8'; } | make_gguf >alone-00002-of-00003.gguf
is "a file that is no shard though its name says so: each defect once" "$(gguf-check alone-00002-of-00003.gguf |
	sed 's/.*\[//' | tr '\n' ' ')" "21] 24] "
printf 'GGUF\3\0\0\0' >alone-00002-of-00003.gguf
is "... or which is cut short" "$(gguf-check alone-00002-of-00003.gguf | sed 's/.*\[//' | tr '\n' ' ')" "3] "
rm s-00003-of-*
not_ok "a shard that is missing" 2 gguf-check s-00001-of-*.gguf
head -c 2000 m.gguf >cut.gguf
is "a header that is cut short is one defect" "$(gguf-check cut.gguf | sed 's/.*\[//')" "3]"
# zeros, as an unfinished download leaves them, are one defect: not one for each entry that they could be
dd if=/dev/null of=cut.gguf bs=1000000 seek=1 2>/dev/null
is "a header that ends in zeros is one defect" "$(gguf-check cut.gguf | sed 's/.*\[//')" "5]"
for counts in "2^40 1" "2^27 1" "1 2^40" "1 2^28"; do
	printf 'header %s\nkey "general.architecture" str\nstr "llama"\n' "$counts" | compile >zeros.gguf
	dd if=/dev/null of=zeros.gguf bs=1000000 seek=5000 2>/dev/null
	is "... of 5 GB that could be entries, too: header $counts" \
		"$(gguf-check zeros.gguf | sed 's/.*\[//' | tail -n 1)" \
		"$(case $counts in *' 1') echo 11 ;; *) echo 5 ;; esac)]"
	not_ok "... gguf-info" 2 gguf-info zeros.gguf
done
rm zeros.gguf
head -c 3000000 m.gguf >cut.gguf
gguf-check cut.gguf >out
is "data that is cut short: the tensors that miss some" "$? $(sed 's/.*\[//' out | sort -u)" "1 18]"
is "... of a pipe: the first" "$(cat cut.gguf | gguf-check | sed 's/.*\[//')" "18]"
is "... and so with --header" "$(cat cut.gguf | gguf-check --header >out; echo "$? $(sed 's/.*\[//' out)")" "1 18]"
not_ok "several files: one has a defect" 1 gguf-check m.gguf b.gguf many.gguf
not_ok "... one cannot be read" 2 gguf-check many.gguf nothing.gguf
is "... the others are checked all the same" "$(gguf-check nothing.gguf many.gguf 2>/dev/null | wc -l | tr -d ' ')" 6
is "JSON of files that cannot be read: nothing" "$(gguf-check --json nothing.gguf nowhere.gguf 2>/dev/null; echo $?)" 2
is "JSON" "$(gguf-check --json m.gguf many.gguf | jq -c '[.[] | [.file, [.defects[].rule]]]' | tr -d ' ')" \
	'[["m.gguf",[]],["many.gguf",['"$(gguf-check many.gguf | sed 's/.*\[//; s/\]//' | paste -sd,)"']]]'
not_ok "no such profile" 2 gguf-check --profile vllm m.gguf
not_ok "output over the input" 2 gguf-check -o m.gguf m.gguf
printf 'not GGUF' >text
for from in "m.gguf text" "- <text"; do
	is "... which is no GGUF file, from $from" \
		"$(eval "gguf-check -o text $from" 2>/dev/null; echo "$? $(cat text)")" "2 not GGUF"
done
done_testing
