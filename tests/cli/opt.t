#!/bin/sh
# SPDX-License-Identifier: MIT
# What all programs share: option parsing, messages, output that is complete or absent. gguf-info and gguf-cat stand for
# all.
. "$(dirname "$0")/../lib/tap.sh"
T=$BUILD/tests/cli
cd "$TMP" || exit 1
"$T/tool_gguf" <"$SRC/tests/cli/info.gguf.txt" >m.gguf

first() { head -n 1 "$TMP/$1"; }
run() { "$@" >out 2>err; echo $?; }

# options
ok "options after operands" gguf-info m.gguf --json
ok "-- ends options" gguf-info --json -- m.gguf
not_ok "after -- a dash is a file" 2 gguf-info -- --json
ok "a long option with =" gguf-info --ctx=8 m.gguf
ok "a long option with a separate argument" gguf-info --ctx 8 m.gguf
ok "a letter with its argument" gguf-diff -j2 m.gguf m.gguf
ok "bundled flags" gguf-diff -qj 2 m.gguf m.gguf
is "an unknown option" "$(run gguf-info --nonsense m.gguf)" 2
is "... is named" "$(first err)" "gguf-info: unknown option '--nonsense'"
is "an option without a name" "$(run gguf-info --=x m.gguf)" 2
is "... is unknown, not the beginning of all" "$(first err)" "gguf-info: unknown option '--=x'"
is "... and -h is pointed to" "$(sed -n 2p err)" "Try 'gguf-info -h'."
is "an unknown letter is named once" "$(run gguf-info -z m.gguf; first err)" "2
gguf-info: unknown option '-z'"
is "... in a bundle with the bundle" "$(run gguf-info -qz m.gguf; first err)" "2
gguf-info: unknown option '-z' in '-qz'"
# told OPTION HINT PROGRAM: the hint that follows "unknown option"
told() { is "$3 $1" "$(run "$3" "$1" 1 m.gguf; first err)" "2
$3: unknown option '$1'$2"; }
cpu='; all is computed on the CPU' operand='; input is a file named without an option, or standard input'
told -t '; here it is --jobs' gguf-run
told --n-predict '; here it is --tokens' gguf-run
told -n '; here it is --generate' gguf-bench
told --kl-divergence-base '; here it is --base' gguf-perplexity
told --split-max-size '; here it is --max-size' gguf-split
told --outtype '; here it is --type' gguf-convert
told -ngl "$cpu" gguf-run
told -ngl "$cpu" gguf-quantize
told -ctk '; here it is --cache-type-k' gguf-perplexity
told -f "$operand" gguf-imatrix
told -p "$operand" gguf-tokenize
told -f '' gguf-convert
told --chunk '; here it is --from' gguf-imatrix
ok "... an abbreviation that is no other program's option" gguf-info --js m.gguf
told --keep-split '; here it is --shards' gguf-quantize
told --prune-layers '; layers cannot be removed' gguf-quantize
told --bigendian '; files are always little-endian' gguf-convert
told --split-max-tensors '; gguf-split does that' gguf-convert
told -hf '; nothing is fetched from a network' gguf-run
told --min-p '; tokens are drawn by --temp, --top-k and --top-p alone' gguf-run
told --min-p '' gguf-info
told --chat-template '; a prompt is continued as it is, without a chat' gguf-run
told --chat-template '; use --set-file tokenizer.chat_template=str:FILE' gguf-edit
told -no-cnv '; a prompt is continued as it is, without a chat' gguf-run
is "... if it can be a letter and its argument, it is" "$(run gguf-convert -no-cnv m.gguf; first err)" "2
gguf-convert: m.gguf: is not a folder: name the one that holds the checkpoint"
told -s '' gguf-info
is "an option of another program, with its argument" "$(run gguf-split --split-max-size=5M m.gguf; first err)" "2
gguf-split: unknown option '--split-max-size=5M'; here it is --max-size"
told --tensor-tpye '; did you mean --tensor-type?' gguf-plan
told --josn '; did you mean --json?' gguf-info
is "letters that mean something here are not taken for another program's" "$(run gguf-hash -ctk; first err)" "2
gguf-hash: tk: No such file or directory"
ok "-c is --ctx and -b is --batch in every program that has them" sh -c "
	for p in '$BIN'/gguf-*; do \"\$p\" -h; done | grep -E -- '--(ctx|batch) N  ' >n
	! grep -qvE -- '-(c, --ctx|b, --batch) N ' n && [ \$(wc -l <n) = 8 ]"
is "lines of help fit a terminal" "$(for p in "$BIN"/gguf-*; do "$p" -h; done | awk 'length > 79')" ""
is "a missing argument" "$(run gguf-info m.gguf --ctx)" 2
is "... says what is wanted" "$(first err)" "gguf-info: --ctx expects N"
is "a number out of range" "$(run gguf-info --ctx 0 m.gguf)" 2
is "... says the range" "$(first err)" "gguf-info: --ctx expects a whole number from 1 to 1000000000000, not '0'"
is "... of 64 bits" "$(run gguf-run --seed 18446744073709551616)" 2
is "... says the range" "$(first err)" \
	"gguf-run: --seed expects a whole number from 0 to 18446744073709551615, not '18446744073709551616'"
is "no number" "$(run gguf-info --ctx=12x m.gguf)" 2
is "... the option is named" "$(first err)" "gguf-info: --ctx expects a whole number from 1 to 1000000000000, not '12x'"
# numbers are read in one way. accepted OPTION NUMBER...: those that are not refused, each with a colon
accepted()
{
	p=${1%% *} option=${1#* }; shift
	for n; do
		run "$p" "$option$n" -m m.gguf >/dev/null
		first err | grep -q ' expects ' || printf '%s:' "$n"
	done
}
for option in "gguf-info --ctx=" "gguf-run --seed=" "gguf-bench --generate=8," "gguf-quantize --part=1/"; do
	is "whole numbers: $option" "$(accepted "$option" ' 8' '8 ' +8 -8 -0 0x8 8_0 8. 8e0 nan inf '' 8 008 8x \
		18446744073709551616)" 8:008:
done
for option in "gguf-info --bandwidth=" "gguf-run --temp=" "gguf-plan --size=" "gguf-quantize --objective=0,0," \
	"gguf-perplexity --fail-above=ppl="; do
	is "numbers: $option" "$(accepted "$option" ' 8' '8 ' +8 -8 -0 0x8 8_0 nan inf infinity '' . e8 8e 1e400 8.8.8 \
		8x 8 8. 8.8 .8e1 8E+0 80e-1)" 8:8.:8.8:.8e1:8E+0:80e-1:
done
is "an option with control characters" "$(run gguf-info "$(printf -- '--\033[31m')" m.gguf)" 2
is "... is masked" "$(first err)" "gguf-info: unknown option '--\\x1B[31m'"
# a name that is longer than a message: what is wrong stands before it or after it
name=$(printf 'k\303\251%065000d' 7)
short() { first err | sed 's/00*/0/g'; }
is "no option, with a long name" "$(run gguf-info "--$name")" 2
is "... says so, and shows how the name begins and ends" "$(short)" \
	"$(printf "gguf-info: unknown option '--k\\303\\2510...07'")"
is "a long key that does not fit its value" "$(run gguf-edit --set "$name=u32:x" m.gguf)" 2
is "... says why" "$(short)" "$(printf "gguf-edit: k\\303\\2510...07: 'x' is not a valid u32 (0 to 4294967295)")"
is "a flag with an argument" "$(run gguf-info --json=yes m.gguf)" 2
# refused MESSAGE PROGRAM ARGUMENTS: values and combinations are refused in the same words everywhere, and -h is
# pointed to at the end, whatever list is before
refused() { want=$1; shift; is "$*" "$(run "$@"; tail -n 2 err)" "2
$1: $want
Try '$1 -h'."; }
for p in "gguf-info" "gguf-cat m.gguf" "gguf-convert" "gguf-diff m.gguf" "gguf-quantize q4_0" "gguf-run -m m.gguf"; do
	# shellcheck disable=SC2086
	refused "an operand is empty" $p ''
done
refused "-m expects MODEL, not ''" gguf-run -m '' -p x
refused "--check expects MANIFEST, not ''" gguf-hash --check= m.gguf
refused "--arch-file expects YAML, not ''" gguf-logits -m m.gguf --arch-file ''
refused "--arch-file expects YAML, not ''" gguf-logits -m m.gguf --arch-file a.yaml --arch-file ''
refused "--sort expects name, type, bytes or offset, not 'x'" gguf-info --sort x m.gguf
refused "--profile expects spec or llama.cpp, not 'x'" gguf-check --profile x m.gguf
refused "--tensor-type expects REGEX=T, not 'x'" gguf-quantize --tensor-type x q4_0 m.gguf
refused "--json needs --stats" gguf-imatrix -m m.gguf --json m.gguf
refused "--every needs --checkpoint" gguf-imatrix -m m.gguf --every 5 m.gguf
refused "--dat and --partial cannot be combined" gguf-imatrix -m m.gguf --dat --partial m.gguf
refused "--batch cannot be combined with --merge" gguf-imatrix --merge --batch 8 m.gguf
refused "--dat cannot be combined with --stats" gguf-imatrix --stats --dat m.gguf
refused "--cache-type-k cannot be combined with --merge, which only combines results" \
	gguf-perplexity --merge --cache-type-k f16 m.gguf
refused "--whole cannot be combined with --check" gguf-hash --whole --check m.gguf
refused "--effort cannot be combined with a recipe, for which no errors are measured" gguf-plan --effort 5 q4_0 m.gguf
for p in gguf-info gguf-check gguf-hash "gguf-imatrix --merge" "gguf-perplexity --merge"; do
	# shellcheck disable=SC2086
	refused "two files cannot both be standard input" $p - m.gguf -
done
refused "the model and the text cannot both be standard input" gguf-tokenize -m -
refused "the importance matrix and the model cannot both be standard input" gguf-plan -i - q4_0
refused "the importance matrix and the model cannot both be standard input" gguf-quantize -i - q4_0
refused "the importance matrix and the plan cannot both be standard input" gguf-quantize -i - --plan - m.gguf
refused "the importance matrix and the metadata cannot both be standard input" \
	gguf-convert -t q4_0 -i - --metadata - "$DATA/wiki-7m"
refused "the model and the pattern of --like cannot both be standard input" gguf-split --like - -o x
refused "the plan and the model cannot both be standard input" gguf-quantize --plan -
for p in "gguf-quantize -n" gguf-plan; do
	# shellcheck disable=SC2086
	refused "--output-tensor-type cannot be combined with --leave-output-tensor" \
		$p --output-tensor-type q8_0 --leave-output-tensor q4_0 m.gguf
done
refused "--whole cannot be combined with --tensors" gguf-hash --whole --tensors m.gguf
refused "--uuid cannot be combined with --tensors" gguf-hash --uuid --tensors m.gguf
for x in --json --metadata --tensors --match=x --sort=name --ctx=8 --cache-type-k=f16 --cache-type-v=f16 \
	--bandwidth=9; do
	refused "${x%=*} cannot be combined with --get" gguf-info --get general.name "$x" m.gguf
done
refused "--type cannot be combined with --vocab-only" gguf-convert --vocab-only -t f16 "$DATA/wiki-7m"
refused "--imatrix cannot be combined with --vocab-only" gguf-convert -i m.gguf --vocab-only "$DATA/wiki-7m"
# shellcheck disable=SC2086
spare() { refused "too many operands: '$1'; the $2" $3; }
spare out.gguf "output is named with -o" "gguf-edit --set a.b=u8:1 m.gguf out.gguf"
spare 4 "output is named with -o" "gguf-quantize m.gguf out.gguf q4_0 4"
spare out.gguf "output is named with -o" "gguf-imatrix -m m.gguf text out.gguf"
spare m.gguf "model is named with -m" "gguf-bench m.gguf"
refused "too many operands: 'out.gguf'" gguf-edit --set a.b=u8:1 -o e.gguf m.gguf out.gguf
# the other mistakes of command lines: MESSAGE|COMMAND
while IFS='|' read -r message command; do
	# shellcheck disable=SC2086
	refused "$message" $command </dev/null
done <<'END'
missing operand|gguf-cat m.gguf
missing operand|gguf-diff m.gguf
missing operand|gguf-convert
-I needs a file: standard input cannot be changed|gguf-edit -I --set a=u8:1
-I and -o cannot be combined|gguf-edit -I -o x --set a=u8:1 none
--set expects KEY=TYPE:VALUE, not 'a'|gguf-edit --set a m.gguf
--set-file expects KEY=TYPE:FILE, not 'a=str:'|gguf-edit --set-file a=str: m.gguf
--rename-tensor expects OLD=NEW, not '=b'|gguf-edit --rename-tensor =b m.gguf
--rename-tensor expects OLD=NEW, not 'output.weight='|gguf-edit --rename-tensor output.weight= m.gguf
--rename expects OLD=NEW, not 'general.name='|gguf-edit --rename general.name= m.gguf
a: 'x' is not a valid bool|gguf-edit --set a=bool:x m.gguf
a: item 0 is not a valid bool|gguf-edit --set a=bool[]:[1] m.gguf
a: no type: --set expects KEY=TYPE:VALUE, such as a=str:1|gguf-edit --set a=1 m.gguf
a: no type: --set-file expects KEY=TYPE:FILE, such as a=str:f|gguf-edit --set-file a=f none
--set-file b: standard input is already read for another key|gguf-edit --set-file a=str:- --set-file b=str:- m.gguf
--reserve expects at most 256 MiB: all programs read the header|gguf-edit --reserve 1G none
no model given: use -m MODEL or --synthetic SIZE,TYPE|gguf-bench
-m and --synthetic cannot be combined|gguf-bench -m none --synthetic 1M,q4_0
--save needs --synthetic|gguf-bench -m none --save x
--synthetic expects a size from 1M to 1T and a type, as in 1.1B,Q4_K_M, not '1'|gguf-bench --synthetic 1
'q4' is neither a recipe nor a type that weights can have|gguf-bench --synthetic 1M,q4
'q4_km' is neither a recipe nor a type that weights can have; did you mean Q4_K_M?|gguf-bench --synthetic 1M,q4_km
'iq4nll' is neither a recipe nor a type that weights can have; did you mean IQ4_NL?|gguf-bench --synthetic 1M,iq4nll
'mxpf4' is neither a recipe nor a type that weights can have; did you mean mxfp4?|gguf-bench --synthetic 1M,mxpf4
--type: Q4_KM is not a recipe; did you mean Q4_K_M?|gguf-convert -t Q4_KM none
-i: type f16 does not use an importance matrix; give a recipe|gguf-convert -t f16 -i none .
--ignore (: Unmatched ( or \(|gguf-diff -I ( none none
--brief cannot be combined with --json or --unified|gguf-diff --brief --json none none
only one of A and B can be standard input|gguf-diff - -
give one of -m, --merge and --stats|gguf-imatrix none
--block expects a multiple of 256|gguf-imatrix -m none --covariance --block 300
--block and --stride need --covariance|gguf-imatrix -m none --stride 1
--checkpoint expects FILE, not '-'|gguf-imatrix -m none --checkpoint -
no matrices given to merge|gguf-imatrix --merge
--dat and --covariance cannot be combined: the old form has no room|gguf-imatrix -m none --dat --covariance
--stats shows one matrix: 'b' is too many|gguf-imatrix --stats a b
--match (: Unmatched ( or \(|gguf-info --match ( m.gguf
the ids of both --source and IDS cannot be standard input|gguf-logits -m none --source - -
no model given: use -m MODEL|gguf-logits
no model given: use -m MODEL|gguf-run
the model cannot be standard input: it is mapped into memory|gguf-run -m -
give one of -m and --merge|gguf-perplexity none
--json and --partial cannot be combined|gguf-perplexity --merge --json --partial none
--merge needs the parts as operands|gguf-perplexity --merge
the saved logits and the text cannot both be standard input|gguf-perplexity -m none --base -
--cache-type-k expects f32, f16, bf16, i16, q8_0, q5_1 or q4_0, not 'x'|gguf-info --cache-type-k x none
--fail-above expects NAME=NUMBER, not 'x'|gguf-perplexity -m none --fail-above x
--fail-above kld=1: a measurement without --base gives no such result|gguf-perplexity -m none --fail-above kld=1
--save-logits - is standard output, where the results go: give -o FILE|gguf-perplexity -m none --save-logits -
--json writes to standard output, where the model goes: give -o FILE|gguf-quantize --json q4_0 none
--fail-above x=1: there is no such result|gguf-perplexity -m none --fail-above x=1
two models given: a and b|gguf-plan --bpw 4 a b
neither a nor b is a recipe|gguf-plan a b
give --bpw X, --size SIZE or a recipe|gguf-plan none
a recipe, --bpw and --size cannot be combined|gguf-plan --bpw 4 --size 1M none
--pure needs a recipe|gguf-plan --bpw 4 --pure none
--kld needs an importance matrix: -i FILE|gguf-plan --bpw 4 --kld none
--types: 'iq4xs' is not a type that can be encoded; did you mean iq4_xs?|gguf-plan --bpw 4 --types q4_0,iq4xs m.gguf
--part 3/2: parts are counted from 1, to 2 here|gguf-quantize --part 3/2 q4_0 none
the recipe Q4_0 and --plan cannot be combined|gguf-quantize --plan none q4_0 m.gguf
two input files, a and b; name the output with -o|gguf-quantize q4_0 a b
none: no recipe given|gguf-quantize none
no recipe given|gguf-quantize
Q4_KM is not a recipe; did you mean Q4_K_M?|gguf-quantize Q4_KM none
-i and --calibrate cannot be combined|gguf-quantize -i a --calibrate b q4_0 none
--calibrate and --no-feedback cannot be combined|gguf-quantize --calibrate b --no-feedback q4_0 none
with --calibrate, the model cannot be standard input: it is mapped into memory|gguf-quantize --calibrate b q4_0
--chunks and --ctx need --calibrate|gguf-quantize --chunks 1 q4_0 none
--damp needs -i or --calibrate|gguf-quantize --damp 0.1 q4_0 none
--damp and --no-feedback cannot be combined|gguf-quantize -i a --damp 0.1 --no-feedback q4_0 none
--shards and --part cannot be combined|gguf-quantize --shards 2 --part 1/2 q4_0 none
no output name given: use -o PREFIX for shards PREFIX-00001-of-0000N.gguf|gguf-quantize --shards 2 q4_0 none
two prompts given: -p and FILE|gguf-run -m none -p a b
give --max-size SIZE, --max-tensors N, --like SHARD or --merge|gguf-split -o x none
--merge, --like and limits on a shard cannot be combined|gguf-split --merge --max-tensors 1 -o x none
--merge cannot be combined with --dry-run or --no-tensor-first-split|gguf-split --merge -n none
--like and --no-tensor-first-split cannot be combined|gguf-split --like a --no-tensor-first-split -o x none
no output name given: use -o NAME for shards NAME-00001-of-0000N.gguf|gguf-split --max-tensors 1 none
no vocabulary given: use -m MODEL|gguf-tokenize
END
refused "--save-logits and --from cannot be combined: saved logits begin with the text" \
	gguf-perplexity -m none --save-logits x --from 1
refused "--output-tensor-type: 'iq4xs' is not a type that can be encoded; did you mean iq4_xs?" \
	gguf-quantize -n --output-tensor-type iq4xs q4_0 m.gguf
refused "--tensor-type (=q8_0: not a regular expression: missing closing parenthesis" \
	gguf-quantize -n --tensor-type '(=q8_0' q4_0 m.gguf
# what is wrong stands in a file or in the system: -h says nothing about it
printf -- '- [a, [1], q9_0]\n' >plan
printf 'a b\n' >manifest
while read -r command; do
	# shellcheck disable=SC2086
	is "no pointer to -h: $command" "$(run $command </dev/null; grep -c "^Try '" err)" "2
0"
done <<END
gguf-info none
gguf-info --match x plan
gguf-cat m.gguf none
gguf-check none
gguf-convert none
gguf-convert m.gguf
gguf-diff m.gguf none
gguf-edit --delete none m.gguf
gguf-edit --rename none=a m.gguf
gguf-edit --rename-tensor none=a m.gguf
gguf-edit --set-file a=u8:plan m.gguf
gguf-hash --check manifest
gguf-hash none
gguf-imatrix --stats none
gguf-logits -m m.gguf none
gguf-perplexity -m m.gguf none
gguf-perplexity --merge plan
gguf-plan --bpw 4 none
gguf-quantize -n q4_0 none
gguf-quantize -n --plan plan m.gguf
gguf-run -m none -p a
gguf-split --like none -o x m.gguf
gguf-tokenize -m none
END
is "-h" "$(run gguf-info -h)" 0
is "... starts with usage" "$(head -c 17 out)" "usage: gguf-info "
is "... on stdout alone" "$(wc -c <err | tr -d ' ')" 0
is "--help is the same" "$(gguf-info --help)" "$(cat out)"
is "-h with a full disk" "$(gguf-info -h 2>err >/dev/full; echo $?)" 2
is "... is reported" "$(first err)" "gguf-info: standard output: No space left on device"
is "usage: options are not torn from their arguments, forms begin with the name" \
	"$(gguf-imatrix -h | sed '/^$/,$d' | sed 1d | grep -vE '^ +(\[|-|gguf-imatrix --)')" ""
ok "--version names the instruction set" sh -c 'gguf-info --version | grep -q "instruction set"'
is "an unknown GGUF_CPU" "$(GGUF_CPU=z80 run gguf-info m.gguf)" 2

# messages
is "a missing file" "$(run gguf-info nowhere.gguf)" 2
ok "... is named with the reason" grep -q '^gguf-info: nowhere.gguf: .*No such file' err
mkdir folder && echo '{}' >folder/config.json
is "a checkpoint in place of a GGUF file" "$(gguf-info folder 2>&1)" \
	"gguf-info: folder: Is a directory; gguf-convert makes a GGUF file of a checkpoint"
head -c 900 m.gguf >cut.gguf
is "a cut file" "$(run gguf-info cut.gguf)" 2
ok "... names the byte" grep -q '^gguf-info: cut.gguf: byte [0-9]*: ' err
printf 'GGUF' >"$(printf 'evil\033[31m.gguf')"
run gguf-info "$(printf 'evil\033[31m.gguf')" >/dev/null
is "control characters of a file name are masked" "$(tr -d '\040-\176\n' <err | wc -c | tr -d ' ')" 0
many() { awk -v what="$1" 'BEGIN { while (n++ < 2000) printf "%s", what }'; }
run gguf-info "$(many 'a\001')" >/dev/null
is "... of a message that is longer than a buffer then, too" "$(cat err)" \
	"gguf-info: $(many 'a\\x01'): File name too long"
run gguf-cat m.gguf "$(printf 'no\033[31m')" >/dev/null
is "... and of any other name" "$(head -n 1 err)" \
	"gguf-cat: m.gguf: no tensor 'no\\x1B[31m'; gguf-info --tensors lists them"
# a name with a line break, a control sequence, half a character and a control character of two bytes, of a file, a key,
# a value: ODD in COMMAND
odd=$(printf 'a\n\033[31m\303\302\233.gguf')
cp m.gguf "$odd"
while read -r command; do
	# shellcheck disable=SC2086
	(set -- $command; for x; do shift; case $x in *ODD) x=${x%ODD}$odd ;; esac; set -- "$@" "$x"; done
		"$@" >out 2>err </dev/null)
	is "fit for a terminal: $command" "$(LC_ALL=C tr -d '\040-\176\n' <err | wc -c | tr -d ' ')
$(grep -c -F 'a\n\x1B[31m\xC3\u{9B}.gguf' err)" "0
1"
done <<'END'
gguf-info --get none ODD
gguf-info --get ODD m.gguf
gguf-cat ODD none
gguf-cat m.gguf ODD
gguf-check --profile ODD
gguf-check none/ODD
gguf-hash --check ODD
gguf-diff m.gguf none/ODD
gguf-edit --delete ODD m.gguf
gguf-edit --rename ODD m.gguf
gguf-edit --rename general.name=ODD -I none/ODD
gguf-edit --set a=u8:ODD m.gguf
gguf-convert -n ODD
gguf-convert -n a/b@ODD
gguf-quantize -n --plan ODD m.gguf
gguf-plan --bpw 4 none/ODD
gguf-plan --bpw 4 --types ODD m.gguf
gguf-split -n --like ODD -o x none/ODD
gguf-imatrix --stats ODD
gguf-perplexity --merge ODD
gguf-perplexity -m none --fail-above ODD
gguf-logits -m ODD
gguf-tokenize -m ODD
gguf-run -m ODD
gguf-bench -m ODD
END
rm "$odd"
# one TEXT COMMAND...: it prints a line that ends so
one() { want=$1; shift; is "one thing is no plural: $want" "$("$@" 2>&1 </dev/null | grep -c -- "$want\$")" 1; }
gguf-edit --set tokenizer.ggml.model=str:llama --set 'tokenizer.ggml.scores=f32[]:[1]' -o scores.gguf m.gguf
gguf-edit --set tokenizer.ggml.model=str:llama --set 'tokenizer.ggml.tokens=str[]:["a"]' -o tokens.gguf m.gguf
printf 'kv str general.architecture llama\ntensor f32 a 1 4\n' | "$T/tool_gguf" >single.gguf
cp m.gguf byte.gguf
printf '\177' | dd of=byte.gguf bs=1 seek=$(($(wc -c <m.gguf) - 1)) conv=notrunc 2>dd.err
one 'for a context of 1 token' gguf-info --ctx 1 m.gguf
one 'has 1 item for 26 tokens .*' gguf-check scores.gguf
one 'has 4 items for 1 token \[.*' gguf-check tokens.gguf
one ': 1 of 25600 bytes differs, .*' gguf-diff m.gguf byte.gguf
one 'single.gguf has 1 tensor and m.gguf 5: .*' gguf-split --like m.gguf -o x single.gguf
one '1 tensor, too few for 2 shards' gguf-quantize -n --shards 2 q8_0 single.gguf
is "an empty name can be seen" "$(gguf-info --get '' m.gguf 2>&1; gguf-edit --delete '' m.gguf 2>&1)" \
	"gguf-info: m.gguf: no key ''
gguf-edit: m.gguf: no key ''"
is "closed standard output" "$(gguf-info m.gguf >&- 2>/dev/null; echo $?)" 2

# output
gguf-info m.gguf >want.txt
ok "-o FILE" gguf-info -o got.txt m.gguf
same "... holds what stdout would" got.txt want.txt
is "a full disk under stdout" "$(gguf-info m.gguf >/dev/full 2>/dev/null; echo $?)" 2
is "... and under JSON longer than a buffer" "$(gguf-info --json m.gguf 2>&1 >/dev/full)" \
	"gguf-info: standard output: No space left on device"
is "... with -o" "$(gguf-info --json -o /dev/full m.gguf 2>&1)" "gguf-info: /dev/full: No space left on device"
# late PROGRAM ...: what comes through a non-blocking pipe of 4 KiB (F_SETPIPE_SZ) that is first read when it is full
late()
{
	perl -MFcntl -e 'pipe R, W; fcntl W, 1031, 4096; fcntl W, F_SETFL, O_WRONLY | O_NONBLOCK;
		if (!fork) { open STDOUT, ">&", W; exec @ARGV }
		close W; sleep 1; print $b while sysread R, $b, 4096; wait; exit $? >> 8' "$@"
}
gguf-info --json m.gguf m.gguf m.gguf >expected
is "a non-blocking pipe is waited for" "$(late gguf-info --json m.gguf m.gguf m.gguf >out; echo $?)" 0
same "... and everything comes through" out expected
# where printf is not glibc's, it cannot wait for a socket
if getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
	perl -MSocket -MFcntl -e 'socketpair R, W, AF_UNIX, SOCK_STREAM, PF_UNSPEC;
		setsockopt W, SOL_SOCKET, SO_SNDBUF, 4096; fcntl W, F_SETFL, O_RDWR | O_NONBLOCK;
		if (!fork) { close R; open STDOUT, ">&", W; exec @ARGV }
		close W; sleep 1; print $b while sysread R, $b, 4096; wait; exit $? >> 8' \
		gguf-info --json m.gguf m.gguf m.gguf >out
	is "a non-blocking socket, too" "$?" 0
	same "... and everything comes through" out expected
	perl -MSocket -MFcntl -e 'socketpair R, W, AF_UNIX, SOCK_STREAM, PF_UNSPEC;
		fcntl W, F_SETFL, O_RDWR | O_NONBLOCK; $SIG{PIPE} = "IGNORE";
		close R; open STDOUT, ">&", W; exec @ARGV' gguf-info --json m.gguf 2>err
	is "... and one without a reader is reported" "$? $(cat err)" "2 gguf-info: standard output: Broken pipe"
else
	skip "a non-blocking socket, too" "not glibc"
fi
is "a full disk under -o" "$(run gguf-info -o /dev/full m.gguf)" 2
is "a full disk, binary" "$(gguf-cat m.gguf token_embd.weight 2>err >/dev/full; echo $?)" 2
is "... is reported as for text" "$(cat err)" "gguf-cat: standard output: No space left on device"
is "... with -o" "$(gguf-cat -o /dev/full m.gguf token_embd.weight 2>&1)" "gguf-cat: /dev/full: No space left on device"
is "... for a whole model" "$(gguf-edit -o /dev/full --delete test.flag m.gguf 2>&1 | tail -n 1)" \
	"gguf-edit: /dev/full: No space left on device"
is "no such folder" "$(run gguf-cat -o nowhere/x m.gguf token_embd.weight)" 2
# early PROGRAM ...: the folder is missed before the model, which is not there either
early()
{
	is "... $*: before the model is read" "$("$@" nowhere/x 2>&1 </dev/null)" \
		"$1: nowhere/x: No such file or directory"
}
early gguf-perplexity -m none text -o
early gguf-perplexity -m none text --save-logits
early gguf-perplexity --merge none -o
early gguf-logits -m none ids -o
early gguf-run -m none -p a -o
early gguf-bench -m none -o
early gguf-bench --synthetic none,q4_0 --save
early gguf-imatrix -m none text -o
early gguf-imatrix --merge none -o
early gguf-imatrix --stats none -o
early gguf-quantize Q4_0 none -o
early gguf-quantize --calibrate text Q4_0 none -o
mkdir empty
early gguf-convert empty -o
early gguf-plan Q4_0 none -o
early gguf-tokenize -m none text -o
early gguf-split --merge none -o
early gguf-edit --delete a none -o
for p in hash check info; do early gguf-$p none -o; done
early gguf-diff none none -o
early gguf-cat none a -o
# another user's file in a folder like /tmp
as_nobody() { perl -e '$) = "65534 65534"; $( = 65534; $> = $< = 65534; exec @ARGV or exit 3' "$@"; }
chmod 711 .
if [ "$(id -u)" = 0 ] && as_nobody gguf-info --version >/dev/null 2>&1; then
	mkdir -m 1777 sticky
	echo old >sticky/theirs
	is "a file that may not be replaced: before the model is read" \
		"$(as_nobody gguf-edit --delete a none -o sticky/theirs 2>&1; cat sticky/theirs)" \
		"gguf-edit: sticky/theirs: Operation not permitted
old"
	chmod 644 m.gguf
	is "... but one's own may" "$(as_nobody sh -c 'gguf-info -o sticky/mine m.gguf &&
		gguf-info -o sticky/mine m.gguf && gguf-info -o sticky/theirs m.gguf' 2>&1)" \
		"gguf-info: sticky/theirs: Operation not permitted"
	chmod 777 sticky
	is "... and any in a folder that all may change" "$(as_nobody gguf-info -o sticky/theirs m.gguf 2>&1)" ""
	rm -r sticky
else
	skip "a file that may not be replaced: before the model is read" "needs root, and programs that all may run"
fi
cp m.gguf orig.gguf
ln m.gguf hard.gguf
ln -s m.gguf soft.gguf
for to in m.gguf ./m.gguf hard.gguf soft.gguf; do
	is "onto the input as $to" "$(run gguf-cat -o $to m.gguf token_embd.weight)" 2
done
is "onto the input, appended to" "$(gguf-cat m.gguf token_embd.weight 2>/dev/null >>m.gguf; echo $?)" 2
for p in gguf-info gguf-check gguf-hash; do
	cp m.gguf last.gguf
	is "$p: what is printed of one file is not appended to the next" \
		"$($p orig.gguf last.gguf 2>/dev/null >>last.gguf; echo $?; cmp last.gguf orig.gguf)" 2
done
is "onto standard input" "$(run gguf-info -o m.gguf <m.gguf)" 2
same "... leaves it alone" m.gguf orig.gguf
for i in 1 2; do "$BUILD/tests/malformed/tool_ggtxt" <"$SRC/tests/malformed/gguf/ok-split-0000$i-of-00002.ggtxt" \
	>s-0000$i-of-00002.gguf; done
cp s-00002-of-00002.gguf second
ok "shards" gguf-info s-00001-of-00002.gguf
is "onto another shard" "$(run gguf-info -o s-00002-of-00002.gguf s-00001-of-00002.gguf)" 2
is "... of either side" "$(run gguf-diff -o s-00002-of-00002.gguf m.gguf s-00001-of-00002.gguf)" 2
same "... leaves it alone" s-00002-of-00002.gguf second
for p in gguf-info gguf-check gguf-hash; do
	is "$p: what is printed of a file is not appended to a shard of the next" \
		"$($p m.gguf s-00001-of-00002.gguf 2>/dev/null >>s-00002-of-00002.gguf; echo "$?"
		cmp s-00002-of-00002.gguf second)" 2
done
# tables of what is done, or would be, go to standard output; the model does not
plan='- {tensor: output.weight, type: q8_0}'
echo "$plan" >plan
gguf-convert -q -o sound.gguf "$DATA/wiki-7m"
cp sound.gguf kept.gguf
cp -R "$DATA/wiki-7m" checkpoint
for p in "gguf-quantize --json -o never q8_0" "gguf-quantize --json --shards 2 -o never q8_0" \
	"gguf-quantize -n q8_0" "gguf-edit -n --delete general.name" "gguf-edit -In --delete general.name" \
	"gguf-split -n --max-tensors 9 -o never"; do
	is "what $p prints is not appended to the model" \
		"$($p sound.gguf 2>/dev/null >>sound.gguf; echo $?; cmp sound.gguf kept.gguf)" 2
done
is "... nor to the plan" "$(gguf-quantize -n --plan plan sound.gguf 2>/dev/null >>plan; echo "$? $(cat plan)")" \
	"2 $plan"
is "... nor to a file of the checkpoint" "$(gguf-convert -n checkpoint 2>/dev/null >>checkpoint/config.json; echo $?
	cmp checkpoint/config.json "$DATA/wiki-7m/config.json")" 2
ok "... but to others" sh -c 'gguf-convert -n checkpoint >checkpoint/plan && [ -s checkpoint/plan ] && [ ! -e never ]'
is "an empty name" "$(run gguf-info -o '' m.gguf)" 2
ok "... is reported as such" grep -q 'name of the output is empty' err
echo old >target.txt
ln -s target.txt link.txt
ok "onto a link" gguf-info -o link.txt m.gguf
ok "... the link stays" test -L link.txt
same "... and its target is replaced" target.txt want.txt
echo old >keep.txt
is "a failure" "$(run gguf-cat -o keep.txt m.gguf no.such.tensor)" 2
is "... keeps the old file" "$(cat keep.txt)" old
echo old >mode.txt
chmod 604 mode.txt
ok "onto a file with another mode" gguf-info -o mode.txt m.gguf
is "... which stays" "$(stat -c %a mode.txt 2>/dev/null || stat -f %Lp mode.txt) $(wc -c <mode.txt)" \
	"604 $(wc -c <want.txt)"
rm mode.txt
mkdir other
ln -s other/../other/new.txt one
ln -s one two
ok "onto a link to a file that is not there" gguf-info -o two m.gguf
same "... which it makes" other/new.txt want.txt
is "... and both links stay" "$(test -L one && test -L two && echo yes)" yes
ln -s loop loop
is "onto a link to itself" "$(run gguf-info -o loop m.gguf)" 2
echo head >appended
gguf-info -o /dev/stdout m.gguf >>appended
is "/dev/stdout that is a file is not replaced" "$(head -1 appended) $(tail -n +2 appended |
	cmp - want.txt 2>&1)" "head "
{ echo head; gguf-info -o /dev/fd/3 m.gguf; } 3>fd3 >/dev/null
same "/dev/fd/3" fd3 want.txt
gguf-info -o self m.gguf >self
same "the file that standard output is" self want.txt
is "a file larger than is allowed" "$( (ulimit -f 1; gguf-cat -o big.bin m.gguf token_embd.weight) 2>&1 |
	grep -c 'big.bin: needs .*File too large')" 1
not_ok "... of text" 2 sh -c "ulimit -f 1; gguf-info --json -o big.ids m.gguf"
is "... is reported too" "$(cat "$TMP/.out")" "gguf-info: big.ids: File too large"
not_ok "... and leaves nothing" 1 test -e big.ids
if [ -e "$BUILD/tests/fault.so" ]; then
	for why in ENOSPC EDQUOT EFBIG; do
		is "$why when space is reserved" "$(LD_PRELOAD=$BUILD/tests/fault.so FAULT=fallocate:1:$why \
			gguf-cat -o big.bin m.gguf token_embd.weight 2>err; echo "$? $(grep -c 'big.bin: needs ' \
			err)$([ -e big.bin ] && echo left)")" "2 1"
	done
else skip "no room where space is reserved" "no preloading here"; fi
if [ -e "$BUILD/tests/fault.so" ]; then
	for mode in 640:600 664:644 475:455; do
		echo old >mode.txt
		chmod ${mode%:*} mode.txt
		LD_PRELOAD=$BUILD/tests/fault.so FAULT=fchown:1:EPERM gguf-info -o mode.txt m.gguf
		is "another group than that of a replaced file may do no more than others: ${mode%:*}" \
			"$(stat -c %a mode.txt) $(wc -l <mode.txt)" "${mode#*:} $(wc -l <want.txt)"
		rm -f mode.txt
	done
else skip "a group that cannot be kept" "no preloading here"; fi
(umask 027; gguf-info -o mode.txt m.gguf)
is "the mode follows umask" "$(stat -c %a mode.txt 2>/dev/null || stat -f %Lp mode.txt)" 640
is "no temporary is left" "$(find . -name '.*.??????' | wc -l | tr -d ' ')" 0

odd=$(printf 'a\377b.gguf')
cp m.gguf "$odd"
for p in "gguf-info --metadata" gguf-check gguf-hash; do
	# shellcheck disable=SC2086
	is "JSON of $p: a file whose name is not UTF-8" \
		"$($p --json "$odd" m.gguf | jq -ac '.[] | [.file, .file_raw]')" '["a\ufffdb.gguf","61ff622e67677566"]
["m.gguf",null]'
done

# the sandbox: a process in it can gain no privileges. confined PROGRAM ARGS: 1, 0 with --no-sandbox, from /proc while
# the program waits for its input
gguf-convert -q -o model.gguf "$DATA/wiki-7m"
confined()
{
	rm -f gate; mkfifo gate
	"$@" gate >/dev/null 2>&1 &
	pid=$!
	exec 9>gate
	n=0 got=0
	while [ "$got" != 1 ] && [ $n -lt 20 ]; do sleep 0.05;
		got=$(sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/$pid/status); n=$((n + 1)); done
	exec 9>&-
	wait $pid
	echo "$got"
}
if [ "$(confined gguf-info 2>/dev/null)" = 1 ]; then
	for p in "gguf-logits -m model.gguf" "gguf-run -m model.gguf" "gguf-tokenize -m model.gguf" \
		"gguf-perplexity -m model.gguf" "gguf-perplexity -m model.gguf --save-logits l -o p.txt" \
		"gguf-imatrix -m model.gguf -o i.gguf" "gguf-imatrix -m model.gguf --checkpoint c -o i.gguf" \
		"gguf-imatrix --stats"; do
		# shellcheck disable=SC2086
		is "$p is in the sandbox" "$(confined $p)" 1
	done
	# whoever started the tests may have given up privileges before
	is "--no-sandbox" "$(confined gguf-tokenize --no-sandbox -m model.gguf)" \
		"$(sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/self/status)"
	# shellcheck disable=SC3045
	is "too few descriptors for it: exit 2" "$( (ulimit -n 4; gguf-info m.gguf) >out 2>err; echo $?)" 2
	ok "... the reason is reported" grep -qE ': (Too many open files|No file descriptors available)$' err
else
	skip "sandbox" "no Landlock"
fi
mkdir hub blobs away
for f in "$DATA"/wiki-7m/*; do cp "$f" "blobs/${f##*/}.blob"; ln -s "../blobs/${f##*/}.blob" "hub/${f##*/}"; done
ok "a folder of links is converted" gguf-convert -q -o away/hub.gguf hub
same "... to the same bytes" away/hub.gguf model.gguf
is "... and tokenizes" "$(echo the city | gguf-tokenize -m hub)" "$(echo the city | gguf-tokenize -m model.gguf)"
ok "logits into another folder" sh -c 'echo 1 2 | gguf-logits -m model.gguf -o away/logits'
is "... and through /dev/stdout" "$(echo 1 2 | gguf-logits -m model.gguf -o /dev/stdout | cksum)" \
	"$(cksum <away/logits)"

# standard input has one name in messages, whatever is read from it and whatever is wrong with it
head -n 40 "$DATA/prose/calibration.txt" | gguf-imatrix -q -m model.gguf --ctx 64 --chunks 1 -o im.gguf
gguf-hash --whole <m.gguf >manifest
echo 1 2 >ids
{
	for from in . ids manifest; do
		for command in gguf-info gguf-check gguf-hash "gguf-cat - x" "gguf-diff - m.gguf" \
			"gguf-edit --delete x" "gguf-split --merge" "gguf-plan q4_0" "gguf-quantize q4_0" \
			"gguf-quantize -i - q4_0 m.gguf" "gguf-quantize --plan - m.gguf" \
			"gguf-convert --arch-file - $DATA/wiki-7m" "gguf-convert --metadata - $DATA/wiki-7m" \
			"gguf-imatrix --merge -" "gguf-imatrix --stats -" "gguf-imatrix -m model.gguf" \
			"gguf-perplexity -m model.gguf" "gguf-perplexity --merge -" \
			"gguf-tokenize -m - m.gguf" "gguf-tokenize -m model.gguf --json"; do
			# shellcheck disable=SC2086
			$command <$from
		done
	done
	gguf-hash --check - m.gguf <ids
	gguf-hash --sha1 --check manifest <m.gguf
	echo '{}' | gguf-perplexity --merge -
	echo '- {tensor: x, type: q8_0}' | gguf-quantize --plan - model.gguf
	echo '{schema: 2}' | gguf-convert --arch-file - "$DATA/wiki-7m"
	gguf-quantize -i - --damp 1 q4_0 model.gguf <im.gguf
	gguf-plan -i - --bpw 5 m.gguf <im.gguf
	gguf-quantize -i - q4_0 model.gguf <im.gguf | cksum >/dev/null
} 2>said >out
is "standard input is called (stdin)" "$(grep -av '(stdin): ' said)" ""
is "... in many messages" "$([ "$(wc -l <said)" -gt 60 ] && echo yes)" yes

# signals while writing
# written PID: the program has its output open
written()
{
	n=0
	while [ $n -lt 30 ]; do
		for fd in /proc/"$1"/fd/* .killed.bin.*; do
			case $(readlink "$fd" 2>/dev/null || echo "$fd") in
			*deleted* | *killed*) [ -L "$fd" ] || [ -e "$fd" ] || continue; return ;;
			esac
		done
		sleep 0.1
		n=$((n + 1))
	done
}
for sig in TERM INT HUP QUIT ABRT ALRM USR1 USR2 KILL; do
	mkfifo pipe
	# a job in the background ignores INT and QUIT, one below nohup HUP, which no trap of a shell can undo
	perl -e '$SIG{$_} = "DEFAULT" for "INT", "QUIT", "HUP"; exec @ARGV' gguf-cat -o killed.bin - output.weight \
		<pipe 2>/dev/null &
	pid=$!
	exec 9>pipe
	head -c 40000 m.gguf >&9
	written $pid
	kill -$sig $pid
	exec 9>&-
	wait $pid
	s=$?                            # not 2, as where the signal is ignored and the pipe ends
	is "killed by $sig" "$([ $s -gt 128 ] && kill -l $s)" $sig
	if [ $sig != KILL ] || [ -d /proc/self/fd ]; then is "... nothing is left" \
		"$(find . -name '*killed.bin*' | wc -l | tr -d ' ')" 0; fi
	rm -f pipe
done
# a model that shrinks while a program uses it
if [ -r /proc/self/maps ] && [ -z "${SANITIZED:-}" ]; then
	cp model.gguf shrinks.gguf
	mkfifo text
	gguf-perplexity --no-sandbox -m shrinks.gguf --ctx 64 -o never text 2>err &
	pid=$!
	exec 9>text
	n=0
	while ! grep -q shrinks.gguf /proc/$pid/maps && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
	: >shrinks.gguf
	cat "$DATA/prose/evaluation.txt" >&9 2>/dev/null
	exec 9>&-
	wait $pid
	is "a mapped file that shrinks: exit 2, a message, no output" \
		"$? $(grep -c "gguf-perplexity: a model's file was truncated" err) $([ -e never ] && echo left)" "2 1 "
	rm text
else
	skip "a mapped file that shrinks" "no /proc, or a sanitizer that takes the signal"
fi
# messages of programs that share a log are whole lines
for i in 1 2 3 4 5 6 7 8; do
	(for j in 1 2 3 4 5 6 7 8 9 10; do
	gguf-info "no-such-file-$i-$j-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; done) 2>>log & done
wait
is "messages are one write" "$(grep -cvE '^gguf-info: no-such-file-[0-9]+-[0-9]+-a{40}: No such file or directory$' \
	log) $(wc -l <log | tr -d ' ')" "0 80"
# a message is one system call
if command -v strace >/dev/null 2>&1 && [ -z "${SANITIZED:-}" ]; then
	is "a message is one call of write" "$(strace -e trace=write gguf-info nowhere 2>&1 >/dev/null |
		grep -c '^write(2')" 1
else skip "a message is one call of write" "no strace, or a sanitizer, which writes too"; fi
is "a reader that stops early is no crash" "$(gguf-cat m.gguf token_embd.weight token_embd.weight token_embd.weight \
	token_embd.weight 2>err | head -c 1 | wc -c | tr -d ' ')" 1
is "... and no message" "$(wc -c <err | tr -d ' ')" 0

# terminals
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	tty_run() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
	ok "binary is not written to a terminal" \
		sh -c "script -qec 'gguf-cat m.gguf output.weight' /dev/null </dev/null | grep -q 'is a terminal'"
	for to in /dev/tty /dev/stderr; do
		is "... under another name: $to" "$(tty_run "gguf-cat -o $to m.gguf output.weight" | tr -d '\r')" \
			"gguf-cat: $to is a terminal, and this is binary: name a file or send it through a pipe"
	done
	is "colour on a terminal" "$(unset NO_COLOR; TERM=xterm tty_run 'gguf-info m.gguf' | head -c 4)" \
		"$(printf '\033[1m')"
	is "NO_COLOR" "$(NO_COLOR=1 TERM=xterm tty_run 'gguf-info m.gguf' | grep -c "$(printf '\033')")" 0
	printf 'a\tb\n\033[31mc' | gguf-tokenize -m model.gguf --no-bos >esc.ids
	is "decoded text may not control a terminal" "$(tty_run 'gguf-tokenize -m model.gguf --decode esc.ids')" \
		"$(printf 'a\tb\n\\x1B[31mc')"
	is "... elsewhere it is as it is" "$(gguf-tokenize -m model.gguf --decode esc.ids)" \
		"$(printf 'a\tb\n\033[31mc')"
	is "gguf-run ends its text with a newline on a terminal" \
		"$(tty_run 'gguf-run -q -m model.gguf -p The -n 3; printf %s end' | tail -n 1)" end
	is "... before it says that the context is full" \
		"$(tty_run 'gguf-run -m model.gguf -p The -n 5 --ctx 4' | tail -n 1)" \
		"gguf-run: the context of 4 positions is full"
	is "... elsewhere it does not" "$(gguf-run -q -m model.gguf -p The -n 3 | wc -l | tr -d ' ')" 0
	is "a dumb terminal" "$(unset NO_COLOR; TERM=dumb tty_run 'gguf-info m.gguf' | grep -c "$(printf '\033')")" 0
else
	skip "terminals" "no script(1)"
fi
done_testing
