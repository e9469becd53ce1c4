#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion scripts: made for every program, accepted by the installed shells, and right about what follows an option.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
touch one.gguf two.txt

for p in "$BIN"/gguf-*; do
	name=${p##*/}
	for shell in bash zsh fish; do
		"$p" --completion $shell >"$name.$shell" || echo bad >failed
		grep -q "$name" "$name.$shell" || echo bad >failed
	done
	# every option that -h shows is in each of them
	for o in $("$p" -h | sed -n 's/^.*[ ,]--\([a-z0-9-]*\).*  .*/\1/p'); do
		grep -q -e "--$o " "$name.bash" && grep -q -e "--${o}[=[]" "$name.zsh" &&
			grep -q -e "-l $o " "$name.fish" || echo "$name $o" >>missing
	done
done
not_ok "every program prints completions" 1 test -e failed
is "every option of -h is completed" "$(cat missing 2>/dev/null)" ""
not_ok "no other shell is known" 2 gguf-info --completion csh

# words WORD...: what bash would offer for the last of them
words()
{
	bash -c '. "./$1.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); "_$(echo "$1" | tr - _)";
		echo "${COMPREPLY[*]}"' - "$@"
}
if command -v bash >/dev/null; then
	is "bash: options" "$(words gguf-quantize --eff)" --effort
	is "bash: a type" "$(words gguf-quantize --output-tensor-type IQ4)" "IQ4_NL IQ4_XS"
	is "bash: a type after =" "$(words gguf-quantize --output-tensor-type = IQ4)" "IQ4_NL IQ4_XS"
	is "bash: a file" "$(words gguf-quantize -i one)" one.gguf
	touch 'a blank.gguf'
	is "bash: a file whose name has a blank is one" "$(bash -c '. ./gguf-quantize.bash; COMP_CWORD=2
		for o in -i --; do
			COMP_WORDS=(gguf-quantize $o "a b")
			_gguf_quantize
			echo "${#COMPREPLY[@]} $COMPREPLY"
		done')" "1 a blank.gguf
1 a blank.gguf"
	is "bash: a shard" "$(words gguf-split --like one)" one.gguf
	is "bash: a file behind a key and its type" "$(words gguf-edit --set-file one)" one.gguf
	is "bash: nothing for a number" "$(words gguf-quantize -j 1)" ""
	is "bash: nothing for a temperature" "$(words gguf-run --temp '')" ""
	is "bash: a type of cache" "$(words gguf-run --cache-type-k '')" "f32 f16 q4_0 q5_1 q8_0 i16 bf16"
	is "bash: a type of cache that begins so" "$(words gguf-info --cache-type-v q)" "q4_0 q5_1 q8_0"
	is "bash: no recipe for the value of a key" "$(words gguf-edit --set IQ4)" ""
	is "bash: no recipe where a size comes first" "$(words gguf-bench --synthetic IQ4)" ""
	is "bash: an operand is a file or a recipe" "$(words gguf-quantize IQ4)" "IQ4_NL IQ4_XS"
	is "bash: an operand that is a file" "$(words gguf-info tw)" two.txt
else skip "bash completions" "no bash here"; fi
is "zsh: an operand is a file or a recipe" "$(grep -l "'\*:file.*:{_files; compadd -- .* IQ4_XS .*}'" ./*.zsh | sort |
	tr '\n' ' ')" "./gguf-plan.zsh ./gguf-quantize.zsh "
is "zsh: a colon in the name of an argument does not end it" "$(sed -n "s/.*--set.*]//p" gguf-edit.zsh)" \
	":KEY=TYPE\\:VALUE:' \\
:KEY=TYPE\\:FILE:_files' \\"
is "zsh: a type of cache" "$(sed -n "s/.*--cache-type-v=.*]//p" gguf-run.zsh)" \
	":T:(f32 f16 q4_0 q5_1 q8_0 i16 bf16)' \\"
is "fish: a type of cache" "$(sed -n "s/.* -l cache-type-v \(.*\) -d .*/\1/p" gguf-run.fish)" \
	"-x -a 'f32 f16 q4_0 q5_1 q8_0 i16 bf16'"
for shell in zsh fish; do
	if command -v $shell >/dev/null; then
		for f in *.$shell; do $shell -n "$f" || echo "$f"; done >bad.$shell 2>&1
		is "$shell reads them" "$(cat bad.$shell)" ""
	else skip "$shell completions" "no $shell here"; fi
done
done_testing
