/* SPDX-License-Identifier: MIT
 * books_avxvnni.c - rows of types with code books and of ternary types, with AVX-VNNI. */
#if defined __x86_64__
#include "books_256.h"
#define BOOKS_TABLE quant_books_avxvnni
#define BOOKS_DIGITS quant_digits_avxvnni
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v) { return _mm256_dpwssd_epi32(a, u, v); }
#include "books_text.h"
#else
typedef int isa_none;
#endif
