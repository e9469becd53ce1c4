/* SPDX-License-Identifier: MIT
 * float_neon.c - float products with NEON: float_text.h in the words of lane_neon.h. */
#if defined __aarch64__
#include "lane_neon.h"
#include "float_transpose_c.h"
#define FLOAT_TABLE quant_float_neon
enum { WIDE = 4, TOKENS = 6, TOGETHER = 1, ROWS = 2, COLS = 3, FEW_TOKENS = 8 };
#include "float_text.h"
#else
typedef int isa_none;
#endif
