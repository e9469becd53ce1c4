/* SPDX-License-Identifier: MIT
 * enc_lane.h - the encoders' vocabulary: a vector of VL floats, one lane for each sub-block.
 *
 * GNU vector extensions give + - * / and the integer operators; the words below are the rest. Nothing
 * here mixes lanes, so a lane's result cannot depend on VL: with -ffp-contract=off every width writes the
 * same bytes. VL = 1 is the definition. The overlays only name instructions that a compiler does not find
 * by itself; v_min(a, b) is a < b ? a : b and v_max(a, b) is a > b ? a : b, NaN included: b then.
 *
 *   vf, vi   floats, 32-bit integers
 *   vm       a mask: what comparisons give, m_and and m_or join and v_sel takes */
#ifndef QUANT_ENC_LANE_H
#define QUANT_ENC_LANE_H
#include <stdint.h>
#include <string.h>

#if VL == 16 && defined __AVX512F__ && defined __AVX512DQ__
#define LANE_AVX512
#elif VL == 8 && defined __AVX2__
#define LANE_AVX2
#endif
#if defined LANE_AVX512 || defined LANE_AVX2
#include <immintrin.h>
#endif

/* A function of a type's numbers that is worth a copy for every type: with its loops' lengths and its clamps known it
 * takes up to 40 percent less time, and compilers do not make the copies by themselves. */
#define SPECIAL static inline __attribute__((always_inline))

typedef float   vf __attribute__((vector_size(4*VL), may_alias));
typedef int32_t vi __attribute__((vector_size(4*VL), may_alias));
/* where sums of bits may wrap: those of a NaN */
typedef uint32_t vu __attribute__((vector_size(4*VL), may_alias));

static inline vf vf_dup(float a) { return a - (vf){0}; }        /* a - 0 keeps the sign of -0 */
static inline vi vi_dup(int32_t a) { return a - (vi){0}; }
static inline vf vf_load(const float *p) { vf r; memcpy(&r, p, sizeof r); return r; }
static inline void vf_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
static inline vi v_int(vf a) { return __builtin_convertvector(a, vi); }         /* toward zero; |a| < 2^31 */
static inline vf v_float(vi a) { return __builtin_convertvector(a, vf); }
static inline vf v_abs(vf a) { return (vf)((vi)a & 0x7fffffff); }

#ifdef LANE_AVX512
typedef __mmask16 vm;
static inline vm v_lt(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ); }
static inline vm v_ne(vf a, vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NEQ_UQ); }
static inline vm vi_lt(vi a, vi b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
static inline vm m_and(vm a, vm b) { return (vm)(a & b); }
static inline vm m_or(vm a, vm b) { return (vm)(a | b); }
static inline vf v_sel(vm m, vf a, vf b) { return (vf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
static inline vf v_keep(vm m, vf a) { return (vf)_mm512_maskz_mov_ps(m, (__m512)a); }
static inline uint32_t m_bits(vm m) { return m; }
static inline vi vi_min(vi a, vi b) { return (vi)_mm512_min_epi32((__m512i)a, (__m512i)b); }
static inline vi vi_max(vi a, vi b) { return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline vi vi_one(vm m) { return (vi)_mm512_maskz_set1_epi32(m, 1); }
static inline vf v_min(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vf v_max(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vf v_round(vf a) { return (vf)_mm512_roundscale_ps((__m512)a, 8); }
static inline vf v_lut8(const float *t, vi i)
{
	return (vf)_mm512_permutexvar_ps((__m512i)i, _mm512_broadcast_f32x8(_mm256_loadu_ps(t)));
}
static inline vi vi_low(vi a, int32_t low)
{
	return (vi)_mm512_ternarylogic_epi32((__m512i)a, _mm512_set1_epi32(-65536), _mm512_set1_epi32(low), 0xea);
}
#else
typedef vi vm;
static inline vm v_lt(vf a, vf b) { return a < b; }
static inline vm v_ne(vf a, vf b) { return a != b; }
static inline vm vi_lt(vi a, vi b) { return a < b; }
static inline vm m_and(vm a, vm b) { return a & b; }
static inline vm m_or(vm a, vm b) { return a | b; }
static inline vf v_keep(vm m, vf a) { return (vf)((vi)a & m); }         /* a, or 0 where m is not set */
static inline vi vi_one(vm m) { return -m; }                            /* 1 where m is set, else 0 */
#ifdef LANE_AVX2
static inline vf v_sel(vm m, vf a, vf b) { return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m); }
static inline uint32_t m_bits(vm m) { return (uint32_t)_mm256_movemask_ps((__m256)m); }
static inline vf v_min(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vf v_max(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vi vi_min(vi a, vi b) { return (vi)_mm256_min_epi32((__m256i)a, (__m256i)b); }
static inline vi vi_max(vi a, vi b) { return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline vf v_round(vf a) { return (vf)_mm256_round_ps((__m256)a, 8); }
static inline vf v_lut8(const float *t, vi i) { return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(t), (__m256i)i); }
static inline vi vi_low(vi a, int32_t low) { return (vi)_mm256_blend_epi16((__m256i)a, _mm256_set1_epi32(low), 0x55); }
#else
static inline vf v_sel(vm m, vf a, vf b) { return (vf)(((vi)a & m) | ((vi)b & ~m)); }
/* bit l: whether lane l is set */
static inline uint32_t m_bits(vm m)
{
	uint32_t r = 0;
	for (int l = 0; l < VL; l++) r |= (uint32_t)(m[l] & 1) << l;
	return r;
}
static inline vf v_min(vf a, vf b) { return v_sel(a < b, a, b); }
static inline vf v_max(vf a, vf b) { return v_sel(a > b, a, b); }
static inline vi vi_min(vi a, vi b) { vi m = a < b; return (a & m) | (b & ~m); }
static inline vi vi_max(vi a, vi b) { vi m = a > b; return (a & m) | (b & ~m); }
/* Nearest integer, ties to even, for |a| < 2^22: the sum has no room for a fraction. The
 * instructions above agree but for the sign of zero, which no sum and no code can see. */
static inline vf v_round(vf a) { return (a + 12582912.0f) - 12582912.0f; }
/* The upper half of 32 bits as it is, the lower half low, 0 to 65535 */
static inline vi vi_low(vi a, int32_t low) { return (a & -65536) | low; }
/* t[i & 7] */
static inline vf v_lut8(const float *t, vi i)
{
	vf r = { 0 };
	for (int k = 0; k < VL; k++) r[k] = t[i[k] & 7];
	return r;
}
#endif
#endif

static inline vm v_gt(vf a, vf b) { return v_lt(b, a); }
static inline vi vi_sel(vm m, vi a, vi b) { return (vi)v_sel(m, (vf)a, (vf)b); }
static inline vf v_clamp(vf a, float lo, float hi) { return v_min(v_max(a, vf_dup(lo)), vf_dup(hi)); }  /* NaN: lo */
/* a/b, and 0 where b is not above a hair: the guard every least-squares step needs */
static inline vf v_ratio(vf a, vf b) { vm ok = v_gt(b, vf_dup(1e-30f)); return v_keep(ok, a/v_sel(ok, b, vf_dup(1))); }
static inline vf v_inverse(vf a) { vm ok = v_ne(a, vf_dup(0)); return v_keep(ok, 1/v_sel(ok, a, vf_dup(1))); }

/* the greatest lane, none of them NaN */
static inline float v_greatest(vf a)
{
#if defined LANE_AVX512
	__m256 h = _mm256_max_ps(_mm512_castps512_ps256((__m512)a), _mm512_extractf32x8_ps((__m512)a, 1));
#elif defined LANE_AVX2
	__m256 h = (__m256)a;
#endif
#if defined LANE_AVX512 || defined LANE_AVX2
	__m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	q = _mm_max_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
#else
	float top = a[0];
	for (int l = 1; l < VL; l++) top = a[l] > top ? a[l] : top;
	return top;
#endif
}

/* VL whole numbers, 0 to 255, as bytes */
static inline void put_bytes(uint8_t *dst, vi q)
{
#if defined LANE_AVX512
	_mm_storeu_si128((__m128i *)(void *)dst, _mm512_cvtepi32_epi8((__m512i)q));
#else
	typedef uint8_t vb __attribute__((vector_size(VL)));
	vb c = __builtin_convertvector(q, vb);
	memcpy(dst, &c, sizeof c);
#endif
}
static inline vi get_bytes(const uint8_t *src)
{
	typedef uint8_t vb __attribute__((vector_size(VL)));
	vb c;
	memcpy(&c, src, sizeof c);
	return __builtin_convertvector(c, vi);
}
static inline void put_codes(uint8_t *dst, vf q) { put_bytes(dst, v_int(q)); }
#endif
