/* SPDX-License-Identifier: MIT
 * decimal.h - numbers as options take them: digits, and nothing that a C library or a locale may add to them, such as
 * signs, blanks, hexadecimal digits or "inf". Programs only. */
#ifndef TOOLS_DECIMAL_H
#define TOOLS_DECIMAL_H
#include <stdbool.h>
#include <stdint.h>

/* Both read a number that begins at *at and move *at past it. False: there is none, or it is too large. */
bool decimal_whole(const char **at, uint64_t *v);       /* 42 */
bool decimal_real(const char **at, double *v);          /* 42, 4.2, .42, 4.2e-1 */

#endif
