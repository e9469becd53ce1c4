/* SPDX-License-Identifier: MIT
 * zeros.c - see zeros.h. calloc's memory, with advice to the kernel from the first whole page on. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "zeros.h"

void *ggu_zeros(size_t n, size_t bytes)
{
	char *p = calloc(n, bytes);
#ifdef MADV_HUGEPAGE
	enum { PAGE = 4096, MANY = 2 << 20 };
	const size_t skip = (PAGE - (uintptr_t)p % PAGE) % PAGE;
	if (p && n*bytes >= MANY) madvise(p + skip, n*bytes - skip, MADV_HUGEPAGE);
#endif
	return p;
}
