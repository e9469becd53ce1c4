# SPDX-License-Identifier: MIT
# tap.sh - what every tests/*/*.t script sources: TAP lines, a scratch folder, where things are.
#
#   . "$(dirname "$0")/../lib/tap.sh"
#   ok "name" command args...           passes if the command exits 0
#   not_ok "name" STATUS command...     passes if it exits with STATUS
#   is "name" "$got" "$want"            compares two strings
#   same "name" FILE FILE               compares two files
#   skip "name" "why"                   a test that cannot run here
#   peak PROGRAM ARGS...                runs it and sets $peak: the most memory it had, in bytes (tool_peak.c)
#   near_peak "name" TOLD OVER          the last peak is TOLD bytes, within 5 % upwards and a factor of OVER downwards
#   need_shared PATH "what"             skips the whole file if ../shared/PATH is missing
#   done_testing                        last line; a file without a test is a failure
#
# $BIN has the programs, $SRC the tree, $SHARED the references, $TMP a folder that is removed at the end.
set -u
SRC=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$SRC/build}
DATA=$SRC/tests/data
SHARED=${GGUF_UTILS_SHARED:-$SRC/../shared}
scratch() { TMP=$(mktemp -d "$TMPDIR/gguf-test.XXXXXX") && : >"$TMP/.run" && chmod +x "$TMP/.run"; }
TMPDIR=${TMPDIR:-/tmp}
scratch
# tests run what they write, which a file system may not permit: test -x says so
[ -x "$TMP/.run" ] || { rm -r "$TMP"; export TMPDIR="$BUILD"; scratch; }
# neither LD_PRELOAD nor make takes a name with blanks: a link to it, which must not have any either
case $BUILD in *[[:blank:]:]*)
	case $TMP in *[[:blank:]:]*) rm -r "$TMP"; export TMPDIR=/tmp; scratch ;; esac
	ln -s "$BUILD" "$TMP/.build" && BUILD=$TMP/.build ;;
esac
trap 'rm -rf "$TMP"' EXIT
trap 'exit 1' HUP INT TERM
BIN=$BUILD/bin
PATH=$BIN:$PATH
export LC_ALL=C NO_COLOR=1
tap_n=0 tap_bad=0
tap_result()
{
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then echo "ok $tap_n - $2"; else echo "not ok $tap_n - $2"; tap_bad=1; fi
}
ok()
{
	tap_name=$1; shift
	"$@" >"$TMP/.out" 2>&1
	tap_s=$?
	tap_result "$tap_s" "$tap_name"
	[ "$tap_s" = 0 ] || { echo "# exit $tap_s: $*"; sed 's/^/# /' "$TMP/.out" | head -20; }
}
not_ok()
{
	tap_name=$1 tap_want=$2; shift 2
	"$@" >"$TMP/.out" 2>&1
	tap_s=$?
	[ "$tap_s" = "$tap_want" ]
	tap_result $? "$tap_name"
	[ "$tap_s" = "$tap_want" ] || { echo "# exit $tap_s, wanted $tap_want: $*"; sed 's/^/# /' "$TMP/.out" |
		head -20; }
}
is()
{
	[ "$2" = "$3" ]
	tap_result $? "$1"
	[ "$2" = "$3" ] || { echo "# got:"; echo "$2" | sed 's/^/#   /'; echo "# want:"; echo "$3" | sed 's/^/#   /'; }
}
same()
{
	if cmp -s "$2" "$3"; then tap_result 0 "$1"; else tap_result 1 "$1"; diff "$3" "$2" 2>&1 | head -20 |
		sed 's/^/# /'; fi
}
skip() { tap_n=$((tap_n + 1)); echo "ok $tap_n - $1 # SKIP $2"; }
peak()
{
	"$BUILD/tests/cli/tool_peak" "$@" 3>"$TMP/.peak"
	tap_s=$?
	read -r peak <"$TMP/.peak"
	return $tap_s
}
near_peak()
{
	ok "$1: $peak, predicted $2" awk -v told="$2" -v peak="$peak" -v over="$3" \
		'BEGIN { exit !(told < over*peak && peak < 1.05*told) }'
}
need_shared()
{
	[ -e "$SHARED/$1" ] || { echo "1..0 # SKIP $2: no $1 among the references"; exit 0; }
}
done_testing()
{
	[ "$tap_n" -gt 0 ] || tap_result 1 "there are tests"
	echo "1..$tap_n"
	exit "$tap_bad"
}
# A test that expects no output must not pass because a program is missing.
[ -x "$BIN/gguf-info" ] || { echo "Bail out!  no programs in $BIN: run make"; exit 1; }
