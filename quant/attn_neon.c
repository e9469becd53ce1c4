/* SPDX-License-Identifier: MIT
 * attn_neon.c - attention for NEON. */
#if defined __aarch64__
#define ATTN_TABLE quant_attn_neon
#include "attn_text.h"
#else
typedef int attn_none;
#endif
