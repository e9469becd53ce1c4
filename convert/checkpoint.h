/* SPDX-License-Identifier: MIT
 * checkpoint.h - the tensors of a checkpoint folder: safetensors or PyTorch files, one or several shards.
 *
 * safetensors.c and torch.c read the two formats. Nothing in a file is ever run. */
#ifndef CONVERT_CHECKPOINT_H
#define CONVERT_CHECKPOINT_H
#include "../libgguf/ggu.h"

enum { SOURCE_MAX_DIMS = 8 };
enum { SOURCE_NO_TYPE = -1 };
struct source_dtype {
	const char *name;               /* "BF16" */
	/* of an element; 0: an unknown name, whose tensors can only be dropped */
	unsigned bytes;
	int type;                       /* ggml id of floats of the same layout, or SOURCE_NO_TYPE */
};
struct coded;
struct source_tensor {
	const char *name;
	const struct source_dtype *dtype;
	struct coded *coded;                    /* its elements are computed (coded.h); NULL: they are in the file */
	unsigned n_dims;
	uint64_t shape[SOURCE_MAX_DIMS];        /* slowest first, as in the file */
	/* elements from one to the next along each dimension; as torch has them, 0 repeats one */
	uint64_t stride[SOURCE_MAX_DIMS];
	uint64_t n_weights, n_stored;           /* elements; those in the file from its first to its last */
	uint64_t bytes;                         /* of n_stored; for an unknown type, as the file says */
	uint32_t file;
	uint64_t offset;                        /* in its file, absolute */
};
struct checkpoint;

/* Reads every header. GGU_ERR_MISSING: the folder has neither format; the message says which files are expected. */
enum ggu_status checkpoint_open(struct checkpoint **out, const char *dir, struct ggu_error *err);
void checkpoint_close(struct checkpoint *c);
size_t checkpoint_count(const struct checkpoint *c);
const struct source_tensor *checkpoint_at(const struct checkpoint *c, size_t i);        /* sorted by name */
const struct source_tensor *checkpoint_find(const struct checkpoint *c, const char *name);
/* Reads n stored elements of t from `from` on, in the order of the file; view.h reads them in the order of the shape.
 * From any thread. */
enum ggu_status checkpoint_read(const struct checkpoint *c, const struct source_tensor *t, uint64_t from, void *to,
	size_t n, struct ggu_error *err);

#endif
