/* SPDX-License-Identifier: MIT
 * attn_avx2.c - attention for AVX2, FMA and F16C. */
#if defined __x86_64__
#define ATTN_TABLE quant_attn_avx2
#include "attn_text.h"
#else
typedef int attn_none;
#endif
