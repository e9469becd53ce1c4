/* SPDX-License-Identifier: MIT
 * size.h - small arithmetic on sizes and offsets. Not installed. */
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

/* The same for an offset or a size in a file; at + align must not overflow. */
static inline uint64_t size_aligned(uint64_t at, uint64_t align) { return (at + align - 1)/align*align; }

/* ---- what is to be allocated ---- */

/* Sums and products of sizes from options and files may need more than a size has, above all one of 32 bits. They are
 * SIZE_MAX then, and no allocation of as much succeeds. There is no branch, because gcc at -O3 would follow it and warn
 * of that allocation. */
static inline size_t size_plus(size_t a, size_t b)
{
	size_t sum;
	const size_t over = __builtin_add_overflow(a, b, &sum);
	return sum | (0 - over);
}
static inline size_t size_times(size_t a, size_t b)
{
	size_t product;
	const size_t over = __builtin_mul_overflow(a, b, &product);
	return product | (0 - over);
}
/* size_up, or the greatest multiple that there is if n is above it. */
static inline size_t size_room(size_t n, size_t unit) { return size_plus(n, unit - 1)/unit*unit; }

#endif
