/* SPDX-License-Identifier: MIT
 * isa_c.c - decode and multiply for portable C: the definition. */
#define LANE_PORTABLE
#define KERN_TABLE kern_c
#include "kern_text.h"
