/* SPDX-License-Identifier: MIT
 * tag.h - a hash of what was measured, by which parts of a measurement recognize each other. Programs only; failures
 * exit 2. */
#ifndef TOOLS_TAG_H
#define TOOLS_TAG_H
#include "../model/eval/model.h"

enum { TAG_BYTES = 24 };                /* "xxh3:" and 16 digits */
struct tag;
struct tag *tag_new(void);
void tag_add(struct tag *t, const void *p, size_t n);
/* Adds what the logits of ids depend on: description, metadata and tensors, of whose data all, or only the first
 * weights of each, which suffice to tell models apart. */
void tag_model(struct tag *t, const struct model *m, const char *name, bool whole);
/* Adds what the ids of a text depend on. */
void tag_tokenizer(struct tag *t, const struct model *m);
void tag_end(struct tag *t, char to[TAG_BYTES]);        /* and frees it */

#endif
