/* SPDX-License-Identifier: MIT
 * codes_avx2.c - blocks to floats and floats to integers with AVX2, for all stronger sets of x86 too: codes_text.h in
 * the words of bytes_avx2.h and lane_avx2.h. */
#if defined __x86_64__
#include "bytes_avx2.h"
#include "lane_avx2.h"
#define CODES_TABLE quant_codes_avx2
#include "codes_text.h"
#else
typedef int isa_none;
#endif
