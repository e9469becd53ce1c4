/* SPDX-License-Identifier: MIT
 * codes_c.c - blocks and integers in portable C: the definition. */
#include "bytes_c.h"
#include "lane_c.h"
#define CODES_TABLE quant_codes_c
#include "codes_text.h"
