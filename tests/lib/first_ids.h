/* SPDX-License-Identifier: MIT
 * first_ids.h - compares tokenizer_encode_first with tokenizer_encode. */
#ifndef TESTS_LIB_FIRST_IDS_H
#define TESTS_LIB_FIRST_IDS_H
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/grow.h"
#include "../../model/vocab/tokenizer.h"

/* Checks that the first `most` ids of a text, appended to an id that is there, are the beginning of ids[n], all ids of
 * the text: at least so many, or all. *more: how many there were. */
static inline bool first_ids_are(struct tokenizer *t, const char *text, size_t bytes, unsigned flags, size_t most,
	const int32_t *ids, size_t n, size_t *more)
{
	int32_t *got = ggu_grow(NULL, 0, sizeof *got);
	size_t n_got = 1;
	bool same = got != NULL;
	if (same) *got = -7;
	same = same && !tokenizer_encode_first(t, text, bytes, flags, most, &got, &n_got, NULL) && *got == -7;
	*more = n_got - 1;
	same = same && *more <= n && (*more == n || (most && *more >= most));
	if (same && *more) same = !memcmp(got + 1, ids, *more*sizeof *ids);
	free(got);
	return same;
}

#endif
