/* SPDX-License-Identifier: MIT
 * grow.h - lists that grow at their end, an item at a time. Not installed.
 *
 * They have room for 16 items, then 32, 64 and so on. The room follows from the number of items, so it need not be
 * stored. */
#ifndef GGU_GROW_H
#define GGU_GROW_H
#include <stdint.h>
#include <stdlib.h>

/* Returns the list of n items (NULL with 0) with room for one more, maybe moved. NULL: out of memory, and the list is
 * unchanged. All its memory must come from here; it may have lost items since. */
static inline void *ggu_grow(void *list, size_t n, size_t item_bytes)
{
	enum { FIRST = 16 };

	if (n && (n < FIRST || n & (n - 1)))    /* full only at powers of two */
		return list;
	if (n > SIZE_MAX/2/item_bytes)
		return NULL;
	return realloc(list, (n ? 2*n : FIRST)*item_bytes);
}

#endif
