#!/bin/sh
# SPDX-License-Identifier: MIT
# PyTorch checkpoints: the same GGUF as from safetensors, and refusal of whatever is more than a state dict.
. "$(dirname "$0")/../lib/tap.sh"

torch() { "$BUILD/tests/cli/tool_torch" "$@"; }
# folder: $TMP/m with everything of the bundled model but its tensors
folder() { rm -rf "$TMP/m"; cp -r "$DATA/wiki-7m" "$TMP/m"; rm "$TMP/m/model.safetensors"; }
# equal NAME: what $TMP/m converts to is what the bundled model does
equal()
{
	ok "$1" gguf-convert -q --name wiki -o "$TMP/got.gguf" "$TMP/m"
	same "$1: the same bytes as from safetensors" "$TMP/got.gguf" "$TMP/want.gguf"
}
# refused NAME TEXT [OPTION ...]: converting $TMP/m fails with TEXT on stderr
refused()
{
	name=$1 text=$2
	shift 2
	not_ok "$name" 2 gguf-convert -q "$@" -o "$TMP/no.gguf" "$TMP/m"
	is "$name: message" "$(grep -c -F -- "$text" "$TMP/.out")" 1
	[ "$(grep -c -F -- "$text" "$TMP/.out")" = 1 ] || sed 's/^/# /' "$TMP/.out"
}

# The bundled model, its tensors in the order of their names, which is that of the archives below.
gguf-convert -q --name wiki -o "$TMP/want.gguf" "$DATA/wiki-7m"

folder
torch "$DATA/wiki-7m" 0 999 >"$TMP/m/pytorch_model.bin"
equal "one file"
torch -6 "$DATA/wiki-7m" 0 999 >"$TMP/m/pytorch_model.bin"
equal "one file with 64-bit fields"
torch -c "$DATA/wiki-7m" 0 999 >"$TMP/m/pytorch_model.bin"
equal "tensors that lie column by column"
torch -g "$DATA/wiki-7m" 0 999 >"$TMP/m/pytorch_model.bin"
equal "tensors that are every second column of others"
torch -n model_state_dict "$DATA/wiki-7m" 0 999 >"$TMP/m/pytorch_model.bin"
equal "a state dict beside other values"
folder
torch "$DATA/wiki-7m" 0 10 >"$TMP/m/pytorch_model-00001-of-00002.bin"
torch "$DATA/wiki-7m" 10 999 >"$TMP/m/pytorch_model-00002-of-00002.bin"
equal "shards"
echo '{"weight_map": {"model.norm.weight": "pytorch_model-00002-of-00002.bin"}}' >"$TMP/m/pytorch_model.bin.index.json"
refused "an index that lacks a shard" "model.embed_tokens.weight"
folder
torch "$DATA/wiki-7m" 0 999 >"$TMP/m/weights.pth"
equal "a .pth file"

# ---- what is refused: bytes that stand in the pickle before its end ----
extra() { folder; torch -o "$2" "$DATA/wiki-7m" 0 3 >"$TMP/m/pytorch_model.bin"; refused "$1" "$3"; }
extra "a call of os.system" "$(printf 'cos\nsystem\n' | od -An -tx1 | tr -d ' \n')" \
	"refused: the pickle asks for os.system"
extra "a name from the stack" "8c086275696c74696e738c046576616c93" "refused: the pickle asks for builtins.eval"
extra "an object made" "81" "refused: pickle opcode 0x81"
extra "an old instance" "6963" "refused: pickle opcode 0x69"
extra "a call of a storage" "$(printf 'ctorch\nFloatStorage\n)R' | od -An -tx1 | tr -d ' \n')" \
	"refused: the pickle calls torch.FloatStorage"
extra "a value too many" "4e" "pickle opcode STOP: the stack does not hold one value"
extra "a stack that is too short" "878787" "pickle opcode TUPLE3: the stack is too short"
extra "no mark" "74" "pickle opcode TUPLE: no mark"
extra "nothing remembered" "6affffffff" "pickle opcode LONG_BINGET: the memo has nothing under this number"
extra "a memo beyond the pickle" "72ffffff7f" "pickle opcode LONG_BINPUT: a memo number beyond the pickle's length"
extra "a string that exceeds the pickle" "58ffffff7f" \
	"pickle opcode BINUNICODE: its argument extends past the end of the pickle"
extra "a string of 2^63 bytes" "8dffffffffffffff7f" \
	"pickle opcode BINUNICODE8: its argument extends past the end of the pickle"
extra "an integer of nine bytes" "8a09010101010101010101" "pickle opcode LONG1: an integer of more than 64 bits"
negated=$({
	printf 'X\1\0\0\0xctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0000'
	printf 'X\3\0\0\0cpuK\1tQK\0K\1\205K\1\205\211ccollections\nOrderedDict\n)R}X\3\0\0\0neg\210stRs'
} | od -v -An -tx1 | tr -d ' \n')
extra "a tensor that is the negative of what is stored" "$negated" \
	"a tensor stored as a modified one, such as its negative"

# ---- sizes larger than any machine ----
# alike NAME BYTES: a tensor of as many weights, all stored as one; the number as 8 bytes for printf
alike()
{
	printf 'X\5\0\0\0%sctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n' "$1"
	printf 'X\1\0\0\0000X\3\0\0\0cpuK\1tQK\0'
	printf "\\212\\10$2\\205K\\0\\205\\211ccollections\\nOrderedDict\\n)RtRs"
}
cat >"$TMP/sum.yaml" <<'END'
schema: 1
arch: x
classes: {LlamaForCausalLM: {}}
convert:
  layers: num_hidden_layers
  drop: {lm_head.**: true, model.**: true}
  metadata: {m: [u32, 2]}
  tensors: {t.weight: {from: [big.0, big.1, big.2, big.3]}}
END
third='\0\0\0\0\0\0\0\100'
sum=$({
	for i in 0 1 2; do alike big.$i "$third"; done
	alike big.3 '\40\0\0\0\0\0\0\100'
} | od -v -An -tx1 | tr -d ' \n')
folder
torch -o "$sum" "$DATA/wiki-7m" 0 3 >"$TMP/m/pytorch_model.bin"
refused "parts of 2^62, together 2^64 + 32" "t.weight would be too large" --arch-file "$TMP/sum.yaml"

# ---- archives ----
folder
torch "$DATA/wiki-7m" 0 999 >"$TMP/whole"
size=$(wc -c <"$TMP/whole")
head -c $((size - 1)) "$TMP/whole" >"$TMP/m/pytorch_model.bin"
refused "an archive cut short" "no end of a zip archive"
head -c 100000 "$TMP/whole" >"$TMP/m/pytorch_model.bin"
refused "an archive cut in the middle" "no end of a zip archive"
echo PK >"$TMP/m/pytorch_model.bin"
refused "three bytes" "pytorch_model.bin: byte 3"
head -c 1000 /dev/zero >"$TMP/m/pytorch_model.bin"
refused "no archive" "not a zip archive: files written by torch before 1.6 must be saved again"
LC_ALL=C sed 's/_rebuild_tensor_v2/_rebuild_tensor_v9/' "$TMP/whole" >"$TMP/m/pytorch_model.bin"
refused "a damaged pickle" "archive/data.pkl: is damaged: its CRC-32 does not match"
LC_ALL=C sed 's|archive/byteorder|archive/byteordez|' "$TMP/whole" >"$TMP/m/pytorch_model.bin"
equal "the order of bytes is not said"

# ---- files of others ----
for f in micro-lm-base.pth:esp32_llm.model.ESP32LLMConfig \
	training_args.bin:transformers.training_args.TrainingArguments; do
	if [ -e "$SHARED/data/torch-pth/${f%:*}" ]; then
		folder
		cp "$SHARED/data/torch-pth/${f%:*}" "$TMP/m/pytorch_model.bin"
		refused "${f%:*}" "refused: the pickle asks for ${f#*:}"
	else skip "${f%:*}" "no $SHARED/data/torch-pth"; fi
done
done_testing
