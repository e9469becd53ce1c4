#!/bin/sh
# SPDX-License-Identifier: MIT
# Every program has a page whose SYNOPSIS and options are those of -h, and whose examples work.
. "$(dirname "$0")/../lib/tap.sh"
command -v mandoc >/dev/null || { echo "1..0 # SKIP no mandoc"; exit 0; }

# Words of the SYNOPSIS as mandoc renders it, and of -h's usage, blanks squeezed.
page_synopsis() { mandoc -T ascii "$1" | sed 's/.\x08//g' | sed -n '/^SYNOPSIS/,/^[A-Z]/p' | sed '1d;$d' |
	tr -s ' \n' ' ' | sed 's/^ //;s/ $//'; }
help_synopsis() { sed -n '1,/^$/p' "$1" | sed 's/^usage: //' | tr -s ' \n' ' ' | sed 's/^ //;s/ $//'; }
# "-c --ctx" for each option of two names
help_letters() { sed -n '/^$/,$p' "$1" | sed -nE 's/^ *-([A-Za-z0-9]), --([a-z0-9-]+).*/-\1 --\2/p' | sort; }
page_letters() { mandoc -T ascii "$1" | sed 's/.\x08//g' |
	sed -nE 's/^ {5,6}-([A-Za-z0-9]), --([a-z0-9-]+).*/-\1 --\2/p' | sort; }
help_options() { sed -n '/^$/,$p' "$1" | grep -oE '(^| )--[a-z][a-z0-9-]*' | tr -d ' ' | sort -u; }
page_options() { mandoc -T ascii "$1" | sed 's/.\x08//g' | grep -E '^ {5,6}-' |
	grep -oE '(^|[ ,])--[a-z][a-z0-9-]*' | tr -d ' ,' | sort -u; }

for prog in "$BIN"/gguf-*; do
	name=$(basename "$prog")
	page=$SRC/man/$name.1
	if [ ! -f "$page" ]; then ok "$name has a man page" false; continue; fi
	"$prog" -h >"$TMP/help" 2>&1
	is "$name: SYNOPSIS is that of -h" "$(page_synopsis "$page")" "$(help_synopsis "$TMP/help")"
	is "$name: options are those of -h" "$(page_options "$page")" "$(help_options "$TMP/help")"
	is "$name: letters are those of -h" "$(page_letters "$page")" "$(help_letters "$TMP/help")"
	not_ok "$name: an unknown option is refused" 2 "$prog" --no-such-option
	ok "$name: --version" "$prog" --version
done

# the first example is the common use, before any option is explained
for page in "$SRC"/man/gguf-*.1; do
	ok "$(basename "$page"): DESCRIPTION begins with an example" \
		sh -c "sed -n '/^.Sh DESCRIPTION/,\$p' '$page' | sed -n '2,4p' | grep -q '^.Dl \\$ '"
done

for name in imatrix perplexity quantize; do
	least=$("gguf-$name" --ctx 1 m.gguf 2>&1 | sed -n 's/.*from \([0-9]*\) to.*/\1/p')
	ok "gguf-$name: the page has the least --ctx, $least" grep -q "default is 512, the minimum $least\.\$" \
		"$SRC/man/gguf-$name.1"
done

# Of a list that is taken, the next complaint is that there is no model.
says() { gguf-bench --prompt "$1" 2>&1 | sed -n '1s/.*\(no model given\|has .*\).*/\1/p'; }
most=$(sed -n 's/.*several tests: at most \([0-9]*\), of up to [0-9]* tokens\.$/\1/p' "$SRC/man/gguf-bench.1")
tokens=$(sed -n 's/.*several tests: at most [0-9]*, of up to \([0-9]*\) tokens\.$/\1/p' "$SRC/man/gguf-bench.1")
is "gguf-bench: the page has the most numbers of a list, $most" \
	"$(says "$(seq -s , "$most")"), $(says "$(seq -s , $((most + 1)))")" \
	"no model given, has more than $most numbers"
is "gguf-bench: the page has the most tokens of a test, $tokens" \
	"$(says "$tokens"), $(says $((tokens + 1)))" "no model given, has a number above $tokens"

# a word of a heading may be a macro's name too
headings() { sed -n 's/^\.S[sh] //p' "$1" | sed 's/\\&//g'; }
for page in "$SRC"/man/*.[1357]; do
	is "$(basename "$page"): headings are rendered as they are written" \
		"$(mandoc -T ascii -O width=400 "$page" | sed 's/.\x08//g' | sed '1d;$d' |
		grep -E '^( {3})?[^ ]' | sed 's/^ *//')" "$(headings "$page")"
done

# what all programs have in common, such as the environment, is in the overview
for page in "$SRC"/man/gguf-*.1; do
	ok "$(basename "$page"): SEE ALSO names gguf-utils(7)" \
		sh -c "sed -n '/^.Sh SEE ALSO/,\$p' '$page' | grep -q 'Xr gguf-utils 7'"
done

# every page is in the overview: in its list of programs or under SEE ALSO
for page in "$SRC"/man/*.[1357]; do
	name=${page##*/}
	[ "$name" = gguf-utils.7 ] ||
		ok "$name is named in gguf-utils(7)" grep -q "Xr ${name%.*} ${name##*.}" "$SRC/man/gguf-utils.7"
done

for yaml in $(cd "$SRC/model/arch" && grep -l '^classes:' ./*.yaml); do
	arch=$(basename "$yaml" .yaml)
	ok "architecture $arch is listed in gguf-utils(7) and the README" \
		sh -c "grep -qw '$arch' '$SRC/man/gguf-utils.7' && grep -qw '$arch' '$SRC/README.md'"
done

# The examples, in a folder that holds what gguf-utils(7) says.
cd "$TMP" || exit 1
cp -r "$DATA/wiki-7m" wiki-7m
head -c 8000 "$DATA/prose/calibration.txt" >calibration.txt
head -c 8000 "$DATA/prose/evaluation.txt" >evaluation.txt
ok "files for the examples: model" gguf-convert -o wiki-7m.gguf wiki-7m
ok "files for the examples: matrix" gguf-imatrix -m wiki-7m.gguf -o im.gguf calibration.txt
ok "files for the examples: quantized" gguf-quantize -i im.gguf -o wiki-7m-q4.gguf Q4_K_M wiki-7m.gguf

# every key of --json is in its page. told PROGRAM ARGUMENTS...
told()
{
	missing='' some=''
	for key in $("$@" | jq -r 'if type == "object" then del(.metadata_types) |
			if .metadata | type == "object" then del(.metadata) else . end else . end
		| [paths[-1] | strings] | unique[]'); do
		some=yes
		mandoc -T ascii "$SRC/man/$1.1" | sed 's/.\x08//g' | grep -qw -e "${key%_stderr}" ||
			missing="$missing $key"
	done
	is "$1: keys of --json are in the page" "${some:-none}$missing" yes
}
told gguf-info --json wiki-7m.gguf
told gguf-diff --json wiki-7m.gguf wiki-7m-q4.gguf
told gguf-diff --json --values wiki-7m.gguf wiki-7m-q4.gguf
told gguf-check --json wiki-7m.gguf
told gguf-hash --json --uuid --sha256 wiki-7m.gguf
told gguf-imatrix --stats --json im.gguf
told gguf-perplexity -m wiki-7m-q4.gguf --base wiki-7m.gguf --chunks 1 --ctx 64 --json evaluation.txt
told gguf-quantize --json -o told.gguf Q8_0 wiki-7m.gguf

# as they are rendered: a word of an example may be a macro's name
for page in "$SRC"/man/*.[1357]; do
	mandoc -T ascii -O width=400 "$page" | sed 's/.\x08//g' | sed -n 's/^ *\$ //p' >"$TMP/.examples"
	is "$(basename "$page"): examples are rendered one by one" "$(wc -l <"$TMP/.examples")" \
		"$(grep -c '^\.Dl \$ ' "$page")"
	while IFS= read -r line; do
		ok "$(basename "$page"): $line" sh -c "$line" </dev/null
	done <"$TMP/.examples"
done
done_testing
