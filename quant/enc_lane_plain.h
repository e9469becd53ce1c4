/* SPDX-License-Identifier: MIT
 * enc_lane_plain.h - words of enc_lane.h in plain C, which enc_lane_c.h and enc_lane_avx2.h share: masks are registers
 * of integers, all bits of a lane set or none. */

typedef ri rm;
static inline rm r_lt(rf a, rf b) { return a < b; }
static inline rm r_ne(rf a, rf b) { return a != b; }
static inline rm ri_lt(ri a, ri b) { return a < b; }
static inline rm m_and(rm a, rm b) { return a & b; }
static inline rm m_or(rm a, rm b) { return a | b; }
static inline rf r_keep(rm m, rf a) { return (rf)((ri)a & m); }
static inline ri ri_one(rm m) { return -m; }
static inline void put_bytes(uint8_t *dst, ri q)
{
	typedef uint8_t narrow __attribute__((vector_size(REG)));
	narrow c = __builtin_convertvector(q, narrow);
	memcpy(dst, &c, sizeof c);
}
