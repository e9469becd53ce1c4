/* SPDX-License-Identifier: MIT
 * row_avxvnni.c - rows with AVX-VNNI. */
#if defined __x86_64__
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avxvnni
INLINE isum i_madd(isum a, __m256i u, __m256i v) { return _mm256_dpwssd_epi32(a, u, v); }
#include "digits_text.h"
#else
typedef int isa_none;
#endif
