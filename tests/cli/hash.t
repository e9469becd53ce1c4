#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-hash: digests against sha256sum and sha1sum over gguf-cat, known answers for XXH, manifests, pipes, shards.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
make_gguf() { "$BUILD/tests/cli/tool_gguf"; }
make_gguf <"$SRC/tests/cli/info.gguf.txt" >m.gguf
names=$(gguf-info --json m.gguf | jq -r '.tensors[].name')

for t in $names; do
	for k in sha256 sha1; do printf '%-8s  %s  m.gguf:%s\n' $k "$(gguf-cat m.gguf "$t" | ${k}sum |
		cut -d' ' -f1)" "$t"; done
done | sort >want
# shellcheck disable=SC2086
for k in sha256 sha1; do printf '%-8s  %s  m.gguf\n' $k "$(gguf-cat m.gguf $names | ${k}sum | cut -d' ' -f1)"; done |
	sort >want.whole
gguf-hash --sha256 --sha1 --tensors m.gguf | sort >got
same "SHA of each tensor is that of its bytes" got want
gguf-hash --sha256 --sha1 --whole m.gguf | sort >got
same "... of the whole that of all tensors' bytes, in order" got want.whole
# shellcheck disable=SC2086
id=$({ printf '\357\000\022\006\332\334\137\155\241\137\063\131\345\167\324\345'; gguf-cat m.gguf $names; } |
	sha1sum | cut -c1-32)
is "a UUID is version 5 of llama.cpp's name space" \
	"$(gguf-hash --uuid m.gguf | tr -d - | awk '{ print substr($2, 1, 12) substr($2, 14, 3) substr($2, 18) }')" \
	"$(echo "$id" | awk '{ print substr($1, 1, 12) substr($1, 14, 3) substr($1, 18) }')"
is "... has its version and variant" "$(gguf-hash --uuid m.gguf |
	grep -cE '^uuid      .{14}5.{4}[89ab].{16}  m.gguf$')" 1
echo 'kv str general.architecture llama' | make_gguf >none.gguf
is "XXH of nothing is what its authors publish" "$(gguf-hash --xxh64 --xxh3 none.gguf | awk '{ printf "%s ", $2 }')" \
	"ef46db3751d8e999 2d06800538d394c2 "
printf 'tensor i8 a 1 1\n' | make_gguf >one.gguf
is "a tensor alone and the whole are the same bytes" "$(gguf-hash one.gguf | awk '{ print $2 }' | uniq | wc -l |
	tr -d ' ')" 1
is "XXH3 is the default" "$(gguf-hash m.gguf)" "$(gguf-hash --xxh3 m.gguf)"
is "any number of threads" "$(gguf-hash -j1 --sha256 --xxh64 --xxh3 m.gguf)" "$(gguf-hash -j7 --sha256 --xxh64 \
	--xxh3 m.gguf)"
is "through a pipe" "$(gguf-hash --sha256 <m.gguf)" "$(gguf-hash --sha256 m.gguf | sed 's/m.gguf/-/')"
is "through a real pipe" "$(cat m.gguf | gguf-hash --sha256)" "$(gguf-hash --sha256 m.gguf | sed 's/m.gguf/-/')"
compile() { "$BUILD/tests/malformed/tool_ggtxt"; }
{ echo 'header 3 0'; printf 'tensor "%s" i8 %s %s\n' a 0 4 b 32 4 none 0 0; echo 'pad 32 str "a" pad 32 str "b"'; } |
	compile >empty.gguf
is "... with a tensor of no bytes, wherever that lies" "$(cat empty.gguf | gguf-hash --sha256 | sort)" \
	"$(gguf-hash --sha256 empty.gguf | sed 's/empty.gguf/-/' | sort)"
{ echo 'header 1 0'; echo 'tensor "none" f32 0 4 0'; } | compile >only.gguf
is "... with nothing but such a tensor, and no padding either" "$(cat only.gguf | gguf-hash)" \
	"$(gguf-hash only.gguf | sed 's/only.gguf/-/')"
{ echo 'header 2 0'; printf 'tensor "%s" i8 %s 4\n' a 32 b 0; echo 'pad 32 str "a" pad 32 str "b"'; } |
	compile >turned.gguf
not_ok "... not of data in another order" 2 sh -c 'cat turned.gguf | gguf-hash'
ok "... except without the whole" sh -c 'cat turned.gguf | gguf-hash --tensors'
{ echo 'header 2 0'; printf 'tensor "%s" i8 %s 4\n' a 32 b 0; echo 'pad 32 u32 1 pad 32 u32 2'; } | compile >turned.gguf
gguf-split --max-tensors 1 -o turned turned.gguf
is "... which is split in that order: its tensors keep their digests" \
	"$(gguf-hash --tensors turned-00001-of-00002.gguf | sed 's/-00001-of-00002//' | sort)" \
	"$(gguf-hash --tensors turned.gguf | sort)"
is "... and the whole gets another" "$(gguf-hash --whole turned.gguf turned-00001-of-00002.gguf |
	awk '{ print $2 }' | sort -u | wc -l | tr -d ' ')" 2
ok "the writer of the pipe does not die" sh -c '{ cat m.gguf || echo died >died; } | gguf-hash --tensors >got;
	test ! -e died'
is "JSON has the same" "$(gguf-hash --json --sha256 m.gguf |
	jq -r '.[] | .file as $f | .tensors[] | "sha256    \(.sha256)  \($f):\(.name)"' | sort)" "$(grep ^sha256 want)"

# larger than a window, in many pieces and in one, with small tensors between
printf 'tensor f32 a 1 512 6000\ntensor f32 b 2 1\ntensor q6_K c 3 256 3000\ntensor i8 d 4 3\n' | make_gguf >big.gguf
is "large tensors" "$(gguf-hash --sha256 --whole big.gguf | awk '{ print $2 }')" "$(gguf-cat big.gguf a b c d |
	sha256sum | cut -d' ' -f1)"
is "... one of them" "$(gguf-hash --sha256 --tensors big.gguf | awk '/:c$/ { print $2 }')" "$(gguf-cat big.gguf c |
	sha256sum | cut -d' ' -f1)"

# metadata and alignment do not count
sed 's/^kv bool test.flag true/kv bool test.flag false/; 1ikv u32 general.alignment 4096' \
	"$SRC/tests/cli/info.gguf.txt" | make_gguf >other.gguf
is "metadata and alignment do not count" "$(gguf-hash --sha256 other.gguf | sed s/other/m/)" \
	"$(gguf-hash --sha256 m.gguf)"

# manifests
gguf-hash --sha256 --sha1 --xxh64 m.gguf >all.manifest
ok "--check" gguf-hash --check all.manifest m.gguf
is "... says OK for every tensor and the whole" "$(gguf-hash --check all.manifest m.gguf | grep -c ': OK$')" \
	"$(($(echo "$names" | wc -l) + 1))"
is "... says nothing with -q" "$(gguf-hash -q --check all.manifest m.gguf; echo "exit $?")" "exit 0"
ok "... in another folder" sh -c 'mkdir -p sub && cp m.gguf sub && gguf-hash --check all.manifest sub/m.gguf'
ok "... of the files that it names" gguf-hash --check all.manifest
ok "... from a pipe" sh -c 'cat all.manifest | gguf-hash --check - m.gguf'
awk '{ $2 = toupper($2) } 1' all.manifest >capitals
ok "... of digests in capitals, a blank apart" gguf-hash --check capitals m.gguf
ok "... the weaker digests, if they are asked for" sh -c 'gguf-hash --check all.manifest --xxh64 m.gguf'
printf '\377' | dd of=m.gguf bs=1 seek=$(($(wc -c <m.gguf) - 2)) conv=notrunc 2>/dev/null
not_ok "a byte that differs" 1 gguf-hash --check all.manifest m.gguf
is "... fails for its tensor and the whole" "$(gguf-hash -q --check all.manifest m.gguf)" "m.gguf:output.weight: FAILED
m.gguf: FAILED"
make_gguf <"$SRC/tests/cli/info.gguf.txt" >m.gguf
not_ok "a manifest without any line" 2 gguf-hash --check m.gguf m.gguf
grep -v ':output.weight' all.manifest >less
not_ok "a tensor that the manifest lacks" 1 gguf-hash --check less m.gguf
is "... is reported" "$(gguf-hash -q --check less m.gguf)" "m.gguf:output.weight: not in the manifest"
grep ':output.weight' all.manifest | sed 's/output.weight/more.weight/' | cat all.manifest - >added.manifest
not_ok "a tensor that the file lacks" 1 gguf-hash --check added.manifest m.gguf
is "... is reported" "$(gguf-hash -q --check added.manifest m.gguf)" "m.gguf:more.weight: no such tensor"
cat all.manifest all.manifest >twice.manifest
is "lines that are there twice count once" "$(gguf-hash --check twice.manifest m.gguf)" \
	"$(gguf-hash --check all.manifest m.gguf)"
{ cat all.manifest; printf 'sha256  %064d  m.gguf:output.weight\n' 0; } >both.manifest
not_ok "two digests for one tensor" 1 gguf-hash --check both.manifest m.gguf
is "... it has failed" "$(gguf-hash -q --check both.manifest m.gguf)" "m.gguf:output.weight: FAILED"
grep ' m.gguf$' all.manifest >whole
ok "a manifest of the whole alone" gguf-hash --check whole m.gguf
not_ok "a file that the manifest does not name" 2 gguf-hash --check all.manifest big.gguf
not_ok "a digest that the manifest lacks" 2 gguf-hash --check all.manifest --xxh3 m.gguf
sed 's/^sha256/md5/; s/$/\r/' all.manifest >dos
ok "other algorithms' lines are passed over, DOS line ends taken" gguf-hash --check dos m.gguf
# lines as llama-gguf-hash prints them
cat >llama.manifest <<'END'
xxh64     ef46db3751d8e999  none.gguf
sha1      da39a3ee5e6b4b0d3255bfef95601890afd80709  none.gguf
sha256    e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  none.gguf
END
ok "a manifest of llama-gguf-hash" gguf-hash --check llama.manifest none.gguf

printf 'tensor i8 a\\x0a\\x5cb 1 4\n' | make_gguf >odd.gguf
gguf-hash odd.gguf >odd.manifest
is "a name with a line feed and a backslash takes one line" "$(sed -n '1s/ *[0-9a-f]\{16\}  / - /p' odd.manifest)" \
	'\xxh3 - odd.gguf:a\n\\b'
ok "... and is read back" gguf-hash --check odd.manifest odd.gguf

for name in model.bin a:b 'a:b.gguf:c' 'x.gguf:y.gguf' ' x .gguf '; do
	cp m.gguf "$name"
	gguf-hash "$name" >name.manifest
	is "a file called $name: every line is checked" "$(gguf-hash --check name.manifest | sed '/: OK$/!d' |
		wc -l | tr -d ' ')" "$(wc -l <name.manifest | tr -d ' ')"
done
gguf-hash model.bin a:b x.gguf:y.gguf m.gguf >several.manifest
ok "... several in one manifest" gguf-hash -q --check several.manifest
gguf-hash --sha256 --xxh3 model.bin a:b >kinds.manifest
ok "... in several kinds" gguf-hash --check kinds.manifest --xxh3
not_ok "a truncated file" 2 sh -c 'head -c 30000 m.gguf | gguf-hash'
not_ok "a malformed file" 2 gguf-hash all.manifest
not_ok "a missing file" 2 gguf-hash nothing.gguf
gguf-hash --whole m.gguf >one
not_ok "a missing file among others" 2 sh -c 'gguf-hash --whole nothing.gguf m.gguf all.manifest >others 2>err'
is "... they are hashed" "$(cat others)" "$(cat one)"
is "... it and what is no GGUF are reported" "$(sed 's/^gguf-hash: \([a-z.]*\): .*/\1/' err)" "nothing.gguf
all.manifest"
is "... as JSON" "$(gguf-hash --json nothing.gguf m.gguf all.manifest 2>/dev/null | jq -c '[.[].file]')" '["m.gguf"]'
is "... alone, nothing" "$(gguf-hash --json nothing.gguf all.manifest 2>/dev/null; echo $?)" 2
not_ok "... with -o" 2 gguf-hash -o others.manifest nothing.gguf m.gguf
ok "... no file appears" test ! -e others.manifest
head -c 30000 m.gguf >cut.gguf
for from in cut.gguf -; do
	gguf-hash --whole $from m.gguf <cut.gguf >others 2>err
	is "data that is cut short ($from): the other file is hashed" "$? $(cat others)" "2 $(gguf-hash --whole m.gguf)"
	is "... and the message names it" "$(cut -d: -f1-2 err)" \
		"gguf-hash: $(echo $from | sed 's/^-$/(stdin)/')"
	is "... as JSON" "$(gguf-hash --json $from m.gguf <cut.gguf 2>/dev/null | jq -c '[.[].file]')" '["m.gguf"]'
done
gguf-hash m.gguf >m.manifest
mkdir cut
cp cut.gguf cut/m.gguf
is "... tensors that cannot be read are not reported as missing" \
	"$(cd cut && gguf-hash --check ../m.manifest 2>&1 | grep -vc ': OK$')" 1
sed 's/ m\.gguf/ gone.gguf/' all.manifest | cat - all.manifest >gone.manifest
not_ok "a missing file that the manifest names" 2 sh -c 'gguf-hash --check gone.manifest >checked'
is "... the others are checked" "$(grep -c ': OK$' checked)" "$(grep -c '^sha256' all.manifest)"
is "standard input in the place of a file with a name: the manifest's name for it is told" \
	"$(gguf-hash --check one - <m.gguf 2>&1)" \
	"gguf-hash: (stdin): not in the manifest, where it would be called '-'"
gguf-hash --whole <m.gguf >dash.manifest
is "... with that name it is checked" "$(gguf-hash --check dash.manifest <m.gguf)" "-: OK"
is "manifest and file cannot both come from it" "$(gguf-hash --check - <dash.manifest 2>&1 | sed 1q)" \
	"gguf-hash: the manifest and a file cannot both be standard input"
not_ok "output over the input" 2 gguf-hash -o m.gguf m.gguf
not_ok "output over the manifest" 2 gguf-hash -o all.manifest --check all.manifest
not_ok "a full disk" 2 sh -c 'gguf-hash m.gguf >/dev/full'
done_testing
