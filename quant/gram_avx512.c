/* SPDX-License-Identifier: MIT
 * gram_avx512.c - products of columns with AVX-512 and VNNI: gram_text.h in the words of lane_avx512.h. */
#if defined __x86_64__
#include "lane_avx512.h"
#define GRAM_TABLE quant_gram_avx512
enum { IN_WORD = 4, LIFT = 128, TALL = 8, WIDE = 2 };
static inline ri r_words(ri sum, ri a, ri b)
{
	return (ri)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}
#include "gram_text.h"
#else
typedef int isa_none;
#endif
