/* SPDX-License-Identifier: MIT
 * shard.c - see shard.h. The keys split.* say which shard a file is, of how many, and how many tensors all of them
 * have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/split_key.h"
#include "msg.h"
#include "shard.h"

bool shard_prefix(const char *output)
{
	return output && *output && strcmp(output, "-") != 0 && output[strlen(output) - 1] != '/';
}

char *shard_name(const char *prefix, uint32_t i, uint32_t n)
{
	size_t room = strlen(prefix) + 32;
	char *name = msg_need(malloc(room));
	snprintf(name, room, "%s-%05u-of-%05u.gguf", prefix, (unsigned)(i + 1)%100000, (unsigned)n%100000);
	return name;
}

static void put_count(struct ggu_meta *m, const char *key, enum ggu_kv_type type, uint64_t v)
{
	if (ggu_meta_set_uint(m, key, type, v)) msg_die("%s: cannot be set to %llu", key, (unsigned long long)v);
}

struct ggu_meta *shard_meta(const struct ggu_meta *from, uint32_t i, uint32_t n, size_t n_tensors)
{
	struct ggu_meta *m = msg_need(ggu_meta_new());
	for (size_t k = 0; k < ggu_meta_count(from); k++) {
		const struct ggu_kv *kv = ggu_meta_at(from, k);
		const char *key = ggu_kv_key(kv).p;
		if (split_key(key) || (i && strcmp(key, "general.alignment") != 0)) continue;
		if (ggu_meta_set_kv(m, kv)) msg_die("out of memory");
	}
	if (n) {
		put_count(m, "split.no", GGU_U16, i);
		put_count(m, "split.count", GGU_U16, n);
		put_count(m, "split.tensors.count", GGU_I32, n_tensors);
	}
	return m;
}

/* A tensor goes to the shard where its middle is, but no shard is skipped, and as many tensors remain as there are
 * shards. */
void shard_cut(const uint64_t *bytes, size_t n, uint32_t n_shards, uint32_t *shard)
{
	double total = 0, before = 0;
	for (size_t i = 0; i < n; i++) total += (double)bytes[i];
	for (size_t i = 0; i < n; i++) {
		double middle = before + (double)bytes[i]/2, at = total > 0 ? middle/total*n_shards : 0;
		uint32_t next = i ? shard[i - 1] + 1 : 0;
		shard[i] = at < n_shards ? (uint32_t)at : n_shards - 1;
		if (shard[i] > next) shard[i] = next;
		if (n - i < n_shards - shard[i]) shard[i] = n_shards - (uint32_t)(n - i);
		before += (double)bytes[i];
	}
}
