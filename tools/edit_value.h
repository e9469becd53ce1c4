/* SPDX-License-Identifier: MIT
 * edit_value.h - parses a metadata value from text. Programs only; all failures exit 2 with a message. */
#ifndef TOOLS_EDIT_VALUE_H
#define TOOLS_EDIT_VALUE_H
#include "../libgguf/ggu.h"

/* Sets key to the value in n bytes of text. type, of type_n bytes, is a name such as "u32" or "str", followed by "[]"
 * for each level of arrays. Scalars are taken literally, a string to its last byte; arrays are JSON, in the form in
 * which gguf-info --json prints them: "NaN" and "Infinity" are numbers, and so are digits in quotes. */
void edit_value(struct ggu_meta *m, const char *key, const char *type, size_t type_n, const char *text, size_t n);

#endif
