/* SPDX-License-Identifier: MIT
 * interleave_neon.h - brings pairs of columns of rows into lines (mul.h), number by number. */
#include <string.h>
#include "mul.h"
#define FILL NULL

static void interleave(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	for (size_t k = 0; k < n; k++)
		for (size_t r = 0; r < n_rows; r++) memcpy(to + k*width + first + r, rows + r*stride + 2*k, 4);
}
enum { SUMS_OF_ROWS = true };
static inline void strip_of(int tokens, int crossed, const struct narrow *q, size_t block, char *to)
{
	(void)crossed;                     /* no set crosses */
	mul_strip(interleave, (size_t)tokens, true, q, block, to);
}
