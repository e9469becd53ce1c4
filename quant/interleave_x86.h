/* SPDX-License-Identifier: MIT
 * interleave_x86.h - brings pairs of columns of eight rows into lines (mul.h) by transposing 8 x 8 int32 with AVX2. */
#include <immintrin.h>
#include "inline.h"
#include "mul.h"

/* Four pairs of two rows */
static inline __m256i two4(const int16_t *p, const int16_t *q)
{
	return _mm256_set_m128i(_mm_loadu_si128((const void *)q), _mm_loadu_si128((const void *)p));
}
/* Registers have rows 0 to 3 in one half and 4 to 7 in the other, so that no step crosses halves. */
INLINE void interleave_8(const int16_t *rows, size_t stride, size_t width, int32_t *to)
{
	for (size_t h = 0; h < 2; h++, rows += 8) {
		__m256i a[4], b[4];
		for (size_t r = 0; r < 4; r++) a[r] = two4(rows + r*stride, rows + (4 + r)*stride);
		for (int i = 0; i < 2; i++) {
			b[i] = _mm256_unpacklo_epi32(a[2*i], a[2*i + 1]);
			b[2 + i] = _mm256_unpackhi_epi32(a[2*i], a[2*i + 1]);
		}
		for (int i = 0; i < 2; i++, to += 2*width) {
			_mm256_storeu_si256((void *)to, _mm256_unpacklo_epi64(b[2*i], b[2*i + 1]));
			_mm256_storeu_si256((void *)(to + width), _mm256_unpackhi_epi64(b[2*i], b[2*i + 1]));
		}
	}
}
static void interleave(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	(void)n_rows;                   /* lines are written eight at a time */
	for (size_t k = 0; k < n; k += 8) interleave_8(rows + 2*k, stride, width, to + k*width + first);
}
