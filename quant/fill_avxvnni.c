/* SPDX-License-Identifier: MIT
 * fill_avxvnni.c - panels of pairs of 16 outputs. */
#if defined __x86_64__
#include <stdbool.h>
#include "ymm_avx2.h"
#define FILL_TABLE quant_fill_avxvnni
enum { WIDTH = 16, BY_32 = true };
#include "fill_pairs.h"
#else
typedef int isa_none;
#endif
