/* SPDX-License-Identifier: MIT
 * float_avx2.c - products with floats for AVX2, FMA and F16C. */
#if defined __x86_64__
#define FLOAT_TABLE quant_float_avx2
#include "float_text.h"
#else
typedef int float_none;
#endif
