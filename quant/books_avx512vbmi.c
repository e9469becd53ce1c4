/* SPDX-License-Identifier: MIT
 * books_avx512vbmi.c - rows of types with code books and of ternary types with the VNNI, VBMI and GFNI of AVX-512:
 * books_text.h in the words of books_512.h. */
#if defined __x86_64__
#include "books_512.h"
#define BOOKS_TABLE quant_books_avx512vbmi
#define BOOKS_DIGITS quant_digits_avx512
#include "books_text.h"
#else
typedef int isa_none;
#endif
