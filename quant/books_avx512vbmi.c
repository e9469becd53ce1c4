/* SPDX-License-Identifier: MIT
 * books_avx512vbmi.c - rows of types with code books and of ternary types, with AVX-512's VNNI, VBMI and GFNI. */
#if defined __x86_64__
#include "books_512.h"
#define BOOKS_TABLE quant_books_avx512vbmi
#define BOOKS_DIGITS quant_digits_avx512
#include "books_text.h"
#else
typedef int isa_none;
#endif
