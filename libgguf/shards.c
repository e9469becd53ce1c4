/* SPDX-License-Identifier: MIT
 * shards.c - NAME-00001-of-0000N.gguf and the other shards, read as one file.
 *
 * Whichever shard is named, all N are opened. Their names are the given name with other digits: no path is formed from
 * the contents of a file. What each shard says (split.no from 0, split.count, split.tensors.count over all) must agree
 * with the names and with the tensors found. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "shard_name.h"
#include "text.h"

bool ggu_shards_begin_elsewhere(const char *path)
{
	uint32_t no, count;

	return shard_name_parse(path, &no, &count) && no;
}

bool ggu_shards_are_named(const struct ggu_meta *m)
{
	uint64_t n;

	return ggu_meta_uint(m, "split.count", &n) && n > 1;
}

/* Key k of shard i must be *want; if that is UINT64_MAX, it becomes what the key says. */
static enum ggu_status says(const struct ggu_meta *m, const char *key, uint64_t *want, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, key);
	enum ggu_status s;
	uint64_t v;

	if (!kv)
		s = ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, key, "missing from a shard");
	else if (!ggu_meta_uint(m, key, &v))
		s = ggu_fail(err, GGU_ERR_TYPE, kv->offset, key, "is %s, not an unsigned integer",
			ggu_kv_type_name(kv->type));
	else if (v == UINT64_MAX)       /* would mean that nothing is wanted of the next shard */
		s = ggu_fail(err, GGU_ERR_FORMAT, kv->offset, key, "is %llu, too many", (unsigned long long)v);
	else if (*want != UINT64_MAX && v != *want)
		s = ggu_fail(err, GGU_ERR_FORMAT, kv->offset, key, "is %llu, not %llu", (unsigned long long)v,
			(unsigned long long)*want);
	else {
		*want = v;
		return GGU_OK;
	}
	return ggu_rule(err, GGU_RULE_SPLIT, s);
}

/* Checks the three keys of shard `no`, at place i. */
static enum ggu_status check(const struct ggu_file *f, const struct ggu_meta *m, uint32_t i, uint64_t no,
	uint64_t count, uint64_t *n_tensors, struct ggu_error *err)
{
	const struct ggu_leniency l = ggu_file_leniency(f, i);

	TRY(ggu_tolerate(&l, says(m, "split.no", &no, err), err));
	TRY(ggu_tolerate(&l, says(m, "split.count", &count, err), err));
	return ggu_tolerate(&l, says(m, "split.tensors.count", n_tensors, err), err);
}

static void blame(struct ggu_error *err, uint32_t i, const char *name)
{
	if (err) {
		err->source = i;
		ggu_error_file(err, name);
	}
}

static enum ggu_status open_one(struct ggu_file *f, uint32_t i, uint32_t count, const char *path, uint64_t *n_tensors,
	struct ggu_error *err)
{
	struct ggu_shard *s = &f->shard[i];
	struct ggu_meta *m = NULL;
	enum ggu_status status;
	char *name = strdup(path);

	if (!name)
		return ggu_no_memory(err);
	shard_name_set(name, i);
	status = ggu_shard_of_path(s, name, 0, err);
	if (status == GGU_OK)
		status = ggu_header_read(f, i, &m, err);
	if (status == GGU_OK)
		status = check(f, m, i, i, count, n_tensors, err);
	if (status != GGU_OK)
		blame(err, i, name);
	free(name);
	if (i == 0 && status == GGU_OK)
		f->meta = m;
	else
		ggu_meta_free(m);
	return status;
}

/* Forgets shard 0 and its header: another shard was read first. */
static void forget(struct ggu_file *f)
{
	ggu_shard_close(f->shard);
	ggu_meta_free(f->meta);
	f->meta = NULL;
	ggu_table_free(&f->table);
}

static enum ggu_status check_total(const struct ggu_file *f, uint64_t n_tensors, struct ggu_error *err)
{
	const struct ggu_leniency l = ggu_file_leniency(f, 0);
	const struct ggu_kv *kv = ggu_meta_find(f->meta, "split.tensors.count");
	uint64_t first;

	/* if shard 1 has another number than the others, or one that is too great, that was reported before */
	if (f->table.n == n_tensors || n_tensors == UINT64_MAX || !kv
		|| !ggu_meta_uint(f->meta, "split.tensors.count", &first) || first != n_tensors)
		return GGU_OK;
	return ggu_tolerate(&l, ggu_rule(err, GGU_RULE_SPLIT, ggu_fail(err, GGU_ERR_FORMAT, kv->offset, kv->key.p,
		"is %llu, but the shards hold %zu tensor%s", (unsigned long long)n_tensors, f->table.n,
		text_s(f->table.n))), err);
}

static enum ggu_status open_all(struct ggu_file *f, const char *path, uint32_t no, uint32_t count,
	struct ggu_error *err)
{
	uint64_t n_tensors = UINT64_MAX;
	struct ggu_shard *p;

	if (!no || !f->options.defect)  /* otherwise defects are reported in order, later */
		TRY(check(f, f->meta, 0, no, count, &n_tensors, err));
	p = realloc(f->shard, count*sizeof *p);
	if (!p)
		return ggu_no_memory(err);
	f->shard = p;
	memset(p + 1, 0, (count - 1)*sizeof *p);
	for (uint32_t i = 1; i < count; i++)
		p[i].fd = -1;
	f->n_shards = count;
	if (no)
		forget(f);
	for (uint32_t i = no ? 0 : 1; i < count; i++)
		TRY(open_one(f, i, count, path, &n_tensors, err));
	TRY(check_total(f, n_tensors, err));
	ggu_meta_remove(f->meta, "split.no");
	ggu_meta_remove(f->meta, "split.count");
	ggu_meta_remove(f->meta, "split.tensors.count");
	return GGU_OK;
}

/* The error for a shard that says it is one of `count`, but whose name, if any, does not lead to the others. */
static enum ggu_status alone(const struct ggu_kv *kv, uint64_t count, const char *path, struct ggu_error *err)
{
	enum ggu_status s;

	if (!path)
		s = ggu_fail(err, GGU_ERR_UNSUPPORTED, kv->offset, kv->key.p,
			"one of %llu shards: they can only be read by name", (unsigned long long)count);
	else
		s = ggu_fail(err, GGU_ERR_UNSUPPORTED, kv->offset, kv->key.p,
			"one of %llu shards, but its name does not end in -00001-of-%05llu.gguf",
			(unsigned long long)count, (unsigned long long)count);
	return ggu_rule(err, GGU_RULE_SPLIT, s);
}

enum ggu_status ggu_shards_open(struct ggu_file *f, const char *path, struct ggu_error *err)
{
	const struct ggu_leniency l = ggu_file_leniency(f, 0);
	const struct ggu_kv *kv = ggu_meta_find(f->meta, "split.count");
	uint64_t n = UINT64_MAX;
	uint32_t no, count;
	bool named;

	if (!kv)
		return GGU_OK;
	TRY(ggu_tolerate(&l, says(f->meta, "split.count", &n, err), err));
	if (!ggu_meta_uint(f->meta, "split.count", &n) || n == UINT64_MAX || !n)
		return GGU_OK;          /* reported, or the 0 that a merge leaves */
	named = path && shard_name_parse(path, &no, &count);
	if (n == 1 && !(named && count == 1))   /* whatever its name, nothing is missing */
		return GGU_OK;
	if (!named)
		return ggu_tolerate(&l, alone(kv, n, path, err), err);
	return open_all(f, path, no, count, err);
}
