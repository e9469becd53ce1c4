/* SPDX-License-Identifier: MIT
 * vec_avx512.c - the vector functions for AVX-512. */
#if defined __x86_64__
#define VEC_TABLE quant_vec_avx512
#include "vec_text.h"
#else
typedef int vec_none;
#endif
