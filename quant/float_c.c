/* SPDX-License-Identifier: MIT
 * float_c.c - float products in portable C, the definition: float_text.h in the words of lane_c.h. */
#include "lane_c.h"
#include "float_transpose_c.h"
#define FLOAT_TABLE quant_float_c
enum { WIDE = 4, TOKENS = 6, TOGETHER = 1, ROWS = 2, COLS = 3, FEW_TOKENS = 8 };
#include "float_text.h"
