/* SPDX-License-Identifier: MIT
 * gram_c.c - products of columns in portable C: the definition. */
#include "lane_c.h"
#define GRAM_TABLE quant_gram_c
enum { IN_WORD = 2, LIFT = 0, TALL = 2, WIDE = 4 };
static inline ri r_words(ri sum, ri a, ri b)
{
	const rs x = (rs)a, y = (rs)b;
	for (int i = 0; i < REG; i++) sum[i] += x[2*i]*y[2*i] + x[2*i + 1]*y[2*i + 1];
	return sum;
}
#include "gram_text.h"
