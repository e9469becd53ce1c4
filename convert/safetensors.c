/* SPDX-License-Identifier: MIT
 * safetensors.c - read and check the header of a safetensors file.
 *
 *   u64 header bytes | header: JSON, {"name": {"dtype", "shape", "data_offsets": [from, to]}, ...} | data
 *
 * A message about an entry gives the byte of the entry's name in the header. Source of the format: the safetensors
 * README (a header of at most 100 MB, little-endian row-major data that the tensors cover without gap or overlap). */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "checkpoint_internal.h"

enum { MAX_HEADER = 100000000 };

struct header { const char *file; const char *text; size_t n; uint64_t data_bytes; };

/* Byte of the entry `name` in the file: its quoted name, inside one brace only and followed by a colon. The header is
 * known to be JSON. */
static uint64_t entry_at(const struct header *h, const char *name)
{
	size_t depth = 0;
	for (const char *p = h->text, *end = h->text + h->n; p < end; p++) {
		const char *from = p;
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p != '"') continue;
		for (p++; p < end && *p != '"'; p++) p += *p == '\\';
		if (depth != 1 || !text_is(from + 1, (size_t)(p - from - 1), name)) continue;
		while (p + 1 < end && strchr(" \n\t\r", p[1])) p++;
		if (p + 1 < end && p[1] == ':') return 8 + (uint64_t)(from - h->text);
	}
	return 8;       /* the header may spell a name with escapes */
}
#define ENTRY_FAIL(code, ...) file_fail(err, code, h->file, entry_at(h, name), name, __VA_ARGS__)

static bool get_u64(const json_t *v, uint64_t *u)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0) return false;
	*u = (uint64_t)json_integer_value(v);
	return true;
}

/* An unknown type takes as many bytes as the entry says. Those who need the tensor refuse it. */
static const struct source_dtype unknown = { "an unknown type", 0, SOURCE_NO_TYPE };

static enum ggu_status parse_entry(const struct header *h, const char *name, const json_t *e, struct source_tensor *t,
	struct ggu_error *err)
{
	const json_t *dtype = json_object_get(e, "dtype"), *shape = json_object_get(e, "shape"),
		*range = json_object_get(e, "data_offsets");
	uint64_t from, to, want = 1;
	if (!json_is_object(e)) return ENTRY_FAIL(GGU_ERR_FORMAT, "not a JSON object");
	if (!json_is_string(dtype)) return ENTRY_FAIL(GGU_ERR_FORMAT, "no dtype");
	t->dtype = checkpoint_dtype(json_string_value(dtype));
	if (!t->dtype) t->dtype = &unknown;
	if (!json_is_array(shape)) return ENTRY_FAIL(GGU_ERR_FORMAT, "no shape");
	if (json_array_size(shape) > SOURCE_MAX_DIMS)
		return ENTRY_FAIL(GGU_ERR_UNSUPPORTED, "%zu dimensions, more than %d", json_array_size(shape),
			SOURCE_MAX_DIMS);
	t->n_dims = (unsigned)json_array_size(shape);
	for (unsigned i = 0; i < t->n_dims; i++) {
		if (!get_u64(json_array_get(shape, i), &t->shape[i]))
			return ENTRY_FAIL(GGU_ERR_FORMAT, "shape[%u] is not a count", i);
		if (__builtin_mul_overflow(want, t->shape[i], &want))
			return ENTRY_FAIL(GGU_ERR_RANGE, "shape is too large");
	}
	t->n_weights = want;
	checkpoint_rows(t);
	if (__builtin_mul_overflow(want, (uint64_t)t->dtype->bytes, &want))
		return ENTRY_FAIL(GGU_ERR_RANGE, "shape is too large");
	if (json_array_size(range) != 2 || !get_u64(json_array_get(range, 0), &from) ||
		!get_u64(json_array_get(range, 1), &to))
		return ENTRY_FAIL(GGU_ERR_FORMAT, "data_offsets is not [from, to]");
	if (from > to) return ENTRY_FAIL(GGU_ERR_FORMAT, "data_offsets end before they begin");
	if (to > h->data_bytes)
		return ENTRY_FAIL(GGU_ERR_TRUNCATED, "data ends at byte %llu, after the file's %llu data byte%s",
			(unsigned long long)to, (unsigned long long)h->data_bytes, text_s(h->data_bytes));
	t->bytes = to - from;
	if (t->dtype->bytes && t->bytes != want)
		return ENTRY_FAIL(GGU_ERR_FORMAT, "%llu byte%s of data, but the shape needs %llu",
			(unsigned long long)(to - from), text_s(to - from), (unsigned long long)want);
	t->offset = 8 + h->n + from;
	return GGU_OK;
}

static int by_offset(const void *a, const void *b)
{
	const struct source_tensor *x = a, *y = b;
	if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
	if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;  /* empty ones first */
	return strcmp(x->name, y->name);
}

/* The tensors of a file, sorted by offset, must cover its data exactly. */
static enum ggu_status check_cover(const struct header *h, struct source_tensor *t, size_t n, struct ggu_error *err)
{
	uint64_t end = 8 + h->n;
	if (n > 1) qsort(t, n, sizeof *t, by_offset);
	for (size_t i = 0; i < n; i++) {
		const char *name = t[i].name;
		if (t[i].offset < end) return ENTRY_FAIL(GGU_ERR_FORMAT, "data overlaps that of another tensor");
		if (t[i].offset > end)
			return ENTRY_FAIL(GGU_ERR_FORMAT, "unused bytes before the data: %llu",
				(unsigned long long)(t[i].offset - end));
		end += t[i].bytes;
	}
	if (end != 8 + h->n + h->data_bytes)
		return file_fail(err, GGU_ERR_FORMAT, h->file, end, "", "unused bytes at the end: %llu",
			(unsigned long long)(8 + h->n + h->data_bytes - end));
	return GGU_OK;
}

static enum ggu_status parse_header(struct checkpoint *c, const struct header *h, uint32_t file, struct ggu_error *err)
{
	json_t *root, *e;
	const char *name;
	size_t first = c->n;
	enum ggu_status s = file_json_text(h->text, h->n, h->file, 8, JSON_REJECT_DUPLICATES, &root, err);
	if (s) return s;
	json_object_foreach(root, name, e) {
		struct source_tensor t = { .file = file };
		if (!strcmp(name, "__metadata__")) continue;
		s = parse_entry(h, name, e, &t, err);
		if (!s) s = checkpoint_add(c, &t, name, strlen(name), err);
		if (s) break;
	}
	json_decref(root);
	return s ? s : check_cover(h, c->n > first ? c->tensors + first : NULL, c->n - first, err);
}

enum ggu_status safetensors_read(struct checkpoint *c, uint32_t i, struct ggu_error *err)
{
	struct shard *f = &c->shards[i];
	unsigned char b[8];
	uint64_t n = 0;
	char *text;
	enum ggu_status s = file_read_at(f->fd, f->name, 0, b, 8, err);
	if (s) return s;
	for (int k = 7; k >= 0; k--) n = n << 8 | b[k];
	if (n > MAX_HEADER || n > f->bytes - 8)
		return file_fail(err, GGU_ERR_FORMAT, f->name, 0, "", "header of %llu byte%s %s",
			(unsigned long long)n, text_s(n), n > f->bytes - 8 ? "extends past the end of the file" :
			"exceeds the format's limit of 100 MB");
	text = malloc((size_t)n + 1);
	if (!text) return ggu_no_memory(err);
	s = file_read_at(f->fd, f->name, 8, text, (size_t)n, err);
	if (!s) s = parse_header(c, &(struct header){ f->name, text, (size_t)n, f->bytes - 8 - n }, i, err);
	free(text);
	return s;
}
