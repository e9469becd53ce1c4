/* SPDX-License-Identifier: MIT
 * float_avx512.c - float products with AVX-512: float_text.h in the words of lane_avx512.h. */
#if defined __x86_64__
#include "lane_avx512.h"
#include "float_transpose_x86.h"
#define FLOAT_TABLE quant_float_avx512
enum { WIDE = 2, TOKENS = 12, TOGETHER = 2, ROWS = 4, COLS = 4, FEW_TOKENS = 32 };
#include "float_text.h"
#else
typedef int isa_none;
#endif
