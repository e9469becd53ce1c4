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
is "the KV cache doubles with the context" "$(gguf-info --ctx 256 m.gguf | grep -c 'KV cache *96.0 KiB')" 1
is "--bandwidth" "$(gguf-info --bandwidth 100 m.gguf | grep -c '100 GB/s')" 1

is "from a pipe" "$(cat m.gguf | gguf-info --json -)" "$(cat json)"
is "without operand" "$(cat m.gguf | gguf-info | tail -n +2)" "$(tail -n +2 text)"
cat >pipefail <<'EOF'
set -o pipefail
(cat m.gguf; head -c 300000 /dev/zero) | gguf-info -q >/dev/null
EOF
if bash -c true 2>/dev/null; then ok "the writer of the pipe does not die" bash pipefail; else skip "pipefail" "no bash"; fi
head -c 60000 m.gguf >short
not_ok "a pipe cut short" 2 sh -c 'cat short | gguf-info'
not_ok "a file cut short" 2 gguf-info short
not_ok "an empty file" 2 gguf-info /dev/null
not_ok "a folder" 2 gguf-info .

# strings as they are shown
gguf-convert -q --vocab-only --name 'say "no" \ yes' -o quotes "$DATA/wiki-7m"
ok "quotes and backslashes in a string are escaped" sh -c "gguf-info --metadata quotes | grep -qF '\"say \\\"no\\\" \\\\ yes\"'"
if command -v script >/dev/null; then
	is "a terminal as input is refused" "$(script -qec 'gguf-info' /dev/null </dev/null | tr -d '\r')" \
		"gguf-info: standard input is a terminal: name a file, or send one through a pipe"
else skip "a terminal as input is refused" "no script(1) here"; fi
done_testing
