/* SPDX-License-Identifier: MIT
 * gram_avx512bw.c - products of columns with AVX-512, without VNNI: gram_text.h in the words of lane_avx512.h. */
#if defined __x86_64__
#include "lane_avx512.h"
#define GRAM_TABLE quant_gram_avx512bw
enum { IN_WORD = 2, LIFT = 0, TALL = 8, WIDE = 2 };
static inline ri r_words(ri sum, ri a, ri b) { return sum + (ri)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
#include "gram_text.h"
#else
typedef int isa_none;
#endif
