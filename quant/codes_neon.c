/* SPDX-License-Identifier: MIT
 * codes_neon.c - blocks and integers with NEON. */
#if defined __aarch64__
#include "bytes_neon.h"
#include "lane_neon.h"
#define CODES_TABLE quant_codes_neon
#include "codes_text.h"
#else
typedef int isa_none;
#endif
