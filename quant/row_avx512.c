/* SPDX-License-Identifier: MIT
 * row_avx512.c - row products with the VNNI of AVX-512: digits_text.h in the words of digits_512.h. */
#if defined __x86_64__
#include "digits_512.h"
#define DIGITS_TABLE quant_digits_avx512
#define BOOKS_TABLE quant_books_avx2
#define ROW_TABLE quant_row_avx512
#include "digits_text.h"
#else
typedef int isa_none;
#endif
