/* SPDX-License-Identifier: MIT
 * turns.h - order among threads that evaluate windows side by side: what is done with the n-th input of a window waits
 * until the same is done for the window before. So sums are taken in the order of a single thread, and a thread is
 * nearly a window ahead of another before it waits. The windows must have the same inputs, and start in order. */
#ifndef TOOLS_TURNS_H
#define TOOLS_TURNS_H
#include <stdbool.h>
#include <stddef.h>

struct turns;
struct turns *turns_new(size_t n);                      /* for windows 0..n - 1; NULL: out of memory */
void turns_free(struct turns *t);
/* Waits for the window's next turn. False: an earlier window has failed, and there are no more turns. */
bool turns_wait(struct turns *t, size_t window);
void turns_next(struct turns *t, size_t window);        /* that turn is over */
void turns_end(struct turns *t, size_t window);         /* the window has no more turns */
void turns_fail(struct turns *t, size_t window);        /* the same for all windows after it */

#endif
