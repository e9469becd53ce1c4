/* SPDX-License-Identifier: MIT
 * matrices.h - matrices of weights of many kinds, and importances of their columns, to test encoders on.
 *
 * The same numbers everywhere: IEEE arithmetic, sqrt and num_* alone. */
#ifndef TESTS_MATRICES_H
#define TESTS_MATRICES_H
#include <stddef.h>
#include <stdint.h>

enum { MATRIX_WEIGHTS = 96*1024 };       /* the most weights of any kind; more than any has columns */
struct matrix {
	const char *name;
	int weights, importances;       /* kinds of both; see matrices.c */
	size_t rows, cols;
};
extern const struct matrix matrices[];
extern const size_t n_matrices;
/* x: rows*cols weights; w: cols importances. Every seed gives another matrix of the kind. */
void matrix_fill(const struct matrix *m, uint64_t seed, float *x, float *w);
/* The sum of w (y - x)^2 as a share of the sum of w x^2. Every w is 1 if w is NULL or none is above 0. */
double matrix_error(const struct matrix *m, const float *x, const float *y, const float *w);
#endif
