/* SPDX-License-Identifier: MIT
 * guard.c - see guard.h. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guard.h"

static size_t whole(size_t n, size_t page) { return (n + page)/page*page; }     /* room for a pattern too */

void *guard_new(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = whole(n, page);
	char *p = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return NULL;
	memset(p, 0xa5, bytes);
	if (mprotect(p + bytes, page, PROT_NONE)) return NULL;
	return p + bytes - n;
}

int guard_free(void *p, size_t n)
{
	if (!p) return 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = whole(n, page);
	uint8_t *from = (uint8_t *)p + n - bytes;
	int bad = 0;
	for (uint8_t *q = from; q < (uint8_t *)p; q++) bad += *q != 0xa5;
	munmap(from, bytes + page);
	return bad;
}
