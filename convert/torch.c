/* SPDX-License-Identifier: MIT
 * torch.c - the tensors of a file that torch.save wrote: a zip archive with a pickle and storages.
 *
 *   NAME/data.pkl     the pickle: a dict of tensors, or one that has it under a well-known key
 *   NAME/byteorder    "little", if it is there
 *   NAME/data/KEY     the bytes of storage KEY, which tensors share
 *
 * The pickle is read as data (pickle.h). A tensor may have any strides in its storage that torch allows: as the
 * transpose of another, a part of it, or a row that repeats. Values that are not tensors are ignored. Files from before
 * torch 1.6, which are not zip archives, are refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "checkpoint_internal.h"
#include "pickle.h"
#include "zip.h"

#define PICKLE "/data.pkl"
enum { MAX_PICKLE = 32 << 20, MAX_PREFIX = 512, MAX_KEY = 256 };

struct archive { struct checkpoint *c; uint32_t file; const char *name; struct zip *zip; char prefix[MAX_PREFIX]; };

/* The keys under which tensors usually are, if a file has more than a state dict. */
static const char *const nested[] = { "state_dict", "model_state_dict", "model", "module" };

/* ---- one tensor ---- */

static enum ggu_status tensor_fail(const struct archive *a, enum ggu_status code, const struct pickle_str *name,
	const char *what, struct ggu_error *err)
{
	char where[128];
	snprintf(where, sizeof where, "%.*s", (int)(name->n < sizeof where ? name->n : sizeof where - 1), name->p);
	return file_fail(err, code, a->name, GGU_NO_OFFSET, where, "%s", what);
}

/* Reads shape, strides and number of elements, or returns what is wrong with them. */
static const char *shape_of(const struct pickle_tensor *p, struct source_tensor *t)
{
	t->n_dims = (unsigned)p->size->n;
	t->n_weights = t->n_stored = 1;
	for (size_t d = 0; d < p->size->n; d++) {
		int64_t size = p->size->v[d]->u.i;
		if (size < 0) return "a negative dimension";
		if (__builtin_mul_overflow(t->n_weights, (uint64_t)size, &t->n_weights) || t->n_weights > INT64_MAX)
			return "its shape is too large";
		t->shape[d] = (uint64_t)size;
	}
	for (size_t d = 0; d < p->size->n; d++) {
		int64_t stride = p->stride->v[d]->u.i;
		uint64_t last;
		t->stride[d] = 1;
		if (t->shape[d] < 2) continue;          /* a dimension of 1 may have any stride */
		if (stride < 0) return "a negative stride";
		t->stride[d] = (uint64_t)stride;
		if (__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &last) ||
			__builtin_add_overflow(t->n_stored, last, &t->n_stored))
			return "extends past the end of its storage";
	}
	if (!t->n_weights) t->n_stored = 0;
	return NULL;
}

static enum ggu_status add_tensor(struct archive *a, const struct pickle_str *name, const struct pickle_tensor *p,
	struct ggu_error *err)
{
	struct source_tensor t = { .file = a->file, .dtype = p->dtype ? checkpoint_dtype(p->dtype) : NULL };
	const struct zip_member *m;
	uint64_t from, bytes, data;
	char member[MAX_PREFIX + MAX_KEY + 8];
	const char *bad;
	enum ggu_status s;
	if (!t.dtype) return tensor_fail(a, GGU_ERR_UNSUPPORTED, name, "a storage without a type", err);
	if (p->size->n > SOURCE_MAX_DIMS) return tensor_fail(a, GGU_ERR_UNSUPPORTED, name, "too many dimensions", err);
	bad = shape_of(p, &t);
	if (bad) return tensor_fail(a, GGU_ERR_UNSUPPORTED, name, bad, err);
	if (p->storage->key.n > MAX_KEY)
		return tensor_fail(a, GGU_ERR_FORMAT, name, "its storage has an invalid name", err);
	snprintf(member, sizeof member, "%s/data/%.*s", a->prefix, (int)p->storage->key.n, p->storage->key.p);
	m = zip_find(a->zip, member);
	if (!m) return tensor_fail(a, GGU_ERR_MISSING, name, "its storage is not in the archive", err);
	if (p->offset < 0 || __builtin_mul_overflow((uint64_t)p->offset, (uint64_t)t.dtype->bytes, &from)
		|| __builtin_mul_overflow(t.n_stored, (uint64_t)t.dtype->bytes, &bytes)
		|| from > m->bytes || bytes > m->bytes - from)
		return tensor_fail(a, GGU_ERR_TRUNCATED, name, "extends past the end of its storage", err);
	s = zip_data(a->zip, m, &data, err);
	t.offset = data + from;
	t.bytes = bytes;
	return s ? s : checkpoint_add(a->c, &t, name->p, name->n, err);
}

/* ---- the state dict ---- */

static bool has_tensors(const struct pickle_value *v)
{
	if (!v || v->kind != PICKLE_DICT) return false;
	for (size_t i = 0; i + 1 < v->u.items.n; i += 2) if (v->u.items.v[i + 1]->kind == PICKLE_TENSOR) return true;
	return false;
}

static enum ggu_status add_tensors(struct archive *a, const struct pickle_value *root, struct ggu_error *err)
{
	const struct pickle_value *dict = root;
	enum ggu_status s = GGU_OK;
	for (size_t k = 0; k < sizeof nested/sizeof *nested && !has_tensors(dict); k++)
		dict = pickle_get(root, nested[k]);
	if (!has_tensors(dict))
		return file_fail(err, GGU_ERR_MISSING, a->name, GGU_NO_OFFSET, "",
			"the pickle holds no dict of tensors");
	for (size_t i = 0; !s && i + 1 < dict->u.items.n; i += 2) {
		const struct pickle_value *key = dict->u.items.v[i], *v = dict->u.items.v[i + 1];
		if (v->kind != PICKLE_TENSOR) continue;
		if (key->kind != PICKLE_STR || memchr(key->u.s.p, 0, key->u.s.n))
			return file_fail(err, GGU_ERR_FORMAT, a->name, GGU_NO_OFFSET, "",
				"a tensor whose key is not a name");
		s = add_tensor(a, &key->u.s, &v->u.tensor, err);
	}
	return s;
}

/* ---- the archive ---- */

static enum ggu_status check_byte_order(const struct archive *a, struct ggu_error *err)
{
	char member[MAX_PREFIX + 16];
	const struct zip_member *m;
	unsigned char *text;
	enum ggu_status s;
	bool little;
	snprintf(member, sizeof member, "%s/byteorder", a->prefix);
	m = zip_find(a->zip, member);
	if (!m) return GGU_OK;
	s = zip_slurp(a->zip, m, 64, &text, err);
	if (s) return s;
	little = text_is(text, m->bytes, "little");
	free(text);
	return little ? GGU_OK
		: file_fail(err, GGU_ERR_UNSUPPORTED, a->name, GGU_NO_OFFSET, member, "is not \"little\"");
}

static enum ggu_status read_pickle(struct archive *a, const struct zip_member *m, struct ggu_error *err)
{
	struct pickle *p = NULL;
	unsigned char *text;
	uint64_t at;
	enum ggu_status s = zip_slurp(a->zip, m, MAX_PICKLE, &text, err);
	if (s) return s;
	s = zip_data(a->zip, m, &at, err);
	if (!s) s = pickle_read(&p, text, (size_t)m->bytes, a->name, at, err);
	if (!s) s = add_tensors(a, pickle_root(p), err);
	pickle_free(p);
	free(text);
	return s;
}

static enum ggu_status read_archive(struct archive *a, struct ggu_error *err)
{
	const struct zip_member *pickle = NULL;
	enum ggu_status s;
	for (size_t i = 0; i < zip_count(a->zip) && !pickle; i++)
		if (file_ends_with(zip_at(a->zip, i)->name, PICKLE)) pickle = zip_at(a->zip, i);
	if (!pickle)
		return file_fail(err, GGU_ERR_FORMAT, a->name, GGU_NO_OFFSET, "",
			"a zip archive without data.pkl: it was not written by torch.save");
	if (strlen(pickle->name) - strlen(PICKLE) >= MAX_PREFIX)
		return file_fail(err, GGU_ERR_RANGE, a->name, GGU_NO_OFFSET, "", "its members' names are too long");
	memcpy(a->prefix, pickle->name, strlen(pickle->name) - strlen(PICKLE));
	s = check_byte_order(a, err);
	return s ? s : read_pickle(a, pickle, err);
}

enum ggu_status torch_read(struct checkpoint *c, uint32_t i, struct ggu_error *err)
{
	const struct shard *f = c->shards + i;
	struct archive a = { .c = c, .file = i, .name = f->name };
	unsigned char magic[4] = { 0 };
	enum ggu_status s = file_read_at(f->fd, f->name, 0, magic, sizeof magic, err);
	if (s) return s;
	if (!text_is(magic, sizeof magic, "PK\3\4"))
		return file_fail(err, GGU_ERR_UNSUPPORTED, f->name, 0, "",
			"not a zip archive: files written by torch before 1.6 must be saved again");
	s = zip_open(&a.zip, f->fd, f->name, f->bytes, err);
	if (s) return s;
	s = read_archive(&a, err);
	zip_close(a.zip);
	return s;
}
