/* SPDX-License-Identifier: MIT
 * gguf-hash - digests of a model's tensors, to print or to hold against a manifest.
 *
 * What is hashed is the tensors' data (hashing.h), so that a model keeps its digests when its metadata is edited,
 * when it is split, merged or realigned. Lines are those of llama-gguf-hash (manifest.h). */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "hashing.h"
#include "kv_json.h"
#include "manifest.h"
#include "msg.h"
#include "opt.h"
#include "out.h"
#include "pipe.h"
#include "progress.h"
#include "sandbox.h"

static struct {
	bool kind[DIGEST_KINDS], whole, tensors, json;
	int jobs;
	const char *check, *output;
} o;
static const struct opt opts[] = {
	OPT_FLAG(0, "xxh3", &o.kind[DIGEST_XXH3], "64-bit XXH3: fast, detects accidental damage (default)"),
	OPT_FLAG(0, "xxh64", &o.kind[DIGEST_XXH64], "XXH64, the default of llama-gguf-hash"),
	OPT_FLAG(0, "sha1", &o.kind[DIGEST_SHA1], "SHA-1"),
	OPT_FLAG(0, "sha256", &o.kind[DIGEST_SHA256], "SHA-256, detects forgery too"),
	OPT_FLAG(0, "uuid", &o.kind[DIGEST_UUID], "a UUID made from the data of all tensors"),
	OPT_FLAG(0, "whole", &o.whole, "print only the digest of each file as a whole"),
	OPT_FLAG(0, "tensors", &o.tensors, "print only the digests of the tensors"),
	OPT_FILE('c', "check", &o.check, "MANIFEST", "compare with the digests in MANIFEST"),
	OPT_FLAG(0, "json", &o.json, "print JSON"),
	OPT_OUTPUT(&o.output),
	OPT_JOBS(&o.jobs),
	OPT_COMMON, OPT_END
};

/* One file's pass. */
struct pass {
	const char *name;
	struct ggu_pool *pool;
	json_t *file, *tensors;                 /* of the file, with --json */
	struct manifest_entry *entry;           /* [n], with --check */
	size_t n;
	bool differs, lost;                     /* a digest differs; a file could not be read */
};

static void to_json(struct pass *p, const struct ggu_tensor *t, enum digest_kind k, const char *digest)
{
	json_t *at = p->file;
	if (t) {
		size_t n = json_array_size(p->tensors);
		struct ggu_str name = { t->name, t->name_bytes };
		json_t *last = n ? json_array_get(p->tensors, n - 1) : NULL, *shown = json_of_str(name);
		/* digests of one tensor follow one another */
		if (!last || json_object_get(last, digest_name(k))
			|| !json_equal(json_object_get(last, "name"), shown)) {
			json_push(p->tensors, json_object());
			last = json_array_get(p->tensors, n);
			json_put_str(last, "name", name);
		}
		json_decref(shown);
		at = last;
	}
	json_put(at, digest_name(k), json_string(digest));
}
static void compare(struct pass *p, const struct ggu_tensor *t, enum digest_kind k, const char *digest)
{
	const char *tensor = t ? t->name : NULL;
	size_t n;
	struct manifest_entry *e = manifest_find(p->entry, p->n, tensor, k, &n);
	bool same = e != NULL;
	for (size_t i = 0; i < n; i++) {
		same &= !strcmp(e[i].digest, digest);
		e[i].seen = true;
	}
	/* if the manifest does not have the whole, its tensors are compared or reported */
	if (!e && !t) return;
	if (!same) p->differs = true;
	if (!same || !msg_quiet)
		manifest_print_name(p->name, tensor, !e ? ": not in the manifest" : same ? ": OK" : ": FAILED");
}
static void found(void *ctx, const struct ggu_tensor *t, enum digest_kind k, const char *digest)
{
	struct pass *p = ctx;
	progress_make_way();
	if (p->entry) compare(p, t, k, digest);
	else if (p->file) to_json(p, t, k, digest);
	else manifest_print(k, digest, p->name, t ? t->name : NULL);
}

/* The digests to compare: those that were requested, or else the strongest kind that the manifest has. False: it has
 * none, which is reported. */
static bool choose(struct hashing *h, struct pass *p, struct manifest *m)
{
	bool any = false;
	p->entry = manifest_file(m, p->name, &p->n);
	if (!p->entry) msg_say("%s: not in the manifest%s", msg_name(p->name),
		strcmp(p->name, "-") ? "" : ", where it would be called '-'");
	for (int k = 0; k < DIGEST_KINDS; k++) any |= h->kind[k];
	h->whole = h->tensors = false;
	for (int k = DIGEST_KINDS - 1; k >= 0; k--) {
		bool here = false;
		for (size_t i = 0; i < p->n; i++) if ((int)p->entry[i].kind == k) here = true;
		if (here && !any) h->kind[k] = any = true;
		h->kind[k] &= here;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (!h->kind[p->entry[i].kind]) continue;
		if (p->entry[i].tensor) h->tensors = true;
		else h->whole = true;
	}
	if (p->entry && !h->whole && !h->tensors)
		msg_say("%s: the manifest has no digest of that kind", msg_name(p->name));
	return h->whole || h->tensors;
}
/* Reports tensors that the manifest has and the file lacks. */
static void missing(const struct hashing *h, struct pass *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct manifest_entry *e = p->entry + i;
		if (e->seen || !h->kind[e->kind]) continue;
		manifest_print_name(p->name, e->tensor, ": no such tensor");
		p->differs = true;
	}
}

/* Adds the file's object to those of all, unless that is NULL, and forgets it. */
static void end_json(struct pass *p, const struct hashing *h, json_t *all)
{
	if (h->tensors) json_put(p->file, "tensors", p->tensors);
	else json_decref(p->tensors);
	if (all) json_push(all, p->file);
	else json_decref(p->file);
}
/* False: the manifest has nothing for the file, or it cannot be read, which is reported. */
static bool one_file(struct pass *p, struct manifest *m, const struct out *out, json_t *all)
{
	struct hashing h = { .whole = o.whole || !o.tensors, .tensors = o.tensors || !o.whole, .found = found,
		.ctx = p };
	struct ggu_file *f;
	struct ggu_error err;
	uint64_t bytes = 0;
	bool read;
	memcpy(h.kind, o.kind, sizeof h.kind);
	p->entry = NULL;
	p->n = 0;
	if (m && !choose(&h, p, m)) return false;
	pipe_input(p->name);
	if (ggu_open(&f, p->name, &err)) {
		msg_error(p->name, &err);
		return false;
	}
	out_refuse_sources(out, p->name, f);
	if (all) {
		p->file = json_object();
		p->tensors = json_array();
		json_put_str(p->file, "file", (struct ggu_str){ p->name, strlen(p->name) });
	}
	for (size_t i = 0; i < ggu_file_n_tensors(f); i++) bytes += ggu_file_tensor(f, i)->bytes;
	progress_begin("hashing", bytes, "B");
	read = hashing_run(&h, f, p->name, p->pool);
	progress_end();
	if (read && pipe_rest(f, p->name, &err)) {
		msg_error(p->name, &err);
		read = false;
	}
	if (m && read) missing(&h, p);
	if (all) end_json(p, &h, read ? all : NULL);
	ggu_close(f);
	return read;
}

/* The files that a manifest names; *n of them. The caller frees the list. */
static const char **files_of(const struct manifest *m, int *n)
{
	const char **list = msg_need(calloc(m->n, sizeof *list));
	*n = 0;
	for (size_t i = 0; i < m->n; i++)
		if (!i || strcmp(m->entry[i].file, m->entry[i - 1].file) != 0)
			list[(*n)++] = m->entry[i].file;
	return list;
}

int main(int argc, char **argv)
{
	static const char *const standard[] = { "-", NULL };
	struct pass p = { 0 };
	struct manifest *m = NULL;
	struct out *out;
	const char *const *names;
	const char **listed = NULL;
	json_t *all = NULL;
	bool any = false;
	argc = opt_parse(argc, argv, opts,
		&(struct opt_program){ "gguf-hash", "print or check digests of the tensors of GGUF files",
		"[--xxh3] [--xxh64] [--sha1] [--sha256] [--uuid] [--whole | --tensors] [--json] [-j N] [-o FILE] "
		"[FILE ...]\n"
		"[--xxh3] [--xxh64] [--sha1] [--sha256] [--uuid] [-q] [-j N] [-o FILE] --check MANIFEST "
		"[FILE ...]", 0, -1 });
	if (o.check) opt_refuse("--check", "whole tensors json");
	if (o.tensors) opt_refuse("--tensors", "whole uuid");
	for (int k = 0; k < DIGEST_KINDS; k++) any |= o.kind[k];
	if (!any && !o.check) o.kind[DIGEST_XXH3] = true;
	if (o.json) all = json_array();
	names = argc ? (const char *const *)argv : standard;
	if (!argc) argc = 1;
	if (o.check) {
		m = manifest_read(o.check);
		if (names == standard) names = listed = files_of(m, &argc);
	}
	pipe_once(names, argc, "two files");
	for (int i = 0; i < argc; i++)
		pipe_once((const char *[]){ o.check, names[i] }, 2, "the manifest and a file");
	out = out_open(o.output, false);
	out_refuse_input(out, o.check);
	for (int i = 0; i < argc; i++) out_refuse_input(out, names[i]); /* before anything is printed */
	out_take_stdout(out);
	if (!o.jobs) o.jobs = ggu_cpu_count();  /* reads files, so before the sandbox */
	sandbox_enter(names, argc, o.output);
	p.pool = msg_need(ggu_pool_new(o.jobs));
	for (int i = 0; i < argc; i++) {
		p.name = names[i];
		if (!one_file(&p, m, out, all)) p.lost = true;
	}
	if (all) json_print_files(all, true);
	ggu_pool_free(p.pool);
	manifest_free(m);
	free(listed);
	out_end(out, !p.lost);
	return p.lost ? EXIT_TROUBLE : p.differs ? EXIT_NO : EXIT_YES;
}
