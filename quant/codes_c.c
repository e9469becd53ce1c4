/* SPDX-License-Identifier: MIT
 * codes_c.c - blocks to floats and floats to integers in portable C, the definition: codes_text.h in the words of
 * bytes_c.h and lane_c.h. */
#include "bytes_c.h"
#include "lane_c.h"
#define CODES_TABLE quant_codes_c
#include "codes_text.h"
