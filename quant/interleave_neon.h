/* SPDX-License-Identifier: MIT
 * interleave_neon.h - pairs of columns of rows to lines; see mul.h. */
#include <string.h>
#include "mul.h"
#define FILL NULL

static void interleave(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	for (size_t k = 0; k < n; k++)
		for (size_t r = 0; r < n_rows; r++) memcpy(to + k*width + first + r, rows + r*stride + 2*k, 4);
}
