/* SPDX-License-Identifier: MIT
 * float_transpose_x86.h - part of float_text.h with AVX2: transposes eight columns of eight rows. */
#include <immintrin.h>
#include "float.h"
#include "inline.h"

/* Stores column c of the rows at from[0..7] at to[c*phase]. */
INLINE void transpose_8(enum float_type type, const char *const *from, size_t phase, float *to)
{
	__m256 a[8], b[8];
	UNROLL for (int r = 0; r < 8; r++)
		a[r] = type == FLOAT_F32 ? _mm256_loadu_ps((const float *)(const void *)from[r]) :
			type == FLOAT_F16 ? _mm256_cvtph_ps(_mm_loadu_si128((const void *)from[r])) :
			(__m256)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from[r])), 16);
	UNROLL for (int r = 0; r < 8; r += 2) {
		b[r] = _mm256_unpacklo_ps(a[r], a[r + 1]);
		b[r + 1] = _mm256_unpackhi_ps(a[r], a[r + 1]);
	}
	UNROLL for (int r = 0; r < 8; r += 4) {
		a[r] = _mm256_shuffle_ps(b[r], b[r + 2], 0x44);
		a[r + 1] = _mm256_shuffle_ps(b[r], b[r + 2], 0xee);
		a[r + 2] = _mm256_shuffle_ps(b[r + 1], b[r + 3], 0x44);
		a[r + 3] = _mm256_shuffle_ps(b[r + 1], b[r + 3], 0xee);
	}
	UNROLL for (int c = 0; c < 4; c++) {
		_mm256_storeu_ps(to + (size_t)c*phase, _mm256_permute2f128_ps(a[c], a[c + 4], 0x20));
		_mm256_storeu_ps(to + (size_t)(c + 4)*phase, _mm256_permute2f128_ps(a[c], a[c + 4], 0x31));
	}
}
