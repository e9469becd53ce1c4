/* SPDX-License-Identifier: MIT
 * udiff.h - two lists of lines as diff -u shows them. Programs only. */
#ifndef TOOLS_UDIFF_H
#define TOOLS_UDIFF_H
#include "../libgguf/ggu.h"

/* Hunks with three lines of context on standard output, lines masked. Exits 2 out of memory. */
void udiff_print(const struct ggu_str *a, size_t n, const struct ggu_str *b, size_t m);

#endif
