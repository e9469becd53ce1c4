/* SPDX-License-Identifier: MIT
 * arena.c - see arena.h: a list of blocks that double in size, so that a vocabulary of 150 000 strings costs a few
 * dozen calls of malloc. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "arena.h"

struct ggu_block { struct ggu_block *next; size_t used, bytes; _Alignas(16) unsigned char data[]; };
enum { FIRST_BYTES = 4096, LAST_BYTES = 1 << 22 };

void *ggu_arena_alloc(struct ggu_arena *a, size_t n)
{
	struct ggu_block *b = a->head;
	void *p;

	if (n > SIZE_MAX/2)
		return NULL;
	n = (n + 15) & ~(size_t)15;
	if (!b || b->bytes - b->used < n) {
		size_t bytes = a->next_bytes ? a->next_bytes : FIRST_BYTES;
		if (bytes < LAST_BYTES)
			a->next_bytes = 2*bytes;
		if (bytes < n)
			bytes = n;
		b = malloc(sizeof *b + bytes);
		if (!b)
			return NULL;
		*b = (struct ggu_block){ .bytes = bytes };
		/* a block that is full at once goes behind the head, so that the room of the head stays in use */
		if (a->head && bytes == n) {
			b->next = a->head->next;
			a->head->next = b;
		} else {
			b->next = a->head;
			a->head = b;
		}
	}
	p = b->data + b->used;
	b->used += n;
	return p;
}

void *ggu_arena_zeros(struct ggu_arena *a, size_t n)
{
	void *p = ggu_arena_alloc(a, n);

	return p ? memset(p, 0, n) : NULL;
}

void *ggu_arena_grow(struct ggu_arena *a, void *p, size_t old_bytes, size_t new_bytes)
{
	void *q = ggu_arena_alloc(a, new_bytes);

	if (q && old_bytes)
		memcpy(q, p, old_bytes);
	return q;
}

char *ggu_arena_str(struct ggu_arena *a, const char *s, size_t n)
{
	char *p = n < SIZE_MAX ? ggu_arena_alloc(a, n + 1) : NULL;

	if (p) {
		if (n)
			memcpy(p, s, n);
		p[n] = 0;
	}
	return p;
}

void ggu_arena_free(struct ggu_arena *a)
{
	for (struct ggu_block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct ggu_arena){ 0 };
}
