/* SPDX-License-Identifier: MIT
 * books_avx2.c - rows of types with code books and of ternary types, with AVX2. */
#if defined __x86_64__
#include "books_256.h"
#define BOOKS_TABLE quant_books_avx2
#define BOOKS_DIGITS quant_digits_avx2
INLINE __m256i i_madd(__m256i a, __m256i u, __m256i v) { return _mm256_add_epi32(a, _mm256_madd_epi16(u, v)); }
#include "books_text.h"
#else
typedef int isa_none;
#endif
