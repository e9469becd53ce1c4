/* SPDX-License-Identifier: MIT
 * build_internal.h - shared by build.c (fields and numbers), build_tensor.c (what names tensors) and build_unread.c. */
#ifndef MODEL_EVAL_BUILD_INTERNAL_H
#define MODEL_EVAL_BUILD_INTERNAL_H
#include "build.h"

/* The tensor of this layer with that name and suffix, "" for none; NULL: there is none. */
const struct ggu_tensor *build_find(const struct builder *b, const char *name, const char *suffix);
/* A field of kind WEIGHT or VECTOR. */
enum ggu_status build_named(struct builder *b, const struct yaml_node *map, const struct field *f, void *to);
extern const struct field build_norm_fields[], build_rope_fields[];
enum ggu_status build_norm(struct builder *b, const struct yaml_node *at, struct norm *o);
/* Notes that something has read this tensor. */
void build_read(const struct builder *b, const struct ggu_tensor *t);
enum ggu_status build_rope(struct builder *b, const struct yaml_node *at, struct rope *r);

#endif
