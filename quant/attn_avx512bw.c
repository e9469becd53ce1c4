/* SPDX-License-Identifier: MIT
 * attn_avx512bw.c - attention with AVX-512, without VNNI: attn_text.h in the words of lane_avx512.h. */
#if defined __x86_64__
#include "lane_avx512.h"
#define ATTN_TABLE quant_attn_avx512bw
enum { WIDE_1 = 4, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 2, WIDE_7 = 2, WIDE_8 = 2,
	REGS = 24 };
#define EIGHT
static inline ri r_pairs(rs a, rs b, ri sum)
{
	return sum + (ri)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
#include "attn_text.h"
#else
typedef int isa_none;
#endif
