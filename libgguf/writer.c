/* SPDX-License-Identifier: MIT
 * writer.c - writes a GGUF front to back, never seeking.
 *
 * Every size follows from shape and type, so the header is complete before the first byte of data. The data comes in
 * the order of its offsets, which is that of the table unless the caller placed tensors. The function that writes the
 * header also measures it, by writing to nowhere. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "size.h"
#include "text.h"
#include "whole.h"

/* The size of a large page. File systems that cache files in large pages (recent ext4 and XFS) begin one where a write
 * of that size begins at a multiple of it. The file is then read in large pages once it is mapped, and a model
 * generates a fifth faster than one that was written in small pieces. */
enum { BUF_BYTES = 2 << 20 };

/* Passes little-endian bytes on to the caller's sink, in whole multiples of BUF_BYTES except at the end; without a
 * buffer it only counts them. */
struct stream {
	struct ggu_sink to;
	uint64_t at;
	size_t n;
	struct ggu_error *err;
	enum ggu_status status;         /* the first failure; nothing is written after it */
	unsigned char *buf;             /* [BUF_BYTES] */
};

enum writer_state { ADDING, WRITING, FAILED, ENDED };
struct ggu_writer {
	enum writer_state state;
	struct ggu_meta *meta;
	struct ggu_table table;
	uint32_t alignment;
	uint64_t header_bytes, data_bytes;      /* header_bytes: 0 until it is known */
	size_t *order;                          /* of the data, once it is written */
	size_t current;                         /* in that order: the tensor whose data comes next */
	uint64_t left;                          /* of it */
	struct stream out;
	int fd;
};

static enum ggu_status write_fd(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	return whole_write(*(const int *)ctx, p, n) ? GGU_OK : ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "write");
}

static enum ggu_status write_memory(void *ctx, const void *p, size_t n, struct ggu_error *err)
{
	struct ggu_memory *m = ctx;

	if (n > m->room - m->n) {
		size_t room = m->room > SIZE_MAX/4 || n > SIZE_MAX/4 ? 0 : 2*m->room + n;
		unsigned char *more = room ? realloc(m->p, room) : NULL;
		if (!more)
			return ggu_no_memory(err);
		m->p = more;
		m->room = room;
	}
	memcpy(m->p + m->n, p, n);
	m->n += n;
	return GGU_OK;
}

struct ggu_sink ggu_sink_fd(const int *fd)
{
	return (struct ggu_sink){ write_fd, (void *)(uintptr_t)fd };
}

struct ggu_sink ggu_sink_memory(struct ggu_memory *to)
{
	return (struct ggu_sink){ write_memory, to };
}

static void put_through(struct stream *s, const void *p, size_t n)
{
	if (n && s->status == GGU_OK)
		s->status = s->to.write(s->to.ctx, p, n, s->err);
}

static void flush(struct stream *s)
{
	put_through(s, s->buf, s->n);
	s->n = 0;
}

static void put(struct stream *s, const void *p, size_t n)
{
	const unsigned char *b = p;

	s->at += n;
	while (s->buf && n) {
		size_t k = s->n || n < BUF_BYTES ? BUF_BYTES - s->n : n - n%BUF_BYTES;
		if (k > n)
			k = n;
		if (s->n || n < BUF_BYTES) {
			memcpy(s->buf + s->n, b, k);
			s->n += k;
		} else {
			put_through(s, b, k);
		}
		if (s->n == BUF_BYTES)
			flush(s);
		b += k;
		n -= k;
	}
}

static void put_int(struct stream *s, uint64_t v, size_t width)
{
	unsigned char b[8];

	for (size_t i = 0; i < width; i++)
		b[i] = (unsigned char)(v >> 8*i);
	put(s, b, width);
}

static void put_str(struct stream *s, struct ggu_str v)
{
	put_int(s, v.n, 8);
	put(s, v.p, v.n);
}

/* Writes zeros up to byte `at`. */
static void pad_to(struct stream *s, uint64_t at)
{
	static const unsigned char zeros[4096];

	while (s->at < at && s->status == GGU_OK)
		put(s, zeros, at - s->at < sizeof zeros ? (size_t)(at - s->at) : sizeof zeros);
}

static void put_value(struct stream *s, const struct ggu_kv *kv);

static void put_items(struct stream *s, const struct ggu_kv *kv)
{
	size_t width = ggu_kv_type_bytes(kv->item_type);
	const unsigned char *p = ggu_kv_data(kv);
	struct ggu_str str;

	if (width) {
		put(s, p, width*kv->n);
		return;
	}
	for (size_t i = 0; i < kv->n; i++) {
		if (ggu_kv_str(kv, i, &str)) {
			put_str(s, str);
		} else {
			put_value(s, ggu_kv_sub(kv, i));
		}
	}
}

static void put_value(struct stream *s, const struct ggu_kv *kv)
{
	if (kv->type == GGU_ARRAY) {
		put_int(s, kv->item_type, 4);
		put_int(s, kv->n, 8);
	}
	put_items(s, kv);
}

static void put_header(struct stream *s, const struct ggu_writer *w)
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
	pad_to(s, size_aligned(s->at, w->alignment));
}

enum ggu_status ggu_writer_new(struct ggu_writer **to, const struct ggu_meta *meta, struct ggu_error *err)
{
	const struct ggu_kv *kv = meta ? ggu_meta_find(meta, "general.alignment") : NULL;
	uint64_t align = GGU_ALIGN_DEFAULT;
	enum ggu_status status;
	struct ggu_writer *w;

	if (kv && (kv->type != GGU_U32 || !ggu_kv_uint(kv, 0, &align) || !ggu_align_ok(align)))
		return ggu_rule(err, GGU_RULE_ALIGNMENT, ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET,
			"general.alignment", "is not a u32 power of two from %d to %d", GGU_ALIGN_MIN, GGU_ALIGN_MAX));
	w = calloc(1, sizeof *w);
	status = w ? GGU_OK : GGU_ERR_NOMEM;
	if (w) {
		w->alignment = (uint32_t)align;
		if (meta)
			status = ggu_meta_copy(&w->meta, meta);
		else if (!(w->meta = ggu_meta_new()))
			status = GGU_ERR_NOMEM;
	}
	if (status != GGU_OK) {
		ggu_writer_free(w);
		return ggu_fail(err, status, GGU_NO_OFFSET, "", "out of memory");
	}
	*to = w;
	return GGU_OK;
}

enum ggu_status ggu_writer_add_at(struct ggu_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
	uint32_t type, uint64_t offset, struct ggu_error *err)
{
	struct ggu_tensor t = { .n_dims = n_dims, .ne = { 1, 1, 1, 1 }, .type = type, .offset = offset };
	const struct ggu_tensor_at nowhere = { GGU_NO_OFFSET, GGU_NO_OFFSET, GGU_NO_OFFSET, GGU_NO_OFFSET };
	size_t name_bytes = strlen(name);
	enum ggu_status status;
	bool dup;

	if (w->state != ADDING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, name, "tensor added after the header was written");
	if (name_bytes > GGU_KEY_MAX)
		return ggu_rule(err, GGU_RULE_NAME, ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name,
			"tensor name is longer than %d bytes", GGU_KEY_MAX));
	for (uint32_t i = 0; i < n_dims && i < 4; i++)
		t.ne[i] = ne[i];
	t.name = name;
	t.name_bytes = (uint32_t)name_bytes;
	TRY(ggu_tensor_check(&t, &nowhere, err));
	if (offset & (w->alignment - 1))
		return ggu_rule(err, GGU_RULE_OFFSET, ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name,
			"offset %llu is not a multiple of the alignment %u", (unsigned long long)offset, w->alignment));
	if (t.bytes > INT64_MAX/2 || offset > INT64_MAX/2 - t.bytes)
		return ggu_rule(err, GGU_RULE_SIZE, ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, name,
			"the file's size overflows"));
	t.name = ggu_arena_str(&w->table.arena, name, name_bytes);
	status = t.name ? ggu_table_append(&w->table, &t, &dup) : GGU_ERR_NOMEM;
	if (status != GGU_OK)
		return ggu_fail(err, status, GGU_NO_OFFSET, name, "out of memory");
	if (dup)
		return ggu_rule(err, GGU_RULE_NAME_TWICE, ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, name,
			"duplicate tensor name"));
	if (w->data_bytes < t.offset + t.bytes)
		w->data_bytes = size_aligned(t.offset + t.bytes, w->alignment);
	return GGU_OK;
}

enum ggu_status ggu_writer_add(struct ggu_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
	uint32_t type, struct ggu_error *err)
{
	return ggu_writer_add_at(w, name, n_dims, ne, type, w->data_bytes, err);
}

uint64_t ggu_writer_header_bytes(const struct ggu_writer *w)
{
	struct stream s = { .buf = NULL };

	if (w->header_bytes)
		return w->header_bytes;
	put_header(&s, w);
	return s.at;
}

uint64_t ggu_writer_file_bytes(const struct ggu_writer *w) { return ggu_writer_header_bytes(w) + w->data_bytes; }

/* The order of the data, in memory that the caller frees. */
static enum ggu_status data_order(const struct ggu_writer *w, size_t **order, struct ggu_error *err)
{
	static const struct ggu_leniency strict = { .defect = NULL };
	enum ggu_status status;

	*order = malloc((w->table.n + 1)*sizeof **order);
	status = *order ? ggu_layout_order(w->table.t, w->table.n, *order, &strict, err) : GGU_ERR_NOMEM;
	if (status == GGU_ERR_NOMEM)
		ggu_fail(err, status, GGU_NO_OFFSET, "", "out of memory");
	if (status != GGU_OK && err)
		err->offset = GGU_NO_OFFSET;    /* no file has anything yet */
	return status;
}

/* The next data is that of the tensor at `place` in the order, or of the first after it that has any. */
static void go_to(struct ggu_writer *w, size_t place)
{
	const struct ggu_tensor *t = w->table.t;

	while (place < w->table.n && !t[w->order[place]].bytes)
		place++;
	w->current = place;
	w->left = place < w->table.n ? t[w->order[place]].bytes : 0;
	pad_to(&w->out, w->header_bytes + (w->left ? t[w->order[place]].offset : w->data_bytes));
}

static enum ggu_status outcome(struct ggu_writer *w)
{
	if (w->out.status != GGU_OK)
		w->state = FAILED;
	return w->out.status;
}

enum ggu_status ggu_writer_header(const struct ggu_writer *w, const struct ggu_sink *to, struct ggu_error *err)
{
	struct stream s = { .to = *to, .err = err, .buf = malloc(BUF_BYTES) };
	size_t *order = NULL;

	if (!s.buf)
		return ggu_no_memory(err);
	s.status = data_order(w, &order, err);
	if (s.status == GGU_OK) {
		put_header(&s, w);
		flush(&s);
	}
	free(order);
	free(s.buf);
	return s.status;
}

enum ggu_status ggu_writer_begin_sink(struct ggu_writer *w, const struct ggu_sink *to, struct ggu_error *err)
{
	if (w->state != ADDING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "the header was already written");
	w->state = FAILED;
	TRY(data_order(w, &w->order, err));
	w->out = (struct stream){ .to = *to, .err = err, .buf = malloc(BUF_BYTES) };
	if (!w->out.buf)
		return ggu_no_memory(err);
	w->state = WRITING;
	put_header(&w->out, w);
	w->header_bytes = w->out.at;
	go_to(w, 0);
	return outcome(w);
}

enum ggu_status ggu_writer_begin(struct ggu_writer *w, int fd, struct ggu_error *err)
{
	const struct ggu_sink to = ggu_sink_fd(&w->fd);

	if (fd < 0)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "the header needs an open file");
	w->fd = fd;
	return ggu_writer_begin_sink(w, &to, err);
}

enum ggu_status ggu_writer_data(struct ggu_writer *w, const void *p, size_t n, struct ggu_error *err)
{
	const char *b = p;

	if (w->state != WRITING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "data before the header or after a failure");
	w->out.err = err;
	while (n) {
		size_t k = n < w->left ? n : (size_t)w->left;
		if (w->current == w->table.n) {
			w->state = FAILED;
			return ggu_fail(err, GGU_ERR_RANGE, w->out.at, "",
				"%zu byte%s more than the tensors have left", n, n == 1 ? " is" : "s are");
		}
		put(&w->out, b, k);
		b += k;
		n -= k;
		w->left -= k;
		if (!w->left)
			go_to(w, w->current + 1);
	}
	return outcome(w);
}

enum ggu_status ggu_writer_end(struct ggu_writer *w, struct ggu_error *err)
{
	if (w->state != WRITING)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "the end before the header or after a failure");
	if (w->current < w->table.n)
		return ggu_fail(err, GGU_ERR_STATE, w->out.at, w->table.t[w->order[w->current]].name,
			"%llu byte%s of data %s missing", (unsigned long long)w->left, text_s(w->left),
			w->left == 1 ? "is" : "are");
	w->out.err = err;
	flush(&w->out);
	TRY(outcome(w));
	w->state = ENDED;
	return GGU_OK;
}

void ggu_writer_free(struct ggu_writer *w)
{
	if (!w)
		return;
	ggu_meta_free(w->meta);
	ggu_table_free(&w->table);
	free(w->order);
	free(w->out.buf);
	free(w);
}
