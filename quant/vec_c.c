/* SPDX-License-Identifier: MIT
 * vec_c.c - the vector functions for portable C (on AArch64 with its fma). */
#define VEC_TABLE quant_vec_c
#include "vec_text.h"
