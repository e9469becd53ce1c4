/* SPDX-License-Identifier: MIT
 * hashing.h - digests of a GGUF's tensor data, by several threads in bounded memory. Programs only. */
#ifndef TOOLS_HASHING_H
#define TOOLS_HASHING_H
#include "../libgguf/pool.h"
#include "digest.h"

struct hashing {
	bool kind[DIGEST_KINDS];        /* which digests */
	bool whole, tensors;            /* of the data of all tensors in the order of the table; of each */
	/* Called in the calling thread, for tensors in the order of the table (from a pipe: of the data), and for the
	 * whole, whose t is NULL, last; kinds in order. */
	void (*found)(void *ctx, const struct ggu_tensor *t, enum digest_kind k, const char *digest);
	void *ctx;
};
/* Digests are of the data in little-endian order, without padding: the same for the same tensors, whatever the
 * alignment, shards, byte order and metadata. False: some data cannot be read, or a pipe has it in an order in which it
 * cannot be hashed; a message names `name`, and what was found until then holds. */
bool hashing_run(const struct hashing *h, struct ggu_file *f, const char *name, struct ggu_pool *pool);

#endif
