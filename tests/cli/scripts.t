#!/bin/sh
# SPDX-License-Identifier: MIT
# The Makefile says nothing of its own, and its targets are no files. Scripts on machines that lack things: which files
# are of a tree without git, and packages that nobody may install.
. "$(dirname "$0")/../lib/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
is "make says nothing of its own" "$(make -C "$SRC" -s help 2>&1 >"$TMP/help")" ""
ok "... unless a library is missing" sh -c 'make -C "$1" -s help PKG_CONFIG=false 2>&1 >/dev/null |
	grep -q "false does not find all of jansson .*scripts/deps"' - "$SRC"
make -C "$SRC" -s -p -n help | sed -n 's/^\.PHONY: *//p' | tr ' ' '\n' >"$TMP/phony"
is "a file by the name of a target of make help is none of it" \
	"$(sed 's/ .*//' "$TMP/help" | grep -vxFf "$TMP/phony")" ""
tree=$TMP/tree
mkdir -p "$tree/scripts" "$tree/tests/data" "$tree/build/gen" "$TMP/bare" "$TMP/sudo"
cp "$SRC/scripts/files" "$SRC/scripts/deps" "$tree/scripts"
cd "$tree" || exit 1
export GIT_DIR="$TMP/none"          # the scratch folder may lie in a repository
touch a.c tests/t.c tests/data/d.c build/gen/g.c b.h
is "an unpacked archive's files are listed, but what was built" "$(sh scripts/files '*.c' '*.h')" \
	"$(printf '%s\n' a.c b.h tests/data/d.c tests/t.c)"
is "... a pattern takes away" "$(sh scripts/files '*.c' '!tests/*' 'tests/t.c')" "$(printf '%s\n' a.c tests/t.c)"

# a Debian without any of the packages, where nothing can be installed
printf '#!/bin/sh\nexit 1\n' >"$TMP/bare/dpkg-query"
printf '#!/bin/sh\necho "E: no network" >&2\nexit 100\n' >"$TMP/bare/apt-get"
printf '#!/bin/sh\necho 1000\n' >"$TMP/bare/id"
printf '#!/bin/sh\nexec "$@"\n' >"$TMP/sudo/sudo"
chmod +x "$TMP/bare"/* "$TMP/sudo/sudo"
packages=$(sh scripts/deps --print --build | tr '\n' ' ')
sh=$(command -v sh)
is "a user without sudo is told what is missing" "$(PATH=$TMP/bare "$sh" scripts/deps --build 2>&1; echo $?)" \
	"deps: only root can install packages, and there is no sudo here; missing: ${packages% }
2"
is "... and a user whose apt-get fails" "$(PATH=$TMP/bare:$TMP/sudo "$sh" scripts/deps --build 2>&1; echo $?)" \
	"deps: installing ${packages% }
E: no network
deps: apt-get failed; missing: ${packages% }
2"
printf '#!/bin/sh\nprintf "installed not-installed installed "\n' >"$TMP/bare/dpkg-query"
is "what several architectures have installed is not missing" \
	"$(PATH=$TMP/bare "$sh" scripts/deps --build 2>&1; echo $?)" 0
done_testing
