/* SPDX-License-Identifier: MIT
 * bytes_avx2.h - the rest of bytes.h for AVX2 and F16C. */
#include <immintrin.h>
#include "bytes.h"

static inline b32 b_nibbles(const void *p)
{
	__m128i a = _mm_loadu_si128(p);
	return (b32)_mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(a, 4), a), _mm256_set1_epi8(15));
}
static inline b32 b_mask(uint32_t u)
{
	const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201), spread = _mm256_setr_epi64x(0,
		0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
	__m256i a = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)u), spread), bit);
	return (b32)_mm256_cmpeq_epi8(a, bit);
}
static inline b32 b_level(const int8_t *table, b32 i)
{
	return (b32)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table)), (__m256i)i);
}
/* One instruction, for which gcc 12 has four. */
static inline s16 s_bytes(b16 a) { return (s16)_mm256_cvtepi8_epi16((__m128i)a); }
static inline s16 s_pairs(uint64_t a, uint64_t b)
{
	return (s16)_mm256_cvtepi8_epi16(_mm_unpacklo_epi8(_mm_cvtsi64_si128((long long)a),
		_mm_cvtsi64_si128((long long)b)));
}
static inline float f_half(uint16_t h) { return _cvtsh_ss(h); }
/* Sixteen bytes from two eights, from four fours */
static inline __m128i two64(const uint64_t *a, const uint64_t *b)
{
	return (__m128i)_mm_loadh_pd(_mm_load_sd((const double *)(const void *)a), (const double *)(const void *)b);
}
static inline __m128i four32(const uint32_t *a, const uint32_t *b, const uint32_t *c, const uint32_t *d)
{
	__m128i v = _mm_insert_epi32(_mm_cvtsi32_si128((int)*a), (int)*b, 1);
	return _mm_insert_epi32(_mm_insert_epi32(v, (int)*c, 2), (int)*d, 3);
}
