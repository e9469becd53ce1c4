/* SPDX-License-Identifier: MIT
 * gram_avxvnni.c - products of columns with AVX-VNNI: gram_text.h in the words of lane_avx2.h. */
#if defined __x86_64__
#include "lane_avx2.h"
#define GRAM_TABLE quant_gram_avxvnni
enum { IN_WORD = 4, LIFT = 128, TALL = 4, WIDE = 2 };
static inline ri r_words(ri sum, ri a, ri b)
{
	return (ri)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
}
#include "gram_text.h"
#else
typedef int isa_none;
#endif
