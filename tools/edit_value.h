/* SPDX-License-Identifier: MIT
 * edit_value.h - parses a metadata value from text. Programs only; all failures exit 2 with a message. */
#ifndef TOOLS_EDIT_VALUE_H
#define TOOLS_EDIT_VALUE_H
#include <stdbool.h>
#include "../libgguf/ggu.h"

/* text[n], of a type that is named such as "u32" or "str", followed by "[]" for each level of arrays. in_file: it is
 * the contents of a file, and not of the command line; the end of its last line is then no part of a number. */
struct edit_value { const char *type, *text; size_t type_n, n; bool in_file; };
/* Sets key to the value. Scalars are taken literally, a string to its last byte; arrays are JSON, in the form in which
 * gguf-info --json prints them: "NaN" and "Infinity" are numbers, and so are digits in quotes. */
void edit_value(struct ggu_meta *m, const char *key, const struct edit_value *v);

#endif
