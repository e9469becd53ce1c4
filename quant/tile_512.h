/* SPDX-License-Identifier: MIT
 * tile_512.h - the vocabulary of tile.h in 512 bits, two registers of outputs; the instance gives TILE_TOKENS and
 * i_madd. */
#include <immintrin.h>
#include "interleave_x86.h"
#include "strip_x86.h"
#define FILL quant_fill_avx2

typedef __m512i vi, vw;
typedef __m512 vf;
enum { LANES = 16, VECTORS = 2 };
static inline vi i_zero(void) { return _mm512_setzero_si512(); }
static inline vi i_load(const void *p) { return _mm512_loadu_si512(p); }
/* Zen 4's loads broadcast integers; its arithmetic pipes broadcast floats. */
static inline vi i_spread(const void *p) { return _mm512_set1_epi32(mul_word(p)); }
static inline vw i_plus(vw u, vw v) { return _mm512_add_epi16(u, v); }
static inline vi i_minus(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vf f_zero(void) { return _mm512_setzero_ps(); }
static inline vf f_load(const void *p) { return _mm512_loadu_ps(p); }
static inline void f_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf f_spread(const void *p) { return _mm512_castsi512_ps(i_spread(p)); }
static inline vf f_product_f(vf d, vf x, vf s, vf a) { return _mm512_fmadd_ps(_mm512_mul_ps(d, x), s, a); }
static inline vf f_product(vf d, vf x, vi s, vf a) { return f_product_f(d, x, _mm512_cvtepi32_ps(s), a); }
