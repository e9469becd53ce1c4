/* SPDX-License-Identifier: MIT
 * gram.h - sums of products of inputs with each other, such as a covariance, in whole numbers. */
#ifndef QUANT_GRAM_H
#define QUANT_GRAM_H
#include "../libgguf/pool.h"
#include "quant.h"

enum { GRAM_TOKENS = 256 };
/* to[i][j] += sum over t < n_tokens of by[t]*by[t]*x[t][i]*x[t][j], j <= i. One x is taken to eight bits (Q8_0, of
 * 32 tokens), the other to twelve, as weights and activations are: errors that have nothing to do with each other, of
 * less than a hundredth of either's size, vanish in the sum. */
struct gram {
	float *to;                      /* packed lower triangle: [0][0], [1][0], [1][1], ... */
	size_t n, n_tokens;             /* columns; at most GRAM_TOKENS */
	const float *x;                 /* [n_tokens][n] */
	size_t stride;                  /* floats from one token to the next */
	const float *by;                /* [n_tokens] */
};
/* Memory that calls use one after another; all zero at first. */
struct gram_room { void *p; size_t bytes; };
void gram_room_free(struct gram_room *r);
/* pool may be NULL; it changes no bit, nor does the instruction set. Which tokens come in a call does.
 * GGU_ERR_NOMEM: nothing was added. */
enum ggu_status gram_add(const struct gram *g, struct gram_room *room, struct ggu_pool *pool);

#endif
