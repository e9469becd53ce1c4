/* SPDX-License-Identifier: MIT
 * enc_lane.h - the encoders' vocabulary: registers of VL floats, one lane for each sub-block.
 *
 * GNU's vector extensions give + - * / and the integer operators. What they cannot say well is in enc_lane_c.h, which
 * defines it, and in enc_lane_avx2.h and enc_lane_avx512.h: an instance includes one of the three before, and with it
 * the lane_*.h of that instruction set. They only name instructions that a compiler does not find by itself. Nothing
 * here mixes lanes, so a lane's result cannot depend on VL: with -ffp-contract=off every width writes the same bytes.
 *   vm                          a mask: what comparisons give, m_and and m_or join and v_sel takes
 *   v_lt(a, b) v_ne(a, b) vi_lt(a, b)
 *   m_and(a, b) m_or(a, b) m_bits(m)    bit l: whether lane l is set
 *   v_sel(m, a, b) v_keep(m, a) vi_one(m)       a where m is set, else b; else 0; 1 where it is set, else 0
 *   v_min(a, b) v_max(a, b)     a < b ? a : b and a > b ? a : b, NaN included: b then
 *   vi_min(a, b) vi_max(a, b)
 *   v_round(a)                  the nearest whole number, ties to even, for |a| < 2^22; a zero may have either sign,
 *                               which no sum and no code can see
 *   v_lut8(t, i)                t[i & 7]
 *   vi_low(a, low)              the upper half of 32 bits as it is, the lower half low, 0 to 65535
 *   put_bytes(p, q)             VL whole numbers, 0 to 255, as bytes */
#ifndef QUANT_ENC_LANE_H
#define QUANT_ENC_LANE_H
#include <stdint.h>
#include <string.h>
#include "lane.h"

/* A function of a type's numbers that is worth a copy for every type: with its loops' lengths and its clamps known it
 * takes up to 40 percent less time, and compilers do not make the copies by themselves. */
#define SPECIAL static inline __attribute__((always_inline))

enum { VL = REG };
typedef rf vf;
typedef ri vi;
typedef ru vu;          /* where sums of bits may wrap: those of a NaN */

static inline vf vf_dup(float a) { return r_dup(a); }
static inline vi vi_dup(int32_t a) { return a - (vi){ 0 }; }
static inline vf vf_load(const float *p) { return r_floats(p); }
static inline void vf_store(float *p, vf a) { r_put(p, a); }
static inline vi v_int(vf a) { return __builtin_convertvector(a, vi); }         /* toward zero; |a| < 2^31 */
static inline vf v_float(vi a) { return r_int(a); }
static inline vf v_abs(vf a) { return r_abs(a); }
static inline vm v_gt(vf a, vf b) { return v_lt(b, a); }
static inline vi vi_sel(vm m, vi a, vi b) { return (vi)v_sel(m, (vf)a, (vf)b); }
static inline vf v_clamp(vf a, float lo, float hi) { return v_min(v_max(a, vf_dup(lo)), vf_dup(hi)); }  /* NaN: lo */
/* a/b, and 0 where b is not above a hair: the guard every least-squares step needs */
static inline vf v_ratio(vf a, vf b) { vm ok = v_gt(b, vf_dup(1e-30f)); return v_keep(ok, a/v_sel(ok, b, vf_dup(1))); }
static inline vf v_inverse(vf a) { vm ok = v_ne(a, vf_dup(0)); return v_keep(ok, 1/v_sel(ok, a, vf_dup(1))); }

static inline vi get_bytes(const uint8_t *src)
{
	typedef uint8_t narrow __attribute__((vector_size(VL)));
	narrow c;
	memcpy(&c, src, sizeof c);
	return __builtin_convertvector(c, vi);
}
static inline void put_codes(uint8_t *dst, vf q) { put_bytes(dst, v_int(q)); }
#endif
