/* SPDX-License-Identifier: MIT
 * covariance_stats.c - see covariance_stats.h. The largest eigenvalue is found by power iteration, from below; after
 * ROUNDS rounds it is within a percent or two, which is enough for a look at a matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "covariance_stats.h"
#include "msg.h"

enum { ROUNDS = 24 };
static const double damp = 0.1;

/* y = H x, from the triangle of one block */
static void times(const float *h, size_t n, const double *x, double *y)
{
	for (size_t i = 0; i < n; i++, h += i) {
		double sum = h[i]*x[i];
		for (size_t j = 0; j < i; j++) {
			sum += h[j]*x[j];
			y[j] += h[j]*x[i];
		}
		y[i] = sum;
	}
}
/* The largest eigenvalue of a block. work: [2][n] */
static double largest(const float *h, size_t n, double *work)
{
	double *x = work, *y = work + n, value = 0;
	for (size_t i = 0; i < n; i++) x[i] = 1 + (double)(i % 7)/7;
	for (int round = 0; round < ROUNDS; round++) {
		double norm = 0, product = 0, size = 0;
		times(h, n, x, y);
		for (size_t i = 0; i < n; i++) {
			norm += x[i]*x[i];
			product += x[i]*y[i];
			size += y[i]*y[i];
		}
		if (!(size > 0)) return value;
		value = product/norm;
		for (size_t i = 0; i < n; i++) x[i] = y[i]/sqrt(size);
	}
	return value;
}
static void look(const float *h, struct covariance_stats *s)
{
	const size_t n = s->of.n_in, block = s->of.block;
	double *work = msg_need(malloc((2*block + 1)*sizeof *work)), trace = 0, squares = 0, most = 0;
	for (size_t first = 0; first < n; first += block) {
		const size_t width = n - first < block ? n - first : block;
		double value = largest(h, width, work);
		if (value > most) most = value;
		for (size_t i = 0; i < width; i++, h += i) {
			trace += h[i];
			squares += (double)h[i]*h[i];
			for (size_t j = 0; j < i; j++) squares += 2*(double)h[j]*h[j];
		}
	}
	s->directions = squares > 0 ? trace*trace/squares : 0;
	s->top = trace > 0 ? most/trace : 0;
	s->condition = 1 + s->top*(double)n/damp;
	free(work);
}

bool covariance_stats(const struct imatrix *im, const char *path, const char *name, struct covariance_stats *s)
{
	struct ggu_error err;
	size_t mat = 0;
	float *mean;
	*s = (struct covariance_stats){ 0 };
	if (!imatrix_has_covariance(im, name, &s->of) || strcmp(s->of.name, name)) return false;
	for (size_t i = 0; i < s->of.n_mat; i++) if (s->of.counts[i] > s->of.counts[mat]) mat = i;
	s->tokens = s->of.counts[mat];
	s->bytes = (double)s->of.n_mat*(double)s->of.n_floats*sizeof *mean;
	if (!(s->tokens > 0)) return true;
	mean = msg_need(malloc(s->of.n_floats*sizeof *mean));
	if (imatrix_covariance(im, name, mat, mean, &err)) msg_die_error(path, &err);
	look(mean, s);
	free(mean);
	return true;
}
