/* SPDX-License-Identifier: MIT
 * span.h - a bounds-checked cursor over bytes in memory, for small formats read whole (old importance
 * matrices, tokenizer protobufs). Not installed; GGUF itself is read through a cursor over its source.
 *
 * Each getter succeeds and advances, or returns false and leaves the span as it was. at is the offset of p
 * in the whole, for error messages. Integers are little-endian. */
#ifndef GGU_SPAN_H
#define GGU_SPAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span { const unsigned char *p; size_t n; uint64_t at; };

static inline bool span_take(struct span *s, size_t n, struct span *part)
{
	if (n > s->n) return false;
	*part = (struct span){ s->p, n, s->at };
	s->p += n;
	s->n -= n;
	s->at += n;
	return true;
}
static inline bool span_u8(struct span *s, uint8_t *v)
{
	struct span b;
	if (!span_take(s, 1, &b)) return false;
	*v = b.p[0];
	return true;
}
static inline bool span_u32(struct span *s, uint32_t *v)
{
	struct span b;
	if (!span_take(s, 4, &b)) return false;
	*v = (uint32_t)b.p[0] | (uint32_t)b.p[1] << 8 | (uint32_t)b.p[2] << 16 | (uint32_t)b.p[3] << 24;
	return true;
}
static inline bool span_f32(struct span *s, float *v)
{
	uint32_t u;
	if (!span_u32(s, &u)) return false;
	memcpy(v, &u, 4);
	return true;
}

#endif
