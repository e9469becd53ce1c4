/* SPDX-License-Identifier: MIT
 * lane16.h - the vocabulary of the float contract: a vector of 16 lanes.
 *
 * GNU vector extensions give + - * / and comparisons (two registers of AVX2, one of AVX-512, loops in plain C);
 * v_fma and i_madd must be named. Nothing but v_tree and the i_sum functions mixes lanes. */
#ifndef QUANT_LANE16_H
#define QUANT_LANE16_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined __AVX2__ || defined __AVX512F__
#include <immintrin.h>
#endif
#if defined __ARM_NEON
#include <arm_neon.h>
#endif

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i16 __attribute__((vector_size(64), aligned(4), may_alias));

static inline v16 v_load(const float *p) { v16 a; memcpy(&a, p, 64); return a; }
static inline void v_store(float *p, v16 a) { memcpy(p, &a, 64); }
static inline v16 v_dup(float x) { return x - (v16){ 0 }; }
static inline v16 v_part(const float *p, size_t n) { v16 a = { 0 }; memcpy(&a, p, n*4); return a; }
static inline void v_put(float *p, v16 a, size_t n) { memcpy(p, &a, n*4); }
static inline v16 v_sel(i16 m, v16 a, v16 b) { return (v16)(((i16)a & m) | ((i16)b & ~m)); }

static inline v16 v_fma(v16 a, v16 b, v16 c)
{
#if defined __AVX512F__
	return (v16)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined __AVX2__ && defined __FMA__
	union { v16 v; __m256 h[2]; } x = { a }, y = { b }, z = { c };
	z.h[0] = _mm256_fmadd_ps(x.h[0], y.h[0], z.h[0]);
	z.h[1] = _mm256_fmadd_ps(x.h[1], y.h[1], z.h[1]);
	return z.v;
#elif defined __ARM_NEON
	union { v16 v; float32x4_t h[4]; } x = { a }, y = { b }, z = { c };
	for (int i = 0; i < 4; i++) z.h[i] = vfmaq_f32(z.h[i], x.h[i], y.h[i]);
	return z.v;
#else
	for (int i = 0; i < 16; i++) c[i] = fmaf(a[i], b[i], c[i]);
	return c;
#endif
}

/* lane l += lane l+8, then +4, +2, +1 */
static inline float v_tree(v16 a)
{
	float s[16];
	v_store(s, a);
	for (int h = 8; h; h /= 2) for (int l = 0; l < h; l++) s[l] += s[l + h];
	return s[0];
}
#endif
