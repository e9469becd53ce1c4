/* SPDX-License-Identifier: MIT
 * drawn.h - windows of tokens drawn at random. A calibration text leaves most of a vocabulary unused, and what a model
 * does with it; some windows of random tokens make up for that (quant/ENCODERS.md). Programs only. */
#ifndef TOOLS_DRAWN_H
#define TOOLS_DRAWN_H
#include "../model/vocab/vocab.h"

/* Is it a weight of the first block, of either stack, whose inputs depend on little but the token? */
bool drawn_in_first_block(const char *weight);
/* How many drawn windows are added to n windows of a text. */
struct drawn { size_t n, whole; };      /* whole: the first so many go through more than the first block */
struct drawn drawn_windows(size_t n);
/* The factor for an input of `weight` from a token of a drawn window. With it, drawn windows make up half of the sums
 * of products in the first block, and a fifth elsewhere. stride: one of so many tokens of the n windows of text is
 * used. */
float drawn_root(size_t n, struct drawn d, size_t stride, const char *weight);
/* The factor for an input of the first token of a window, so that it counts for a sixteenth of the window: later tokens
 * attend to it far more than to any other (an attention sink), and its inputs are unlike all others. */
float drawn_first_root(size_t ctx, size_t stride);
/* Appends d.n more windows to the n windows of a text, (*ids)[n][ctx], which are reallocated, with random tokens below
 * n_vocab: any except control, unknown and unused ones, each once before one comes again. Each window begins with the
 * beginning token if the vocabulary wants one, and depends only on its number, which counts from `first`. */
void drawn_append(const struct vocab *v, size_t n_vocab, size_t first, struct drawn d, int32_t **ids, size_t n,
	size_t ctx);

#endif
