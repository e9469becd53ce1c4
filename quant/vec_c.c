/* SPDX-License-Identifier: MIT
 * vec_c.c - the vector functions for portable C. */
#include "lane_c.h"
#define VEC_TABLE quant_vec_c
#include "vec_text.h"
