/* SPDX-License-Identifier: MIT
 * gram_avx2.c - products of columns with AVX2 and FMA: gram_text.h in the words of lane_avx2.h. */
#if defined __x86_64__
#include "lane_avx2.h"
#define GRAM_TABLE quant_gram_avx2
enum { IN_WORD = 2, LIFT = 0, TALL = 4, WIDE = 2 };
static inline ri r_words(ri sum, ri a, ri b) { return sum + (ri)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
#include "gram_text.h"
#else
typedef int isa_none;
#endif
