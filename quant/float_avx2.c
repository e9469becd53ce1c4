/* SPDX-License-Identifier: MIT
 * float_avx2.c - float products with AVX2, FMA and F16C: float_text.h in the words of lane_avx2.h. */
#if defined __x86_64__
#include "lane_avx2.h"
#include "float_transpose_x86.h"
#define FLOAT_TABLE quant_float_avx2
enum { WIDE = 2, TOKENS = 6, TOGETHER = 1, ROWS = 2, COLS = 3, FEW_TOKENS = 12 };
#include "float_text.h"
#else
typedef int isa_none;
#endif
