/* SPDX-License-Identifier: MIT
 * drawn.h - windows of tokens drawn by lot. A calibration text leaves most of a vocabulary unseen, and what a model
 * does with the rest of it; some windows of tokens that nobody wrote make up for that (quant/ENCODERS.md). Programs
 * only. */
#ifndef TOOLS_DRAWN_H
#define TOOLS_DRAWN_H
#include "../model/vocab/vocab.h"

/* How many go with n windows of a text. */
size_t drawn_windows(size_t n);
/* What an input of a token in them is multiplied by, that they are a fifth of all in sums of products. stride: of so
 * many tokens of the text one is in the sums. */
float drawn_root(size_t n, size_t stride);
/* What an input of the first token of a window is multiplied by, that it is a sixteenth of the window: later tokens
 * look at it far more than at any other (an attention sink), and its inputs are like none of theirs. */
float drawn_first_root(size_t ctx, size_t stride);
/* Behind the n windows of a text, (*ids)[n][ctx], which are reallocated, drawn_windows(n) more of tokens below n_vocab:
 * any but control, unknown and unused ones, with the same chance. Each begins with the beginning token where the
 * vocabulary wants one, and is the same wherever it has the same number, which are `first` and on. */
void drawn_append(const struct vocab *v, size_t n_vocab, size_t first, int32_t **ids, size_t n, size_t ctx);

#endif
