/* SPDX-License-Identifier: MIT
 * cursor.c - bytes of a source, one after another, never past its end.
 *
 * Files and pipes are read through one buffer; memory is its own buffer. Whatever a file says about
 * its lengths is compared with the bytes left before memory is taken; on a pipe, whose end is not
 * known, memory grows as the bytes arrive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

enum { BUF_BYTES = 1 << 18, GROW_BYTES = 1 << 20, CALL_BYTES = 1 << 30 };

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_BIG true
#else
#define HOST_BIG false
#endif

/* read (at < 0) or pread until n bytes or the end */
static enum ggu_status fill(int fd, int64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	size_t k = 0;

	while (k < n) {
		size_t want = n - k < CALL_BYTES ? n - k : CALL_BYTES;
		ssize_t r = at < 0 ? read(fd, (char *)to + k, want) : pread(fd, (char *)to + k, want, (off_t)at + (off_t)k);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return ggu_fail(err, GGU_ERR_IO, GGU_NO_OFFSET, "", "read");
		if (r == 0)
			break;
		k += (size_t)r;
	}
	*got = k;
	return GGU_OK;
}

enum ggu_status ggu_source_pread(const struct ggu_source *s, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	if (s->memory) {
		uint64_t left = at < s->size ? s->size - at : 0;
		*got = n < left ? n : (size_t)left;
		if (*got)
			memcpy(to, s->memory + at, *got);
		return GGU_OK;
	}
	return fill(s->fd, (int64_t)at, to, n, got, err);
}

enum ggu_status ggu_source_read(struct ggu_source *s, uint64_t at, void *to, size_t n, size_t *got, struct ggu_error *err)
{
	size_t k = 0, more;

	if (at < s->buf_at)
		return ggu_fail(err, GGU_ERR_STATE, at, "", "a pipe can be read only once, in file order");
	while (at > s->buf_at) {                /* skip */
		if (!s->buf_n) {
			GGU_TRY(fill(s->fd, -1, s->buf, BUF_BYTES, &s->buf_n, err));
			if (!s->buf_n) {
				*got = 0;
				return GGU_OK;
			}
			memmove(s->buf + BUF_BYTES - s->buf_n, s->buf, s->buf_n);
		}
		size_t skip = at - s->buf_at < s->buf_n ? (size_t)(at - s->buf_at) : s->buf_n;
		s->buf_at += skip;
		s->buf_n -= skip;
	}
	k = n < s->buf_n ? n : s->buf_n;
	if (k) {
		memcpy(to, s->buf + BUF_BYTES - s->buf_n, k);
		s->buf_n -= k;
		s->buf_at += k;
	}
	more = 0;
	if (k < n)
		GGU_TRY(fill(s->fd, -1, (char *)to + k, n - k, &more, err));
	s->buf_at += more;
	*got = k + more;
	return GGU_OK;
}

void ggu_cursor_init(struct ggu_cursor *c, struct ggu_source *s, struct ggu_error *err)
{
	*c = (struct ggu_cursor){ .s = s, .where = "", .err = err };
	if (s->memory) {
		c->p = s->memory;
		c->n = (size_t)s->size;
	}
}

/* Bytes read ahead lie at the end of the buffer, where ggu_source_read finds them. */
void ggu_cursor_done(struct ggu_cursor *c)
{
	if (c->s->memory)
		return;
	if (c->n)
		memmove(c->s->buf + BUF_BYTES - c->n, c->p, c->n);
	c->s->buf_n = c->n;
	c->s->buf_at = c->at;
}

uint64_t ggu_cursor_left(const struct ggu_cursor *c)
{
	return c->s->size == UINT64_MAX ? (uint64_t)INT64_MAX : c->at < c->s->size ? c->s->size - c->at : 0;
}

/* As many of the next n <= BUF_BYTES bytes as there are into the buffer. A pipe is not waited on for more. */
static enum ggu_status refill(struct ggu_cursor *c, size_t n)
{
	struct ggu_source *s = c->s;

	if (c->n >= n || s->memory)
		return GGU_OK;
	if (!s->buf) {
		s->buf = malloc(BUF_BYTES);
		if (!s->buf)
			return ggu_fail(c->err, GGU_ERR_NOMEM, c->at, c->where, "out of memory");
	}
	if (c->n)
		memmove(s->buf, c->p, c->n);
	c->p = s->buf;
	while (c->n < n) {
		size_t room = BUF_BYTES - c->n;
		ssize_t r = s->seekable ? pread(s->fd, s->buf + c->n, room, (off_t)(c->at + c->n)) : read(s->fd, s->buf + c->n, room);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return ggu_fail(c->err, GGU_ERR_IO, c->at + c->n, c->where, "read");
		if (r == 0)
			break;
		c->n += (size_t)r;
	}
	return GGU_OK;
}

static enum ggu_status short_of(struct ggu_cursor *c, uint64_t n)
{
	/* what a program reads from a pipeline whose first part failed */
	if (!c->at && !c->n && (c->s->size == UINT64_MAX || !c->s->size))
		return ggu_fail(c->err, GGU_ERR_TRUNCATED, 0, "", "there is nothing in it");
	return ggu_fail(c->err, GGU_ERR_TRUNCATED, c->at, c->where, "the file ends inside these %llu bytes", (unsigned long long)n);
}

enum ggu_status ggu_cursor_bytes(struct ggu_cursor *c, void *to, size_t n)
{
	size_t got = 0;

	if (n > ggu_cursor_left(c))
		return short_of(c, n);
	if (n <= BUF_BYTES || c->s->memory) {
		GGU_TRY(refill(c, n));
		if (c->n < n)
			return short_of(c, n);
		if (n)
			memcpy(to, c->p, n);
		c->p += n;
		c->n -= n;
	} else {                                /* large: past the buffer */
		size_t k = c->n;
		memcpy(to, c->p, k);
		GGU_TRY(fill(c->s->fd, c->s->seekable ? (int64_t)(c->at + k) : -1, (char *)to + k, n - k, &got, c->err));
		if (got < n - k)
			return short_of(c, n);
		c->n = 0;
	}
	c->at += n;
	return GGU_OK;
}

static enum ggu_status integer(struct ggu_cursor *c, void *v, size_t width)
{
	GGU_TRY(ggu_cursor_bytes(c, v, width));
	if (c->s->big != HOST_BIG)
		ggu_swap_items(v, 1, width);
	return GGU_OK;
}

enum ggu_status ggu_cursor_u8(struct ggu_cursor *c, uint8_t *v) { return integer(c, v, sizeof *v); }
enum ggu_status ggu_cursor_u32(struct ggu_cursor *c, uint32_t *v) { return integer(c, v, sizeof *v); }
enum ggu_status ggu_cursor_u64(struct ggu_cursor *c, uint64_t *v) { return integer(c, v, sizeof *v); }

enum ggu_status ggu_cursor_block(struct ggu_cursor *c, struct ggu_arena *a, size_t n, size_t tail, void **to)
{
	bool known = c->s->size != UINT64_MAX;
	size_t have = 0, room = known || n < GROW_BYTES ? n : GROW_BYTES;
	uint64_t at = c->at;
	char *p;

	if (n > ggu_cursor_left(c))
		return short_of(c, n);
	p = ggu_arena_alloc(a, room + tail);
	for (;;) {
		if (!p)
			return ggu_fail(c->err, GGU_ERR_NOMEM, c->at, c->where, "out of memory for %zu bytes", n);
		enum ggu_status status = ggu_cursor_bytes(c, p + have, room - have);
		if (status == GGU_ERR_TRUNCATED) {      /* of the block, not of this part */
			c->at = at;
			return short_of(c, n);
		}
		GGU_TRY(status);
		have = room;
		if (have == n)
			break;
		room = n - have < have ? n : 2*have;
		p = ggu_arena_grow(a, p, have, room + tail);
	}
	memset(p + n, 0, tail);
	*to = p;
	return GGU_OK;
}

enum ggu_status ggu_cursor_numbers(struct ggu_cursor *c, struct ggu_arena *a, size_t n, size_t width, void **to)
{
	GGU_TRY(ggu_cursor_block(c, a, n*width, 0, to));
	if (c->s->big != HOST_BIG)
		ggu_swap_items(*to, n, width);
	return GGU_OK;
}

enum ggu_status ggu_cursor_str(struct ggu_cursor *c, struct ggu_arena *a, size_t max, struct ggu_str *s)
{
	uint64_t at = c->at, n, left;
	void *p;

	GGU_TRY(ggu_cursor_u64(c, &n));
	left = ggu_cursor_left(c);
	if (n > left)
		return ggu_fail(c->err, GGU_ERR_TRUNCATED, at, c->where, "string of %llu bytes exceeds the file", (unsigned long long)n);
	if (n > max)
		return ggu_fail(c->err, GGU_ERR_FORMAT, at, c->where, "name of %llu bytes is longer than %zu", (unsigned long long)n, max);
	GGU_TRY(ggu_cursor_block(c, a, (size_t)n, 1, &p));
	*s = (struct ggu_str){ p, (size_t)n };
	return GGU_OK;
}
