/* SPDX-License-Identifier: MIT
 * attn_avxvnni.c - attention for AVX-VNNI. */
#if defined __x86_64__
#define ATTN_TABLE quant_attn_avxvnni
#include "attn_text.h"
#else
typedef int attn_none;
#endif
