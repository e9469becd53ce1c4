/* SPDX-License-Identifier: MIT
 * bpe.h - byte pair encoding of one pre-token: by ranks of merges, or by scores (SentencePiece). Private to
 * model/vocab. */
#ifndef MODEL_VOCAB_BPE_H
#define MODEL_VOCAB_BPE_H
#include "memo.h"

struct pair_map;        /* pairs of ids to merges */
struct bpe_work;
struct bpe {
	const struct vocab *v;
	struct texts *texts;
	struct pair_map *pairs;
	/* pairs of characters that are adjacent in a token, if a pre-token may be a whole text; else NULL */
	struct pair_map *joints;
	bool by_scores, byte_fallback, fuse_unk, ignore_merges;
	bool falls_apart;       /* some tokens are of type unused, and become what they were merged from */
	int32_t unk, byte[256]; /* -1: none */
	struct memo *memo;      /* stretches without anything unknown */
	struct bpe_work *work;
};
/* own: of vocab_own */
enum ggu_status bpe_new(struct bpe **out, const struct vocab *v, const bool *own, struct ggu_error *err);
void bpe_free(struct bpe *b);
/* text[n] to ids; false: out of memory. Takes time n log n in the number of characters, and memory for the longest
 * stretch of the text if there are joints. */
bool bpe_encode(struct bpe *b, const char *text, size_t n, struct ids *o);

#endif
