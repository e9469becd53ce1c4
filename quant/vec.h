/* SPDX-License-Identifier: MIT
 * vec.h - float vectors for the forward pass: dot products, sums, exp and the like.
 *
 * The contract is that of quant.h: portable C is the definition, and every instance gives the same bits. Sums have the
 * 16 lanes and the tree of a float product. exp, log, sin, cos and tanh are our own, with the bounds stated here, so
 * that results do not depend on the version of libm.
 *
 * n may be 0. Nothing needs alignment, and what is written overlaps nothing else, unless it says so. */
#ifndef QUANT_VEC_H
#define QUANT_VEC_H
#include <stddef.h>

float vec_dot(const float *a, const float *b, size_t n);                /* float product of quant.h */
float vec_sum(const float *a, size_t n);                                /* 16 lanes, plain adds */
float vec_max(const float *a, size_t n);                                /* NaN if any is; -inf for n = 0; no -0 */
size_t vec_top(const float *a, size_t n);               /* the first of the largest, ignoring NaN; 0: none */
/* the first i with |a[i]| >= limit or a[i] NaN; n: none. limit > 0, maybe infinity */
size_t vec_beyond(const float *a, size_t n, float limit);
/* *error += sum of w (y - x)^2, *norm += sum of w x^2, in double: 16 lanes and the tree, separate multiplies and adds.
 * w NULL: ones. */
void vec_loss(const float *x, const float *y, const float *w, size_t n, double *error, double *norm);
/* sum[j] + rest[j] += y = x[r][j]^2 with twice the digits of a double, rows in order, stride floats apart: s = sum + y,
 * b = s - sum, e = (sum - (s - b)) + (y - b) + rest, sum = s + e, rest = e - (sum - s) */
void vec_squares(double *sum, double *rest, const float *x, size_t stride, size_t n_rows, size_t n);
void vec_axpy(float *y, float a, const float *x, size_t n);             /* y = fma(a, x, y) */
void vec_scale(float *y, float a, size_t n);
/* y = (x*a)*w; y may be x */
void vec_scale_mul(float *y, const float *x, float a, const float *w, size_t n);
void vec_add(float *y, const float *x, size_t n);
void vec_mul(float *y, const float *x, size_t n);
/* vec_exp is within 1 ulp, the others within 4 unless the result is below 2^-120; vec_gelu_tanh below -1 within
 * 4 + 7*|t|, t = sqrt(8/pi) (x + 0.044715 x^3): e^-t multiplies t's seven roundings by t. The three that are activation
 * functions give y = f(x)*by, or f(x) if by is NULL; y may be x. The others are in place. */
void vec_exp(float *x, size_t n);
void vec_silu(float *y, const float *x, const float *by, size_t n);
void vec_gelu(float *y, const float *x, const float *by, size_t n);     /* erf form */
void vec_gelu_tanh(float *y, const float *x, const float *by, size_t n);
void vec_tanh(float *x, size_t n);
void vec_softplus(float *x, size_t n);                                  /* log(1 + e^x) */
void vec_softmax(float *x, size_t n);                                   /* exp(x - max) / sum */
/* y[i] = e^(x[i] - from), relative error 1e-11; 0 for x[i] - from below -700, infinity above 700, NaN for NaN */
void vec_exp_from(double *y, const float *x, double from, size_t n);
float vec_sum_exp(const float *a, size_t n, float m);                   /* vec_sum of vec_exp of a[i] - m */
/* a[i], b[i] = a[i]*c[i] - b[i]*s[i], b[i]*c[i] + a[i]*s[i]; the same for pairs x[2i], x[2i + 1] */
void vec_turn(float *a, float *b, const float *c, const float *s, size_t n);
void vec_turn_pairs(float *x, const float *c, const float *s, size_t n);

/* scalars in double: within 4 ulp of double (num_pow: plus |y log x|/8; sin, cos: |x| < 2^30; they are NaN if |x| >=
 * 2^50 or x is NaN) */
double num_exp(double x);
double num_log(double x);
double num_pow(double x, double y);
double num_sin(double x);
double num_cos(double x);

#endif
