#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-diff: what it finds, what it passes over, and its exit codes.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
make_gguf <"$SRC/tests/cli/info.gguf.txt" >a.gguf
# other values, types, items; a key and a tensor less and more; another type, shape and data
sed -e 's/^kv u32 general.file_type 0/kv u64 general.file_type 0/' -e 's/ f g h/ f G h/' -e 's/^kv bool test.flag true/kv bool test.flag false/' \
	-e 's/^kv str test.bytes .*/kv str test.new \\x1b[31m/' -e 's/^tensor f16 blk.0.attn_q.weight 2 64 64/tensor f32 blk.0.attn_q.weight 2 64 64/' \
	-e 's/blk.0.ffn_up.weight 3 64 96/blk.0.ffn_up.weight 3 96 64/' -e 's/output.weight 5/output.weight 6/' \
	-e 's/blk.1.attn_norm.weight/blk.1.ffn_norm.weight/' "$SRC/tests/cli/info.gguf.txt" | make_gguf >b.gguf
{ grep '^tensor' "$SRC/tests/cli/info.gguf.txt" | sort -r; grep '^kv' "$SRC/tests/cli/info.gguf.txt" | sort -r; } | make_gguf >order.gguf

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
ok "... tells the largest, the rms and the relative error" grep -qE '^values output.weight: max [0-9.]+, rms [0-9.]+, relative [0-9.]+$' v1
gguf-diff --values -o v3 -j3 a.gguf b.gguf
same "... with any number of threads" v1 v3
long=$(printf '%0100d' 0)
for end in x y; do echo "kv str test.long $long$end" | make_gguf >$end.gguf; done
is "where long strings part" "$(gguf-diff x.gguf y.gguf | grep -o 'from byte 100 on' | wc -l | tr -d ' ')" 2
is "JSON says same" "$(gguf-diff --json a.gguf a.gguf | grep -c '"same": true')" 1
not_ok "both from standard input" 2 gguf-diff - - </dev/null
not_ok "one is missing" 2 gguf-diff a.gguf none.gguf
not_ok "one is malformed" 2 sh -c 'head -c 500 a.gguf | gguf-diff a.gguf -'
not_ok "one operand" 2 gguf-diff a.gguf
not_ok "a full disk" 2 sh -c 'gguf-diff a.gguf b.gguf >/dev/full'
done_testing
