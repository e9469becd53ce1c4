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
mkdir -p wiki/wiki-7m
printf '../../../../etc' >moved/huggingface/hub/models--wiki--wiki-7m/refs/main
rm -r wiki
says "a branch that leads out" "has no revision 'main' of it" gguf-convert -o no.gguf wiki/wiki-7m
done_testing
