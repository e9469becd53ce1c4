/* SPDX-License-Identifier: MIT
 * lane.h - registers of floats and of integers, for loops over independent elements, and the sixteen lanes of the float
 * contract (quant.h). Every lane has the bits of portable C.
 *
 * GNU's vector extensions give + - * / and comparisons. What they cannot express well is in lane_c.h, which defines it,
 * and in lane_avx2.h, lane_avx512.h and lane_neon.h: an instance includes one of the four. Each defines REG, the lanes
 * of a register, before this file, and then
 *   rf r_fma(a, b, c)           a*b + c, rounded once
 *   rf r_bf16(p) r_f16(p)       REG bfloats, REG halves as floats; r_f16 may change the payload of NaN
 *   ri r_i8(p)                  REG signed bytes; not in AVX-512, which leaves codes_text.h to AVX2
 *   rs r_i8_pairs(p) r_u8_pairs(p)      2*REG bytes as integers, signed and unsigned
 *   int32_t r_sum(a)            over all lanes, wrapping around
 *   rf r_max(a, b)              a > b ? a : b; b if one is NaN
 *   rf r_raise(p, k, x)         p*2^n with k = 1.5*2^23 + n, a normal number; but 0 if x < -87, NaN if x is
 *   rf r_within(a, low, high)   high if a is above it, low if a is below it
 *   rf r_far(p, n)              p*2^n, rounded once, for p about 1 and whole numbers n of at most 200
 *   float r_greatest(a)         the largest lane; no lane is NaN
 *   float r_tree(p)             p[0..15] by the contract's tree
 *   ri ri_max(a, b)             the larger of each lane
 *   int32_t ri_greatest(a)      the largest lane
 *   rf r_trees(a)               lane i is the sum over a[i], i < REG: its halves are added, again and again
 *   rf r_greatests(a) ri ri_greatests(a)        lane i, for the first AT_ONCE: r_greatest(a[i]), ri_greatest(a[i])
 *   void r_put_shorts(p, a, b)  2*REG integers that fit, as int16
 *   void r_put_32(p, a, sum)    32 integers as int16, and, if sum is not NULL, the sums of each 16 of them, which also
 *                               fit; not in AVX-512 either */
#ifndef QUANT_LANE_H
#define QUANT_LANE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "fused.h"
#include "inline.h"
#include "kern.h"

typedef float rf __attribute__((vector_size(4*REG), may_alias));
typedef int32_t ri __attribute__((vector_size(4*REG), may_alias));
typedef uint32_t ru __attribute__((vector_size(4*REG), may_alias));      /* bits, sums of which may wrap */
typedef int16_t rs __attribute__((vector_size(4*REG), may_alias));       /* pairs */
typedef uint16_t rh __attribute__((vector_size(2*REG), may_alias));
typedef double rd __attribute__((vector_size(4*REG), may_alias));        /* half as many */
typedef float rf2 __attribute__((vector_size(2*REG), may_alias));
enum { AT_ONCE = REG < 8 ? REG : 8 };

static inline rf r_floats(const float *p) { rf a; memcpy(&a, p, sizeof a); return a; }
static inline void r_put(float *p, rf a) { memcpy(p, &a, sizeof a); }
/* The first n lanes of a, and of memory; zeros elsewhere. */
static inline rf r_part(const float *p, size_t n) { rf a = { 0 }; memcpy(&a, p, n*4); return a; }
static inline void r_put_part(float *p, rf a, size_t n) { memcpy(p, &a, n*4); }
static inline rf r_dup(float x) { return x - (rf){ 0 }; }
/* As an integer, because Zen 4's loads broadcast those, but its arithmetic pipes floats. */
static inline rf r_dup_at(const float *p) { int32_t u; memcpy(&u, p, sizeof u); return (rf)((ri){ 0 } + u); }
static inline rf r_sel(ri m, rf a, rf b) { return (rf)(((ri)a & m) | ((ri)b & ~m)); }
static inline rf r_pick(rf a, ri from)          /* lane i is a's lane from[i] */
{
#if defined __clang__
	rf r;
	for (int i = 0; i < REG; i++) r[i] = a[from[i]];
	return r;
#else
	return __builtin_shuffle(a, from);
#endif
}
static inline rf r_abs(rf a) { return (rf)((ri)a & INT32_MAX); }
static inline rf r_int(ri a) { return __builtin_convertvector(a, rf); }
static inline rd r_double(const float *p) { rf2 a; memcpy(&a, p, sizeof a); return __builtin_convertvector(a, rd); }
/* Added to a float of at most 2^22, it leaves no room for a fraction: the adder rounds to the nearest integer, ties to
 * even, which is then in the lowest bits. */
#define R_WHOLE 0x1.8p23f
static inline ri r_nearest(rf a) { return (ri)(a + R_WHOLE) - (ri)r_dup(R_WHOLE); }
static inline ri r_load(const void *p) { ri a; memcpy(&a, p, sizeof a); return a; }
static inline ri r_widen(const void *p) { rh a; memcpy(&a, p, sizeof a); return __builtin_convertvector(a, ri); }
static inline void r_put_i16(int16_t *p, ri a)
{
	typedef int16_t narrow __attribute__((vector_size(2*REG)));
	narrow b = __builtin_convertvector(a, narrow);
	memcpy(p, &b, sizeof b);
}
static inline bool r_any(ri m)
{
	int64_t part[REG/2], all = 0;
	memcpy(part, &m, sizeof part);
	for (int k = 0; k < REG/2; k++) all |= part[k];
	return all;
}
/* as kern_f16_to_f32, without branches */
static inline rf r_f16_exact(const void *p)
{
	ri h = r_widen(p), m = h & 0x7fff, below = m < 0x400;
	ri sub = (ri)(__builtin_convertvector(m, rf)*0x1p-24f),
		r = (m << 13) + 0x38000000 + ((m >= 0x7c00) & 0x38000000);
	return (rf)((sub & below) | (r & ~below) | (-(h >> 15) & INT32_MIN));
}

/* The contract's sixteen lanes, for loops that only load and multiply-add: compilers pass vectors wider than a register
 * through memory. */
typedef struct { rf r[16/REG]; } t16;
#define EACH_REGISTER UNROLL for (int i = 0; i < 16/REG; i++)
static inline t16 t_load(const float *p) { t16 a; EACH_REGISTER a.r[i] = r_floats(p + i*REG); return a; }
static inline t16 t_dup(float x) { t16 a; EACH_REGISTER a.r[i] = r_dup(x); return a; }
static inline void t_store(float *p, t16 a) { EACH_REGISTER r_put(p + i*REG, a.r[i]); }
static inline rf r_fma(rf a, rf b, rf c);
static inline t16 t_fma(t16 a, t16 b, t16 c)
{
	EACH_REGISTER c.r[i] = r_fma(a.r[i], b.r[i], c.r[i]);
	return c;
}
#endif
