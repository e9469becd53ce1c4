/* SPDX-License-Identifier: MIT
 * checkpoint_internal.h - what the readers of checkpoint files share. Private to convert/.
 *
 * A shard is one file of a checkpoint. checkpoint.c finds and opens the shards; the reader of a shard's format adds its
 * tensors, with the byte of the file at which the elements of each begin. */
#ifndef CONVERT_CHECKPOINT_INTERNAL_H
#define CONVERT_CHECKPOINT_INTERNAL_H
#include "../model/util/file.h"
#include "checkpoint.h"

struct shard { char *name; int fd; uint64_t bytes; };
struct checkpoint {
	char *dir;
	struct shard *shards; size_t n_shards;
	struct source_tensor *tensors; size_t n;
};

/* The element type that a format calls `name`, or NULL. */
const struct source_dtype *checkpoint_dtype(const char *name);
/* Sets the strides of a tensor that is stored row by row, without gaps. */
void checkpoint_rows(struct source_tensor *t);
/* Adds *t under a copy of `name`, of n bytes. */
enum ggu_status checkpoint_add(struct checkpoint *c, const struct source_tensor *t, const char *name, size_t n,
	struct ggu_error *err);
/* Puts the tensors of `made` in place of those that are gone[]; made is empty then. */
enum ggu_status checkpoint_replace(struct checkpoint *c, const bool *gone, struct checkpoint *made,
	struct ggu_error *err);
void checkpoint_tensors_free(struct checkpoint *c);

/* Each reads shard i, which is open, and adds its tensors. */
enum ggu_status safetensors_read(struct checkpoint *c, uint32_t i, struct ggu_error *err);
enum ggu_status torch_read(struct checkpoint *c, uint32_t i, struct ggu_error *err);

#endif
