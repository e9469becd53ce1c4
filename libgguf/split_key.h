/* SPDX-License-Identifier: MIT
 * split_key.h - the keys that say which shard of a model a file is. Not installed. */
#ifndef GGU_SPLIT_KEY_H
#define GGU_SPLIT_KEY_H
#include <stdbool.h>
#include <string.h>

static inline bool split_key(const char *key)
{
	return !strcmp(key, "split.no") || !strcmp(key, "split.count") || !strcmp(key, "split.tensors.count");
}

#endif
