/* SPDX-License-Identifier: MIT
 * unigram.h - SentencePiece's unigram model: of all ways to cut a text into pieces, the one whose scores have the
 * largest sum. Private to model/vocab.
 *
 * A character that is not a piece itself counts as one whose score is 10 below the lowest of all; adjacent ones become
 * one unknown token. If two ways are equal, the one whose last piece begins first is chosen. A user-defined piece of
 * SentencePiece's scores a tenth for each of its bytes but one. */
#ifndef MODEL_VOCAB_UNIGRAM_H
#define MODEL_VOCAB_UNIGRAM_H
#include "texts.h"

struct unigram;
/* own: of vocab_own */
enum ggu_status unigram_new(struct unigram **out, const struct vocab *v, const bool *own, struct ggu_error *err);
void unigram_free(struct unigram *u);
bool unigram_has_bytes(const struct unigram *u);        /* unknown characters become tokens of their bytes */
/* text[n] to ids; false: out of memory. Memory depends on the longest stretch over which pieces overlap. */
bool unigram_encode(struct unigram *u, const char *text, size_t n, struct ids *o);

#endif
