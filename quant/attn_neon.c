/* SPDX-License-Identifier: MIT
 * attn_neon.c - attention with NEON: attn_text.h in the words of lane_neon.h. */
#if defined __aarch64__
#include "lane_neon.h"
#define ATTN_TABLE quant_attn_neon
enum { WIDE_1 = 16, WIDE_2 = 8, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
static inline ri r_pairs(rs a, rs b, ri sum)
{
	int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
	return sum + (ri)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
#include "attn_text.h"
#else
typedef int isa_none;
#endif
