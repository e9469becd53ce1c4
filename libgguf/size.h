/* SPDX-License-Identifier: MIT
 * size.h - small arithmetic on sizes. Not installed. */
#ifndef GGU_SIZE_H
#define GGU_SIZE_H
#include <stddef.h>

static inline size_t size_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t size_most(size_t a, size_t b) { return a > b ? a : b; }
/* How many parts of `part` hold n, the last one perhaps not full; n + part does not overflow. */
static inline size_t size_parts(size_t n, size_t part) { return (n + part - 1)/part; }
/* n, or what is missing to a multiple of `unit` more. */
static inline size_t size_up(size_t n, size_t unit) { return size_parts(n, unit)*unit; }

#endif
