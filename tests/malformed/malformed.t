#!/bin/sh
# SPDX-License-Identifier: MIT
# Files that break the rules of gguf(5), and some that only look so: NAME.ggtxt is compiled (see tool_ggtxt.c) and shown by
# gguf-info, by name and through a pipe. NAME.expect has the message, or "ok"; a second line, if the pipe's differs: where
# a pipe ends is not known beforehand. A text without .expect is another one's shard.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
for text in "$SRC"/tests/malformed/gguf/*.ggtxt; do
	name=$(basename "$text" .ggtxt)
	"$BUILD/tests/malformed/tool_ggtxt" <"$text" >"$name.gguf" || is "$name compiles" no yes
done

# "ok", or the message without the names of program and file; anything but exit 0 and 2 is added
result()
{
	s=$1 out=$2
	out=$(printf %s "$out" | sed -n 's/^gguf-info: //; s/^\.\///; '"s/^$3: //"'; 1p')
	case $s in 0) echo ok ;; 2) echo "$out" ;; *) echo "exit $s: $out" ;; esac
}
for text in "$SRC"/tests/malformed/gguf/*.ggtxt; do
	name=$(basename "$text" .ggtxt) expect=${text%.ggtxt}.expect
	[ -e "$expect" ] || [ -n "${UPDATE:-}" ] || continue
	out=$(gguf-info "./$name.gguf" 2>&1 >/dev/null)
	file=$(result $? "$out" "$name.gguf")
	out=$(cat "$name.gguf" | gguf-info - 2>&1 >/dev/null; echo "$?")
	pipe=$(result "${out##*
}" "$out" '(stdin)')
	if [ -n "${UPDATE:-}" ]; then
		{ echo "$file"; [ "$pipe" = "$file" ] || echo "$pipe"; } >"$expect"
		continue
	fi
	is "$name" "$file" "$(sed -n 1p "$expect")"
	is "$name, by pipe" "$pipe" "$(sed -n '$p' "$expect")"
done
done_testing
