/* SPDX-License-Identifier: MIT
 * drawn.c - see drawn.h. The tokens that a text may have are shuffled by a generator with a fixed seed, and dealt out
 * in that order, so that the same vocabulary always gives the same windows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/text.h"
#include "drawn.h"
#include "msg.h"

/* For so many windows of the text, one is added that goes through the first block, and for so many, one of these goes
 * on through the whole model. */
enum { FIRST_BLOCK = 4, WHOLE = 24 };
/* the first token's share of its window: one in so many */
enum { FIRST_SHARE = 16 };

bool drawn_in_first_block(const char *weight) { return text_starts(weight, "blk.0.") || strstr(weight, ".blk.0."); }
struct drawn drawn_windows(size_t n)
{
	return (struct drawn){ (n + FIRST_BLOCK - 1)/FIRST_BLOCK, (n + WHOLE - 1)/WHOLE };
}
float drawn_root(size_t n, struct drawn d, size_t stride, const char *weight)
{
	const bool first = drawn_in_first_block(weight);
	const size_t by = first ? d.n : 4*d.whole;
	return by ? sqrtf((float)n/(float)(stride*by)) : 1;
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
/* order[n]: the tokens below n_vocab that a text may have, shuffled (Fisher and Yates 1938); returns n */
static size_t shuffle(const struct vocab *v, size_t n_vocab, int32_t *order)
{
	uint64_t state = 0;
	size_t n = 0;
	for (size_t id = 0; id < n_vocab; id++) if (is_text(v, id)) order[n++] = (int32_t)id;
	for (size_t i = n; i > 1; i--) {
		const size_t k = next(&state) % i;
		const int32_t last = order[i - 1];
		order[i - 1] = order[k];
		order[k] = last;
	}
	if (!n) order[n++] = 0;
	return n;
}
void drawn_append(const struct vocab *v, size_t n_vocab, size_t first, struct drawn d, int32_t **ids, size_t n,
	size_t ctx)
{
	const size_t count = vocab_count(v) < n_vocab ? vocab_count(v) : n_vocab;
	const bool begins = vocab_add_bos(v) && vocab_bos(v) >= 0;
	int32_t *all = msg_need(realloc(*ids, (n + d.n)*ctx*sizeof *all)), *to;
	int32_t *order = msg_need(malloc((count + 1)*sizeof *order));
	size_t n_order, at;
	*ids = all;
	to = all + n*ctx;
	n_order = shuffle(v, count, order);
	at = first*(ctx - begins);
	for (size_t i = 0; i < d.n*ctx; i++)
		*to++ = begins && i % ctx == 0 ? vocab_bos(v) : order[at++ % n_order];
	free(order);
}
