/* SPDX-License-Identifier: MIT
 * vec.c - vector functions by the selected table; scalars in double by series.
 *
 * The scalars serve tables (rope), sampling and log-likelihoods. Each reduces its argument exactly enough and
 * sums a Taylor or atanh series in fma's, so its error is a few units in the 16th digit on every machine. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "vec_internal.h"

const struct vec_table *quant_vec_table = &quant_vec_c;

float vec_dot(const float *a, const float *b, size_t n) { return quant_vec_table->dot(a, b, n); }
float vec_sum(const float *a, size_t n) { return quant_vec_table->sum(a, n); }
float vec_max(const float *a, size_t n) { return quant_vec_table->max(a, n); }
size_t vec_beyond(const float *a, size_t n, float limit) { return quant_vec_table->beyond(a, n, limit); }
void vec_loss(const float *x, const float *y, const float *w, size_t n, double *error, double *norm)
{
	quant_vec_table->loss(x, y, w, n, error, norm);
}
void vec_squares(double *sum, double *rest, const float *x, size_t stride, size_t n_rows, size_t n)
{
	quant_vec_table->squares(sum, rest, x, stride, n_rows, n);
}
void vec_axpy(float *y, float a, const float *x, size_t n) { quant_vec_table->axpy(y, a, x, n); }
void vec_scale(float *y, float a, size_t n) { quant_vec_table->scale(y, a, n); }
void vec_scale_mul(float *y, const float *x, float a, const float *w, size_t n)
{
	quant_vec_table->scale_mul(y, x, a, w, n);
}
void vec_add(float *y, const float *x, size_t n) { quant_vec_table->add(y, x, n); }
void vec_mul(float *y, const float *x, size_t n) { quant_vec_table->mul(y, x, n); }
void vec_exp(float *x, size_t n) { quant_vec_table->exp(x, n); }
void vec_silu(float *y, const float *x, const float *by, size_t n) { quant_vec_table->silu(y, x, by, n); }
void vec_gelu(float *y, const float *x, const float *by, size_t n) { quant_vec_table->gelu(y, x, by, n); }
void vec_gelu_tanh(float *y, const float *x, const float *by, size_t n) { quant_vec_table->gelu_tanh(y, x, by, n); }
void vec_tanh(float *x, size_t n) { quant_vec_table->tanh(x, n); }
void vec_softplus(float *x, size_t n) { quant_vec_table->softplus(x, n); }
void vec_softmax(float *x, size_t n) { quant_vec_table->softmax(x, n); }
size_t vec_top(const float *a, size_t n) { return quant_vec_table->top(a, n); }
float vec_sum_exp(const float *a, size_t n, float m) { return quant_vec_table->sum_exp(a, n, m); }
void vec_turn(float *a, float *b, const float *c, const float *s, size_t n) { quant_vec_table->turn(a, b, c, s, n); }
void vec_turn_pairs(float *a, const float *c, const float *s, size_t n) { quant_vec_table->turn_pairs(a, c, s, n); }
void vec_exp_from(double *y, const float *x, double from, size_t n) { quant_vec_table->exp_from(y, x, from, n); }
void scan_conv(const struct scan_conv *c) { quant_vec_table->scan_conv(c); }
void scan_channels(const struct scan_channels *s) { quant_vec_table->scan_channels(s); }
void scan_head(const struct scan_head *s) { quant_vec_table->scan_head(s); }

double num_exp(double x)
{
	double k, r, p = 1;
	uint64_t u;
	int n, half;
	if (x != x) return x;
	if (x > 709.79) return INFINITY;
	if (x < -745.2) return 0;
	k = rint(x*1.4426950408889634);
	r = fma(k, -6.93147180369123816490e-01, x);     /* ln 2 in two parts, the first of 32 bits */
	r = fma(k, -1.90821492927058770002e-10, r);
	for (int i = 14; i > 0; i--) p = fma(p, r/i, 1);
	n = (int)k;
	half = n/2;
	u = (uint64_t)(half + 1023) << 52;
	memcpy(&r, &u, 8);
	p *= r;
	u = (uint64_t)(n - half + 1023) << 52;
	memcpy(&r, &u, 8);
	return p*r;
}

/* log x = the result + *rest, the sum within 2^-56 of it, so that a large multiple is still exact enough for num_exp */
static double log_parts(double x, double *rest)
{
	uint64_t u;
	int64_t e = 0;
	double m, d, s, s_rest, z, tail, p = 0, whole, sum, all;
	*rest = 0;
	if (x != x || x == INFINITY) return x;
	if (x <= 0) return x == 0 ? -INFINITY : NAN;
	if (x < 2.2250738585072014e-308) { x *= 18014398509481984.0; e = -54; }
	memcpy(&u, &x, 8);
	e += (int64_t)(u >> 52) - 1023;
	u = (u & 0xfffffffffffffu) | 0x3ff0000000000000u;
	memcpy(&m, &u, 8);
	if (m > 1.4142135623730951) { m *= 0.5; e++; }
	/* log m = 2 (s + s^3/3 + s^5/5 ..), |s| < 0.172; m - 1 is exact, s_rest has what m + 1 and the quotient lost */
	d = m + 1;
	s = (m - 1)/d;
	s_rest = (fma(-s, d, m - 1) - s*(m - (d - 1)))/d;
	z = s*s;
	for (int i = 23; i >= 3; i -= 2) p = fma(p, z, 1.0/i);
	tail = 2*fma(p*z, s, s_rest);
	/* ln 2 in two parts, the first of 32 bits: its multiple is exact and is 0 or the larger summand */
	whole = (double)e*6.93147180369123816490e-01;
	sum = whole + 2*s;
	tail = (2*s - (sum - whole)) + fma((double)e, 1.90821492927058770002e-10, tail);
	all = sum + tail;
	*rest = tail - (all - sum);
	return all;
}

double num_log(double x)
{
	double rest;
	return log_parts(x, &rest);
}

double num_pow(double x, double y)
{
	double rest, l = log_parts(x, &rest), product = y*l, e;
	if (y == 0) return 1;
	if (x == 0) return y > 0 ? 0 : INFINITY;
	e = num_exp(product);
	if (!(fabs(product) < 1000) || e == INFINITY) return e;
	return fma(e, fma(y, rest, fma(y, l, -product)), e);  /* e^(a + b) is e^a (1 + b) */
}

/* sin and cos of r, |r| <= pi/4 and a little */
static double sine(double r)
{
	double z = r*r, p = 1;
	for (int i = 20; i > 1; i -= 2) p = fma(p, -z/((double)i*(i + 1)), 1);
	return p*r;
}
static double cosine(double r)
{
	double z = r*r, p = 1;
	for (int i = 20; i > 0; i -= 2) p = fma(p, -z/((double)i*(i - 1)), 1);
	return p;
}
/* Takes quarter turns off x; pi/2 is in three parts of 53 bits, and fma makes each product exact. x is bounded, as the
 * number of quarters must fit an integer, whatever x a file leads to. */
static double reduce(double x, int *quarter)
{
	double k = rint(x*0.63661977236758134308), r;
	*quarter = 0;
	if (!(fabs(x) < 0x1p50)) return NAN;
	r = fma(k, -1.5707963267948966, x);
	r = fma(k, -6.123233995736766e-17, r);
	r = fma(k, 1.4973849048591833e-33, r);
	*quarter = (int)((int64_t)k & 3);
	return r;
}
double num_sin(double x)
{
	int q;
	double r = reduce(x, &q), s = q & 1 ? cosine(r) : sine(r);
	return q & 2 ? -s : s;
}
double num_cos(double x)
{
	int q;
	double r = reduce(x, &q), c = q & 1 ? sine(r) : cosine(r);
	return q == 1 || q == 2 ? -c : c;
}
