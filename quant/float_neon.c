/* SPDX-License-Identifier: MIT
 * float_neon.c - products with floats for NEON. */
#if defined __aarch64__
#define FLOAT_TABLE quant_float_neon
#include "float_text.h"
#else
typedef int float_none;
#endif
