/* SPDX-License-Identifier: MIT
 * ymm.h - private to quant/: words, y_NAME, for one register of 32 bytes (x86's ymm), which row products by digits,
 * those of types with code books and the filling of panels share. ymm_avx2.h and ymm_avxvnni.h include this file and
 * define i_madd. */
#include <immintrin.h>
#include "inline.h"

INLINE __m256i y_load(const void *p) { return _mm256_loadu_si256(p); }
/* Sixteen bytes twice; sixteen at p, then sixteen at q; a byte 32 times */
INLINE __m256i y_twice(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }
INLINE __m256i y_two(const char *p, const char *q)
{
	return _mm256_set_m128i(_mm_loadu_si128((const void *)q), _mm_loadu_si128((const void *)p));
}
INLINE __m256i y_each(__m128i a) { return _mm256_broadcastsi128_si256(a); }
INLINE __m256i y_bytes(int n) { return _mm256_set1_epi8((char)n); }
/* Adds to each int32 of a the two products of a pair of int16. */
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v);
/* a[k] holds four integers of row k in its lower half and four of row k + 4 in its upper one; to[i] gets the i-th of
 * each of the eight rows, in order. */
INLINE void y_transpose(const __m256i a[4], __m256i to[4])
{
	__m256i b[4];
	b[0] = _mm256_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm256_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm256_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm256_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm256_unpacklo_epi64(b[0], b[2]);
	to[1] = _mm256_unpackhi_epi64(b[0], b[2]);
	to[2] = _mm256_unpacklo_epi64(b[1], b[3]);
	to[3] = _mm256_unpackhi_epi64(b[1], b[3]);
}
