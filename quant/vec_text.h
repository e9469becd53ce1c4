/* SPDX-License-Identifier: MIT
 * vec_text.h - the functions of vec.h, one text for all instruction sets; vec_c.c, vec_avx2.c and
 * vec_avx512.c compile it. Defines the table VEC_TABLE.
 *
 * The vocabulary is a vector of the contract's 16 lanes (GNU vector extensions: two registers of AVX2, one of
 * AVX-512, loops in plain C) and v_fma, which must be named, since a*b + c is two roundings. Nothing but v_tree
 * mixes lanes. A rest of less than 16 elements is padded with zeros, which no sum can see. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined __AVX2__ || defined __AVX512F__
#include <immintrin.h>
#endif
#if defined __ARM_NEON
#include <arm_neon.h>
#endif
#include "vec_internal.h"

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
#elif defined __AVX2__
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

static inline float dot1(const float *a, const float *b, size_t n)
{
	v16 s = { 0 };
	size_t i = 0;
	for (; i + 16 <= n; i += 16) s = v_fma(v_load(a + i), v_load(b + i), s);
	if (i < n) {
		/* lanes beyond the rest keep their bits: an fma with 0*0 could turn -0 into 0 */
		float t[16], x[16];
		v16 r = v_fma(v_part(a + i, n - i), v_part(b + i, n - i), s);
		v_store(t, s);
		v_store(x, r);
		memcpy(t, x, (n - i)*sizeof *t);
		s = v_load(t);
	}
	return v_tree(s);
}
static float dot(const float *a, const float *b, size_t n) { return dot1(a, b, n); }
static void dots(const float *a, const float *rows, size_t stride, size_t n_rows, size_t n, float *out)
{
	for (size_t r = 0; r < n_rows; r++) out[r] = dot1(a, rows + r*stride, n);
}

static float sum(const float *a, size_t n)
{
	v16 s = { 0 };
	size_t i = 0;
	for (; i + 16 <= n; i += 16) s += v_load(a + i);
	if (i < n) s += v_part(a + i, n - i);
	return v_tree(s);
}

static float max(const float *a, size_t n)
{
	float m = -INFINITY;
	for (size_t i = 0; i < n; i++) {
		if (a[i] != a[i]) return a[i];
		m = a[i] > m ? a[i] : m;
	}
	return m;
}

/* y[j] = fma(p[r], rows[r][j], y[j]), r in order: a column is one chain */
static void mix(float *y, const float *p, const float *rows, size_t stride, size_t n_rows, size_t n)
{
	size_t j = 0;
	for (; j + 64 <= n; j += 64) {
		v16 a = v_load(y + j), b = v_load(y + j + 16), c = v_load(y + j + 32), d = v_load(y + j + 48);
		for (size_t r = 0; r < n_rows; r++) {
			const float *x = rows + r*stride + j;
			v16 q = v_dup(p[r]);
			a = v_fma(q, v_load(x), a);
			b = v_fma(q, v_load(x + 16), b);
			c = v_fma(q, v_load(x + 32), c);
			d = v_fma(q, v_load(x + 48), d);
		}
		v_store(y + j, a); v_store(y + j + 16, b); v_store(y + j + 32, c); v_store(y + j + 48, d);
	}
	for (; j < n; j += 16) {
		size_t w = n - j < 16 ? n - j : 16;
		v16 a = v_part(y + j, w);
		for (size_t r = 0; r < n_rows; r++) a = v_fma(v_dup(p[r]), v_part(rows + r*stride + j, w), a);
		v_put(y + j, a, w);
	}
}

static void axpy(float *y, float a, const float *x, size_t n) { mix(y, &a, x, n, 1, n); }

/* Whole vectors of an array, then the padded rest. */
#define EACH(n, EXPR) \
	size_t i = 0; \
	for (; i + 16 <= (n); i += 16) { v16 x = v_load(y + i); v_store(y + i, EXPR); } \
	if (i < (n)) { v16 x = v_part(y + i, (n) - i); v_put(y + i, EXPR, (n) - i); }

static void scale(float *y, float a, size_t n) { EACH(n, x*v_dup(a)) }
static void add(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + 16 <= n; i += 16) v_store(y + i, v_load(y + i) + v_load(b + i));
	for (; i < n; i++) y[i] += b[i];
}
static void mul(float *y, const float *b, size_t n)
{
	size_t i = 0;
	for (; i + 16 <= n; i += 16) v_store(y + i, v_load(y + i)*v_load(b + i));
	for (; i < n; i++) y[i] *= b[i];
}

/* e^x: x = k ln 2 + r, |r| <= ln 2 / 2; e^r by its Taylor sum to r^7/7! (the rest is below 0.05 ulp); 2^k in two
 * factors so that subnormal results come out. Within 1 ulp where the result is normal; 0 below -104, inf above 88.73. */
static inline v16 v_exp(v16 x)
{
	const v16 big = v_dup(12582912.0f);     /* adding it rounds to a whole number */
	v16 z = v_sel(x < -104.5f, v_dup(-104.5f), v_sel(x > 89.0f, v_dup(89.0f), x));
	v16 k = v_fma(z, v_dup(1.44269504f), big) - big, r, p;
	i16 n = __builtin_convertvector(v_sel(x == x, k, (v16){ 0 }), i16), half = n >> 1;
	r = v_fma(k, v_dup(-0.693359375f), z);          /* ln 2 in two parts, the first of 9 bits */
	r = v_fma(k, v_dup(2.12194440e-4f), r);
	p = v_fma(r, v_dup(1.98412698e-4f), v_dup(1.38888889e-3f));
	p = v_fma(p, r, v_dup(8.33333333e-3f));
	p = v_fma(p, r, v_dup(4.16666667e-2f));
	p = v_fma(p, r, v_dup(1.66666667e-1f));
	p = v_fma(p, r, v_dup(0.5f));
	p = v_fma(p, r, v_dup(1.0f));
	p = v_fma(p, r, v_dup(1.0f));
	p = p*(v16)((half + 127) << 23)*(v16)((n - half + 127) << 23);
	return v_sel(x == x, p, x);
}
/* x / (1 + e^-t); for t far below 0 the quotient is -0 as it should be */
static inline v16 v_gate(v16 x, v16 t) { return x/(1.0f + v_exp(-t)); }
static void expv(float *y, size_t n) { EACH(n, v_exp(x)) }
static void silu(float *y, size_t n) { EACH(n, v_gate(x, x)) }
/* x/2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static void gelu_tanh(float *y, size_t n) { EACH(n, v_gate(x, 1.5957691216f*(x + 0.044715f*x*x*x))) }

static void softmax(float *y, size_t n)
{
	float m = max(y, n), s;
	{ EACH(n, v_exp(x - v_dup(m))) }
	s = sum(y, n);
	{ EACH(n, x/v_dup(s)) }
}

const struct vec_table VEC_TABLE = { dot, dots, sum, max, mix, axpy, scale, add, mul, expv, silu, gelu_tanh, softmax };
