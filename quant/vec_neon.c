/* SPDX-License-Identifier: MIT
 * vec_neon.c - the vector functions for NEON. */
#if defined __aarch64__
#define VEC_TABLE quant_vec_neon
#include "vec_text.h"
#else
typedef int vec_none;
#endif
