/* SPDX-License-Identifier: MIT
 * lane_avx2.h - the rest of lane.h for AVX2, FMA and F16C. */
enum { REG = 8 };
#include "lane.h"
#include "lane_x86.h"

static inline rf r_fma(rf a, rf b, rf c) { return (rf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
static inline rf r_bf16(const void *p)
{
	return (rf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16);
}
static inline rf r_f16(const void *p) { return (rf)_mm256_cvtph_ps(_mm_loadu_si128(p)); }
static inline ri r_i8(const void *p) { return (ri)_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)); }
static inline rs r_i8_pairs(const void *p) { return (rs)_mm256_cvtepi8_epi16(_mm_loadu_si128(p)); }
static inline rs r_u8_pairs(const void *p) { return (rs)_mm256_cvtepu8_epi16(_mm_loadu_si128(p)); }
static inline int32_t r_sum(ri a)
{
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
static inline rf r_max(rf a, rf b) { return (rf)_mm256_max_ps((__m256)a, (__m256)b); }
/* One addition to the exponent: the lowest bits of k are those of n. */
static inline rf r_raise(rf p, rf k, rf x)
{
	return (rf)(((ru)p + ((ru)k << 23 & (ru)(x == x))) & ~(ru)(x < -87.0f));
}
static inline rf r_within(rf a, float low, float high)
{
	return (rf)_mm256_max_ps(_mm256_set1_ps(low), _mm256_min_ps(_mm256_set1_ps(high), (__m256)a));
}
/* 2^n in two factors, so that subnormal results come out. With n NaN, the factors are wrong and the result is NaN. */
static inline rf r_far(rf p, rf n)
{
	ri k = (ri)_mm256_cvtps_epi32((__m256)n), half = k >> 1;
	return p*(rf)((half + 127) << 23)*(rf)((k - half + 127) << 23);
}
static inline ri ri_max(ri a, ri b) { return (ri)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline int32_t ri_greatest(ri a)
{
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}
static inline __m256i r_packed(ri a, ri b)
{
	return _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)a, (__m256i)b), 0xd8);
}
static inline void r_put_shorts(int16_t *p, ri a, ri b) { _mm256_storeu_si256((void *)p, r_packed(a, b)); }
static inline float r_greatest(rf a)
{
	__m128 m = _mm_max_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
/* Each step takes the larger one of two halves of a register, for two registers at once. */
static inline __m256 r_greater_half(bool whole, __m256 low, __m256 high)
{
	if (whole) return (__m256)_mm256_max_epi32((__m256i)low, (__m256i)high);
	return _mm256_max_ps(low, high);
}
static inline __m256 r_greatest_of_eight(bool whole, const __m256 *a)
{
	__m256 half[4], quarter[2];
	for (int i = 0; i < 4; i++)
		half[i] = r_greater_half(whole, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20),
			_mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
	for (int i = 0; i < 2; i++)
		quarter[i] = r_greater_half(whole, _mm256_shuffle_ps(half[2*i], half[2*i + 1], 0x44),
			_mm256_shuffle_ps(half[2*i], half[2*i + 1], 0xee));
	return r_greater_half(whole, _mm256_shuffle_ps(quarter[0], quarter[1], 0x88),
		_mm256_shuffle_ps(quarter[0], quarter[1], 0xdd));
}
/* Sums in the same way */
static inline rf r_trees(const rf *a)
{
	__m256 half[4], quarter[2];
	for (int i = 0; i < 4; i++) {
		__m256 p = (__m256)a[i], q = (__m256)a[i + 4];
		half[i] = _mm256_permute2f128_ps(p, q, 0x20) + _mm256_permute2f128_ps(p, q, 0x31);
	}
	for (int i = 0; i < 2; i++)
		quarter[i] = _mm256_shuffle_ps(half[2*i], half[2*i + 1], 0x44)
			+ _mm256_shuffle_ps(half[2*i], half[2*i + 1], 0xee);
	return (rf)(_mm256_shuffle_ps(quarter[0], quarter[1], 0x88) + _mm256_shuffle_ps(quarter[0], quarter[1], 0xdd));
}
static inline rf r_greatests(const rf *a) { return (rf)r_greatest_of_eight(false, (const __m256 *)a); }
static inline ri ri_greatests(const ri *a) { return (ri)r_greatest_of_eight(true, (const __m256 *)a); }
static inline void r_put_32(int16_t *p, const ri *a, int16_t *sum)
{
	const __m256i one = _mm256_set1_epi16(1);
	__m256i s[2];
	__m128i both;
	for (int h = 0; h < 2; h++) {
		__m256i w = r_packed(a[2*h], a[2*h + 1]);
		_mm256_storeu_si256((void *)(p + 16*h), w);
		s[h] = _mm256_madd_epi16(w, one);
	}
	if (!sum) return;
	s[0] = _mm256_hadd_epi32(s[0], s[1]);
	both = _mm_add_epi32(_mm256_castsi256_si128(s[0]), _mm256_extracti128_si256(s[0], 1));
	both = _mm_add_epi32(both, _mm_shuffle_epi32(both, 0xb1));
	sum[0] = (int16_t)_mm_cvtsi128_si32(both);
	sum[1] = (int16_t)_mm_extract_epi16(both, 4);
}
