/* SPDX-License-Identifier: MIT
 * grow.h - lists that grow at their end, an item at a time. Not installed.
 *
 * Their room is 16 items, then 32, 64 and so on: it follows from the number of items, and nobody need keep it. */
#ifndef GGU_GROW_H
#define GGU_GROW_H
#include <stdint.h>
#include <stdlib.h>

/* The list of n items (NULL with 0) with room for one more: list itself, or what takes its place. NULL: out of memory,
 * and the list is as it was. All its memory has come from here; it may have lost items since. */
static inline void *ggu_grow(void *list, size_t n, size_t item_bytes)
{
	enum { FIRST = 16 };

	if (n && (n < FIRST || n & (n - 1)))    /* full at powers of two alone */
		return list;
	if (n > SIZE_MAX/2/item_bytes)
		return NULL;
	return realloc(list, (n ? 2*n : FIRST)*item_bytes);
}

#endif
