/* SPDX-License-Identifier: MIT
 * fill_avxvnni.c - panels of pairs of 16 outputs. */
#if defined __x86_64__
#include "digits_y_avx2.h"
#define FILL_TABLE quant_fill_avxvnni
enum { WIDTH = 16 };
#include "fill_pairs.h"
#else
typedef int isa_none;
#endif
