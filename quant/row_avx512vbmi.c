/* SPDX-License-Identifier: MIT
 * row_avx512vbmi.c - rows with VNNI, VBMI and GFNI. */
#if defined __x86_64__
#define DIGITS_LANES
#include "digits_512.h"
#define DIGITS_TABLE quant_digits_avx512vbmi
#include "digits_text.h"
#else
typedef int isa_none;
#endif
