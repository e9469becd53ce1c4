/* SPDX-License-Identifier: MIT
 * outer.h - sums of outer products over tokens: a product of float matrices, added to a matrix. */
#ifndef QUANT_OUTER_H
#define QUANT_OUTER_H
#include "../libgguf/pool.h"
#include "quant.h"

/* The part of a matrix that is computed. LOWER: row i at least up to the diagonal; what is after it does not matter. */
enum outer_form { OUTER_WHOLE, OUTER_LOWER };

/* to[i][j] += sum over k < n of a[k][i]*b[k][j]; or of a[i][k]*b[j][k], with `rows`. */
struct outer {
	float *to;                      /* [n_a][n_b] */
	enum outer_form form;           /* except for WHOLE, a is b */
	bool rows;                      /* a[n_a][n], b[n_b][n] instead of a[n][n_a], b[n][n_b] */
	size_t n_a, n_b, n;
	const float *a, *b;
	size_t a_stride, b_stride;      /* floats from one row to the next */
};
/* pool may be NULL. Neither it nor the instruction set changes a bit; the choice of the n tokens in a call does.
 * GGU_ERR_NOMEM: nothing was added. */
enum ggu_status outer_add(const struct outer *o, struct ggu_pool *pool);

#endif
