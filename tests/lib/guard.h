/* SPDX-License-Identifier: MIT
 * guard.h - buffers between inaccessible pages: a byte too far raises a signal. */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H
#include <stddef.h>

enum guard_side { GUARD_END, GUARD_BEGIN, GUARD_SIDES };
/* n bytes between two inaccessible pages. GUARD_END: they end where the second page begins, whatever alignment that
 * gives them; GUARD_BEGIN: they begin where the first ends. The rest of their own pages holds a pattern. NULL: no
 * memory. */
void *guard_new(size_t n, enum guard_side side);
/* 0, or the number of bytes written beside the buffer. */
int guard_free(void *p, size_t n);

#endif
