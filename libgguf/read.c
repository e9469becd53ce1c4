/* SPDX-License-Identifier: MIT
 * read.c - opens a GGUF and checks its whole header.
 *
 * A header is read by one cursor, front to back: fixed part, key/value pairs, table. Then the
 * tensors of the source are put in the order of their data and held against each other and the end
 * of the file. Gaps between tensors are allowed, as the specification does; overlaps are not. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

static enum ggu_status source_fd(struct ggu_source *s, int fd, struct ggu_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "fstat");
	if (S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "open");
	}
	s->fd = fd;
	s->seekable = S_ISREG(st.st_mode);
	s->size = s->seekable ? (uint64_t)st.st_size : UINT64_MAX;
	return GGU_OK;
}

enum ggu_status ggu_source_open(struct ggu_source *s, const char *path, struct ggu_error *err)
{
	bool in = !strcmp(path, "-");
	int fd = in ? 0 : open(path, O_RDONLY | O_CLOEXEC);
	enum ggu_status status;

	if (fd < 0)
		return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "open");
	s->name = strdup(in ? "standard input" : path);
	status = s->name ? source_fd(s, fd, err) : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	s->own_fd = !in;
	s->fd = fd;
	return status;
}

static enum ggu_status fixed_part(struct ggu_cursor *c, uint64_t *n_tensors, uint64_t *n_kv)
{
	struct ggu_source *s = c->s;
	uint8_t magic[4];

	GGU_TRY(ggu_cursor_bytes(c, magic, 4));
	if (memcmp(magic, "GGUF", 4))
		return ggu_fail(c->err, GGU_ERR_FORMAT, 0, "", "not a GGUF file: the magic is %02x %02x %02x %02x",
		                magic[0], magic[1], magic[2], magic[3]);
	GGU_TRY(ggu_cursor_u32(c, &s->version));
	/* the format has no mark of byte order; a small version in the upper half is one swapped */
	if (s->version && !(s->version & 0xffff)) {
		s->big = true;
		ggu_swap_items(&s->version, 1, 4);
	}
	if (s->version != 2 && s->version != 3)
		return ggu_fail(c->err, GGU_ERR_UNSUPPORTED, 4, "", "version %u; 2 and 3 are read", s->version);
	GGU_TRY(ggu_cursor_u64(c, n_tensors));
	GGU_TRY(ggu_cursor_u64(c, n_kv));
	/* the least a pair takes: length, one byte, type, one byte; a tensor: length, one byte, dimensions, type, offset */
	if (*n_tensors > ggu_cursor_left(c)/25 || *n_tensors > UINT32_MAX/2)
		return ggu_fail(c->err, GGU_ERR_TRUNCATED, 8, "", "%llu tensors exceed the file", (unsigned long long)*n_tensors);
	if (*n_kv > ggu_cursor_left(c)/14 || *n_kv > UINT32_MAX/2)
		return ggu_fail(c->err, GGU_ERR_TRUNCATED, 16, "", "%llu key/value pairs exceed the file", (unsigned long long)*n_kv);
	return GGU_OK;
}

static enum ggu_status alignment(struct ggu_source *s, const struct ggu_meta *m, struct ggu_error *err)
{
	const struct ggu_kv *kv = ggu_meta_find(m, "general.alignment");
	uint64_t v = GGU_ALIGN_DEFAULT, at;

	if (kv) {
		at = kv->offset + 8 + kv->key.n;        /* its type, then its value */
		if (kv->type != GGU_U32)
			return ggu_fail(err, GGU_ERR_TYPE, at, kv->key.p, "is %s, not u32", ggu_kv_type_name(kv->type));
		ggu_kv_uint(kv, 0, &v);
		if (!ggu_align_ok(v))
			return ggu_fail(err, GGU_ERR_FORMAT, at + 4, kv->key.p, "alignment %llu is no power of two from %d to %d",
			                (unsigned long long)v, GGU_ALIGN_MIN, GGU_ALIGN_MAX);
	}
	s->alignment = (uint32_t)v;
	return GGU_OK;
}

static uint64_t offset_field(const struct ggu_tensor *t)
{
	return t->entry + 8 + t->name_bytes + 4 + 8*(uint64_t)t->n_dims + 4;
}

struct by_offset { uint64_t offset, bytes; size_t i; };
static int compare(const void *a, const void *b)
{
	const struct by_offset *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* Offsets of the tensors from `first` on: aligned, inside the file, each byte in one tensor only. */
static enum ggu_status layout(struct ggu_file *f, const struct ggu_source *s, size_t first, struct by_offset *o, struct ggu_error *err)
{
	size_t n = f->table.n - first;
	uint64_t end = 0, room = s->size == UINT64_MAX ? INT64_MAX : s->data_offset < s->size ? s->size - s->data_offset : 0;
	const struct ggu_tensor *last = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct ggu_tensor *t = &f->table.t[first + i];
		if (t->offset & (s->alignment - 1))
			return ggu_fail(err, GGU_ERR_FORMAT, offset_field(t), t->name, "offset %llu is no multiple of the alignment %u",
			                (unsigned long long)t->offset, s->alignment);
		/* bytes and room are below 2^63, so neither difference can wrap */
		if (t->bytes > room || t->offset > room - t->bytes)
			return ggu_fail(err, GGU_ERR_TRUNCATED, offset_field(t), t->name,
			                "%llu bytes of data at offset %llu exceed the file", (unsigned long long)t->bytes, (unsigned long long)t->offset);
		o[i] = (struct by_offset){ t->offset, t->bytes, first + i };
	}
	if (n)
		qsort(o, n, sizeof *o, compare);
	for (size_t i = 0; i < n; i++) {
		const struct ggu_tensor *t = &f->table.t[o[i].i];
		f->order[first + i] = o[i].i;
		if (!t->bytes)
			continue;
		if (t->offset < end)
			return ggu_fail(err, GGU_ERR_FORMAT, offset_field(t), t->name, "data overlaps that of '%.60s'", last->name);
		end = t->offset + t->bytes;
		last = t;
	}
	return GGU_OK;
}

static enum ggu_status header(struct ggu_file *f, uint32_t i, struct ggu_meta *m, struct ggu_error *err)
{
	struct ggu_source *s = &f->source[i];
	struct ggu_cursor c;
	uint64_t n_tensors, n_kv;
	size_t first = f->table.n, n, *order;
	struct by_offset *o;
	enum ggu_status status;

	ggu_cursor_init(&c, s, err);
	GGU_TRY(fixed_part(&c, &n_tensors, &n_kv));
	for (uint64_t k = 0; k < n_kv; k++)
		GGU_TRY(ggu_kv_read(&c, m));
	GGU_TRY(alignment(s, m, err));
	GGU_TRY(ggu_table_read(&c, &f->table, n_tensors, i));
	s->data_offset = ggu_align_up(c.at, s->alignment);
	ggu_cursor_done(&c);
	n = f->table.n - first;
	order = realloc(f->order, (f->table.n + 1)*sizeof *order);
	o = malloc((n + 1)*sizeof *o);
	if (order)
		f->order = order;
	status = order && o ? layout(f, s, first, o, err) : ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	free(o);
	if (s->seekable) {              /* pread from here on */
		free(s->buf);
		s->buf = NULL;
	}
	return status;
}

enum ggu_status ggu_header_read(struct ggu_file *f, uint32_t i, struct ggu_meta **meta, struct ggu_error *err)
{
	struct ggu_meta *m = ggu_meta_new();
	enum ggu_status status;

	if (!m)
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	status = header(f, i, m, err);
	if (status == GGU_OK) {
		*meta = m;
		return GGU_OK;
	}
	ggu_meta_free(m);
	if (err) {
		err->source = i;
		if (i)
			snprintf(err->file, sizeof err->file, "%s", f->source[i].name);
	}
	return status;
}

/* A file with one source, which is yet to be filled in. */
static struct ggu_file *file_new(struct ggu_error *err)
{
	struct ggu_file *f = calloc(1, sizeof *f);

	if (f)
		f->source = calloc(1, sizeof *f->source);
	if (!f || !f->source) {
		free(f);
		ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
		return NULL;
	}
	f->n_sources = 1;
	f->source->fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	return f;
}

static enum ggu_status finish(struct ggu_file **to, struct ggu_file *f, enum ggu_status status, const char *path, struct ggu_error *err)
{
	if (status == GGU_OK)
		status = ggu_header_read(f, 0, &f->meta, err);
	if (status == GGU_OK)
		status = ggu_shards_open(f, path, err);
	if (status == GGU_OK)
		*to = f;
	else
		ggu_close(f);
	return status;
}

enum ggu_status ggu_open(struct ggu_file **to, const char *path, struct ggu_error *err)
{
	struct ggu_file *f = file_new(err);

	return f ? finish(to, f, ggu_source_open(f->source, path, err), strcmp(path, "-") ? path : NULL, err) : GGU_ERR_NOMEM;
}

enum ggu_status ggu_open_fd(struct ggu_file **to, int fd, struct ggu_error *err)
{
	struct ggu_file *f = file_new(err);

	return f ? finish(to, f, source_fd(f->source, fd, err), NULL, err) : GGU_ERR_NOMEM;
}

enum ggu_status ggu_open_memory(struct ggu_file **to, const void *bytes, size_t n, struct ggu_error *err)
{
	struct ggu_file *f = file_new(err);

	if (!f)
		return GGU_ERR_NOMEM;
	f->source->memory = bytes ? bytes : (const uint8_t *)"";
	f->source->size = n;
	f->source->seekable = true;
	return finish(to, f, GGU_OK, NULL, err);
}

void ggu_close(struct ggu_file *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n_sources; i++) {
		struct ggu_source *s = &f->source[i];
		if (s->map)
			munmap((void *)(uintptr_t)s->map, (size_t)s->size);
		if (s->own_fd && s->fd >= 0)
			close(s->fd);
		free(s->buf);
		free(s->name);
	}
	pthread_mutex_destroy(&f->lock);
	ggu_meta_free(f->meta);
	ggu_table_free(&f->table);
	free(f->order);
	free(f->source);
	free(f);
}

uint32_t ggu_file_version(const struct ggu_file *f) { return f->source->version; }
bool ggu_file_big_endian(const struct ggu_file *f) { return f->source->big; }
bool ggu_file_seekable(const struct ggu_file *f)
{
	bool all = true;

	for (uint32_t i = 0; i < f->n_sources; i++)
		all &= f->source[i].seekable;
	return all;
}
uint32_t ggu_file_alignment(const struct ggu_file *f) { return f->source->alignment; }
uint64_t ggu_file_data_offset(const struct ggu_file *f, uint32_t i) { return i < f->n_sources ? f->source[i].data_offset : 0; }
uint32_t ggu_file_n_sources(const struct ggu_file *f) { return f->n_sources; }
const char *ggu_file_source_name(const struct ggu_file *f, uint32_t i)
{
	return i < f->n_sources && f->source[i].name ? f->source[i].name : "";
}
const struct ggu_meta *ggu_file_meta(const struct ggu_file *f) { return f->meta; }
size_t ggu_file_n_tensors(const struct ggu_file *f) { return f->table.n; }
const struct ggu_tensor *ggu_file_tensor(const struct ggu_file *f, size_t i)
{
	return i < f->table.n ? &f->table.t[i] : NULL;
}
const struct ggu_tensor *ggu_file_find(const struct ggu_file *f, const char *name)
{
	return ggu_file_tensor(f, ggu_table_find(&f->table, name));
}
const struct ggu_tensor *ggu_file_in_data_order(const struct ggu_file *f, size_t i)
{
	return i < f->table.n ? &f->table.t[f->order[i]] : NULL;
}
