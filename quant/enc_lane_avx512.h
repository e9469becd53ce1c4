/* SPDX-License-Identifier: MIT
 * enc_lane_avx512.h - the rest of enc_lane.h for AVX-512, where masks are registers of their own. */
#include "lane_avx512.h"

typedef __mmask16 rm;
static inline rm r_lt(rf a, rf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
static inline rm r_ne(rf a, rf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ); }
static inline rm ri_lt(ri a, ri b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
static inline rm m_and(rm a, rm b) { return (rm)(a & b); }
static inline rm m_or(rm a, rm b) { return (rm)(a | b); }
static inline uint32_t m_bits(rm m) { return m; }
static inline rf r_if(rm m, rf a, rf b) { return (rf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
static inline rf r_keep(rm m, rf a) { return (rf)_mm512_maskz_mov_ps(m, (__m512)a); }
static inline ri ri_one(rm m) { return (ri)_mm512_maskz_set1_epi32(m, 1); }
static inline rf r_min(rf a, rf b) { return (rf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline ri ri_min(ri a, ri b) { return (ri)_mm512_min_epi32((__m512i)a, (__m512i)b); }
static inline rf r_round(rf a) { return (rf)_mm512_roundscale_ps((__m512)a, 8); }
static inline rf r_lut8(const float *t, ri i)
{
	return (rf)_mm512_permutexvar_ps((__m512i)i, _mm512_broadcast_f32x8(_mm256_loadu_ps(t)));
}
static inline ri ri_low(ri a, int32_t low)
{
	return (ri)_mm512_ternarylogic_epi32((__m512i)a, _mm512_set1_epi32(-65536), _mm512_set1_epi32(low), 0xea);
}
static inline void put_bytes(uint8_t *dst, ri q)
{
	_mm_storeu_si128((__m128i *)(void *)dst, _mm512_cvtepi32_epi8((__m512i)q));
}
