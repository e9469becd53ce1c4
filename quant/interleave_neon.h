/* SPDX-License-Identifier: MIT
 * interleave_neon.h - strips for instruction sets of AArch64, number by number. */
#include "interleave_c.h"
#define FILL NULL

enum { SUMS_OF_ROWS = true };
static inline void strip_of(int tokens, int crossed, const struct narrow *q, size_t block, char *to)
{
	(void)crossed;                     /* no set crosses */
	mul_strip(interleave, (size_t)tokens, true, q, block, to);
}
