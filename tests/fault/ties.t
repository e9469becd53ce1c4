#!/bin/sh
# SPDX-License-Identifier: MIT
# qsort may leave equal items in any order, and in musl and some versions of glibc it does. Nothing depends on that.
. "$(dirname "$0")/../lib/tap.sh"
FAULT_SO=$BUILD/tests/fault.so
[ -e "$FAULT_SO" ] || { echo "1..0 # SKIP no preloading here"; exit 0; }
cd "$TMP" || exit 1
# the programs as other tests find them
mkdir bin
ln -s "$BUILD/tests" tests
for p in "$BIN"/gguf-*; do
	printf '#!/bin/sh\nLD_PRELOAD=%s FAULT=qsort exec %s "$@"\n' "$FAULT_SO" "$p" >"bin/$(basename "$p")"
done
chmod +x bin/*
BUILD=$TMP sh "$SRC/tests/malformed/malformed.t" >report
is "files are refused for the same reasons" "$(grep -A6 '^not ok' report)" ""
ok "... all of them" grep -q '^1\.\.' report
done_testing
