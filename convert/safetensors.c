/* SPDX-License-Identifier: MIT
 * safetensors.c - find the files of a checkpoint, read and check their headers; see checkpoint.h.
 *
 * Which files: model.safetensors, else those that model.safetensors.index.json names, else every model*.safetensors.
 * A message about an entry gives the byte where its name stands in the header. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../model/util/file.h"
#include "checkpoint.h"

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"
enum { MAX_HEADER = 100000000, MAX_FILES = 100000 };

struct shard { char *name; int fd; uint64_t bytes; };
struct checkpoint {
	char *dir;
	struct shard *shards; size_t n_shards;
	struct source_tensor *tensors; size_t n, cap;
};

static const struct source_dtype dtypes[] = {
	{ "F64", 8, GGU_TYPE_F64 }, { "F32", 4, GGU_TYPE_F32 }, { "F16", 2, GGU_TYPE_F16 }, { "BF16", 2, GGU_TYPE_BF16 },
	{ "I64", 8, GGU_TYPE_I64 }, { "I32", 4, GGU_TYPE_I32 }, { "I16", 2, GGU_TYPE_I16 }, { "I8", 1, GGU_TYPE_I8 },
	{ "U8", 1, SOURCE_NO_TYPE }, { "BOOL", 1, SOURCE_NO_TYPE }, { "U16", 2, SOURCE_NO_TYPE }, { "U32", 4, SOURCE_NO_TYPE },
	{ "U64", 8, SOURCE_NO_TYPE }, { "C64", 8, SOURCE_NO_TYPE }, { "F8_E4M3", 1, SOURCE_NO_TYPE }, { "F8_E5M2", 1, SOURCE_NO_TYPE },
	{ "F8_E8M0", 1, SOURCE_NO_TYPE }, { "F8_E4M3FNUZ", 1, SOURCE_NO_TYPE }, { "F8_E5M2FNUZ", 1, SOURCE_NO_TYPE },
};

/* qsort wants an array, even of nothing. */
static void sort(void *v, size_t n, size_t bytes, int (*compare)(const void *, const void *)) { if (n > 1) qsort(v, n, bytes, compare); }

/* ---- one header ---- */

struct header { const char *file; const char *text; size_t n; uint64_t data_bytes; };

/* Byte of the entry `name` in the file: its quoted name, followed by a colon. */
static uint64_t entry_at(const struct header *h, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = h->text, *end = h->text + h->n; (p = memchr(p, '"', (size_t)(end - p))); p++) {
		const char *q = p + 1 + n + 1;
		if ((size_t)(end - p) < n + 3 || memcmp(p + 1, name, n) || p[1 + n] != '"') continue;
		while (q < end && (*q == ' ' || *q == '\n' || *q == '\t' || *q == '\r')) q++;
		if (q < end && *q == ':') return 8 + (uint64_t)(p - h->text);
	}
	return 8;       /* a name that the header spells with escapes */
}
#define ENTRY_FAIL(code, ...) file_fail(err, code, h->file, entry_at(h, name), name, __VA_ARGS__)

static bool get_u64(const json_t *v, uint64_t *u)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0) return false;
	*u = (uint64_t)json_integer_value(v);
	return true;
}

static enum ggu_status parse_entry(const struct header *h, const char *name, const json_t *e, struct source_tensor *t, struct ggu_error *err)
{
	const json_t *dtype = json_object_get(e, "dtype"), *shape = json_object_get(e, "shape"), *range = json_object_get(e, "data_offsets");
	uint64_t from, to, want = 1;
	if (!json_is_object(e)) return ENTRY_FAIL(GGU_ERR_FORMAT, "not a JSON object");
	if (!json_is_string(dtype)) return ENTRY_FAIL(GGU_ERR_FORMAT, "no dtype");
	for (size_t i = 0; i < sizeof dtypes/sizeof *dtypes; i++)
		if (!strcmp(dtypes[i].name, json_string_value(dtype))) t->dtype = &dtypes[i];
	if (!t->dtype) return ENTRY_FAIL(GGU_ERR_UNSUPPORTED, "unknown dtype %.20s", json_string_value(dtype));
	if (!json_is_array(shape)) return ENTRY_FAIL(GGU_ERR_FORMAT, "no shape");
	if (json_array_size(shape) > SOURCE_MAX_DIMS) return ENTRY_FAIL(GGU_ERR_UNSUPPORTED, "%zu dimensions, more than %d", json_array_size(shape), SOURCE_MAX_DIMS);
	t->n_dims = (unsigned)json_array_size(shape);
	for (unsigned i = 0; i < t->n_dims; i++) {
		if (!get_u64(json_array_get(shape, i), &t->shape[i])) return ENTRY_FAIL(GGU_ERR_FORMAT, "shape[%u] is no count", i);
		if (__builtin_mul_overflow(want, t->shape[i], &want)) return ENTRY_FAIL(GGU_ERR_RANGE, "shape is too large");
	}
	t->n_weights = want;
	if (__builtin_mul_overflow(want, (uint64_t)t->dtype->bytes, &want)) return ENTRY_FAIL(GGU_ERR_RANGE, "shape is too large");
	if (json_array_size(range) != 2 || !get_u64(json_array_get(range, 0), &from) || !get_u64(json_array_get(range, 1), &to))
		return ENTRY_FAIL(GGU_ERR_FORMAT, "data_offsets is not [from, to]");
	if (from > to) return ENTRY_FAIL(GGU_ERR_FORMAT, "data_offsets end before they begin");
	if (to > h->data_bytes) return ENTRY_FAIL(GGU_ERR_TRUNCATED, "data ends at byte %llu of %llu data bytes", (unsigned long long)to, (unsigned long long)h->data_bytes);
	if (to - from != want) return ENTRY_FAIL(GGU_ERR_FORMAT, "%llu bytes of data, but the shape needs %llu", (unsigned long long)(to - from), (unsigned long long)want);
	t->offset = 8 + h->n + from;
	return GGU_OK;
}

static enum ggu_status grow(struct checkpoint *c, size_t more, struct ggu_error *err)
{
	struct source_tensor *v;
	size_t cap = c->n + more > 2*c->cap ? c->n + more : 2*c->cap;
	if (c->n + more <= c->cap) return GGU_OK;
	v = realloc(c->tensors, cap*sizeof *v);
	if (!v) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	c->tensors = v;
	c->cap = cap;
	return GGU_OK;
}

static int by_offset(const void *a, const void *b)
{
	const struct source_tensor *x = a, *y = b;
	uint64_t p = x->n_weights*x->dtype->bytes, q = y->n_weights*y->dtype->bytes;
	if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
	return (p > q) - (p < q);       /* empty ones first */
}

/* The tensors of one file, sorted by offset, have to cover its data exactly. */
static enum ggu_status check_cover(const struct header *h, struct source_tensor *t, size_t n, struct ggu_error *err)
{
	uint64_t end = 8 + h->n;
	sort(t, n, sizeof *t, by_offset);
	for (size_t i = 0; i < n; i++) {
		const char *name = t[i].name;
		if (t[i].offset < end) return ENTRY_FAIL(GGU_ERR_FORMAT, "data overlaps that of another tensor");
		if (t[i].offset > end) return ENTRY_FAIL(GGU_ERR_FORMAT, "%llu bytes before the data belong to no tensor", (unsigned long long)(t[i].offset - end));
		end += t[i].n_weights*t[i].dtype->bytes;
	}
	if (end != 8 + h->n + h->data_bytes)
		return file_fail(err, GGU_ERR_FORMAT, h->file, end, "", "%llu bytes at the end belong to no tensor", (unsigned long long)(8 + h->n + h->data_bytes - end));
	return GGU_OK;
}

static enum ggu_status parse_header(struct checkpoint *c, const struct header *h, uint32_t file, struct ggu_error *err)
{
	json_t *root, *e;
	const char *name;
	size_t first = c->n;
	enum ggu_status s = file_json_text(h->text, h->n, h->file, 8, JSON_REJECT_DUPLICATES, &root, err);
	if (s) return s;
	s = grow(c, json_object_size(root), err);
	if (!s) json_object_foreach(root, name, e) {
		struct source_tensor t = { .file = file };
		if (!strcmp(name, "__metadata__")) continue;
		if ((s = parse_entry(h, name, e, &t, err))) break;
		if (!(t.name = strdup(name))) { s = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory"); break; }
		c->tensors[c->n++] = t;
	}
	json_decref(root);
	return s ? s : check_cover(h, c->n > first ? c->tensors + first : NULL, c->n - first, err);
}

static enum ggu_status read_shard(struct checkpoint *c, uint32_t i, struct ggu_error *err)
{
	struct shard *f = &c->shards[i];
	unsigned char b[8];
	uint64_t n = 0;
	char *text;
	enum ggu_status s = file_open(c->dir, f->name, &f->fd, &f->bytes, err);
	if (!s) s = file_read_at(f->fd, f->name, 0, b, 8, err);
	if (s) return s;
	for (int k = 7; k >= 0; k--) n = n << 8 | b[k];
	if (n > MAX_HEADER || n > f->bytes - 8)
		return file_fail(err, GGU_ERR_FORMAT, f->name, 0, "", "header of %llu bytes exceeds the %s", (unsigned long long)n,
			n > f->bytes - 8 ? "file" : "format's limit of 100 MB");
	text = malloc((size_t)n + 1);
	if (!text) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	s = file_read_at(f->fd, f->name, 8, text, (size_t)n, err);
	if (!s) s = parse_header(c, &(struct header){ f->name, text, (size_t)n, f->bytes - 8 - n }, i, err);
	free(text);
	return s;
}

/* ---- which files ---- */

/* A file that is not among them yet. */
static enum ggu_status add_shard(struct checkpoint *c, const char *name, struct ggu_error *err)
{
	struct shard *v;
	if (c->n_shards >= MAX_FILES) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "more than %d files", MAX_FILES);
	v = realloc(c->shards, (c->n_shards + 1)*sizeof *v);
	if (v) {
		c->shards = v;
		v[c->n_shards] = (struct shard){ strdup(name), -1, 0 };
		if (v[c->n_shards].name) { c->n_shards++; return GGU_OK; }
	}
	return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
}

static int by_shard_name(const void *a, const void *b) { return strcmp(((const struct shard *)a)->name, ((const struct shard *)b)->name); }

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

static int by_string(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* files[]: those of every tensor of the index, in its order. */
static enum ggu_status indexed_files(json_t *map, const char **files, struct ggu_error *err)
{
	json_t *v;
	const char *name;
	json_object_foreach(map, name, v) {
		const char *file = json_string_value(v);
		char where[128];
		snprintf(where, sizeof where, "weight_map.%s", name);
		if (!file || !*file || strchr(file, '/') || !ends_with(file, ".safetensors"))
			return file_fail(err, GGU_ERR_FORMAT, INDEX, GGU_NO_OFFSET, where, "not the name of a .safetensors file in the folder");
		*files++ = file;
	}
	return GGU_OK;
}

static enum ggu_status add_indexed(struct checkpoint *c, const json_t *index, struct ggu_error *err)
{
	json_t *map = json_object_get(index, "weight_map");
	size_t n = json_object_size(map);
	const char **files;
	enum ggu_status s;
	if (!json_is_object(map)) return file_fail(err, GGU_ERR_FORMAT, INDEX, GGU_NO_OFFSET, "weight_map", "not a JSON object");
	files = malloc((n + 1)*sizeof *files);
	if (!files) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	s = indexed_files(map, files, err);
	if (!s) sort(files, n, sizeof *files, by_string);
	for (size_t i = 0; !s && i < n; i++) if (!i || strcmp(files[i - 1], files[i])) s = add_shard(c, files[i], err);
	free(files);
	return s;
}

/* Every name of the index is in the file that it names. */
static enum ggu_status check_index(const struct checkpoint *c, const json_t *index, struct ggu_error *err)
{
	json_t *v;
	const char *name;
	json_object_foreach(json_object_get(index, "weight_map"), name, v) {
		const struct source_tensor *t = checkpoint_find(c, name);
		char where[128];
		snprintf(where, sizeof where, "weight_map.%s", name);
		if (!t || strcmp(c->shards[t->file].name, json_string_value(v)))
			return file_fail(err, GGU_ERR_MISSING, INDEX, GGU_NO_OFFSET, where, "no such tensor in %s", json_string_value(v));
	}
	return GGU_OK;
}

/* No index: whatever model*.safetensors there is; and what else there is, for the message. */
static enum ggu_status add_listed(struct checkpoint *c, struct ggu_error *err)
{
	DIR *d = opendir(c->dir);
	bool pickled = false;
	struct dirent *e;
	enum ggu_status s = GGU_OK;
	if (!d) return file_fail(err, GGU_ERR_IO, "", GGU_NO_OFFSET, "", "not a folder that can be read");
	while (!s && (e = readdir(d))) {
		if (!strncmp(e->d_name, "model", 5) && ends_with(e->d_name, ".safetensors")) s = add_shard(c, e->d_name, err);
		pickled |= ends_with(e->d_name, ".bin") || ends_with(e->d_name, ".pth") || ends_with(e->d_name, ".pt");
	}
	closedir(d);
	if (s || c->n_shards) return s;
	return pickled ? ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "PyTorch pickles only: save the model as safetensors (save_pretrained does) and convert that")
		: ggu_fail(err, GGU_ERR_MISSING, GGU_NO_OFFSET, "", "no model.safetensors in the folder");
}

static int by_name(const void *a, const void *b) { return strcmp(((const struct source_tensor *)a)->name, ((const struct source_tensor *)b)->name); }

static enum ggu_status load(struct checkpoint *c, struct ggu_error *err)
{
	json_t *index = NULL;
	enum ggu_status s;
	if (file_exists(c->dir, SINGLE)) s = add_shard(c, SINGLE, err);
	else if (file_exists(c->dir, INDEX)) {
		s = file_json(c->dir, INDEX, &index, err);
		if (!s) s = add_indexed(c, index, err);
	} else s = add_listed(c, err);
	if (!s) sort(c->shards, c->n_shards, sizeof *c->shards, by_shard_name);
	for (uint32_t i = 0; !s && i < c->n_shards; i++) s = read_shard(c, i, err);
	if (!s) sort(c->tensors, c->n, sizeof *c->tensors, by_name);
	for (size_t i = 1; !s && i < c->n; i++)
		if (!strcmp(c->tensors[i - 1].name, c->tensors[i].name))
			s = file_fail(err, GGU_ERR_FORMAT, c->shards[c->tensors[i].file].name, GGU_NO_OFFSET, c->tensors[i].name, "also in %s", c->shards[c->tensors[i - 1].file].name);
	if (!s && index) s = check_index(c, index, err);
	json_decref(index);
	return s;
}

enum ggu_status checkpoint_open(struct checkpoint **out, const char *dir, struct ggu_error *err)
{
	struct checkpoint *c = calloc(1, sizeof *c);
	enum ggu_status s;
	if (!c || !(c->dir = strdup(dir))) s = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	else s = load(c, err);
	if (s) checkpoint_close(c);
	else *out = c;
	return s;
}

void checkpoint_close(struct checkpoint *c)
{
	if (!c) return;
	for (size_t i = 0; i < c->n; i++) free((char *)c->tensors[i].name);
	for (size_t i = 0; i < c->n_shards; i++) {
		if (c->shards[i].fd >= 0) close(c->shards[i].fd);
		free(c->shards[i].name);
	}
	free(c->tensors);
	free(c->shards);
	free(c->dir);
	free(c);
}

size_t checkpoint_count(const struct checkpoint *c) { return c->n; }
const struct source_tensor *checkpoint_at(const struct checkpoint *c, size_t i) { return c->tensors + i; }
const struct source_tensor *checkpoint_find(const struct checkpoint *c, const char *name)
{
	return c->n ? bsearch(&(struct source_tensor){ .name = name }, c->tensors, c->n, sizeof *c->tensors, by_name) : NULL;
}

enum ggu_status checkpoint_read(const struct checkpoint *c, const struct source_tensor *t, uint64_t from, void *to, size_t n, struct ggu_error *err)
{
	const struct shard *f = &c->shards[t->file];
	if (from > t->n_weights || n > t->n_weights - from) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "reads past its end");
	return file_read_at(f->fd, f->name, t->offset + from*t->dtype->bytes, to, n*t->dtype->bytes, err);
}
