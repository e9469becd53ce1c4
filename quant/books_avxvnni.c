/* SPDX-License-Identifier: MIT
 * books_avxvnni.c - rows of types with code books and of ternary types with AVX-VNNI: books_text.h in the words of
 * books_256.h. */
#if defined __x86_64__
#include "ymm_avxvnni.h"
#include "books_256.h"
#define BOOKS_TABLE quant_books_avxvnni
#define BOOKS_DIGITS quant_digits_avxvnni
#include "books_text.h"
#else
typedef int isa_none;
#endif
