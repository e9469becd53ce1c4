/* SPDX-License-Identifier: MIT
 * fill_avx2.c - fills panels of pairs of columns, 32 outputs wide: for AVX2 and AVX-512. */
#if defined __x86_64__
#include <stdbool.h>
#include "ymm_avx2.h"
#define FILL_TABLE quant_fill_avx2
enum { WIDTH = 32, BY_32 = true };
#include "fill_pairs.h"
#else
typedef int isa_none;
#endif
