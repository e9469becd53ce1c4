/* SPDX-License-Identifier: MIT
 * tag.h - a hash of what a measurement is of, by which its parts know each other. Programs only; failures exit 2. */
#ifndef TOOLS_TAG_H
#define TOOLS_TAG_H
#include "../libgguf/ggu.h"

enum { TAG_BYTES = 24 };                /* "xxh3:" and 16 digits */
struct tag;
struct tag *tag_new(void);
void tag_add(struct tag *t, const void *p, size_t n);
/* The tensors' names, types and shapes, and of their data all, or what tells models apart: the first weights. */
void tag_model(struct tag *t, const struct ggu_file *f, const char *name, bool whole);
void tag_end(struct tag *t, char to[TAG_BYTES]);        /* and frees it */

#endif
