/* SPDX-License-Identifier: MIT
 * attn_avx2.c - attention with AVX2, FMA and F16C: attn_text.h in the words of lane_avx2.h. */
#if defined __x86_64__
#include "lane_avx2.h"
#define ATTN_TABLE quant_attn_avx2
enum { WIDE_1 = 8, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 2, WIDE_5 = 2, WIDE_6 = 2, REGS = 12 };
static inline ri r_pairs(rs a, rs b, ri sum)
{
	return sum + (ri)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
#include "attn_text.h"
#else
typedef int isa_none;
#endif
