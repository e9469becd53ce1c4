#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzz targets on the inputs that they start from, whole, cut short and changed.
# Each architecture has a model there.
. "$(dirname "$0")/../lib/tap.sh"
for target in "$SRC"/tests/fuzz/fuzz_*.c; do
	name=$(basename "$target" .c)
	name=${name#fuzz_}
	# by a relative name, as make has it
	ok "$name: inputs" sh -c 'cd "$2" && "$0" "$1" "$1"' "$SRC/tests/fuzz/corpus.sh" "$name" "$TMP"
	ok "$name: replay of $(find "$TMP/$name" -type f | wc -l | tr -d ' ') files" "$BUILD/tests/fuzz/replay_$name" \
		"$TMP/$name"/*
done
ok "arch: inputs are graphs that can be evaluated" "$BUILD/tests/fuzz/replay_arch" -e "$SRC"/tests/fuzz/corpus/arch/*
for f in "$SRC"/model/arch/*.yaml; do
	arch=$(basename "$f" .yaml) ids='0 1 2'
	grep -q '^classes:' "$f" || continue            # a base
	[ "$arch" = t5 ] && ids='0 1 | 2'
	# shellcheck disable=SC2046 # words
	echo "$ids" | gguf-logits -q -o "$TMP/got" -m "$TMP/model/$(basename \
		$(grep -lx "general.architecture=$arch" "$SRC"/tests/fuzz/corpus/model/*.mkgguf | head -1) .mkgguf)"
	tap_result $? "$arch: an input is a model that can be evaluated"
done
done_testing
