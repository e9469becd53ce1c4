/* SPDX-License-Identifier: MIT
 * float_c.c - products with floats for portable C: the definition. */
#define LANE_PORTABLE
#define FLOAT_TABLE quant_float_c
#include "float_text.h"
