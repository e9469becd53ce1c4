/* SPDX-License-Identifier: MIT
 * drawn.c - see drawn.h. */
#include <math.h>
#include <stdlib.h>
#include "drawn.h"
#include "msg.h"

enum { TEXT_WINDOWS = 16, TEXT_SHARE = 4, FIRST_SHARE = 16 };

size_t drawn_windows(size_t n) { return (n + TEXT_WINDOWS - 1)/TEXT_WINDOWS; }
float drawn_root(size_t n, size_t stride)
{
	return n ? sqrtf((float)n/(float)(TEXT_SHARE*stride*drawn_windows(n))) : 1;
}

float drawn_first_root(size_t ctx, size_t stride)
{
	return ctx > FIRST_SHARE*stride ? sqrtf((float)ctx/(float)(FIRST_SHARE*stride)) : 1;
}

static bool is_text(const struct vocab *v, size_t id)
{
	switch (vocab_token_type(v, (int32_t)id)) {
	case VOCAB_NORMAL: case VOCAB_USER_DEFINED: case VOCAB_BYTE: return true;
	case VOCAB_UNKNOWN: case VOCAB_CONTROL: case VOCAB_UNUSED: break;
	}
	return false;
}
/* splitmix64 (Steele, Lea and Flood 2014) */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30)*0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27)*0x94d049bb133111eb;
	return z ^ z >> 31;
}
static void draw(const struct vocab *v, size_t n_vocab, size_t number, int32_t *ids, size_t ctx)
{
	uint64_t state = number;
	const size_t n = vocab_count(v) < n_vocab ? vocab_count(v) : n_vocab;
	for (size_t i = 0; i < ctx; i++) {
		size_t id = n ? next(&state) % n : 0;
		for (size_t k = 0; k < n && !is_text(v, id); k++) id = (id + 1) % n;
		ids[i] = (int32_t)id;
	}
	if (ctx && vocab_add_bos(v) && vocab_bos(v) >= 0) ids[0] = vocab_bos(v);
}
void drawn_append(const struct vocab *v, size_t n_vocab, size_t first, int32_t **ids, size_t n, size_t ctx)
{
	const size_t more = drawn_windows(n);
	int32_t *all = realloc(*ids, (n + more)*ctx*sizeof *all);
	if (!all) msg_die("out of memory");
	for (size_t i = 0; i < more; i++) draw(v, n_vocab, first + i, all + (n + i)*ctx, ctx);
	*ids = all;
}
