/* SPDX-License-Identifier: MIT
 * float_avx512.c - products with floats for AVX-512. */
#if defined __x86_64__
#include "lane_avx512.h"
#include "float_turn_x86.h"
#define FLOAT_TABLE quant_float_avx512
enum { WIDE = 2, TOKENS = 12, TOGETHER = 2, ROWS = 4, COLS = 4, FEW_TOKENS = 32 };
#include "float_text.h"
#else
typedef int isa_none;
#endif
