/* SPDX-License-Identifier: MIT
 * enc_lane_avx2.h - the rest of enc_lane.h for AVX2. */
#include "lane_avx2.h"
#include "enc_lane_plain.h"

static inline uint32_t m_bits(rm m) { return (uint32_t)_mm256_movemask_ps((__m256)m); }
static inline rf r_if(rm m, rf a, rf b) { return (rf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
static inline rf r_min(rf a, rf b) { return (rf)_mm256_min_ps((__m256)a, (__m256)b); }
static inline ri ri_min(ri a, ri b) { return (ri)_mm256_min_epi32((__m256i)a, (__m256i)b); }
static inline rf r_round(rf a) { return (rf)_mm256_round_ps((__m256)a, 8); }
static inline rf r_lut8(const float *t, ri i) { return (rf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(t), (__m256i)i); }
static inline ri ri_low(ri a, int32_t low) { return (ri)_mm256_blend_epi16((__m256i)a, _mm256_set1_epi32(low), 0x55); }
