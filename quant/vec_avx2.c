/* SPDX-License-Identifier: MIT
 * vec_avx2.c - the vector functions with AVX2 and FMA: vec_text.h in the words of lane_avx2.h. */
#if defined __x86_64__
#include "lane_avx2.h"
#define VEC_TABLE quant_vec_avx2
#include "vec_text.h"
#else
typedef int isa_none;
#endif
