/* SPDX-License-Identifier: MIT
 * attn_c.c - attention for portable C: the definition. */
#define LANE_PORTABLE
#define ATTN_TABLE quant_attn_c
#include "attn_text.h"
