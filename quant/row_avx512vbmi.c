/* SPDX-License-Identifier: MIT
 * row_avx512vbmi.c - row products with VNNI, VBMI and GFNI: digits_text.h in the words of digits_512.h. */
#if defined __x86_64__
#define DIGITS_LANES
#include "digits_512.h"
#define DIGITS_TABLE quant_digits_avx512vbmi
#define BOOKS_TABLE quant_books_avx512vbmi
#define ROW_TABLE quant_row_avx512vbmi
#include "digits_text.h"
#else
typedef int isa_none;
#endif
