/* SPDX-License-Identifier: MIT
 * isa_avx512.c - decode and multiply for AVX-512 with VNNI. */
#if defined __x86_64__
#define KERN_TABLE kern_avx512
#include "kern_text.h"
#else
typedef int isa_none;
#endif
