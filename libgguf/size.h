/* SPDX-License-Identifier: MIT
 * size.h - small arithmetic on sizes. Not installed. */
#ifndef GGU_SIZE_H
#define GGU_SIZE_H
#include <stddef.h>

static inline size_t size_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t size_most(size_t a, size_t b) { return a > b ? a : b; }
/* The number of parts of size `part` that n needs; n + part must not overflow. */
static inline size_t size_parts(size_t n, size_t part) { return (n + part - 1)/part; }
/* n rounded up to a multiple of `unit`. */
static inline size_t size_up(size_t n, size_t unit) { return size_parts(n, unit)*unit; }

#endif
