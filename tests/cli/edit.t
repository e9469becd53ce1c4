#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-edit: values of every type, in place and otherwise, the same result by every way; nothing half edited is read.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
# all strings are UTF-8 here, so that JSON can hold them
grep -v '^kv str test.bytes' "$SRC/tests/cli/info.gguf.txt" | sed '/tokenizer.ggml.tokens/s/\\xff//' >m.txt
make_gguf <m.txt >m.gguf
# jq 1.7 and later keep how a number was written, unless they calculate with it
value()
{
	gguf-info --json "$2" | jq -c --arg k "$1" '.metadata[$k], .metadata_types[$k] |
		walk(if type == "number" then . + 0 else . end)' | paste -sd' '
}
size() { wc -c <"$1" | tr -d ' '; }
inode() { ls -i "$1" | cut -d' ' -f1; }
leftovers() { find . -name '.m.gguf*' -o -name '.e.gguf*'; }

# one TYPE VALUE JSON [TYPE SHOWN]: set, and what is read back
one()
{
	gguf-edit --set "test.new=$1:$2" -o e.gguf m.gguf
	is "$1 $2" "$(value test.new e.gguf)" "$3 \"${4:-$1}\""
}
one u8 255 255
one i8 -128 -128
one u16 65535 65535
one i16 -32768 -32768
one u32 4294967295 4294967295
one i32 -2147483648 -2147483648
one u64 18446744073709551615 '"18446744073709551615"'
one i64 -9223372036854775808 '"-9223372036854775808"'
one f32 0.5 0.5
one f32 3.4028235e+38 3.4028234663852886e+38
one f32 -3.4028235e+38 -3.4028234663852886e+38
one f64 -1e300 -1e+300
one f32 nan '"NaN"'
one bool true true
one str '' '""'
one str 'a:b=c "q" \n' '"a:b=c \"q\" \\n"'
one string plain '"plain"' str
one 'u32[]' '[1, 2, 4294967295]' '[1,2,4294967295]' 'array of u32'
one 'i64[]' '[-1, "-9223372036854775808"]' '[-1,"-9223372036854775808"]' 'array of i64'
one 'u64[]' '[18446744073709551615, 1]' '["18446744073709551615",1]' 'array of u64'
one 'i64[][]' '[[-9223372036854775808], ["7"]]' '[["-9223372036854775808"],[7]]' 'array of arr'
one 'f64[]' "[$(printf '1%0300d' 0), 0.5]" '[1e+300,0.5]' 'array of f64'
one 'f32[]' '[1, 0.5, "NaN", "-Infinity"]' '[1,0.5,"NaN","-Infinity"]' 'array of f32'
one 'bool[]' '[true, false]' '[true,false]' 'array of bool'
one 'str[]' '["a", "", "\u0000é"]' '["a","","\u0000é"]' 'array of str'
one 'str[]' '[]' '[]' 'array of str'
one 'u8[][]' '[[1], [], [2, 3]]' '[[1],[],[2,3]]' 'array of arr'
for bad in u8:256 u8:-1 i8:128 i8:-129 u32:1.5 u32: u32:x u64:18446744073709551616 i64:9223372036854775808 f32:x \
	f32:1e39 f64: f64:-1e400 bool:1 bool:yes \
	'u8[]:[256]' 'u8[]:[1.5]' 'u8[]:5' 'u8[]:[1' 'u8[]:[1] 2' 'u64[]:[18446744073709551616]' \
	'str[]:[18446744073709551615]' 'str[]:["\", 18446744073709551615]' 'i64[]:[9223372036854775808]' \
	'str[]:[1]' 'u8[][]:[1]' 'bool[]:[1]' 'arr:1' 'u7:1' '[]:[]' 5 'u32:0x10' 'u32: 5' \
	'u32:5 ' 'f32:1 ' 'bool:true ' 'u32:5
'; do
	not_ok "refused: $bad" 2 gguf-edit --set "test.new=$bad" -o never.gguf m.gguf
done
# says TYPE:VALUE MESSAGE
says() { is "... $1, and says why" "$(gguf-edit --set "k=$1" -o never.gguf m.gguf 2>&1)" "gguf-edit: k: $2
Try 'gguf-edit -h'."; }
says u8:256 "'256' is not a valid u8 (0 to 255)"
says i64:9223372036854775808 "'9223372036854775808' is not a valid i64 (-9223372036854775808 to 9223372036854775807)"
says u64:18446744073709551616 "'18446744073709551616' is not a valid u64 (0 to 18446744073709551615)"
says 'u64[]:[0, -1]' "item 1 is not a valid u64 (0 to 18446744073709551615)"
says 'i64[]:[-9223372036854775809]' "item 0 is not a valid i64 (-9223372036854775808 to 9223372036854775807)"
says f32:1e39 "'1e39' is not a valid f32"
says 'u8:1 ' "'1 ' is not a valid u8 (0 to 255)"
says 'str[]:[1]' "item 0 is not a string"
says 'u8[]:{}' "not a JSON array"
says 'u8[][][][][][][][][]:[]' "arrays are nested more than 8 deep"
key=$(printf "%065536d" 0)
is "refused: a key that is too long" "$(gguf-edit --set "$key=str:" -o never.gguf m.gguf 2>&1 | sed 's/0[0.]*/0/')" \
	"gguf-edit: 0: not a valid key: it is empty, contains NUL or is longer than 65535 bytes
Try 'gguf-edit -h'."
is "... a new name of one" "$(gguf-edit --rename "general.name=$key" -o never.gguf m.gguf 2>&1 |
	sed 's/0[0.]*/0/')" \
	"gguf-edit: --rename general.name=0: the new key is too long
Try 'gguf-edit -h'."
not_ok "refused: no key" 2 gguf-edit --set =u8:1 -o never.gguf m.gguf
not_ok "refused: 9 levels of arrays" 2 gguf-edit --set 'k=u8[][][][][][][][][]:[]' -o never.gguf m.gguf
not_ok "refused: an alignment of 48" 2 gguf-edit --set general.alignment=u32:48 -o never.gguf m.gguf
ok "... and nothing was made" sh -c '! ls never* .never*'

# what an array's JSON shows is what is read from it
gguf-info --json m.gguf | jq -c '.metadata["tokenizer.ggml.tokens"]' >tokens.json
gguf-edit --delete tokenizer.ggml.tokens -o e.gguf m.gguf
gguf-edit --set-file 'tokenizer.ggml.tokens=str[]:tokens.json' -o e2.gguf e.gguf
ok "an array from gguf-info's JSON" gguf-diff m.gguf e2.gguf
printf '{{ "a" }}\n{%% end %%}\n' >template
ok "a string from a file" gguf-edit --set-file tokenizer.chat_template=str:template -o e.gguf m.gguf
gguf-info --json e.gguf | jq -j '.metadata["tokenizer.chat_template"]' >got
same "... to its last byte" got template
ok "a number from a file, with a line end" \
	sh -c 'echo 7 >seven && gguf-edit --set-file test.n=u8:seven -o e.gguf m.gguf'
printf '7\r\n' >seven
ok "... that of another system" gguf-edit --set-file test.n=u8:seven -o e.gguf m.gguf
printf '7 \n' >seven
is "... but not with a blank" "$(gguf-edit --set-file test.n=u8:seven -o never.gguf m.gguf 2>&1)" \
	"gguf-edit: test.n: '7 ' is not a valid u8 (0 to 255)"
printf '7\0008' >seven
not_ok "refused: a number from a file with a NUL" 2 gguf-edit --set-file test.n=u8:seven -o never.gguf m.gguf
printf '7\000' >seven
not_ok "... at its end, too" 2 gguf-edit --set-file test.n=u8:seven -o never.gguf m.gguf
ok "a string from a pipe" sh -c 'echo x | gguf-edit --set-file test.n=str:- -o e.gguf m.gguf'
echo x >one
is "a string and the model from a pipe" "$(gguf-edit --set-file a=str:- -o never.gguf 2>&1 <one | sed 1q)" \
	"gguf-edit: --set-file a: standard input is already read for the model"
not_ok "a file that is missing" 2 gguf-edit --set-file k=str:nothing -o never.gguf m.gguf

# keys and tensors
gguf-edit --rename general.name=general.title --delete test.flag --rename-tensor output.weight=head.weight \
	-o e.gguf m.gguf
is "renamed and deleted" "$(gguf-diff m.gguf e.gguf | cut -d: -f1)" "metadata general.name
metadata test.flag
metadata general.title
tensor output.weight
tensor head.weight"
is "... a renamed key keeps its place" "$(gguf-info --json e.gguf |
	jq -c '.metadata | keys_unsorted | index("general.title")')" "$(gguf-info --json m.gguf |
	jq -c '.metadata | keys_unsorted | index("general.name")')"
is "... a renamed tensor its data" "$(gguf-cat e.gguf head.weight | sha256sum)" "$(gguf-cat m.gguf output.weight |
	sha256sum)"
gguf-edit --set a=u8:1 --rename a=b --set b=u8:2 --rename b=c -o e.gguf m.gguf
is "edits are made in order" "$(value c e.gguf)" '2 "u8"'
not_ok "delete: no such key" 2 gguf-edit --delete nothing -o never.gguf m.gguf
not_ok "rename: no such key" 2 gguf-edit --rename nothing=x -o never.gguf m.gguf
not_ok "rename: the new key is there" 2 gguf-edit --rename general.name=test.flag -o never.gguf m.gguf
not_ok "rename: no new key" 2 gguf-edit --rename general.name= -o never.gguf m.gguf
ok "rename-tensor: names change places" gguf-edit --rename-tensor output.weight=t \
	--rename-tensor token_embd.weight=output.weight --rename-tensor t=token_embd.weight -o e.gguf m.gguf
is "... and data stay" "$(gguf-info --json e.gguf | jq -cS '[.tensors[] | select(.name == "output.weight" or
	.name == "token_embd.weight")
	| {(.name): .offset}] | add')" "$(gguf-info --json m.gguf | jq -cS '.tensors | map({(.name): .offset}) | add
	| {"token_embd.weight": .["output.weight"], "output.weight": .["token_embd.weight"]}')"
ok "rename-tensor: there and back, and to the same name" gguf-edit --rename-tensor output.weight=t \
	--rename-tensor t=t --rename-tensor t=output.weight -o e.gguf m.gguf
same "... changes nothing" e.gguf m.gguf
not_ok "rename-tensor: a name that was given up" 2 gguf-edit --rename-tensor output.weight=t \
	--rename-tensor output.weight=u -o never.gguf m.gguf
not_ok "rename-tensor: no such tensor" 2 gguf-edit --rename-tensor nothing=x -o never.gguf m.gguf
not_ok "rename-tensor: the new name is there" 2 gguf-edit --rename-tensor output.weight=token_embd.weight \
	-o never.gguf m.gguf
for count in u16:4 i32:-1 str:x 'u16[]:[1]'; do
	not_ok "split.count=$count, by which no program would open the file" 2 gguf-edit --set "split.count=$count" \
		-o never.gguf m.gguf
	cp m.gguf e.gguf
	not_ok "... in place" 2 gguf-edit -I --set "split.count=$count" e.gguf
	same "... leaves the file alone" e.gguf m.gguf
done
is "... by another key's name" "$(gguf-edit --rename general.name=split.count m.gguf 2>&1 >never)" \
	"gguf-edit: split.count: expects an unsigned integer, not str"
ok "split.count=1 is as good as none" sh -c 'gguf-edit --set split.count=u16:1 m.gguf | gguf-info --json - |
	grep -q "split.count"'
not_ok "--reserve of more than any program should read" 2 gguf-edit --reserve 5G -o never.gguf m.gguf
not_ok "-I of a folder" 2 gguf-edit -I --delete k "$DATA"
is "... is named as it was given" "$(cd "$DATA/.." && gguf-edit -I --delete k data 2>&1)" \
	"gguf-edit: data: Is a directory"

# ways: a file, a pipe, in place rewritten
gguf-edit --set general.name=str:other --set test.long=str:"$(printf '%0999d' 0)" -o want.gguf m.gguf
cat m.gguf | gguf-edit --set general.name=str:other --set test.long=str:"$(printf '%0999d' 0)" >e.gguf
same "through pipes the same bytes" e.gguf want.gguf
cp m.gguf e.gguf
gguf-edit -I --set general.name=str:other --set test.long=str:"$(printf '%0999d' 0)" e.gguf
same "-I, where it does not fit, the same bytes" e.gguf want.gguf
ok "the weights are the same" sh -c 'gguf-hash --sha256 m.gguf | sed s/m.gguf/e.gguf/ | gguf-hash -q --check - e.gguf'
{ echo 'kv u32 general.alignment 4096'; cat m.txt; } | make_gguf >aligned.gguf
gguf-edit --set general.alignment=u32:4096 -o e.gguf m.gguf
ok "another alignment moves the data" gguf-diff --ignore '^$' aligned.gguf e.gguf
is "... the header says where" "$(gguf-info --json e.gguf | jq '[.tensors[].offset % 4096] | unique == [0]')" true
gguf-split -q --max-tensors 2 -o s m.gguf
gguf-edit --set general.name=str:x s-00001-of-*.gguf >e.gguf
gguf-edit --set general.name=str:x m.gguf >want.gguf
same "a set of shards becomes one file" e.gguf want.gguf
one=$(ls s-00001-of-*.gguf) two=s2-${one#s-}
gguf-edit -I --set split.count=u16:9 "$one" 2>/dev/null
is "a shard keeps the number that its name has" "$(gguf-info --json "$one" | jq -c '.tensors | length')" \
	"$(gguf-info --json m.gguf | jq -c '.tensors | length')"
ok "... and may be brought back to it" sh -c "cp '$one' '$two' && sed -i 's/split.count/split.cound/' '$two' &&
	gguf-edit -I --rename split.cound=split.count '$two' && cmp '$one' '$two'"
"$BUILD/tests/malformed/tool_ggtxt" >big.gguf <<'END'
big
bytes "GGUF"
u32 3 u64 1 u64 1
key "general.architecture" str
str "x"
tensor "t" f32 0 2
pad 32 f32 1 f32 2
END
ok "big-endian becomes little-endian" \
	sh -c 'gguf-edit --set k=u8:1 -o e.gguf big.gguf && gguf-info --json e.gguf | grep -q "\"little\"" &&
	gguf-cat e.gguf t | od -A n -t f4 | grep -q "1 *2"'
cp big.gguf e.gguf
ok "... with -I too" sh -c 'gguf-edit -I --set k=u8:1 e.gguf && gguf-cat e.gguf t | od -A n -t f4 | grep -q "1 *2"'

# in place
cp m.gguf e.gguf
before=$(inode e.gguf) bytes=$(size e.gguf)
gguf-edit -I --set general.name=str:"$(gguf-info --json m.gguf | jq -r '.metadata["general.name"] | gsub(".";"x")')" \
	e.gguf
is "a value of the same length is written in place" "$(inode e.gguf) $(size e.gguf)" "$before $bytes"
gguf-edit -I --delete tokenizer.ggml.tokens e.gguf
is "a smaller header too" "$(inode e.gguf) $(size e.gguf)" "$before $bytes"
gguf-edit -I --set-file 'tokenizer.ggml.tokens=str[]:tokens.json' e.gguf
is "... what was given up is used again" "$(inode e.gguf) $(size e.gguf)" "$before $bytes"
ok "... and the data is where it was" gguf-diff --ignore '^(reserved|general.name)$' e.gguf m.gguf
ok "--reserve" gguf-edit -I --reserve 4k e.gguf
before=$(inode e.gguf) bytes=$(size e.gguf)
gguf-edit -I --set tokenizer.chat_template=str:"$(printf '%04000d' 0)" e.gguf
is "... is used by a larger value" "$(inode e.gguf) $(size e.gguf) $(gguf-info --json e.gguf |
	jq '.metadata["tokenizer.chat_template"] | length')" "$before $bytes 4000"
for n in 0 1 7 8 20 31 32 33 60 64 100 500 1000; do gguf-edit -I --set tokenizer.chat_template=str:"$(printf "%0${n}d" \
	0)" e.gguf; done
is "... by every length up to it" "$(inode e.gguf) $(size e.gguf)" "$before $bytes"
gguf-edit -I --set tokenizer.chat_template=str:"$(printf '%09000d' 0)" e.gguf
is "... and keeps its size when the file is written anew" "$(gguf-info --json e.gguf |
	jq '.metadata.reserved | length >= 32')" true
is "--reserve in a pipe" "$(gguf-edit --reserve 100 <m.gguf | gguf-info --json - |
	jq '.metadata.reserved | length >= 100')" true
cp m.gguf e.gguf
is "--dry-run of a pipe" "$(gguf-edit -n --delete test.flag <e.gguf | cut -d";" -f1)" "(stdin): rewritten"
is "--dry-run" "$(gguf-edit -nI --delete test.flag e.gguf | cut -d";" -f1)" "e.gguf: in place"
is "... where it does not fit" "$(gguf-edit -nI --set k=str:"$(printf '%0100d' 0)" e.gguf |
	cut -d";" -f1)" "e.gguf: rewritten"
same "... changes nothing" e.gguf m.gguf
echo >.e.gguf.undo
ok "... opens the file for reading alone" sh -c 'chmod a-w e.gguf && gguf-edit -nI --delete test.flag e.gguf &&
	test -e .e.gguf.undo'
chmod u+w e.gguf
rm -f .e.gguf.undo
mkfifo fifo
not_ok "a pipe is refused without waiting for it" 2 timeout 10 gguf-edit -nI --delete test.flag fifo
ln -s e.gguf link.gguf
gguf-edit -I --delete test.flag link.gguf
ok "a link stays a link" test -h link.gguf
is "... to what was changed" "$(value test.flag e.gguf)" 'null null'
cp m.gguf e.gguf && ln e.gguf other.gguf
gguf-edit -I --delete test.flag e.gguf
same "another name of the file keeps the old one" other.gguf m.gguf
sed 's/^kv bool test.flag true/kv str reserved mine/' m.txt | make_gguf >own.gguf
gguf-edit -I --set general.name=str:longer.than.before.by.far,surely.more.than.32 own.gguf
is "a key 'reserved' of another type is left alone" "$(value reserved own.gguf)" '"mine" "str"'
not_ok "... and --reserve refused" 2 gguf-edit --reserve 1k -o never.gguf own.gguf
for bad in '--set reserved=u8[]:[1]' '--set-file reserved=u8[]:one.json' '--rename bytes=reserved'; do
	sed 's/^kv bool test.flag true/kv u8[] bytes 1 2 3/' m.txt | make_gguf >e.gguf
	echo '[1]' >one.json
	is "what is reserved cannot be given: $bad" "$(gguf-edit -I $bad e.gguf 2>&1)" \
		"gguf-edit: reserved: cannot be set to u8[], \
which later edits would use up as room: use --reserve or another key"
done
cp m.gguf e.gguf && gguf-edit -I --reserve 4k e.gguf && gguf-edit -I --delete reserved e.gguf
is "what is reserved can be deleted in place" "$(value reserved e.gguf)" 'null null'
ok "... and nothing else" gguf-diff e.gguf m.gguf
not_ok "-I without a file" 2 sh -c 'gguf-edit -I --delete test.flag <m.gguf'
not_ok "-I and -o" 2 gguf-edit -I -o x --delete test.flag m.gguf
not_ok "-o over the input" 2 gguf-edit -o m.gguf --delete test.flag m.gguf
cp template kept
not_ok "-o over a file that is a value" 2 gguf-edit --set-file tokenizer.chat_template=str:kept -o kept m.gguf
same "... which is kept" kept template
not_ok "a malformed file" 2 gguf-edit -I --delete test.flag tokens.json
not_ok "a cut pipe" 2 sh -c 'head -c 30000 m.gguf | gguf-edit --delete test.flag >/dev/null'
not_ok "a full disk" 2 sh -c 'gguf-edit --delete test.flag m.gguf >/dev/full'
is "nothing is left behind" "$(leftovers)" ""

# an edit that ends anywhere leaves the old file, the new one, or one that no program reads and -I brings back
cp m.gguf old.gguf
cp m.gguf e.gguf && gguf-edit -I --set general.name=str:abcdefgh --delete test.flag e.gguf && cp e.gguf new.gguf
edit_it() { exec gguf-edit -q -I --set general.name=str:abcdefgh --delete test.flag e.gguf; }
# checks what an interrupted edit left behind; `unread` counts files that no program reads
check_left()
{
	if gguf-info e.gguf >/dev/null 2>&1; then
		cmp -s e.gguf old.gguf || cmp -s e.gguf new.gguf || bad="$bad $1(half edited)"
		gguf-edit -q -I e.gguf || bad="$bad $1(a journal without work)"
	else
		unread=$((unread + 1))
		gguf-edit -q -I e.gguf && cmp -s e.gguf old.gguf || bad="$bad $1(not undone)"
	fi
	cmp -s e.gguf new.gguf || (edit_it) || bad="$bad $1(cannot be edited again)"
	cmp -s e.gguf new.gguf || bad="$bad $1(another result)"
	[ -z "$(leftovers)" ] || bad="$bad $1(left: $(leftovers))"
}
if [ -e "$BUILD/tests/fault.so" ]; then
	for how in write:kill write:ENOSPC write:short write:EIO fsync:EIO read:EIO; do
		bad='' unread=0 n=0
		while n=$((n + 1)); [ $n -lt 40 ]; do
			cp old.gguf e.gguf
			LD_PRELOAD=$BUILD/tests/fault.so FAULT=${how%:*}:$n:${how#*:} gguf-edit -q \
				-I --set general.name=str:abcdefgh --delete test.flag e.gguf >stdout 2>stderr
			s=$?
			[ $s = 0 ] && break
			[ $s = 137 ] || [ -s stderr ] || bad="$bad $n(no message)"
			check_left $n
		done
		is "$how at each of $((n - 1)) calls" "$bad" ""
		case $how in write:kill) ok "... the file was unreadable some of the time" [ $unread -gt 0 ] ;; esac
	done
else skip "faults and kills at each call" "no preloading here"; fi
bad='' unread=0
n=0
while n=$((n + 1)); [ $n -le 40 ]; do
	cp old.gguf e.gguf
	edit_it &
	sleep "0.0$(printf %02d $((n % 25)))"
	kill -KILL $!
	wait $!
	check_left $n
done 2>/dev/null                # the shell reports each kill
is "a kill at any instant" "$bad" ""

# a file that is marked
head -c 1000 m.gguf >e.gguf
not_ok "-I without edits does not call a file in order that was cut short" 2 gguf-edit -I e.gguf
is "... says where" "$(gguf-edit -I e.gguf 2>&1 | grep -c '^gguf-edit: e.gguf: byte ')" 1
{ printf GGUe; tail -c +5 m.gguf; } >e.gguf
not_ok "a marked file is refused" 2 gguf-info e.gguf
not_ok "... by name and through a pipe" 2 sh -c 'cat e.gguf | gguf-hash'
not_ok "... without a journal it cannot be undone" 2 gguf-edit -I e.gguf
printf 'GGUNDO1\n' >.e.gguf.undo
not_ok "... nor with one that was damaged" 2 gguf-edit -I e.gguf
head -c 5000 /dev/zero >>.e.gguf.undo
not_ok "... in its checksum" 2 gguf-edit -I e.gguf
if [ -e "$BUILD/tests/fault.so" ]; then
	for how in 1:EIO 1:end 2:EIO 2:end; do
		LD_PRELOAD=$BUILD/tests/fault.so FAULT=read:$how gguf-edit -I e.gguf 2>said
		is "a read that fails ($how): the journal stays" \
			"$(sed 's,Input/output,I/O,' said), $(wc -c <.e.gguf.undo | tr -d ' ')" \
			"gguf-edit: $(case $how \
				in 1:*) echo e.gguf ;; *) echo .e.gguf.undo ;; esac): I/O error, 5008"
	done
	rm .e.gguf.undo
	long=$(printf '%0255d' 7)
	for i in 1 2 3 4 5 6 7 8; do
		cp m.gguf "$long"
		LD_PRELOAD=$BUILD/tests/fault.so FAULT=write:$i:kill gguf-edit -I --delete test.flag "$long"
		[ "$(head -c 4 "$long")" = GGUF ] || break
	done 2>/dev/null
	is "the longest name: the file is marked when the edit is killed" "$(head -c 4 "$long")" GGUe
	ok "... and goes back to what it was" gguf-edit -I "$long"
	same "... byte by byte" "$long" m.gguf
	ok "... and is edited" gguf-edit -q -I --delete test.flag "$long"
	is "... the journal is gone" "$(find . -name '.*.undo')" ""
	rm "$long"
	cp m.gguf e.gguf
	LD_PRELOAD=$BUILD/tests/fault.so FAULT=flock:1:ENOSYS gguf-edit -I --delete test.flag e.gguf 2>said
	is "a file that cannot be locked is not edited" "$(cat said)" \
		"gguf-edit: e.gguf: cannot be locked: Function not implemented"
	same "... and stays as it was" e.gguf m.gguf
else skip "a journal that cannot be read, the longest name, a file that cannot be locked" "no preloading here"; fi
# "abcd" at byte 16 of what lies beyond 4 GiB; the last number is the XXH3 of what precedes it
{ printf GGUe; tail -c +5 m.gguf; } >e.gguf
dd if=/dev/null of=e.gguf bs=4096 seek=1048577 2>/dev/null
printf '%s\n' 'bytes "GGUNDO1\x0a"' 'u64 4294971392' 'u64 4294967312' 'u64 4' 'bytes "abcd"' 'u64 0xafb813d1b88cfbc0' |
	"$BUILD/tests/malformed/tool_ggtxt" >.e.gguf.undo
gguf-edit -I e.gguf 2>said
is "a journal of bytes beyond 4 GiB: they go back to their place" "$(dd if=e.gguf bs=4096 skip=1048576 2>/dev/null |
	head -c 20 | tail -c 4; head -c "$(wc -c <m.gguf)" e.gguf | cmp - m.gguf)" abcd
rm -f e.gguf .e.gguf.undo
is "messages call standard input by that name" "$(gguf-edit --delete never - <m.gguf 2>&1)" \
	"gguf-edit: (stdin): no key 'never'"
# a model with holes, like an unfinished download, or one on a file system that detects zeros
"$BUILD/tests/cli/tool_mkgguf" general.architecture=llama a.weight:f32:1024x2048:zero b.weight:f16:1024x64 \
	c.weight:f32:1024x2048:zero >whole.gguf
cp --sparse=always whole.gguf holes.gguf 2>/dev/null
if [ "$(du -k holes.gguf | cut -f 1)" -lt 4000 ]; then
	long=$(printf '%05000d' 0)
	gguf-edit --set "general.name=str:$long" -o want.gguf whole.gguf
	gguf-edit -I --set "general.name=str:$long" holes.gguf
	same "a sparse file grows: its bytes" holes.gguf want.gguf
	ok "... and its holes stay holes" test "$(du -k holes.gguf | cut -f 1)" -lt 4000
	gguf-edit --set general.name=str:short holes.gguf | cat >piped.gguf
	gguf-edit --set general.name=str:short -o want.gguf whole.gguf
	same "... through a pipe they are zeros" piped.gguf want.gguf
else skip "a sparse file" "no holes here"; fi
# a tensor of no elements, megabytes behind the data of all others
"$BUILD/tests/malformed/tool_ggtxt" >far.gguf <<-'END'
	header 2 1
	key "general.architecture" str str "llama"
	tensor "near" f32 0 4
	tensor "far" f32 4194304 0
	pad 32
	zeros 4194304
END
gguf-edit --set general.name=str:new -o new.gguf far.gguf
gguf-edit --set general.name=str:new <far.gguf >piped.gguf
same "an empty tensor far behind the data: the file is what a pipe gives" new.gguf piped.gguf
done_testing
