/* SPDX-License-Identifier: MIT
 * shard.h - what one of the files of a split model says of itself, and its name. Programs only; failures exit
 * 2. */
#ifndef TOOLS_SHARD_H
#define TOOLS_SHARD_H
#include "../libgguf/ggu.h"

enum { SHARD_MAX = 65535 };     /* split.count is a u16 */

/* Can output be the beginning of the names of shards? It was given, and is neither standard output nor a folder. */
bool shard_prefix(const char *output);
/* PREFIX-00001-of-0000N.gguf for i = 0. The caller frees. */
char *shard_name(const char *prefix, uint32_t i, uint32_t n);
/* The metadata of shard i of n of a model of n_tensors tensors: shard 0 has those of `from`, the others only the
 * alignment; all have split.*. n 0: of the model in one file. The caller frees. */
struct ggu_meta *shard_meta(const struct ggu_meta *from, uint32_t i, uint32_t n, size_t n_tensors);
/* Cuts n tensors of bytes[] each evenly: shard[i], the shard of tensor i, never decreases with i. Every shard gets a
 * tensor if n_shards is at most n. Depends on bytes and n_shards alone. */
void shard_cut(const uint64_t *bytes, size_t n, uint32_t n_shards, uint32_t *shard);

#endif
