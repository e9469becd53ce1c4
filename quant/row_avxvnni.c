/* SPDX-License-Identifier: MIT
 * row_avxvnni.c - rows with AVX-VNNI. */
#if defined __x86_64__
#include "row_x86.h"
#define ROW_TABLE quant_row_avxvnni
static inline isum i_madd(isum a, __m256i u, __m256i v) { return _mm256_dpwssd_epi32(a, u, v); }
#include "row_text.h"
#else
typedef int isa_none;
#endif
