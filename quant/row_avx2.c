/* SPDX-License-Identifier: MIT
 * row_avx2.c - rows with AVX2. */
#if defined __x86_64__
#include "row_x86.h"
#define ROW_TABLE quant_row_avx2
static inline isum i_madd(isum a, __m256i u, __m256i v) { return _mm256_add_epi32(a, _mm256_madd_epi16(u, v)); }
#include "row_text.h"
#else
typedef int isa_none;
#endif
