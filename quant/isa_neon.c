/* SPDX-License-Identifier: MIT
 * isa_neon.c - decode and multiply for NEON. */
#if defined __aarch64__
#define KERN_TABLE kern_neon
#include "kern_text.h"
#else
typedef int isa_none;
#endif
