/* SPDX-License-Identifier: MIT
 * isa_avx2.c - decode and multiply for AVX2, FMA and F16C. */
#if defined __x86_64__
#define KERN_TABLE kern_avx2
#include "kern_text.h"
#else
typedef int isa_none;
#endif
