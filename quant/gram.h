/* SPDX-License-Identifier: MIT
 * gram.h - sums of products of inputs with each other, such as a covariance, computed in integers. */
#ifndef QUANT_GRAM_H
#define QUANT_GRAM_H
#include "../libgguf/pool.h"
#include "quant.h"

enum { GRAM_TOKENS = 256 };
/* to[i][j] += sum over t < n_tokens of by[t]*by[t]*x[t][i]*x[t][j], j <= i, of columns as integers of eight bits with
 * one scale: with v = by[t]*x[t][j] and amax the largest |v| of column j,
 *     s = amax/127    c = rint(v*(127/amax))    |c| <= 127    v is about s*c
 *     S = sum of c[t][i]*c[t][j]           exact: |S| <= 256*127*127 < 2^22
 *     to[i][j] = fma((float)S*s[j], s[i], to[i][j])
 * each operation rounded. s and c are 0 if amax < 2^-96; s is NaN and c 0 if a v is infinite or NaN.
 *
 * Rounding adds s*s/12 to a column's mean square. If its numbers are normal, so that the largest of 256 is three times
 * their root mean square, that is 5e-5 of it; at worst, if all but one number are zero, it is 1/756. Error feedback
 * adds 0.3 of it (ENCODERS.md). The effect on products of two columns has either sign, and is small compared with that
 * of 256 tokens more or less. */
struct gram {
	float *to;                      /* packed lower triangle: [0][0], [1][0], [1][1], ... */
	size_t n, n_tokens;             /* columns; at most GRAM_TOKENS */
	const float *x;                 /* [n_tokens][n] */
	size_t stride;                  /* floats from one token to the next */
	const float *by;                /* [n_tokens] */
};
/* Memory for calls to use one after another; all zero at first. */
struct gram_room { void *p; size_t bytes; };
void gram_room_free(struct gram_room *r);
/* pool may be NULL. Neither it nor the instruction set changes a bit; the choice of the tokens in a call does.
 * GGU_ERR_NOMEM: nothing was added. */
enum ggu_status gram_add(const struct gram *g, struct gram_room *room, struct ggu_pool *pool);

#endif
