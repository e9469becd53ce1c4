/* SPDX-License-Identifier: MIT
 * input.h - a whole text into memory, plain or gzip'd. Programs only. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H
#include <stddef.h>

/* All bytes of the file, with a NUL behind that *n does not count; name NULL or "-": standard input. The caller
 * frees it. Failures, a broken gzip stream among them, exit 2 with a message. */
char *input_read(const char *name, size_t *n);
/* What follows the last slash: a name that says nothing about this machine. "-" gives "stdin". */
const char *input_base_name(const char *name);

#endif
