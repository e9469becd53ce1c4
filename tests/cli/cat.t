#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-cat: raw and decoded data, from files and pipes.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
"$BUILD/tests/cli/tool_gguf" <"$SRC/tests/cli/info.gguf.txt" >m.gguf
offset=$(gguf-info --json m.gguf | sed -n 's/^ "data_offset": \([0-9]*\),$/\1/p')
# embedding, 25600 bytes, is first
tail -c +$((offset + 1)) m.gguf | head -c 25600 >embd
tail -c 25600 m.gguf >output

ok "a tensor" gguf-cat -o got m.gguf token_embd.weight
same "... has its bytes" got embd
cat output embd embd >want
ok "several, in any order, twice" gguf-cat -o got m.gguf output.weight token_embd.weight token_embd.weight
same "... one after another" got want
ok "float32 decoded is itself" gguf-cat --decode -o got m.gguf token_embd.weight
same "... same bytes" got embd
is "decoded size" "$(gguf-cat --decode m.gguf blk.0.ffn_up.weight | wc -c | tr -d ' ')" 24576
sed -n 's/^\.It [0-9]* Ta \([a-zA-Z0-9_]*\) Ta [0-9]* Ta [0-9]* Ta .*/tensor \1 \1 1 256/p' "$SRC/man/gguf.5" |
	"$BUILD/tests/cli/tool_gguf" >types.gguf
is "types that cannot be decoded are those that the page names" "$(for t in $(gguf-info --json types.gguf |
	jq -r '.tensors[].name'); do gguf-cat --decode types.gguf "$t" >got 2>err || printf '%s ' "$t"; done)" \
	"q8_1 q8_K i8 i16 i32 i64 "
is "raw size" "$(gguf-cat m.gguf blk.0.ffn_up.weight | wc -c | tr -d ' ')" 3456
cat embd output >want
ok "from a pipe, in file order" sh -c 'cat m.gguf | gguf-cat - token_embd.weight output.weight >got'
same "... same bytes" got want
not_ok "from a pipe, backwards" 2 sh -c 'cat m.gguf | gguf-cat - output.weight token_embd.weight >got'
not_ok "no such tensor" 2 gguf-cat m.gguf token_embd
not_ok "a cut pipe" 2 sh -c 'head -c 30000 m.gguf | gguf-cat - output.weight >got'
ok "the writer of the pipe does not die" \
	sh -c '{ cat m.gguf || echo died >died; } | gguf-cat - token_embd.weight >got; test ! -e died'
LONG=$(printf '%0300d' 0)
not_ok "an output whose name is too long is reported before the work" 2 gguf-cat -o "$LONG" /nowhere x
# in the words of glibc or musl
is "... by name" "$(sed 's/Filename/File name/' "$TMP/.out")" "gguf-cat: $LONG: File name too long"
done_testing
