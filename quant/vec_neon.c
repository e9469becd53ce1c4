/* SPDX-License-Identifier: MIT
 * vec_neon.c - the vector functions with NEON: vec_text.h in the words of lane_neon.h. */
#if defined __aarch64__
#include "lane_neon.h"
#define VEC_TABLE quant_vec_neon
#include "vec_text.h"
#else
typedef int isa_none;
#endif
