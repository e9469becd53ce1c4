/* SPDX-License-Identifier: MIT
 * score_tile.h - the scores of some positions of a text: logits of a model, of a base or none, and rows of files of
 * logits that are read or written with them. */
#ifndef TOOLS_SCORE_TILE_H
#define TOOLS_SCORE_TILE_H
#include "logits_file.h"
#include "scores.h"

struct score_tile {
	const float *logits;
	float *base;                    /* as logits [n][n_vocab]; NULL: there is none */
	const int32_t *next;            /* [n]: the tokens to be predicted */
	size_t n_vocab;
	struct score *score;            /* [n] */
	/* files that the base comes from and that logits go to, or NULL; [n] rows of each. base is filled then. */
	const struct logits_file *from, *to;
	unsigned char *row_from, *row_to;
};
/* Row t of a struct score_tile: a task of ggu_pool_run. */
void score_tile_row(void *tile, size_t t, int worker);

#endif
