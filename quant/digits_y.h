/* SPDX-License-Identifier: MIT
 * digits_y.h - private to quant/: the words for one register of 32 bytes that row products by digits and those with
 * code books share. digits_y_avx2.h and digits_y_avxvnni.h include it and define i_madd. */
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
INLINE __m256i y_load(const void *p) { return _mm256_loadu_si256(p); }
INLINE __m256i y_twice(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }
INLINE __m256i y_bytes(int n) { return _mm256_set1_epi8((char)n); }
/* a += pairs of products of 16 int16 */
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v);
