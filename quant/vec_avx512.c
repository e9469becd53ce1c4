/* SPDX-License-Identifier: MIT
 * vec_avx512.c - the vector functions with AVX-512: vec_text.h in the words of lane_avx512.h. */
#if defined __x86_64__
#include "lane_avx512.h"
#define VEC_TABLE quant_vec_avx512
#include "vec_text.h"
#else
typedef int isa_none;
#endif
