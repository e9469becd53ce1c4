/* SPDX-License-Identifier: MIT
 * tlb.h - keeps the TLB ahead of prefetches.
 *
 * Rows are prefetched in the order of memory. A prefetch does not retire before the address of its page has been looked
 * up, so in pages of 4 KB, as most mapped files have, a core waits for one page after the other. It can look up several
 * at once: so one line of each of the next pages is prefetched, all together, long before the others. Rows are then
 * read 1.1 to 1.5 times as fast, and hardly slower in large pages (tests/kernels/TRIALS.md). */
#ifndef QUANT_TLB_H
#define QUANT_TLB_H
#include <stddef.h>
#include "../libgguf/size.h"

enum {
	TLB_STEP = (4 << 10) - 64,      /* a line less than a page, so that lines are not all in one set of a cache */
	TLB_AHEAD = 128 << 10,          /* bytes that are looked up at least before they are needed, */
	TLB_AT_ONCE = 64 << 10,         /* in steps of so many */
};

/* Of `bytes` bytes of rows at w, those before `done` have been looked up. Offsets are from w. */
struct tlb { const char *w; size_t bytes, done; };
/* Before bytes from..to - 1 are read */
static inline void tlb_look_up(struct tlb *t, size_t from, size_t to)
{
	if (t->done >= to + TLB_AHEAD) return;
	const size_t end = size_least(to + TLB_AHEAD + TLB_AT_ONCE, t->bytes);
	for (t->done = size_most(t->done, from); t->done < end; t->done += TLB_STEP)
		__builtin_prefetch(t->w + t->done, 0, 2);
}
#endif
