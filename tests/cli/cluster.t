#!/bin/sh
# SPDX-License-Identifier: MIT
# Work shared by processes that know nothing of each other: parts made side by side, one of them killed and run again,
# add up to the bytes and the numbers of a single run.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
gguf-convert -q -o m.gguf "$DATA/wiki-7m"
head -c 20000 "$DATA/prose/evaluation.txt" >text

# each COMMAND...: the command for parts 1 to 4, {} in its words being the number, side by side
if command -v parallel >/dev/null; then
	each() { parallel --will-cite -j 2 "$@" ::: 1 2 3 4; }
	with="GNU parallel"
else
	each()
	{
		for i in 1 2 3 4; do sh -c "$(printf %s "$*" | sed "s/{}/$i/g")" & done
		wait
	}
	with="the shell, there being no GNU parallel here"
fi
echo "# parts are run by $with"

gguf-quantize -q --shards 4 -o one Q4_K_M m.gguf
each gguf-quantize -q -j 1 --part {}/4 -o all Q4_K_M m.gguf
for i in 1 2 3 4; do same "part $i" all-0000$i-of-00004.gguf one-0000$i-of-00004.gguf; done

# a task that is killed leaves nothing under its name, and is run again
if [ -e "$BUILD/tests/fault.so" ]; then
	rm -f all-*.gguf
	LD_PRELOAD=$BUILD/tests/fault.so FAULT=write:1:kill gguf-quantize -q -j 1 --part 3/4 -o all Q4_K_M \
		m.gguf 2>/dev/null
	not_ok "a killed part is not there" 1 test -e all-00003-of-00004.gguf
	each gguf-quantize -q -j 1 --part {}/4 -o all Q4_K_M m.gguf
	same "run again it is" all-00003-of-00004.gguf one-00003-of-00004.gguf
else skip "a killed part" "no preloading here"; fi
gguf-split -q --merge -o merged.gguf all-00001-of-00004.gguf
ok "the set is the model" gguf-diff --values merged.gguf one-00001-of-00004.gguf

gguf-imatrix -q -m m.gguf --ctx 64 --chunks 8 -o one.im text
each 'gguf-imatrix -q -j 1 -m m.gguf --ctx 64 --from $((2*{} - 2)) --chunks 2 --partial -o part-{}.im text'
gguf-imatrix --merge -o all.im part-4.im part-2.im part-1.im part-3.im
same "imatrix: the bytes of one run" all.im one.im
gguf-imatrix --merge --partial -o half.im part-3.im part-4.im
gguf-imatrix --merge -o all.im half.im part-1.im part-2.im
same "imatrix: merged step by step" all.im one.im
not_ok "imatrix: --from beyond the text" 2 gguf-imatrix -q -m m.gguf --from 99999 -o x text

gguf-perplexity -q -m merged.gguf --base m.gguf --ctx 64 --chunks 8 --json text >one.json
each 'gguf-perplexity -q -j 1 -m merged.gguf --base m.gguf --ctx 64 --from $((2*{} - 2)) --chunks 2 --partial text \
	>part-{}.json'
is "perplexity: the numbers of one run" "$(gguf-perplexity --merge --json part-*.json)" "$(cat one.json)"
done_testing
