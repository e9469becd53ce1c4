/* SPDX-License-Identifier: MIT
 * calibrate_internal.h - what calibrate.c (order and evaluation), calibrate_sums.c (inputs) and calibrate_fit.c (a
 * tensor) share. */
#ifndef TOOLS_CALIBRATE_INTERNAL_H
#define TOOLS_CALIBRATE_INTERNAL_H
#include "../imatrix/imatrix.h"
#include "../libgguf/pool.h"
#include "calibrate.h"

/* Sums over tokens of a[n_a] bT[n_b]: sum[n_a][n_b]. */
struct cross { size_t n_a, n_b; bool lower; float *sum; };
/* Sums are 0. lower: a is b, and what lies above the diagonal is of no matter. */
struct cross cross_new(size_t n_a, size_t n_b, bool lower);
void cross_free(struct cross *c);
/* Adds n tokens, rows a_stride and b_stride floats apart; a may be NULL if lower. How many threads there are does not
 * matter, but which tokens come in a call does. */
void cross_add(struct cross *c, const float *a, size_t a_stride, const float *b, size_t b_stride, size_t n,
	struct ggu_pool *pool);

/* y[n][n_out] += x[n][n_in] WT, w[n_out][n_in] */
void product_add(const float *w, size_t n_in, size_t n_out, const float *x, size_t n, float *y, struct ggu_pool *pool);

/* How a weight's inputs v in the quantized model were, and the inputs x in the original; columns in blocks. */
struct inputs {
	size_t n_in, block, n_blocks;
	double tokens;
	struct cross *with;             /* [n_blocks]: v vT, or NULL: */
	const struct imatrix *im;       /* of experts: it has them, of the weight `name` */
	const char *name;
	/* one, what the step's output lacks by v: [n_out][n_in]; or [n_blocks], v by what it lacks, x - v; or NULL */
	struct cross *lack;
	bool ends;                      /* the first of these */
};
void inputs_begin(struct inputs *in, size_t n_in, size_t ends);
/* n tokens of x (or, of inputs that end a step, of what its output lacks) and v, rows of n_in floats (n_out); both are
 * multiplied by the root of `weight` already. */
void inputs_add(struct inputs *in, const float *x, const float *v, size_t n, double weight, struct ggu_pool *pool);
void inputs_free(struct inputs *in);

struct fitting {
	const struct remake *re;
	struct ggu_pool *pool;
	double damp, factor;
	bool measure;                   /* the error without feedback */
};
/* Tensor i: its bytes to `to`, and decoded to y. in NULL: without covariance and importances. */
struct recode_result calibrate_fit(const struct fitting *f, size_t i, const struct inputs *in, const void *from,
	void *to, float *y);

#endif
