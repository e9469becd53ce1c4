/* SPDX-License-Identifier: MIT
 * guard.h - buffers whose end is the end of the world: one byte too far is a signal. */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H
#include <stddef.h>

/* n bytes that end where an inaccessible page begins; before them, on the same page, a pattern that
 * guard_free() checks. NULL: no memory. */
void *guard_new(size_t n);
/* 0, or the number of bytes written before the buffer. */
int guard_free(void *p, size_t n);

#endif
