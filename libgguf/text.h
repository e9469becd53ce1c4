/* SPDX-License-Identifier: MIT
 * text.h - questions about strings, texts that several files have, and a shape in words. Not installed. */
#ifndef GGU_TEXT_H
#define GGU_TEXT_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Are they the same but for the case of ASCII letters? strcasecmp would ask the locale, and in Turkish I is not i. */
static inline bool text_same(const char *a, const char *b)
{
	for (;; a++, b++) {
		unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
		x = x >= 'A' && x <= 'Z' ? x | 0x20 : x;
		y = y >= 'A' && y <= 'Z' ? y | 0x20 : y;
		if (x != y || !x) return x == y;
	}
}

static inline bool text_starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* The same for n bytes, which need not end in a NUL. */
static inline bool text_is(const void *p, size_t n, const char *s) { return n == strlen(s) && !memcmp(p, s, n); }
static inline bool text_begins(const void *p, size_t n, const char *with)
{
	return n >= strlen(with) && !memcmp(p, with, strlen(with));
}
static inline bool text_ends(const void *p, size_t n, const char *with)
{
	size_t k = strlen(with);
	return n >= k && !memcmp((const char *)p + (n - k), with, k);
}

/* What a noun with the number n ends in: "%zu token%s". */
static inline const char *text_s(uint64_t n) { return n == 1 ? "" : "s"; }

/* The name of standard input in messages. */
#define TEXT_STDIN "(stdin)"

/* What a folder that was cloned without Git LFS has in place of a large file begins so. */
#define TEXT_LFS "version https://git-lfs.github.com/spec/"
#define TEXT_LFS_MEANS "is a Git LFS pointer; the file that it stands for was not downloaded"

/* "2048 x 32000", in the order of the file; a size of TEXT_ANY reads "any". Returns its length. */
enum { TEXT_SHAPE = 100 };
#define TEXT_ANY UINT64_MAX
static inline int text_shape(char to[TEXT_SHAPE], const uint64_t *ne, uint32_t n_dims)
{
	int n = 0;
	*to = 0;
	for (uint32_t d = 0; d < n_dims; d++) {
		const char *by = d ? " x " : "";
		size_t room = TEXT_SHAPE - (size_t)n;
		if (ne[d] == TEXT_ANY) n += snprintf(to + n, room, "%sany", by);
		else n += snprintf(to + n, room, "%s%" PRIu64, by, ne[d]);
	}
	return n;
}

#endif
