/* SPDX-License-Identifier: MIT
 * calibrate_sums.c - sums over the inputs of a weight, by quant/outer.h. */
#include <stdlib.h>
#include "../libgguf/size.h"
#include "../quant/outer.h"
#include "calibrate_internal.h"
#include "msg.h"

struct cross cross_new(size_t n_a, size_t n_b, bool lower)
{
	struct cross c = { n_a, n_b, lower, NULL };
	c.sum = msg_need(calloc(n_a, size_times(n_b, sizeof *c.sum)));
	return c;
}
void cross_free(struct cross *c)
{
	free(c->sum);
	c->sum = NULL;
}

static void add(const struct outer *o, struct ggu_pool *pool)
{
	if (outer_add(o, pool)) msg_die("out of memory");
}
void product_add(const float *w, size_t n_in, size_t n_out, const float *x, size_t n, float *y, struct ggu_pool *pool)
{
	add(&(struct outer){ .to = y, .rows = true, .n_a = n, .n_b = n_out, .n = n_in, .a = x, .a_stride = n_in, .b = w,
		.b_stride = n_in }, pool);
}
void cross_add(struct cross *c, const float *a, size_t a_stride, const float *b, size_t b_stride, size_t n,
	struct ggu_pool *pool)
{
	add(&(struct outer){ .to = c->sum, .form = c->lower ? OUTER_LOWER : OUTER_WHOLE, .n_a = c->n_a, .n_b = c->n_b,
		.n = n, .a = c->lower ? b : a, .a_stride = c->lower ? b_stride : a_stride,
		.b = b, .b_stride = b_stride }, pool);
}

/* ---- of a weight's inputs ---- */

void inputs_begin(struct inputs *in, const char *name, size_t n_in, size_t ends)
{
	*in = (struct inputs){ .n_in = n_in, .block = n_in < BLOCK ? n_in : BLOCK, .name = name, .ends = ends };
	in->n_blocks = size_parts(n_in, in->block);
	in->with = msg_need(calloc(in->n_blocks, sizeof *in->with));
	in->lack = msg_need(calloc(in->n_blocks, sizeof *in->lack));
	for (size_t i = 0; i < in->n_blocks; i++) {
		size_t n = size_least(in->block, n_in - i*in->block);
		in->with[i] = cross_new(n, n, true);
		if (!ends) in->lack[i] = cross_new(n, n, false);
	}
	if (ends) in->lack[0] = cross_new(ends, n_in, false);
}
void inputs_add(struct inputs *in, const float *x, const float *v, size_t n, double weight, struct ggu_pool *pool)
{
	in->tokens += weight*(double)n;
	if (in->ends) cross_add(in->lack, x, in->lack->n_a, v, in->n_in, n, pool);
	for (size_t i = 0; i < in->n_blocks; i++) {
		const size_t at = i*in->block;
		cross_add(in->with + i, NULL, 0, v + at, in->n_in, n, pool);
		if (!in->ends) cross_add(in->lack + i, v + at, in->n_in, x + at, in->n_in, n, pool);
	}
}
void inputs_free(struct inputs *in)
{
	for (size_t i = 0; in->with && i < in->n_blocks; i++) { cross_free(in->with + i); cross_free(in->lack + i); }
	free(in->with);
	free(in->lack);
}
