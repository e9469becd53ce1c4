/* SPDX-License-Identifier: MIT
 * number.h - a number as a text that people read and type. */
#ifndef MODEL_UTIL_NUMBER_H
#define MODEL_UTIL_NUMBER_H
#include <stdbool.h>

enum { NUMBER_TEXT = 40 };
/* The shortest digits that read back as the same number: as the same float, if v is one (is_float). Whole numbers
 * below 1e15 have no exponent. "NaN", "Infinity", "-Infinity". Returns `to`. */
char *number_text(char to[NUMBER_TEXT], double v, bool is_float);

#endif
