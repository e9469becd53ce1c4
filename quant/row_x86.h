/* SPDX-License-Identifier: MIT
 * row_x86.h - sums of rows in 256 bits. The instance gives i_madd(a, u, v): a += pairs of products of 16 int16. */
#include "bytes_avx2.h"

typedef __m256i isum;
static inline isum i_madd(isum a, __m256i u, __m256i v);

static inline isum i_zero(void) { return _mm256_setzero_si256(); }
static inline isum i_add(isum a, isum b) { return _mm256_add_epi32(a, b); }
static inline __m256i i_load(const int16_t *p) { return _mm256_loadu_si256((const void *)p); }
static inline __m256i i_codes(const int8_t *q) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)q)); }
static inline isum i_codes16(isum a, const int8_t *q, const int16_t *x) { return i_madd(a, i_codes(q), i_load(x)); }
static inline isum i_codes32(isum a, const int8_t *q, const int16_t *x)
{
	return i_codes16(i_codes16(a, q, x), q + 16, x + 16);
}
static inline isum i_scaled(isum a, const int8_t *q, const int16_t *sc, const int16_t *x)
{
	a = i_madd(a, _mm256_mullo_epi16(i_codes(q), _mm256_set1_epi16(sc[0])), i_load(x));
	return i_madd(a, _mm256_mullo_epi16(i_codes(q + 16), _mm256_set1_epi16(sc[1])), i_load(x + 16));
}
static inline isum i_pairs(isum a, const int16_t *u, const int16_t *v) { return i_madd(a, i_load(u), i_load(v)); }
static inline __m256i i_halves32(__m256i a, __m256i b)
{
	return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
static inline __m256i i_halves64(__m256i a, __m256i b)
{
	return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
static inline void i_totals(const isum *s, int32_t *total)
{
	__m256i a = i_halves64(i_halves32(s[0], s[1]), i_halves32(s[2], s[3])), b = i_halves64(i_halves32(s[4], s[5]),
		i_halves32(s[6], s[7]));
	a = _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
	_mm256_storeu_si256((void *)total, a);
}
