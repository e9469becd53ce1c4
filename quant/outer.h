/* SPDX-License-Identifier: MIT
 * outer.h - sums of outer products over tokens, such as a covariance: a product of float matrices whose columns are
 * tokens, added to what is there. */
#ifndef QUANT_OUTER_H
#define QUANT_OUTER_H
#include "../libgguf/pool.h"
#include "quant.h"

/* What is computed of a matrix, and how its rows lie. LOWER: row i to the diagonal at least, what lies beyond it is of
 * no matter. PACKED: row i to the diagonal, rows one after another without gaps. */
enum outer_form { OUTER_WHOLE, OUTER_LOWER, OUTER_PACKED };

/* to[i][j] += sum over k < n of a[i][k]*b[j][k] */
struct outer {
	float *to;                      /* [n_a][n_b] */
	enum outer_form form;           /* but for WHOLE, a is b */
	const float *a, *b;             /* [n_a][n], [n_b][n]: rows `stride` floats apart */
	size_t n_a, n_b, n, stride;
};
/* pool may be NULL; it changes no bit, nor does the instruction set. Which n columns come in a call does.
 * GGU_ERR_NOMEM: nothing was added. */
enum ggu_status outer_add(const struct outer *o, struct ggu_pool *pool);

/* Floats from one column to the next that n tokens should have in `to` of outer_turn. */
size_t outer_stride(size_t n);
/* to[j*outer_stride(n) + i] = x[i*x_stride + j], i < n, j < n_in */
void outer_turn(const float *x, size_t n_in, size_t x_stride, size_t n, float *to, struct ggu_pool *pool);

#endif
