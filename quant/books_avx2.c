/* SPDX-License-Identifier: MIT
 * books_avx2.c - rows of types with code books and of ternary types with AVX2: books_text.h in the words of
 * books_256.h. */
#if defined __x86_64__
#include "ymm_avx2.h"
#include "books_256.h"
#define BOOKS_TABLE quant_books_avx2
#define BOOKS_DIGITS quant_digits_avx2
#include "books_text.h"
#else
typedef int isa_none;
#endif
