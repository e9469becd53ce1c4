/* SPDX-License-Identifier: MIT
 * arena.h - memory that is taken in pieces and freed as a whole. Not installed. */
#ifndef GGU_ARENA_H
#define GGU_ARENA_H
#include <stddef.h>

struct ggu_block;
struct ggu_arena { struct ggu_block *head; size_t next_bytes; };        /* all 0: empty */
/* n bytes aligned to 16, or NULL: out of memory */
void *ggu_arena_alloc(struct ggu_arena *a, size_t n);
void *ggu_arena_zeros(struct ggu_arena *a, size_t n);
/* A larger copy; the old bytes stay unused in the arena. */
void *ggu_arena_grow(struct ggu_arena *a, void *p, size_t old_bytes, size_t new_bytes);
/* Bytes and a NUL after them. */
char *ggu_arena_str(struct ggu_arena *a, const char *s, size_t n);
void ggu_arena_free(struct ggu_arena *a);       /* leaves it empty */

#endif
