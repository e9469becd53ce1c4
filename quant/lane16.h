/* SPDX-License-Identifier: MIT
 * lane16.h - the vocabulary of the float contract: a vector of 16 lanes.
 *
 * GNU vector extensions give + - * / and comparisons (two registers of AVX2, one of AVX-512, loops in plain C); v_fma
 * must be named. Nothing but v_tree mixes lanes. */
#ifndef QUANT_LANE16_H
#define QUANT_LANE16_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined __AVX2__ || defined __AVX512F__
#include <immintrin.h>
#endif
/* AArch64 always has NEON: portable C is a matter of asking for it. */
#if defined __aarch64__ && defined __ARM_NEON && !defined LANE_PORTABLE
#include <arm_neon.h>
#define LANE_NEON
#endif

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));

static inline v16 v_load(const float *p) { v16 a; memcpy(&a, p, 64); return a; }
static inline void v_store(float *p, v16 a) { memcpy(p, &a, 64); }
static inline v16 v_dup(float x) { return x - (v16){ 0 }; }
static inline v16 v_part(const float *p, size_t n) { v16 a = { 0 }; memcpy(&a, p, n*4); return a; }
static inline void v_put(float *p, v16 a, size_t n) { memcpy(p, &a, n*4); }

/* The same lanes as registers, for loops that do nothing but load and multiply-add: compilers send a vector that is
 * wider than a register through memory. */
#if defined __AVX512F__
typedef struct { __m512 h; } t16;
static inline t16 t_load(const float *p) { return (t16){ _mm512_loadu_ps(p) }; }
static inline t16 t_dup(float x) { return (t16){ _mm512_set1_ps(x) }; }
static inline void t_store(float *p, t16 a) { _mm512_storeu_ps(p, a.h); }
static inline t16 t_fma(t16 a, t16 b, t16 c) { return (t16){ _mm512_fmadd_ps(a.h, b.h, c.h) }; }
#elif defined __AVX2__ && defined __FMA__
typedef struct { __m256 l, h; } t16;
static inline t16 t_load(const float *p) { return (t16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
static inline t16 t_dup(float x) { return (t16){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
static inline void t_store(float *p, t16 a) { _mm256_storeu_ps(p, a.l); _mm256_storeu_ps(p + 8, a.h); }
static inline t16 t_fma(t16 a, t16 b, t16 c)
{
	return (t16){ _mm256_fmadd_ps(a.l, b.l, c.l), _mm256_fmadd_ps(a.h, b.h, c.h) };
}
#elif defined LANE_NEON
typedef struct { float32x4_t h[4]; } t16;
static inline t16 t_load(const float *p)
{
	return (t16){ { vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) } };
}
static inline t16 t_dup(float x) { float32x4_t d = vdupq_n_f32(x); return (t16){ { d, d, d, d } }; }
static inline void t_store(float *p, t16 a) { for (int i = 0; i < 4; i++) vst1q_f32(p + 4*i, a.h[i]); }
static inline t16 t_fma(t16 a, t16 b, t16 c)
{
	for (int i = 0; i < 4; i++) c.h[i] = vfmaq_f32(c.h[i], a.h[i], b.h[i]);
	return c;
}
#else
typedef struct { float h[16]; } t16;
static inline t16 t_load(const float *p) { t16 a; memcpy(&a, p, 64); return a; }
static inline t16 t_dup(float x) { t16 a; for (int i = 0; i < 16; i++) a.h[i] = x; return a; }
static inline void t_store(float *p, t16 a) { memcpy(p, &a, 64); }
static inline t16 t_fma(t16 a, t16 b, t16 c)
{
	for (int i = 0; i < 16; i++) c.h[i] = fmaf(a.h[i], b.h[i], c.h[i]);
	return c;
}
#endif
static inline t16 t_from(v16 a) { float f[16]; v_store(f, a); return t_load(f); }
static inline v16 t_to(t16 a) { float f[16]; t_store(f, a); return v_load(f); }
static inline v16 v_fma(v16 a, v16 b, v16 c) { return t_to(t_fma(t_from(a), t_from(b), t_from(c))); }

/* As many lanes as a register has, for loops over elements that have nothing to do with each other. */
#if defined __AVX512F__
enum { REG = 16 };
#elif defined __AVX2__
enum { REG = 8 };
#else
enum { REG = 4 };
#endif
typedef float rf __attribute__((vector_size(4*REG), may_alias));
typedef int32_t ri __attribute__((vector_size(4*REG), may_alias));
typedef uint16_t rh __attribute__((vector_size(2*REG), may_alias));
typedef double rd __attribute__((vector_size(4*REG), may_alias));        /* half as many */
typedef float rf2 __attribute__((vector_size(2*REG), may_alias));
static inline rd r_double(const float *p) { rf2 a; memcpy(&a, p, sizeof a); return __builtin_convertvector(a, rd); }
static inline ri r_load(const void *p) { ri a; memcpy(&a, p, sizeof a); return a; }
static inline ri r_widen(const void *p) { rh a; memcpy(&a, p, sizeof a); return __builtin_convertvector(a, ri); }
static inline bool r_any(ri m)
{
	int64_t part[REG/2], all = 0;
	memcpy(part, &m, sizeof part);
	for (int k = 0; k < REG/2; k++) all |= part[k];
	return all;
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
