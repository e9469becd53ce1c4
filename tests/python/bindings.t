#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package over libggu, built as a wheel and put beside the package gguf from PyPI: the same metadata and the
# same arrays of the same files; what it writes, both read. Skipped where python3, numpy or gguf is missing ($PYTHON
# names another python3).
. "$(dirname "$0")/../lib/tap.sh"
PYTHON=${PYTHON:-python3}
export GGU_LIBRARY="$BUILD/libggu.so"
for lib in "$BUILD"/libggu.so.* "$BUILD"/libggu.dylib; do [ ! -e "$lib" ] || GGU_LIBRARY=$lib; done
"$PYTHON" -c 'import numpy, gguf' 2>/dev/null || { echo "1..0 # SKIP no python3 with numpy and gguf"; exit 0; }
[ -z "${SANITIZED:-}" ] || { echo "1..0 # SKIP a sanitizer's library needs its program"; exit 0; }
cp -r "$SRC/scripts/python" "$TMP/python"
cd "$TMP" || exit 1
if "$PYTHON" -m pip wheel -q --no-deps --no-build-isolation --no-index -w wheels ./python >pip.log 2>&1; then
	ok "pip wheel" test -f wheels/ggu-*-py3-none-any.whl
	PYTHONPATH=$(echo "$TMP"/wheels/ggu-*.whl)
else
	skip "pip wheel" "pip or setuptools is missing: $(tail -1 pip.log)"
	PYTHONPATH=$TMP/python
fi
export PYTHONPATH
is "its version is the library's" "$("$PYTHON" -c 'import ggu; print(ggu.__version__)')" \
	"$("$BIN/gguf-info" --version | sed -n '1s/.* //p')"
"$BIN/gguf-convert" -q -o model.gguf "$DATA/wiki-7m"
"$BIN/gguf-imatrix" -q -m model.gguf --ctx 64 --chunks 1 -o im.gguf "$DATA/prose/calibration.txt"
for r in Q4_K_M MXFP4_MOE; do "$BIN/gguf-quantize" -q -i im.gguf -o "$r.gguf" "$r" model.gguf; done
more=$(ls "$SRC"/../shared/data/other-gguf/*.gguf "$SRC"/../shared/data/vocab-gguf/*.gguf 2>/dev/null | head -4)
for f in model.gguf im.gguf [A-Z]*.gguf $more; do
	"$BIN/gguf-info" "$f" >/dev/null 2>&1 || continue      # one that neither reads
	ok "$(basename "$f"): metadata and arrays are those of gguf" "$PYTHON" "$SRC/tests/python/bindings.py" \
		compare "$f"
done
for what in roundtrip quantizes refuses; do
	ok "$what" "$PYTHON" "$SRC/tests/python/bindings.py" $what model.gguf
done
done_testing
