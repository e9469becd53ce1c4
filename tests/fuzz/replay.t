#!/bin/sh
# SPDX-License-Identifier: MIT
# Every fuzz target on the inputs that it starts from, whole and cut short.
. "$(dirname "$0")/../lib/tap.sh"
for target in "$SRC"/tests/fuzz/fuzz_*.c; do
	name=$(basename "$target" .c)
	name=${name#fuzz_}
	# by a relative name, as make has it
	ok "$name: inputs" sh -c 'cd "$2" && "$0" "$1" "$1"' "$SRC/tests/fuzz/corpus.sh" "$name" "$TMP"
	ok "$name: replay of $(find "$TMP/$name" -type f | wc -l | tr -d ' ') files" "$BUILD/tests/fuzz/replay_$name" \
		"$TMP/$name"/*
done
done_testing
