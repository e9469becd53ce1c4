/* SPDX-License-Identifier: MIT
 * writer.c - writes a GGUF front to back, never seeking.
 *
 * Every size follows from shape and type, so the header is complete before the first byte of data.
 * The same function that writes the header also measures it, by writing to nowhere. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

enum { BUF_BYTES = 1 << 16 };

/* Little-endian bytes to a descriptor through a buffer; fd -1 only counts. */
struct sink {
	int fd;
	uint64_t at;
	size_t n;
	struct ggu_error *err;
	enum ggu_status status;         /* the first failure; nothing is written after it */
	unsigned char buf[BUF_BYTES];
};

enum writer_state { ADDING, WRITING, FAILED, ENDED };
struct ggu_writer {
	enum writer_state state;
	struct ggu_meta *meta;
	struct ggu_table table;
	uint32_t alignment;
	uint64_t header_bytes, data_bytes;      /* header_bytes: 0 until it is known */
	size_t current;                         /* tensor whose data comes next */
	uint64_t left;                          /* of it */
	struct sink *sink;
};

static void put_through(struct sink *s, const void *p, size_t n)
{
	const char *b = p;

	while (n && s->status == GGU_OK) {
		ssize_t r = write(s->fd, b, n < 1 << 30 ? n : 1 << 30);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			s->status = ggu_fail(s->err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
			return;
		}
		b += r;
		n -= (size_t)r;
	}
}

static void flush(struct sink *s)
{
	if (s->n)
		put_through(s, s->buf, s->n);
	s->n = 0;
}

static void put(struct sink *s, const void *p, size_t n)
{
	s->at += n;
	if (s->fd < 0 || !n)
		return;
	if (n > BUF_BYTES - s->n)
		flush(s);
	if (n >= BUF_BYTES) {
		put_through(s, p, n);
		return;
	}
	memcpy(s->buf + s->n, p, n);
	s->n += n;
}

static void put_int(struct sink *s, uint64_t v, size_t width)
{
	unsigned char b[8];

	for (size_t i = 0; i < width; i++)
		b[i] = (unsigned char)(v >> 8*i);
	put(s, b, width);
}

static void put_str(struct sink *s, struct ggu_str v)
{
	put_int(s, v.n, 8);
	put(s, v.p, v.n);
}

static void pad(struct sink *s, uint64_t alignment)
{
	static const unsigned char zeros[4096];
	uint64_t n = ggu_align_up(s->at, alignment) - s->at;

	for (; n; n -= n < sizeof zeros ? n : sizeof zeros)
		put(s, zeros, n < sizeof zeros ? (size_t)n : sizeof zeros);
}

static void put_value(struct sink *s, const struct ggu_kv *kv);

static void put_items(struct sink *s, const struct ggu_kv *kv)
{
	size_t width = ggu_kv_type_bytes(kv->item_type);
	const unsigned char *p = ggu_kv_data(kv);
	struct ggu_str str;

	if (width && (s->fd < 0 || (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))) {
		put(s, p, width*kv->n);
		return;
	}
	for (size_t i = 0; i < kv->n; i++) {
		if (width) {
			unsigned char b[8];
			memcpy(b, p + i*width, width);
			ggu_swap_items(b, 1, width);
			put(s, b, width);
		} else if (ggu_kv_str(kv, i, &str)) {
			put_str(s, str);
		} else {
			put_value(s, ggu_kv_sub(kv, i));
		}
	}
}

static void put_value(struct sink *s, const struct ggu_kv *kv)
{
	if (kv->type == GGU_ARRAY) {
		put_int(s, kv->item_type, 4);
		put_int(s, kv->n, 8);
	}
	put_items(s, kv);
}

static void put_header(struct sink *s, const struct ggu_writer *w)
{
	put(s, "GGUF", 4);
	put_int(s, 3, 4);
	put_int(s, w->table.n, 8);
	put_int(s, w->meta->n, 8);
	for (size_t i = 0; i < w->meta->n; i++) {
		put_str(s, w->meta->kv[i].key);
		put_int(s, w->meta->kv[i].type, 4);
		put_value(s, &w->meta->kv[i]);
	}
	for (size_t i = 0; i < w->table.n; i++) {
		const struct ggu_tensor *t = &w->table.t[i];
		put_str(s, (struct ggu_str){ t->name, t->name_bytes });
		put_int(s, t->n_dims, 4);
		for (uint32_t d = 0; d < t->n_dims; d++)
			put_int(s, t->ne[d], 8);
		put_int(s, t->type, 4);
		put_int(s, t->offset, 8);
	}
	pad(s, w->alignment);
}

enum ggu_status ggu_writer_new(struct ggu_writer **to, const struct ggu_meta *meta, struct ggu_error *err)
{
	struct ggu_writer *w = calloc(1, sizeof *w);
	const struct ggu_kv *kv = meta ? ggu_meta_find(meta, "general.alignment") : NULL;
	uint64_t align = GGU_ALIGN_DEFAULT;
	enum ggu_status status = GGU_OK;

	if (kv && (kv->type != GGU_U32 || !ggu_kv_uint(kv, 0, &align) || !ggu_align_ok(align)))
		status = ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "general.alignment", "is no u32 power of two from %d to %d",
		                  GGU_ALIGN_MIN, GGU_ALIGN_MAX);
	if (w && status == GGU_OK) {
		w->alignment = (uint32_t)align;
		w->meta = ggu_meta_new();
		w->sink = calloc(1, sizeof *w->sink);
		if (!w->meta || !w->sink)
			status = GGU_ERR_NOMEM;
		for (size_t i = 0; meta && status == GGU_OK && i < meta->n; i++)
			status = ggu_meta_set_kv(w->meta, &meta->kv[i]);
	}
	if (!w || status == GGU_ERR_NOMEM)
		status = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory");
	if (status != GGU_OK) {
		ggu_writer_free(w);
		return status;
	}
	*to = w;
	return GGU_OK;
}

enum ggu_status ggu_writer_add(struct ggu_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type, struct ggu_error *err)
{
	struct ggu_tensor t = { .n_dims = n_dims, .ne = { 1, 1, 1, 1 }, .type = type };
	const struct ggu_tensor_at nowhere = { GGU_NO_OFFSET, GGU_NO_OFFSET, GGU_NO_OFFSET, GGU_NO_OFFSET };
	size_t name_bytes = strlen(name);
	enum ggu_status status;
	bool dup;

	if (w->state != ADDING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, name, "tensor added after the header was written");
	if (name_bytes > GGU_KEY_MAX)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "tensor name is longer than %d bytes", GGU_KEY_MAX);
	for (uint32_t i = 0; i < n_dims && i < 4; i++)
		t.ne[i] = ne[i];
	t.name = name;
	t.name_bytes = (uint32_t)name_bytes;
	GGU_TRY(ggu_tensor_check(&t, &nowhere, err));
	if (t.bytes > INT64_MAX/2 - w->data_bytes)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name, "the file's size overflows");
	t.offset = w->data_bytes;
	t.name = ggu_arena_str(&w->table.arena, name, name_bytes);
	status = t.name ? ggu_table_append(&w->table, &t, &dup) : GGU_ERR_NOMEM;
	if (status != GGU_OK)
		return ggu_fail(err, status, GGU_NO_OFFSET, name, "out of memory");
	if (dup)
		return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name, "duplicate tensor name");
	w->data_bytes = ggu_align_up(t.offset + t.bytes, w->alignment);
	return GGU_OK;
}

uint64_t ggu_writer_file_bytes(const struct ggu_writer *w)
{
	struct sink *s = w->sink;

	if (w->header_bytes)
		return w->header_bytes + w->data_bytes;
	s->fd = -1;
	s->at = 0;
	put_header(s, w);
	return s->at + w->data_bytes;
}

/* Goes on to the next tensor that has data, with padding after each one that is complete. */
static void advance(struct ggu_writer *w)
{
	while (w->current < w->table.n && !w->left) {
		pad(w->sink, w->alignment);
		if (++w->current < w->table.n)
			w->left = w->table.t[w->current].bytes;
	}
}

static enum ggu_status outcome(struct ggu_writer *w)
{
	if (w->sink->status != GGU_OK)
		w->state = FAILED;
	return w->sink->status;
}

enum ggu_status ggu_writer_begin(struct ggu_writer *w, int fd, struct ggu_error *err)
{
	if (w->state != ADDING || fd < 0)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "the header is written once, to an open file");
	w->state = WRITING;
	*w->sink = (struct sink){ .fd = fd, .err = err };
	put_header(w->sink, w);
	w->header_bytes = w->sink->at;
	if (w->table.n)
		w->left = w->table.t[0].bytes;
	advance(w);
	return outcome(w);
}

enum ggu_status ggu_writer_data(struct ggu_writer *w, const void *p, size_t n, struct ggu_error *err)
{
	const char *b = p;

	if (w->state != WRITING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "data before the header or after a failure");
	w->sink->err = err;
	while (n) {
		size_t k = n < w->left ? n : (size_t)w->left;
		if (w->current == w->table.n)
			return ggu_fail(err, GGU_ERR_RANGE, w->sink->at, "", "%zu bytes more than the tensors have", n);
		put(w->sink, b, k);
		b += k;
		n -= k;
		w->left -= k;
		advance(w);
	}
	return outcome(w);
}

enum ggu_status ggu_writer_end(struct ggu_writer *w, struct ggu_error *err)
{
	if (w->state != WRITING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "end before the header or after a failure");
	if (w->current < w->table.n)
		return ggu_fail(err, GGU_ERR_STATE, w->sink->at, w->table.t[w->current].name, "%llu bytes of data are missing",
		                (unsigned long long)w->left);
	w->sink->err = err;
	flush(w->sink);
	GGU_TRY(outcome(w));
	w->state = ENDED;
	return GGU_OK;
}

void ggu_writer_free(struct ggu_writer *w)
{
	if (!w)
		return;
	ggu_meta_free(w->meta);
	ggu_table_free(&w->table);
	free(w->sink);
	free(w);
}
