/* SPDX-License-Identifier: MIT
 * vec.h - float vectors for the forward pass: dot products, sums, exp and its kin.
 *
 * Same contract as quant.h: portable C is the definition, every instance gives the same bits. Sums have
 * the 16 lanes and the tree of a float product. exp, log, sin, cos and tanh are ours, with the bound
 * stated, so that no libm's version shows in a result. */
#ifndef QUANT_VEC_H
#define QUANT_VEC_H
#include <stddef.h>

float vec_dot(const float *a, const float *b, size_t n);                /* float product of quant.h */
float vec_sum(const float *a, size_t n);                                /* 16 lanes, plain adds */
float vec_max(const float *a, size_t n);                                /* NaN if any is; -inf for n = 0 */
void vec_axpy(float *y, float a, const float *x, size_t n);             /* y = fma(a, x, y) */
void vec_scale(float *y, float a, size_t n);
void vec_add(float *y, const float *x, size_t n);
void vec_mul(float *y, const float *x, size_t n);
/* in place; max error in ulp stated in vec.c */
void vec_exp(float *x, size_t n);
void vec_silu(float *x, size_t n);
void vec_gelu(float *x, size_t n);                                      /* erf form */
void vec_gelu_tanh(float *x, size_t n);
void vec_softmax(float *x, size_t n);                                   /* exp(x - max) / sum */

/* scalars, double precision inside, for tables and sampling: faithful within 1 ulp of float */
double num_exp(double x);
double num_log(double x);
double num_pow(double x, double y);
double num_sin(double x);
double num_cos(double x);

#endif
