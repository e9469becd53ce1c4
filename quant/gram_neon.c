/* SPDX-License-Identifier: MIT
 * gram_neon.c - products of columns with NEON: gram_text.h in the words of lane_neon.h. */
#if defined __aarch64__
#include "lane_neon.h"
#define GRAM_TABLE quant_gram_neon
enum { IN_WORD = 2, LIFT = 0, TALL = 4, WIDE = 4 };
static inline ri r_words(ri sum, ri a, ri b)
{
	const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
	return sum + (ri)vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
#include "gram_text.h"
#else
typedef int isa_none;
#endif
