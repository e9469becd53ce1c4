/* SPDX-License-Identifier: MIT
 * codes_avx2.c - blocks and integers with AVX2; every stronger instance of x86 uses them. */
#if defined __x86_64__
#include "bytes_avx2.h"
#include "lane_avx2.h"
#define CODES_TABLE quant_codes_avx2
#include "codes_text.h"
#else
typedef int isa_none;
#endif
