/* SPDX-License-Identifier: MIT
 * shard_name.h - names of shards, "dir/NAME-00002-of-00003.gguf". Not installed. */
#ifndef GGU_SHARD_NAME_H
#define GGU_SHARD_NAME_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SHARD_DIGITS = 5, SHARD_TAIL = sizeof "-00001-of-00002.gguf" - 1 };

static inline bool shard_number(const char *s, uint32_t *v)
{
	*v = 0;
	for (int i = 0; i < SHARD_DIGITS; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		*v = 10**v + (uint32_t)(s[i] - '0');
	}
	return true;
}

/* The name above: no = 1, count = 3; false for other names. */
static inline bool shard_name_parse(const char *path, uint32_t *no, uint32_t *count)
{
	const size_t n = strlen(path);
	const char *s;

	if (n <= SHARD_TAIL)
		return false;
	s = path + n - SHARD_TAIL;
	if (s[0] != '-' || strncmp(s + 1 + SHARD_DIGITS, "-of-", 4) || strcmp(s + 1 + 2*SHARD_DIGITS + 4, ".gguf"))
		return false;
	if (!shard_number(s + 1, no) || !shard_number(s + 1 + SHARD_DIGITS + 4, count) || !*no || *no > *count)
		return false;
	--*no;
	return true;
}

/* Makes the name of a shard that of shard `no`, from 0, of the same set. */
static inline void shard_name_set(char *path, uint32_t no)
{
	char digits[SHARD_DIGITS + 1];

	snprintf(digits, sizeof digits, "%05u", (no + 1)%100000);
	memcpy(path + strlen(path) - SHARD_TAIL + 1, digits, SHARD_DIGITS);
}

#endif
