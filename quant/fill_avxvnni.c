/* SPDX-License-Identifier: MIT
 * fill_avxvnni.c - fills panels of pairs of columns, 16 outputs wide, for AVX-VNNI. */
#if defined __x86_64__
#include <stdbool.h>
#include "ymm_avx2.h"
#define FILL_TABLE quant_fill_avxvnni
enum { WIDTH = 16, BY_32 = true };
#include "fill_pairs.h"
#else
typedef int isa_none;
#endif
