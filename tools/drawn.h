/* SPDX-License-Identifier: MIT
 * drawn.h - windows of tokens drawn by lot. A calibration text leaves most of a vocabulary unseen, and what a model
 * does with the rest of it; some windows of tokens that nobody wrote make up for that (quant/ENCODERS.md). Programs
 * only. */
#ifndef TOOLS_DRAWN_H
#define TOOLS_DRAWN_H
#include "../model/vocab/vocab.h"

/* Of the first block, whose inputs tell little but the token? Of either stack where there is an encoder. */
bool drawn_in_first_block(const char *weight);
/* How many go with n windows of a text. */
struct drawn { size_t n, whole; };      /* whole: so many, the first of them, go through more than the first block */
struct drawn drawn_windows(size_t n);
/* What an input of `weight` from a token in them is multiplied by, that they are half of all in sums of products where
 * it is of the first block, elsewhere a fifth. stride: of so many tokens of the n windows of text one is in them. */
float drawn_root(size_t n, struct drawn d, size_t stride, const char *weight);
/* What an input of the first token of a window is multiplied by, that it is a sixteenth of the window: later tokens
 * look at it far more than at any other (an attention sink), and its inputs are like none of theirs. */
float drawn_first_root(size_t ctx, size_t stride);
/* Behind the n windows of a text, (*ids)[n][ctx], which are reallocated, d.n more of tokens below n_vocab: any but
 * control, unknown and unused ones, each once before one comes again. Each begins with the beginning token where the
 * vocabulary wants one, and is the same wherever it has the same number, which are `first` and on. */
void drawn_append(const struct vocab *v, size_t n_vocab, size_t first, struct drawn d, int32_t **ids, size_t n,
	size_t ctx);

#endif
