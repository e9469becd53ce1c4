/* SPDX-License-Identifier: MIT
 * size.h - small arithmetic on sizes. Not installed. */
#ifndef GGU_SIZE_H
#define GGU_SIZE_H
#include <stddef.h>
#include <stdint.h>

static inline size_t size_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t size_most(size_t a, size_t b) { return a > b ? a : b; }
/* The number of parts of size `part` that n needs; n + part must not overflow. */
static inline size_t size_parts(size_t n, size_t part) { return (n + part - 1)/part; }
/* n rounded up to a multiple of `unit`. */
static inline size_t size_up(size_t n, size_t unit) { return size_parts(n, unit)*unit; }

/* ---- what is to be allocated ---- */

/* Sums and products of sizes from options and files may need more than a size has, above all one of 32 bits. They are
 * SIZE_MAX then, and no allocation of as much succeeds. */
static inline size_t size_plus(size_t a, size_t b)
{
	size_t sum;
	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}
static inline size_t size_times(size_t a, size_t b)
{
	size_t product;
	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}
/* size_up, or the greatest multiple that there is if n is above it. */
static inline size_t size_room(size_t n, size_t unit) { return size_plus(n, unit - 1)/unit*unit; }

#endif
