/* SPDX-License-Identifier: MIT
 * enc_lane.h - the words for registers that encoders need in addition to those of lane.h. Each lane holds a sub-block.
 * Masks have a type of their own, as AVX-512 has registers of their own for them. Words that begin with r_ give floats,
 * ri_ integers, m_ masks.
 *
 * enc_lane_c.h defines them; enc_lane_avx2.h and enc_lane_avx512.h name instructions that a compiler does not find by
 * itself. An instance first includes one of the three, and with it the lane_*.h of that instruction set. Nothing here
 * mixes lanes, so a lane's result does not depend on REG: with -ffp-contract=off every width writes the same bytes.
 *   rm                          a mask: the result of comparisons, joined by m_and and m_or, used by r_if
 *   r_lt(a, b) r_ne(a, b) ri_lt(a, b)
 *   m_and(a, b) m_or(a, b) m_bits(m)    bit l: whether lane l is set
 *   r_if(m, a, b)               a where m is set, else b
 *   r_keep(m, a) ri_one(m)      a where m is set, else 0; 1 where it is set, else 0
 *   r_min(a, b)                 a < b ? a : b; b where one is NaN
 *   ri_min(a, b)                the smaller; r_max and ri_max are in lane.h
 *   r_round(a)                  the nearest integer, ties to even, for |a| < 2^22; a zero may have either sign,
 *                               which affects no sum and no code
 *   r_lut8(t, i)                t[i & 7]
 *   ri_low(a, low)              the upper half of 32 bits unchanged, the lower half low, 0 to 65535
 *   put_bytes(p, q)             REG integers, 0 to 255, as bytes */
#ifndef QUANT_ENC_LANE_H
#define QUANT_ENC_LANE_H
#include <stdint.h>
#include <string.h>
#include "lane.h"

static inline ri ri_dup(int32_t a) { return a - (ri){ 0 }; }
static inline ri ri_trunc(rf a) { return __builtin_convertvector(a, ri); }      /* toward zero; |a| < 2^31 */
static inline rm r_gt(rf a, rf b) { return r_lt(b, a); }
static inline ri ri_if(rm m, ri a, ri b) { return (ri)r_if(m, (rf)a, (rf)b); }
static inline rf r_clamp(rf a, float lo, float hi) { return r_min(r_max(a, r_dup(lo)), r_dup(hi)); }  /* NaN: lo */
/* a/b, or 0 if b is not above a tiny number: the guard that every least-squares step needs */
static inline rf r_ratio(rf a, rf b) { rm ok = r_gt(b, r_dup(1e-30f)); return r_keep(ok, a/r_if(ok, b, r_dup(1))); }
static inline rf r_inverse(rf a) { rm ok = r_ne(a, r_dup(0)); return r_keep(ok, 1/r_if(ok, a, r_dup(1))); }

static inline ri get_bytes(const uint8_t *src)
{
	typedef uint8_t narrow __attribute__((vector_size(REG)));
	narrow c;
	memcpy(&c, src, sizeof c);
	return __builtin_convertvector(c, ri);
}
static inline void put_codes(uint8_t *dst, rf q) { put_bytes(dst, ri_trunc(q)); }
#endif
