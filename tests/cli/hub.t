#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints by name, from a Hugging Face cache made here in the hub's layout.
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1
unset HF_HOME HF_HUB_CACHE XDG_CACHE_HOME
export HOME="$TMP/home"

# cache DIR: the bundled model as wiki/wiki-7m, its files in blobs and links to them in the snapshot
cache()
{
	repo=$1/models--wiki--wiki-7m commit=0123456789abcdef0123456789abcdef01234567
	mkdir -p "$repo/blobs" "$repo/refs/refs/pr" "$repo/snapshots/$commit"
	printf %s $commit >"$repo/refs/main"
	printf '%s\n' $commit >"$repo/refs/refs/pr/1"
	for f in "$DATA"/wiki-7m/*; do
		cp "$f" "$repo/blobs/b-${f##*/}"
		ln -s "../../blobs/b-${f##*/}" "$repo/snapshots/$commit/${f##*/}"
	done
}
# says NAME TEXT COMMAND...: exit 2 with TEXT on stderr
says()
{
	name=$1 text=$2; shift 2
	not_ok "$name" 2 "$@"
	is "$name: message" "$(grep -c -F -- "$text" "$TMP/.out")" 1
}

gguf-convert -q -o want.gguf "$DATA/wiki-7m"
cache "$TMP/home/.cache/huggingface/hub"
converts() { ok "$1" gguf-convert -q -o got.gguf "$2"; same "$1: the folder's model" got.gguf want.gguf;
	rm -f got.gguf; }
converts "a name" wiki/wiki-7m
converts "a name and a commit" wiki/wiki-7m@0123456789abcdef0123456789abcdef01234567
converts "a name and a pull request" wiki/wiki-7m@refs/pr/1
is "gguf-tokenize takes names too" "$(echo hello | gguf-tokenize -m wiki/wiki-7m)" "$(echo hello |
	gguf-tokenize -m "$DATA/wiki-7m")"
mkdir -p moved/huggingface && mv home/.cache/huggingface/hub moved/huggingface/hub
XDG_CACHE_HOME=$TMP/moved converts "XDG_CACHE_HOME" wiki/wiki-7m
HF_HOME=$TMP/moved/huggingface converts "HF_HOME" wiki/wiki-7m
HF_HUB_CACHE=$TMP/moved/huggingface/hub converts "HF_HUB_CACHE" wiki/wiki-7m

export HF_HOME=$TMP/moved/huggingface
says "a model that the cache lacks" \
	"wiki/other: no such file or folder, and no models--wiki--other in the Hugging Face cache $HF_HOME/hub" \
	gguf-convert -o no.gguf wiki/other
says "a revision that it lacks" "has no revision 'v2' of it" gguf-convert -o no.gguf wiki/wiki-7m@v2
says "a revision that leads out" "no@../../x" gguf-convert -o no.gguf wiki/no@../../x
mkdir -p wiki/wiki-7m
says "a folder of that name comes first" "config.json" gguf-convert -o no.gguf wiki/wiki-7m
blobs=moved/huggingface/hub/models--wiki--wiki-7m/blobs
rm -r wiki
for f in tokenizer.model generation_config.json tokenizer_config.json; do
	mv "$blobs/b-$f" lost
	says "a cache that lost $f, although some models do without one" "$f: is a link to a file that does not exist" \
		gguf-convert -o no.gguf wiki/wiki-7m
	mv lost "$blobs/b-$f"
done

# ---- malformed references ----
repo=moved/huggingface/hub/models--wiki--wiki-7m
mkdir "$repo/snapshots/main"            # what a broken reference must not be taken for
cp "$DATA"/wiki-7m/* "$repo/snapshots/main"
# reference NAME TEXT: refs/main is TEXT for printf, and names no revision
reference()
{
	# shellcheck disable=SC2059
	printf "$2" >"$repo/refs/main"
	says "a reference that $1" "has no revision 'main' of it" gguf-convert -n wiki/wiki-7m
}
reference "leads out" '../../../../etc'
reference "leads out of a snapshot" "$commit/../../../../.."
reference "is the folder of all snapshots" '.'
reference "is the one above" '..'
reference "is a path from the root" "/etc"
reference "is a path below" "$commit/"
reference "is empty" ''
reference "is only a line's end" '\r\n'
reference "begins with an empty line" "\\n$commit"
reference "has a second line" "$commit\\nx\\n"
reference "has a blank at its end" "$commit "
reference "goes on after a NUL" "$commit\\000x"
reference "ends with a NUL" "$commit\\000"
reference "begins with a NUL" "\\000$commit"
reference "has control characters" '\033[31m'
reference "is no UTF-8" '\377\376'
reference "is another model's" 89abcdef0123456789abcdef0123456789abcdef
for end in '\n' '\r\n' ''; do
	# shellcheck disable=SC2059
	printf "$commit$end" >"$repo/refs/main"
	converts "a reference that ends with '$end'" wiki/wiki-7m
done
yes "$commit" | head -c 1000000 >"$repo/refs/main"
says "a reference of a megabyte" "refs: main: byte 64: longer than 64 bytes" gguf-convert -n wiki/wiki-7m
rm "$repo/refs/main"
mkdir "$repo/refs/main"
says "a reference that is a folder" "refs: main: not a regular file" gguf-convert -n wiki/wiki-7m
rmdir "$repo/refs/main"
mkfifo "$repo/refs/main"
says "a reference that is a named pipe, for which nobody waits" "refs: main: not a regular file" \
	gguf-convert -n wiki/wiki-7m
rm "$repo/refs/main"
ln -s nowhere "$repo/refs/main"
says "a reference that is a link to nothing" "refs: main: is a link to a file that does not exist" \
	gguf-convert -n wiki/wiki-7m
ln -sf main "$repo/refs/main"
says "a reference that is a link to itself" "refs: main: Too many levels of symbolic links" gguf-convert -n wiki/wiki-7m
printf %s "$commit" >elsewhere
ln -sf "$TMP/elsewhere" "$repo/refs/main"
converts "a reference that is a link out of the cache" wiki/wiki-7m
cp "$DATA/wiki-7m/config.json" config.json
ln -sf "$TMP/config.json" "$repo/snapshots/$commit/config.json"
converts "a file of a snapshot that is a link out of the cache" wiki/wiki-7m
cp -rL "$repo/snapshots/$commit" apart
rm -r "$repo/snapshots/$commit"
ln -s "$TMP/apart" "$repo/snapshots/$commit"
converts "a snapshot that is a link out of the cache" wiki/wiki-7m
rm "$repo/snapshots/$commit"
: >"$repo/snapshots/$commit"
says "a snapshot that is a file" "has no revision 'main' of it" gguf-convert -n wiki/wiki-7m
rm -r "$repo/refs"
converts "without references, a folder that is called as the branch" wiki/wiki-7m
done_testing
