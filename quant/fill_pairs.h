/* SPDX-License-Identifier: MIT
 * fill_pairs.h - the vocabulary of fill_256.h for panels that are lines of pairs, as mul.h has them. */
INLINE void put_pairs(char *to, size_t column, __m256i p, __m256i q)
{
	to += 2*WIDTH*column;
	_mm256_storeu_si256((void *)to, p);
	_mm256_storeu_si256((void *)(to + 4*WIDTH), q);
}
#include "fill_256.h"
