/* SPDX-License-Identifier: MIT
 * guard.c - see guard.h. Pages are mapped without permissions, and all but the first and the last are opened. The bytes
 * of these that the buffer does not use hold a pattern, which guard_free checks. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guard.h"

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t whole(size_t n) { return (n ? n + page_size() - 1 : page_size())/page_size()*page_size(); }

void *guard_new(size_t n, enum guard_side side)
{
	size_t page = page_size(), bytes = whole(n);
	char *p = mmap(NULL, bytes + 2*page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return NULL;
	if (mprotect(p + page, bytes, PROT_READ | PROT_WRITE)) return NULL;
	memset(p + page, 0xa5, bytes);
	return p + page + (side == GUARD_END && n ? bytes - n : 0);
}

int guard_free(void *p, size_t n)
{
	if (!p) return 0;
	uint8_t *b = p, *from = b - (uintptr_t)b % page_size(), *to = from + whole(n);
	int bad = 0;
	for (uint8_t *q = from; q < b; q++) bad += *q != 0xa5;
	for (uint8_t *q = b + n; q < to; q++) bad += *q != 0xa5;
	munmap(from - page_size(), (size_t)(to - from) + 2*page_size());
	return bad;
}
