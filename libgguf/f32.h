/* SPDX-License-Identifier: MIT
 * f32.h - doubles that become float32. Not installed. */
#ifndef GGU_F32_H
#define GGU_F32_H
#include <math.h>
#include <stdbool.h>

/* Is v finite, but too large for a float? What is a little above FLT_MAX is rounded to it, and is not. */
static inline bool f32_overflows(double v) { return isinf((float)v) && !isinf(v); }

#endif
