/* SPDX-License-Identifier: MIT
 * belt.h - work on a stream by many threads, in bounded memory, with a result that does not depend on them. Not
 * installed.
 *
 * Items pass three stations: take, work, put. Items are taken one at a time and in order, worked on by all threads at
 * once, and put one at a time in the order in which they were taken. An item occupies a slot while it passes. There are
 * few slots, so a slow station stops the others instead of filling memory. No thread belongs to a station: a thread
 * takes the next item if nobody else is taking one, and the thread that finishes the item whose turn it is puts it and
 * those that wait behind it. */
#ifndef GGU_BELT_H
#define GGU_BELT_H
#include "pool.h"

struct ggu_belt {
	bool (*take)(void *ctx, size_t slot);                   /* false: there are no more items */
	void (*work)(void *ctx, size_t slot, int worker);
	bool (*put)(void *ctx, size_t slot);                    /* false: stop; items already taken are not put */
};
/* The number of slots that keeps the threads of a pool busy. */
size_t ggu_belt_slots(const struct ggu_pool *pool);
/* Returns when every item was put, or after the first put that returned false. n_slots is at least 1. GGU_ERR_NOMEM:
 * nothing was taken. */
enum ggu_status ggu_belt_run(struct ggu_pool *pool, size_t n_slots, const struct ggu_belt *at, void *ctx);

#endif
