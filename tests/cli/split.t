#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-split: by size, by count, like another set; merged again to the same bytes; from pipes; never half done.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
gguf-convert -q -o m.gguf "$DATA/wiki-7m"

# round NAME OPTIONS...: split, by name and through a pipe, and merged
round()
{
	name=$1; shift
	rm -f s-0* p-0*
	ok "$name" gguf-split "$@" -o s m.gguf
	cat m.gguf | gguf-split "$@" -o p
	bad=
	for f in s-0*; do cmp -s "$f" "p${f#s}" || bad="$bad $f"; done
	is "... the same through a pipe" "$bad" ""
	gguf-split --merge s-00001-of-*.gguf >merged.gguf
	same "... merged it is the model again" merged.gguf m.gguf
}
round "--max-tensors" --max-tensors 7
is "... as many as that" "$(gguf-info --json s-00001-of-*.gguf | jq -c '[.tensors | group_by(.shard)[] | length]' )" \
	"$(gguf-info --json m.gguf | jq -c '(.tensors | length) as $n | [range(0; $n; 7) | [7, $n - .] | min]')"
round "--max-size" --max-size 3M
is "... none is larger" "$(find . -name 's-0*' -size +3000000c | wc -l | tr -d ' ')" 0
is "... none could take the next one's first tensor" "$(for i in 1 2 3; do
	gguf-info --json s-00001-of-*.gguf | jq --argjson i $i --argjson size "$(cat s-0000$i-of-*.gguf | wc -c)" \
		'[.tensors[] | select(.shard == $i)][0].bytes + $size > 3000000'
done | sort -u)" true
rm -f s-0*
gguf-split --max-size 1G -o s m.gguf
whole=$(wc -c <s-00001-of-00001.gguf)
is "a shard may be as large as that" "$(gguf-split -n --max-size "$whole" -o x m.gguf | wc -l | tr -d ' ')" 1
is "... not smaller" "$(gguf-split -n --max-size $((whole - 1)) -o x m.gguf | wc -l | tr -d ' ')" 2
round "--max-size in KiB" --max-size 4096Ki
round "--max-size smaller than any tensor" -q --max-size 1
is "... a tensor in each" "$(find . -name 's-0*' | wc -l | tr -d ' ')" "$(gguf-info --json m.gguf |
	jq '.tensors | length')"
ok "... and read, though there are more than a process may have open" \
	sh -c 'ulimit -S -n 20; gguf-split --merge s-00001-of-*.gguf | cmp - m.gguf'
round "both" --max-size 3M --max-tensors 4
round "--no-tensor-first-split" --max-size 3M --no-tensor-first-split
is "... shard 1 has only metadata" "$(gguf-info --json s-00001-of-*.gguf |
	jq '[.tensors[] | select(.shard == null or .shard == 0)] | length')" 0
round "one shard" --max-size 1G
gguf-split --max-tensors 9 -o like m.gguf
gguf-quantize -q --pure q8_0 m.gguf >q8.gguf
ok "--like" gguf-split --like like-00001-of-*.gguf -o q8 q8.gguf
is "... the same tensors in the same shards" "$(gguf-info --json q8-00001-of-*.gguf |
	jq -c '[.tensors[] | [.name, .shard]]')" "$(gguf-info --json like-00001-of-*.gguf |
	jq -c '[.tensors[] | [.name, .shard]]')"
gguf-split --merge -o merged.gguf q8-00001-of-*.gguf
same "... merged it is the model again" merged.gguf q8.gguf
ok "shards in, shards of another size out" gguf-split --max-size 5M -o again like-00001-of-*.gguf
gguf-split --merge -o merged.gguf again-00001-of-*.gguf
same "... merged it is the model again" merged.gguf m.gguf
is "--dry-run says what would be" "$(gguf-split -n --max-tensors 30 -o x m.gguf | sed 's/,.*//')" \
	"x-00001-of-00002.gguf  30 tensors
x-00002-of-00002.gguf  $(gguf-info --json m.gguf | jq '(.tensors | length) - 30') tensors"
ok "... and makes nothing" sh -c '! ls x-*'
gguf-quantize -q q4_0 like-00001-of-*.gguf >q4.gguf
gguf-quantize -q q4_0 m.gguf | gguf-split --like like-00001-of-*.gguf -o q4
gguf-split --merge q4-00001-of-*.gguf | cmp - q4.gguf
is "quantize and split in a pipe, then merge, is quantizing" $? 0

# a pattern of the shell must not take a shard for the output
is "--merge with all the shards' names" "$(gguf-split --merge like-*.gguf 2>&1; echo $?)" \
	"gguf-split: --merge expects one shard, which stands for the whole set; 'like-00002-of-00007.gguf' is too \
many, and the output is named with -o
Try 'gguf-split -h'.
2"
ok "... leaves them as they are" sh -c 'gguf-split --merge like-00001-of-*.gguf | cmp - m.gguf'
is "splitting two models" "$(gguf-split --max-size 3M -o x m.gguf q8.gguf 2>&1 | head -n 1)" \
	"gguf-split: too many operands: 'q8.gguf'"

# llama-gguf-split exits 0 for each of these and leaves a file that cannot be read
{ echo 'kv u32 general.alignment 4096'; sed '/^kv u32 general.alignment/d' "$SRC/tests/cli/info.gguf.txt"; } |
	make_gguf >a.gguf
gguf-split --max-tensors 2 -o a a.gguf
ok "an alignment of its own: shards can be read" gguf-info a-00001-of-*.gguf
gguf-split --merge a-00001-of-*.gguf | cmp - a.gguf
is "... and merged" $? 0
last=$(echo like-*-of-*.gguf | sed 's/.* //')
cp "$last" whole && truncate -s -4096 "$last"
not_ok "a truncated shard is not merged" 2 gguf-split --merge -o never.gguf like-00001-of-*.gguf
ok "... and leaves nothing" sh -c '! ls never* .never*'
is "... and is named once" "$(gguf-info "$last" 2>&1 >/dev/null | sed 's/: byte.*//')" "gguf-info: $last"
rm "$last"
not_ok "a missing shard is not merged" 2 gguf-split --merge -o never.gguf like-00001-of-*.gguf
is "... and is named alone" "$(gguf-info like-00001-of-*.gguf 2>&1)" "gguf-info: $last: No such file or directory"
is "... in another folder too" "$(gguf-info "$PWD"/like-00001-of-*.gguf 2>&1)" \
	"gguf-info: $PWD/$last: No such file or directory"
mv whole "$last"
cp like-00001-of-*.gguf keep
not_ok "shards that are read are not overwritten" 2 gguf-split --max-tensors 9 -o like like-00001-of-*.gguf
same "... and stay" "$(echo like-00001-of-*)" keep
not_ok "merging into one of the shards" 2 gguf-split --merge -o like-00002-of-*.gguf like-00001-of-*.gguf

ok "no tensors" sh -c 'echo "kv str general.architecture llama" | "$1" | gguf-split --max-size 1M -o none &&
	gguf-split --merge none-00001-of-00001.gguf | gguf-info >/dev/null' - "$BUILD/tests/cli/tool_gguf"
echo "kv str general.architecture llama
kv str split.note mine" | make_gguf | gguf-split --max-size 1M -o own
is "a key of split.* that is the user's own stays" \
	"$(gguf-split --merge own-00001-of-00001.gguf | gguf-info --get split.note)" mine
is "... when the model is quantized too" \
	"$(gguf-quantize Q8_0 own-00001-of-00001.gguf | gguf-info --get split.note)" mine
ok "one shard alone is the same model" \
	sh -c 'gguf-split --max-size 1G -o single m.gguf && gguf-diff m.gguf single-00001-of-00001.gguf'
not_ok "a folder is no beginning of a name" 2 gguf-split --max-size 1M -o ./ m.gguf
not_ok "another model's shards as pattern" 2 gguf-split --like like-00001-of-*.gguf -o x a.gguf
is "another model through a pipe, too: the message names both" "$(gguf-split -n --like - -o x a.gguf <m.gguf 2>&1)" \
	"gguf-split: a.gguf has $(gguf-info --json a.gguf | jq '.tensors | length') tensors and (stdin) $(gguf-info \
	--json m.gguf | jq '.tensors | length'): are they the same model?"
not_ok "a cut pipe" 2 sh -c 'head -c 3000000 m.gguf | gguf-split --max-size 1M -o cut'
ok "... leaves nothing, though shards were complete" sh -c '! ls cut-* .cut-*'
{ echo 'header 65538 0'; seq 65538 | sed 's/.*/tensor "&" i8 0 0/'; } | "$BUILD/tests/malformed/tool_ggtxt" >many.gguf
is "more shards than split.count can count" "$(gguf-split -n --max-tensors 1 -o x many.gguf 2>&1; echo $?)" \
	"gguf-split: many.gguf: makes more than 65535 shards
2"
# half a second if time grows with the number of tensors; if each shard looks at all of them, 10 s get through half
{ echo 'header 262140 0'; seq 262140 | sed 's/.*/tensor "&" i8 0 0/'; } | "$BUILD/tests/malformed/tool_ggtxt" >many.gguf
is "as many as it can count, of many tensors, are planned at once" \
	"$(sh -c 'ulimit -t 10; gguf-split -n --max-tensors 4 -o x many.gguf' | tail -n 1)" \
	"x-65535-of-65535.gguf  4 tensors, 288 B"
rm many.gguf
for how in "" "--max-size 0" "--max-size 3X" "--max-size 3MBB" "--max-size 3B" "--max-size -1" \
	"--max-size 1M --merge" "--merge --dry-run"; do
	# shellcheck disable=SC2086
	not_ok "bad usage: ${how:-neither}" 2 gguf-split $how -o x m.gguf
done
not_ok "bad usage: no -o" 2 gguf-split --max-size 1M m.gguf
for size in 3M 3Mi; do
	is "${size}B is $size" "$(gguf-split -qn --max-size ${size}B -o x m.gguf)" \
		"$(gguf-split -qn --max-size $size -o x m.gguf)"
done
is "... nothing was made" "$(find . -name 'x-*')" ""
done_testing
