/* SPDX-License-Identifier: MIT
 * attn_c.c - attention in portable C, the definition: attn_text.h in the words of lane_c.h. */
#include "lane_c.h"
#define ATTN_TABLE quant_attn_c
enum { WIDE_1 = 16, WIDE_2 = 8, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
static inline ri r_pairs(rs a, rs b, ri sum)
{
	for (int i = 0; i < REG; i++) sum[i] += a[2*i]*b[2*i] + a[2*i + 1]*b[2*i + 1];
	return sum;
}
#include "attn_text.h"
