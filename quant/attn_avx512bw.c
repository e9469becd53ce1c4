/* SPDX-License-Identifier: MIT
 * attn_avx512bw.c - attention for AVX-512 without VNNI. */
#if defined __x86_64__
#define ATTN_TABLE quant_attn_avx512bw
#include "attn_text.h"
#else
typedef int attn_none;
#endif
