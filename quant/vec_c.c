/* SPDX-License-Identifier: MIT
 * vec_c.c - the vector functions in portable C, the definition: vec_text.h in the words of lane_c.h. */
#include "lane_c.h"
#define VEC_TABLE quant_vec_c
#include "vec_text.h"
