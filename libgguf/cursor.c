/* SPDX-License-Identifier: MIT
 * cursor.c - bytes of a shard, one after another, never past its end.
 *
 * Files and pipes are read through one buffer; memory is its own buffer. Whatever a file says about
 * its lengths is compared with the bytes left before memory is taken; on a pipe, whose end is not
 * known, memory grows as the bytes arrive. */
#include <stdlib.h>
#include <string.h>
#include "internal.h"
#include "text.h"

enum { GROW_BYTES = 1 << 20 };

void ggu_cursor_init(struct ggu_cursor *c, struct ggu_shard *s, const struct ggu_leniency *lenient,
	struct ggu_error *err)
{
	*c = (struct ggu_cursor){ .s = s, .where = "", .err = err, .lenient = lenient };
	if (s->memory) {
		c->p = s->memory;
		c->n = (size_t)s->size;
	}
}

/* Bytes read ahead are at the end of the buffer, where ggu_shard_read finds them. */
void ggu_cursor_done(struct ggu_cursor *c)
{
	if (c->s->memory)
		return;
	if (c->n)
		memmove(c->s->buf + GGU_BUF_BYTES - c->n, c->p, c->n);
	c->s->buf_n = c->n;
	c->s->buf_at = c->at;
}

uint64_t ggu_cursor_left(const struct ggu_cursor *c)
{
	return c->s->size == UINT64_MAX ? (uint64_t)INT64_MAX : c->at < c->s->size ? c->s->size - c->at : 0;
}

/* Reads the next n <= GGU_BUF_BYTES bytes, or as many as there are, into the buffer. Does not wait for more of a
 * pipe. */
static enum ggu_status refill(struct ggu_cursor *c, size_t n)
{
	struct ggu_shard *s = c->s;

	if (c->n >= n || s->memory)
		return GGU_OK;
	if (!s->buf) {
		s->buf = malloc(GGU_BUF_BYTES);
		if (!s->buf)
			return ggu_fail(c->err, GGU_ERR_NOMEM, c->at, c->where, "out of memory");
	}
	if (c->n)
		memmove(s->buf, c->p, c->n);
	c->p = s->buf;
	while (c->n < n) {
		size_t got;
		TRY(ggu_shard_fill(s, c->at + c->n, s->buf + c->n, GGU_BUF_BYTES - c->n, &got, c->err));
		if (!got)
			break;
		c->n += got;
	}
	return GGU_OK;
}

static enum ggu_status short_of(struct ggu_cursor *c, uint64_t n)
{
	/* this is what arrives if the first command of a pipeline failed */
	if (!c->at && !c->n && (c->s->size == UINT64_MAX || !c->s->size))
		ggu_fail(c->err, GGU_ERR_TRUNCATED, 0, "", "the file is empty");
	else if (n == 1)
		ggu_fail(c->err, GGU_ERR_TRUNCATED, c->at, c->where, "the file ends before this byte");
	else
		ggu_fail(c->err, GGU_ERR_TRUNCATED, c->at, c->where, "the file ends within these %llu bytes",
			(unsigned long long)n);
	return ggu_rule(c->err, GGU_RULE_CUT, GGU_ERR_TRUNCATED);
}

enum ggu_status ggu_cursor_bytes(struct ggu_cursor *c, void *to, size_t n)
{
	if (n > ggu_cursor_left(c))
		return short_of(c, n);
	if (n <= GGU_BUF_BYTES || c->s->memory) {
		TRY(refill(c, n));
		if (c->n < n)
			return short_of(c, n);
		if (n)
			memcpy(to, c->p, n);
		c->p += n;
		c->n -= n;
	} else {                                /* large: bypasses the buffer */
		size_t k = c->n, got = 1;
		memcpy(to, c->p, k);
		for (; k < n && got; k += got)
			TRY(ggu_shard_fill(c->s, c->at + k, (char *)to + k, n - k, &got, c->err));
		if (k < n)
			return short_of(c, n);
		c->n = 0;
	}
	c->at += n;
	return GGU_OK;
}

static enum ggu_status integer(struct ggu_cursor *c, void *v, size_t width)
{
	TRY(ggu_cursor_bytes(c, v, width));
	if (c->s->big)
		ggu_swap_items(v, 1, width);
	return GGU_OK;
}

enum ggu_status ggu_cursor_u32(struct ggu_cursor *c, uint32_t *v) { return integer(c, v, sizeof *v); }
enum ggu_status ggu_cursor_u64(struct ggu_cursor *c, uint64_t *v) { return integer(c, v, sizeof *v); }

/* Reads n bytes into the arena and adds `tail` zeros. If they come from a pipe, memory grows as they arrive, so that a
 * length no memory could hold is refused for what it is: the pipe ends before. */
static enum ggu_status block(struct ggu_cursor *c, struct ggu_arena *a, uint64_t n, size_t tail, void **to)
{
	uint64_t at = c->at, first = c->s->size != UINT64_MAX || n < GROW_BYTES ? n : GROW_BYTES;
	size_t have = 0, room = (size_t)first;
	char *p;

	if (n > ggu_cursor_left(c))
		return short_of(c, n);
	p = first <= SIZE_MAX - tail ? ggu_arena_alloc(a, room + tail) : NULL;
	for (;;) {
		if (!p)
			return ggu_fail(c->err, GGU_ERR_NOMEM, c->at, c->where, "out of memory for %llu bytes",
				(unsigned long long)n);
		enum ggu_status status = ggu_cursor_bytes(c, p + have, room - have);
		if (status == GGU_ERR_TRUNCATED) {      /* of the block, not of this part */
			c->at = at;
			return short_of(c, n);
		}
		TRY(status);
		have = room;
		if (have == n)
			break;
		/* the arena gives no more than half of the address space, so twice of it can be counted */
		room = n - have < have ? (size_t)n : 2*have;
		p = ggu_arena_grow(a, p, have, room + tail);
	}
	memset(p + have, 0, tail);
	*to = p;
	return GGU_OK;
}

enum ggu_status ggu_cursor_numbers(struct ggu_cursor *c, struct ggu_arena *a, uint64_t n, size_t width, void **to)
{
	TRY(block(c, a, n*width, 0, to));
	if (c->s->big)
		ggu_swap_items(*to, (size_t)n, width);
	return GGU_OK;
}

enum ggu_status ggu_cursor_str(struct ggu_cursor *c, struct ggu_arena *a, uint64_t max, struct ggu_str *s)
{
	uint64_t at = c->at, n, left;
	void *p;

	TRY(ggu_cursor_u64(c, &n));
	left = ggu_cursor_left(c);
	if (n > left)
		return ggu_rule(c->err, GGU_RULE_CUT,
			ggu_fail(c->err, GGU_ERR_TRUNCATED, at, c->where,
				"string of %llu byte%s extends past the end of the file",
				(unsigned long long)n, text_s(n)));
	if (n > max)
		return ggu_rule(c->err, GGU_RULE_NAME,
			ggu_fail(c->err, GGU_ERR_FORMAT, at, c->where, "name of %llu bytes is longer than %llu",
				(unsigned long long)n, (unsigned long long)max));
	TRY(block(c, a, n, 1, &p));
	*s = (struct ggu_str){ p, (size_t)n };
	return GGU_OK;
}
