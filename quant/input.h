/* SPDX-License-Identifier: MIT
 * input.h - the input of a product with a weight, as the evaluator shows it to those who gather what weights get. */
#ifndef QUANT_INPUT_H
#define QUANT_INPUT_H
#include <stddef.h>

/* x[n][n_in], rows stride floats apart, the tokens of a sequence in order. weight: the name of the GGUF tensor; mat of
 * n_mat: which of its matrices, for experts. The struct owns nothing. */
struct quant_input { const char *weight; size_t n_mat, mat, n_in; const float *x; size_t stride, n; };

#endif
