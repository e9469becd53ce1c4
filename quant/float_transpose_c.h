/* SPDX-License-Identifier: MIT
 * float_transpose_c.h - part of float_text.h in plain C: transposes eight columns of eight rows. */
#include "float.h"
#include "inline.h"

/* Stores column c of the rows at from[0..7] at to[c*phase]. */
INLINE void transpose_8(enum float_type type, const char *const *from, size_t phase, float *to)
{
	for (size_t r = 0; r < 8; r++)
		for (size_t c = 0; c < 8; c++) to[c*phase + r] = float_at(type, from[r] + c*float_width(type));
}
