/* SPDX-License-Identifier: MIT
 * vec_c.c - the vector functions for portable C. */
#define LANE_PORTABLE
#define VEC_TABLE quant_vec_c
#include "vec_text.h"
