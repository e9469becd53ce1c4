/* SPDX-License-Identifier: MIT
 * interleave_c.h - brings pairs of columns of rows into lines (mul.h), number by number. */
#include <string.h>
#include "mul.h"

static void interleave(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	for (size_t k = 0; k < n; k++)
		for (size_t r = 0; r < n_rows; r++) memcpy(to + k*width + first + r, rows + r*stride + 2*k, 4);
}
