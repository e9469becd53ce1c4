#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-diff: what it reports, what it ignores, and its exit codes.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
make_gguf <"$SRC/tests/cli/info.gguf.txt" >a.gguf
# other values, types, items; a key and a tensor less and more; another type, shape and data
sed -e 's/^kv u32 general.file_type 0/kv u64 general.file_type 0/' -e 's/ f g h/ f G h/' \
	-e 's/^kv bool test.flag true/kv bool test.flag false/' \
	-e 's/^kv str test.bytes .*/kv str test.new \\x1b[31m/' \
		-e 's/^tensor f16 blk.0.attn_q.weight 2 64 64/tensor f32 blk.0.attn_q.weight 2 64 64/' \
	-e 's/blk.0.ffn_up.weight 3 64 96/blk.0.ffn_up.weight 3 96 64/' -e 's/output.weight 5/output.weight 6/' \
	-e 's/blk.1.attn_norm.weight/blk.1.ffn_norm.weight/' "$SRC/tests/cli/info.gguf.txt" | make_gguf >b.gguf
{ grep '^tensor' "$SRC/tests/cli/info.gguf.txt" | sort -r; grep '^kv' "$SRC/tests/cli/info.gguf.txt" | sort -r; } |
	make_gguf >order.gguf

ok "the same file" gguf-diff a.gguf a.gguf
ok "another order" gguf-diff a.gguf order.gguf
ok "another order, from a pipe" sh -c 'cat order.gguf | gguf-diff a.gguf -'
ok "another order, from a pipe, first" sh -c 'cat order.gguf | gguf-diff - a.gguf'
ok "... values" sh -c 'cat order.gguf | gguf-diff --values - a.gguf'
not_ok "differences" 1 gguf-diff -o text a.gguf b.gguf
same "... as expected" text "$SRC/tests/cli/diff.expect"
not_ok "differences as JSON" 1 gguf-diff --json -o json a.gguf b.gguf
same "... as expected" json "$SRC/tests/cli/diff.json.expect"
is "the other way round, as many" "$(gguf-diff b.gguf a.gguf | wc -l)" "$(wc -l <text)"
is "--metadata" "$(gguf-diff --metadata a.gguf b.gguf | cut -d' ' -f1 | sort -u)" metadata
is "--tensors" "$(gguf-diff --tensors a.gguf b.gguf | cut -d' ' -f1 | sort -u)" tensor
ok "--ignore" gguf-diff --ignore '^(general|test|tokenizer)\.' --ignore '^(blk|output)' a.gguf b.gguf
not_ok "--ignore, a bad expression" 2 gguf-diff --ignore '(' a.gguf b.gguf
ok "--values, the same" gguf-diff --values a.gguf a.gguf
not_ok "--values" 1 gguf-diff --values -o v1 -j1 a.gguf b.gguf
ok "... reports the largest, the rms and the relative error" \
	grep -qE '^values output.weight: max [0-9.]+ in row [0-9]+, column [0-9]+, rms [0-9.]+, relative [0-9.]+$' v1
gguf-diff --values -o v3 -j3 a.gguf b.gguf
same "... with any number of threads" v1 v3
echo 'tensor f32 a 1 64' | make_gguf >flat.gguf
echo 'tensor f32 a 2 64 1' | make_gguf >row.gguf
want='tensor a: f32 64 | f32 64 x 1'
is "a tensor with a dimension more is of another shape, and is not compared further" \
	"$(gguf-diff flat.gguf row.gguf)" "$want"
is "... with --values" "$(gguf-diff --values flat.gguf row.gguf)" "$want"
long=$(printf '%0100d' 0)
for end in x y; do echo "kv str test.long $long$end" | make_gguf >$end.gguf; done
is "where long strings part" "$(gguf-diff x.gguf y.gguf | grep -o 'from byte 100 on' | wc -l | tr -d ' ')" 2
for byte in ff fe; do
	printf 'kv str test.text a\\x%s\nkv str[] test.list b c\\x%s\n' $byte $byte | make_gguf >$byte.gguf
done
is "JSON has the bytes of values that are not UTF-8" \
	"$(gguf-diff --json ff.gguf fe.gguf | jq -c '.metadata[] | [.a_raw, .b_raw]')" '["61ff","61fe"]
[{"1":"63ff"},{"1":"63fe"}]'
for bits in 80 c0; do
	printf 'header 0 1 key "test.nan" f32 hex 01 00 %s 7f\n' $bits | "$BUILD/tests/malformed/tool_ggtxt" >$bits.gguf
done
not_ok "floats are compared bit by bit, a signalling NaN and a quiet one too" 1 gguf-diff 80.gguf c0.gguf
is "JSON says same" "$(gguf-diff --json a.gguf a.gguf | grep -c '"same": true')" 1
# -u: hunks as those of diff -u
seq 1 40 >one
seq 1 40 | sed 's/^5$/five/; s/^7$/&\nmore/; 9d; 25,31d; 40d; 1i0' >two
for n in one two; do
	gguf-edit --set-file test.text=str:$n -o $n.gguf a.gguf
	jq -R . $n | jq -sc . >$n.json
	gguf-edit --set-file "test.list=str[]:$n.json" -o $n.list.gguf a.gguf
	jq -c 'map(tonumber? // 99)' $n.json >$n.numbers
	gguf-edit --set-file "test.list=i32[]:$n.numbers" -o $n.numbers.gguf a.gguf
done
diff -U3 one two | tail -n +3 >want
gguf-diff -u one.gguf two.gguf | tail -n +2 >got
same "-u, a text as diff -u shows it" got want
gguf-diff -u one.list.gguf two.list.gguf | tail -n +2 >got
same "... an array of strings" got want
sed 's/five/99/; s/more/99/' want >want.numbers
gguf-diff -u one.numbers.gguf two.numbers.gguf | tail -n +2 >got
same "... of numbers" got want.numbers
for end in x y; do
	gguf-edit --set "test.list=str[]:[\"a\", \"nul \\u0000 $end\"]" -o $end.gguf a.gguf
	printf 'nul \000 %s\nb\n' $end >text
	gguf-edit --set-file test.text=str:text -o $end.text.gguf a.gguf
done
is "... NUL in strings" "$(gguf-diff -u x.gguf y.gguf | tail -n +3)" ' a
-nul \x00 x
+nul \x00 y'
is "... in a text" "$(gguf-diff -u x.text.gguf y.text.gguf | tail -n +3)" '-nul \x00 x
+nul \x00 y
 b'
gguf-edit --set test.text=str: -o empty.gguf one.gguf
diff -U3 /dev/null one | tail -n +3 >want
gguf-diff -u empty.gguf one.gguf | sed '1d' >got
same "... from nothing" got want
for seed in 1 2 3 4 5 6 7 8; do
	for n in one two; do
		awk -v s=$seed$n \
		'BEGIN { srand(length(s)*7919 + s*31 + (s ~ /two/)); for (i = 0; i < 60; i++) print int(rand()*6) }' \
		>$n; gguf-edit --set-file test.text=str:$n -o $n.gguf a.gguf; done
	gguf-diff -u one.gguf two.gguf | tail -n +2 | { echo '--- one'; echo '+++ two'; cat; } >got
	cp one patched && patch -s patched got && cmp -s patched two || echo "$seed" >>bad
done
ok "what -u shows is a patch" sh -c '! cat bad'
is "--brief" "$(gguf-diff --brief a.gguf b.gguf)" "a.gguf and b.gguf differ"
not_ok "... exit status" 1 gguf-diff --brief a.gguf b.gguf
is "... the same" "$(gguf-diff --brief a.gguf order.gguf; echo $?)" 0
not_ok "... with --json" 2 gguf-diff --brief --json a.gguf b.gguf
gguf-split -q --max-tensors 2 -o shards a.gguf
ok "a set of shards and a file" gguf-diff shards-00001-of-*.gguf a.gguf
mk=$BUILD/tests/cli/tool_mkgguf
"$mk" general.architecture=x a.weight:i32:8 b.weight:f32:8x2:one >ints.gguf
"$mk" general.architecture=x a.weight:f32:8 b.weight:f32:8x2 >floats.gguf
is "--values goes on after a type that cannot be decoded" \
	"$(gguf-diff --values ints.gguf floats.gguf 2>err | cut -d ' ' -f -3; cat err)" \
	"tensor a.weight: i32
values b.weight: max
gguf-diff: a.weight: type i32 cannot be decoded"
not_ok "... the files differ" 1 gguf-diff -q --values ints.gguf floats.gguf
is "... with --tensors, the types are shown once" \
	"$(gguf-diff -q --tensors --values ints.gguf floats.gguf | grep -c '^tensor')" 1
is "--values says where" "$(gguf-diff --values a.gguf b.gguf | grep -c 'max .* in row [0-9]*, column [0-9]*, rms')" \
	"$(gguf-diff --values a.gguf b.gguf | grep -c ^values)"
row=$(gguf-diff --values --json a.gguf b.gguf |
	jq -c '.values[] | select(.name == "output.weight") | [.row, .column, .max]')
gguf-cat --decode a.gguf output.weight >x && gguf-cat --decode b.gguf output.weight >y
is "... the largest difference" "$(od -v -A n -w4 -t f4 x >x.text; od -v -A n -w4 -t f4 y |
	paste x.text - | awk '{ d = $1 > $2 ? $1 - $2 : $2 - $1; if (d > m) { m = d; at = NR - 1 } }
	END { printf "[%d,%d", int(at/64), at % 64 }')" "$(echo "$row" | cut -d, -f1-2)"
# more weights than a thread takes at a time
"$mk" a.weight:f32:256x300 >floats.gguf
gguf-quantize -q --pure -o q4.gguf q4_0 floats.gguf
gguf-cat --decode floats.gguf a.weight | od -v -A n -w4 -t f4 >x.text
gguf-cat --decode q4.gguf a.weight | od -v -A n -w4 -t f4 | paste x.text - | awk '
	{ d = $2 - $1; square += d*d; norm += $1*$1; if (d < 0) d = -d; if (d > most) { most = d; at = NR - 1 } }
	END { printf "%.9g %d %d %.9g %.9g\n", most, int(at/256), at%256, sqrt(square/NR), sqrt(square/norm) }' >want
gguf-diff --values floats.gguf q4.gguf | tr -d , | awk '{ print $4, $7, $9, $11, $13 }' >got
gguf-diff --values --json floats.gguf q4.gguf | jq -r '.values[0] | "\(.max) \(.row) \(.column) \(.rms) \(.relative)"' |
	cat got - | while read -r figures; do echo "$figures $(cat want)"; done | awk '
	{ for (i = 1; i <= 5; i++) close_by += ($i - $(i + 5))^2 <= 1e-10*$i^2 }
	END { print NR, close_by }' >is
is "... rms and relative error, in words and as JSON, are those of the decoded values" "$(cat is)" "2 10"
not_ok "both from standard input" 2 gguf-diff - - </dev/null
not_ok "one is missing" 2 gguf-diff a.gguf none.gguf
not_ok "one is malformed" 2 sh -c 'head -c 500 a.gguf | gguf-diff a.gguf -'
not_ok "one operand" 2 gguf-diff a.gguf
not_ok "a full disk" 2 sh -c 'gguf-diff a.gguf b.gguf >/dev/full'
done_testing
