/* SPDX-License-Identifier: MIT
 * hub.c - the layout of the Hugging Face cache; see hub.h.
 *
 *   CACHE/models--ORG--NAME/refs/REVISION         a text: the commit that a branch or tag stands for
 *                           snapshots/COMMIT/     the files, links into blobs/
 *
 * CACHE is $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
 * Source: the documentation of huggingface_hub, "Manage huggingface_hub cache-system". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../model/util/file.h"
#include "hub.h"
#include "msg.h"

enum { MAX_NAME = 96, MAX_REVISION = 256, MAX_COMMIT = 64 };

static char *joined(const char *a, const char *b)
{
	return msg_need(file_path(a, b));
}
static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static char *cache_folder(void)
{
	static const struct { const char *variable, *below; } places[] = {
		{ "HF_HUB_CACHE", NULL }, { "HF_HOME", "hub" }, { "XDG_CACHE_HOME", "huggingface/hub" },
		{ "HOME", ".cache/huggingface/hub" },
	};
	for (size_t i = 0; i < sizeof places/sizeof *places; i++) {
		const char *v = getenv(places[i].variable);
		if (v && *v) return places[i].below ? joined(v, places[i].below) : joined(NULL, v);
	}
	return NULL;
}

/* The length of a name as the hub spells it; 0: it is not such a name. */
static size_t name_bytes(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
	return *s == '.' || *s == '-' || n > MAX_NAME ? 0 : n;
}

/* A revision may be a branch such as refs/pr/1, but must not lead out of the folder. */
static bool revision_ok(const char *r)
{
	return *r && *r != '/' && strlen(r) <= MAX_REVISION && !strstr(r, "..") && !strchr(r, '\\');
}

/* The commit that model/refs/revision names, or else, if there is no such file, the revision itself, which must be a
 * commit. It is a name of one folder: no other character may be in it, a NUL and a second line included. */
static char *commit_of(const char *model, const char *revision)
{
	char *refs = joined(model, "refs"), *text = NULL;
	struct ggu_error err;
	size_t n;
	enum ggu_status s = file_slurp(refs, revision, MAX_COMMIT, &text, &n, &err);
	if (s && s != GGU_ERR_MISSING) msg_die_error(refs, &err);
	if (s) {
		text = joined(NULL, revision);
		n = strlen(text);
	}
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r')) n--;
	free(refs);
	if (!n || name_bytes(text) != n) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

static char *snapshot(const char *model, const char *revision)
{
	char *commit = commit_of(model, revision), *all = joined(model, "snapshots"), *one = commit ? joined(all,
		commit) : NULL;
	free(commit);
	free(all);
	if (one && is_folder(one)) return one;
	free(one);
	return NULL;
}

const char *hub_folder(const char *name)
{
	size_t org = name_bytes(name), own = org && name[org] == '/' ? name_bytes(name + org + 1) : 0;
	const char *rest = name + org + 1 + own, *revision = own && *rest == '@' ? rest + 1 : "main";
	char folder[2*MAX_NAME + 16], *cache, *model, *found;
	struct stat st;
	if (!own || (*rest && *rest != '@') || !revision_ok(revision) || !lstat(name, &st)) return name;
	cache = cache_folder();
	if (!cache) return name;
	snprintf(folder, sizeof folder, "models--%.*s--%.*s", (int)org, name, (int)own, name + org + 1);
	model = joined(cache, folder);
	if (!is_folder(model))
		msg_die("%s: no such file or folder, and no %s in the Hugging Face cache %s", name, folder, cache);
	found = snapshot(model, revision);
	if (!found) msg_die("%s: the Hugging Face cache %s has no revision '%s' of it", name, cache, revision);
	free(cache);
	free(model);
	return found;
}
