/* SPDX-License-Identifier: MIT
 * vec_avx2.c - the vector functions for AVX2 and FMA. */
#if defined __x86_64__
#define VEC_TABLE quant_vec_avx2
#include "vec_text.h"
#else
typedef int vec_none;
#endif
