/* SPDX-License-Identifier: MIT
 * gram_c.c - products of columns in portable C, the definition: gram_text.h in the words of lane_c.h. */
#include "lane_c.h"
#define GRAM_TABLE quant_gram_c
enum { IN_WORD = 2, LIFT = 0, TALL = 2, WIDE = 4 };
static inline ri r_words(ri sum, ri a, ri b)
{
	return sum + ((ri)((ru)a << 16) >> 16)*((ri)((ru)b << 16) >> 16) + (a >> 16)*(b >> 16);
}
#include "gram_text.h"
