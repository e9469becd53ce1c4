/* SPDX-License-Identifier: MIT
 * float_c.c - products with floats for portable C: the definition. */
#include "lane_c.h"
#include "float_turn_c.h"
#define FLOAT_TABLE quant_float_c
enum { WIDE = 4, TOKENS = 6, TOGETHER = 1, ROWS = 2, COLS = 3, FEW_TOKENS = 8 };
#include "float_text.h"
