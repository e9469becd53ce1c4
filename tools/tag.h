/* SPDX-License-Identifier: MIT
 * tag.h - a hash of what was measured, by which parts of a measurement recognize each other. Programs only; failures
 * exit 2. */
#ifndef TOOLS_TAG_H
#define TOOLS_TAG_H
#include "../libgguf/ggu.h"

enum { TAG_BYTES = 24 };                /* "xxh3:" and 16 digits */
struct tag;
struct tag *tag_new(void);
void tag_add(struct tag *t, const void *p, size_t n);
/* Adds the tensors' names, types and shapes and their data: all of it, or only the first weights of each, which suffice
 * to tell models apart. */
void tag_model(struct tag *t, const struct ggu_file *f, const char *name, bool whole);
void tag_end(struct tag *t, char to[TAG_BYTES]);        /* and frees it */

#endif
