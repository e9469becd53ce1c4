/* SPDX-License-Identifier: MIT
 * row_avx512.c - rows with VNNI as AVX-512 has it. */
#if defined __x86_64__
#include "digits_512.h"
#define DIGITS_TABLE quant_digits_avx512
#include "digits_text.h"
#else
typedef int isa_none;
#endif
