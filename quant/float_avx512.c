/* SPDX-License-Identifier: MIT
 * float_avx512.c - products with floats for AVX-512. */
#if defined __x86_64__
#define FLOAT_TABLE quant_float_avx512
#include "float_text.h"
#else
typedef int float_none;
#endif
