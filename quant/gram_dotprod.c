/* SPDX-License-Identifier: MIT
 * gram_dotprod.c - products of columns with NEON's dot product of bytes: gram_text.h in the words of lane_neon.h. */
#if defined __aarch64__
#include "lane_neon.h"
#define GRAM_TABLE quant_gram_dotprod
enum { IN_WORD = 4, LIFT = 0, TALL = 4, WIDE = 4 };
static inline ri r_words(ri sum, ri a, ri b) { return (ri)vdotq_s32((int32x4_t)sum, (int8x16_t)a, (int8x16_t)b); }
#include "gram_text.h"
#else
typedef int isa_none;
#endif
