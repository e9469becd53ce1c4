/* SPDX-License-Identifier: MIT
 * enc_lane_plain.h - words of enc_lane.h in plain C, which enc_lane_c.h and enc_lane_avx2.h share: masks are registers
 * of integers, all bits of a lane set or none. */

typedef ri vm;
static inline vm v_lt(rf a, rf b) { return a < b; }
static inline vm v_ne(rf a, rf b) { return a != b; }
static inline vm vi_lt(ri a, ri b) { return a < b; }
static inline vm m_and(vm a, vm b) { return a & b; }
static inline vm m_or(vm a, vm b) { return a | b; }
static inline rf v_keep(vm m, rf a) { return (rf)((ri)a & m); }
static inline ri vi_one(vm m) { return -m; }
static inline void put_bytes(uint8_t *dst, ri q)
{
	typedef uint8_t narrow __attribute__((vector_size(REG)));
	narrow c = __builtin_convertvector(q, narrow);
	memcpy(dst, &c, sizeof c);
}
