/* SPDX-License-Identifier: MIT
 * attn_avx512.c - attention for AVX-512 with VNNI. */
#if defined __x86_64__
#define ATTN_TABLE quant_attn_avx512
#include "attn_text.h"
#else
typedef int attn_none;
#endif
