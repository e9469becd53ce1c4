/* SPDX-License-Identifier: MIT
 * guard.h - buffers at the end of the world: one byte too far is a signal. */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H
#include <stddef.h>

enum guard_side { GUARD_END, GUARD_BEGIN, GUARD_SIDES };
/* n bytes between two inaccessible pages. GUARD_END: they end where the second begins, at whatever alignment that
 * gives them; GUARD_BEGIN: they begin where the first ends. What is left of their pages holds a pattern.
 * NULL: no memory. */
void *guard_new(size_t n, enum guard_side side);
/* 0, or the number of bytes written beside the buffer. */
int guard_free(void *p, size_t n);

#endif
