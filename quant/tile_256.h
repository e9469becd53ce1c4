/* SPDX-License-Identifier: MIT
 * tile_256.h - the vocabulary of tile.h in 256 bits; the instance gives VECTORS, TILE_TOKENS and i_madd. */
#include <immintrin.h>
#include "interleave_x86.h"
#include "strip_x86.h"

typedef __m256i vi, vw;
typedef __m256 vf;
enum { LANES = 8 };
static inline vi i_zero(void) { return _mm256_setzero_si256(); }
static inline vi i_load(const void *p) { return _mm256_loadu_si256(p); }
/* Zen 4's loads broadcast integers; its arithmetic pipes broadcast floats. */
static inline vi i_spread(const void *p) { return _mm256_set1_epi32(mul_word(p)); }
static inline vw i_plus(vw u, vw v) { return _mm256_add_epi16(u, v); }
static inline vi i_minus(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vf f_zero(void) { return _mm256_setzero_ps(); }
static inline vf f_load(const void *p) { return _mm256_loadu_ps(p); }
static inline void f_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf f_spread(const void *p) { return _mm256_castsi256_ps(i_spread(p)); }
static inline vf f_product_f(vf d, vf x, vf s, vf a) { return _mm256_fmadd_ps(_mm256_mul_ps(d, x), s, a); }
static inline vf f_product(vf d, vf x, vi s, vf a) { return f_product_f(d, x, _mm256_cvtepi32_ps(s), a); }
