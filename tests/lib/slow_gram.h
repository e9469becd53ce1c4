/* SPDX-License-Identifier: MIT
 * slow_gram.h - the sums of gram.h, computed column by column. */
#ifndef SLOW_GRAM_H
#define SLOW_GRAM_H
#include <math.h>
#include <stdlib.h>
#include "../../quant/gram.h"

struct slow_column { float scale; int code[GRAM_TOKENS]; };
/* Column j of x times by, rounded as in gram.h. */
static struct slow_column slow_gram_column(const float *x, size_t stride, size_t n_tokens, size_t j, const float *by)
{
	struct slow_column c = { 0 };
	float most = 0;
	for (size_t t = 0; t < n_tokens; t++) {
		const float v = fabsf(by[t]*x[t*stride + j]);
		if (!isfinite(v)) return (struct slow_column){ NAN, { 0 } };
		if (v > most) most = v;
	}
	if (most < 0x1p-96f) return c;
	c.scale = most/127;
	for (size_t t = 0; t < n_tokens; t++) {
		const float v = by[t]*x[t*stride + j];
		c.code[t] = (int)nearbyintf(v*(127/most));
	}
	return c;
}
static int slow_gram_sum(const struct slow_column *a, const struct slow_column *b)
{
	int sum = 0;
	for (size_t t = 0; t < GRAM_TOKENS; t++) sum += a->code[t]*b->code[t];
	return sum;
}
/* to[i*n + j] += their sum, for j <= i; n columns */
static inline void slow_gram(const float *x, size_t stride, size_t n_tokens, size_t n, const float *by, double *to)
{
	struct slow_column *c = malloc(n*sizeof *c);
	for (size_t j = 0; j < n; j++) c[j] = slow_gram_column(x, stride, n_tokens, j, by);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			to[i*n + j] += (double)slow_gram_sum(c + i, c + j)*c[i].scale*c[j].scale;
	free(c);
}

#endif
