/* SPDX-License-Identifier: MIT
 * pages.h - looks up the pages of rows that are read later.
 *
 * Rows are prefetched in the order of memory. A prefetch does not retire before its page has been looked up, so in
 * pages of 4 KB, as most mapped files have, a core waits for one page after the other. It can look up several at once:
 * so one line of each of the next pages is prefetched, all together, long before the others. Rows are then read 1.1 to
 * 1.5 times as fast, and hardly slower in large pages (tests/kernels/TRIALS.md). */
#include <stddef.h>
#include "../libgguf/size.h"

enum {
	PAGES_STEP = (4 << 10) - 64,    /* a line less than a page, so that lines are not all in one set of a cache */
	PAGES_AHEAD = 128 << 10,        /* at least so much of what follows has been looked up, */
	PAGES_AT_ONCE = 64 << 10,       /* by so much at a time */
};

/* Of `bytes` bytes of rows at w, those before `looked` have been looked up. Offsets are from w. */
struct pages { const char *w; size_t bytes, looked; };
/* Before those from `from` to `to` are read */
static inline void pages_look_up(struct pages *p, size_t from, size_t to)
{
	if (p->looked >= to + PAGES_AHEAD) return;
	const size_t end = size_least(to + PAGES_AHEAD + PAGES_AT_ONCE, p->bytes);
	for (p->looked = size_most(p->looked, from); p->looked < end; p->looked += PAGES_STEP)
		__builtin_prefetch(p->w + p->looked, 0, 2);
}
