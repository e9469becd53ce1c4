/* SPDX-License-Identifier: MIT
 * codes_neon.c - blocks to floats and floats to integers with NEON: codes_text.h in the words of bytes_neon.h and
 * lane_neon.h. */
#if defined __aarch64__
#include "bytes_neon.h"
#include "lane_neon.h"
#define CODES_TABLE quant_codes_neon
#include "codes_text.h"
#else
typedef int isa_none;
#endif
