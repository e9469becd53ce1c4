/* SPDX-License-Identifier: MIT
 * row_avx2.c - rows with AVX2. */
#if defined __x86_64__
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avx2
INLINE isum i_madd(isum a, __m256i u, __m256i v) { return _mm256_add_epi32(a, _mm256_madd_epi16(u, v)); }
#include "digits_text.h"
#else
typedef int isa_none;
#endif
