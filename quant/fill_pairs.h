/* SPDX-License-Identifier: MIT
 * fill_pairs.h - fill_256.h for panels that are lines of pairs of int16, as in the picture of mul.h: a line has 4*WIDTH
 * bytes, and there is one for every two columns. */
INLINE void put_pairs(char *to, int column, __m256i p, __m256i q)
{
	to += 2*WIDTH*column;
	_mm256_storeu_si256((void *)to, p);
	_mm256_storeu_si256((void *)(to + 4*WIDTH), q);
}
#include "fill_256.h"
