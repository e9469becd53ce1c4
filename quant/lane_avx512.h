/* SPDX-License-Identifier: MIT
 * lane_avx512.h - the rest of lane.h for AVX-512's F and BW. */
enum { REG = 16 };
#include "lane.h"
#include "lane_x86.h"

static inline rf r_fma(rf a, rf b, rf c) { return (rf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
static inline rf r_bf16(const void *p)
{
	return (rf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16);
}
static inline rf r_f16(const void *p) { return (rf)_mm512_cvtph_ps(_mm256_loadu_si256(p)); }
static inline rs r_i8_pairs(const void *p) { return (rs)_mm512_cvtepi8_epi16(_mm256_loadu_si256(p)); }
static inline rs r_u8_pairs(const void *p) { return (rs)_mm512_cvtepu8_epi16(_mm256_loadu_si256(p)); }
static inline int32_t r_sum(ri a) { return _mm512_reduce_add_epi32((__m512i)a); }
static inline rf r_max(rf a, rf b) { return (rf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline rf r_raise(rf p, rf k, rf x)
{
	__mmask16 live = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
	return (rf)_mm512_maskz_scalef_ps(live, (__m512)p, (__m512)(k - R_WHOLE));
}
static inline rf r_within(rf a, float low, float high)
{
	return (rf)_mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), (__m512)a));
}
static inline rf r_far(rf p, rf n) { return (rf)_mm512_scalef_ps((__m512)p, (__m512)n); }
static inline float r_greatest(rf a) { return _mm512_reduce_max_ps((__m512)a); }
static inline ri ri_max(ri a, ri b) { return (ri)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline int32_t ri_greatest(ri a) { return _mm512_reduce_max_epi32((__m512i)a); }
static inline void r_put_shorts(int16_t *p, ri a, ri b)
{
	const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	__m512i w = _mm512_packs_epi32((__m512i)a, (__m512i)b);
	_mm512_storeu_si512((void *)p, _mm512_permutexvar_epi64(order, w));
}
/* Each step takes the larger one of two halves of a register, for two registers at once. */
static inline __m512 r_greater_half(bool whole, __m512 low, __m512 high)
{
	if (whole) return (__m512)_mm512_max_epi32((__m512i)low, (__m512i)high);
	return _mm512_max_ps(low, high);
}
static inline __m512 r_greatest_of_eight(bool whole, const __m512 *a)
{
	const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 4, 5, 12, 13, 0, 1, 8, 9, 4, 5, 12, 13);
	__m512 half[4], quarter[2], all;
	for (int i = 0; i < 4; i++)
		half[i] = r_greater_half(whole, _mm512_shuffle_f32x4(a[i], a[i + 4], 0x44),
			_mm512_shuffle_f32x4(a[i], a[i + 4], 0xee));
	for (int i = 0; i < 2; i++)
		quarter[i] = r_greater_half(whole, _mm512_shuffle_f32x4(half[i], half[i + 2], 0x88),
			_mm512_shuffle_f32x4(half[i], half[i + 2], 0xdd));
	all = r_greater_half(whole, _mm512_shuffle_ps(quarter[0], quarter[1], 0x44),
		_mm512_shuffle_ps(quarter[0], quarter[1], 0xee));
	all = r_greater_half(whole, _mm512_shuffle_ps(all, all, 0x88), _mm512_shuffle_ps(all, all, 0xdd));
	return _mm512_permutexvar_ps(order, all);
}
/* Sums in the same way */
static inline rf r_trees(const rf *a)
{
	__m512 pair[4];
	for (int j = 0; j < 4; j++) {
		__m512 p = (__m512)a[j], q = (__m512)a[j + 4], r = (__m512)a[j + 8], s = (__m512)a[j + 12], lo, hi;
		p = _mm512_shuffle_f32x4(p, q, 0x44) + _mm512_shuffle_f32x4(p, q, 0xee);
		r = _mm512_shuffle_f32x4(r, s, 0x44) + _mm512_shuffle_f32x4(r, s, 0xee);
		pair[j] = _mm512_shuffle_f32x4(p, r, 0x88) + _mm512_shuffle_f32x4(p, r, 0xdd);
		if (j%2 == 0) continue;
		lo = (__m512)_mm512_unpacklo_pd((__m512d)pair[j - 1], (__m512d)pair[j]);
		hi = (__m512)_mm512_unpackhi_pd((__m512d)pair[j - 1], (__m512d)pair[j]);
		pair[j/2] = lo + hi;
	}
	return (rf)(_mm512_shuffle_ps(pair[0], pair[1], 0x88) + _mm512_shuffle_ps(pair[0], pair[1], 0xdd));
}
static inline rf r_greatests(const rf *a) { return (rf)r_greatest_of_eight(false, (const __m512 *)a); }
static inline ri ri_greatests(const ri *a) { return (ri)r_greatest_of_eight(true, (const __m512 *)a); }
