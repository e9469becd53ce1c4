/* SPDX-License-Identifier: MIT
 * calibrate_sums.c - sums over the inputs of a weight: a product of float matrices (quant_mul) over the tokens of each
 * call. */
#include <stdlib.h>
#include <string.h>
#include "../quant/quant.h"
#include "calibrate_internal.h"
#include "msg.h"

enum { PANEL = 256, OUTPUTS = 64, TILE = 16, BLOCK = 8192 };

struct cross cross_new(size_t n_a, size_t n_b, bool lower)
{
	struct cross c = { n_a, n_b, lower, NULL };
	if (n_b <= SIZE_MAX/sizeof *c.sum/n_a) c.sum = calloc(n_a, n_b*sizeof *c.sum);
	if (!c.sum) msg_die("out of memory");
	return c;
}
void cross_free(struct cross *c)
{
	free(c->sum);
	c->sum = NULL;
}

struct turn { const float *x; size_t n_in, stride, n; float *to; };
static void turn_task(void *ctx, size_t task, int worker)
{
	const struct turn *t = ctx;
	size_t from = task*OUTPUTS, to = from + OUTPUTS < t->n_in ? from + OUTPUTS : t->n_in;
	(void)worker;
	for (size_t k = 0; k < t->n; k += TILE)
		for (size_t j = from; j < to; j++)
			for (size_t i = k; i < k + TILE && i < t->n; i++) t->to[j*t->n + i] = t->x[i*t->stride + j];
}
static void turn(const float *x, size_t n_in, size_t stride, size_t n, float *to, struct ggu_pool *pool)
{
	ggu_pool_run(pool, (n_in + OUTPUTS - 1)/OUTPUTS, turn_task, &(struct turn){ x, n_in, stride, n, to });
}

/* y[rows][n_b], rows to_stride floats apart, += a product of `rows` rows */
struct panel { struct quant_mul mul; float *to; size_t to_stride; char *work; };
static void panel_task(void *ctx, size_t task, int worker)
{
	const struct panel *p = ctx;
	size_t from = task*OUTPUTS, n = p->mul.n_out - from < OUTPUTS ? p->mul.n_out - from : OUTPUTS;
	quant_mul(&p->mul, 0, p->mul.n_tokens, from, n, p->work + (size_t)worker*quant_mul_work_bytes());
	for (size_t r = 0; r < p->mul.n_tokens; r++) {
		const float *y = p->mul.y + r*p->mul.y_stride;
		float *to = p->to + r*p->to_stride;
		for (size_t j = from; j < from + n; j++) to[j] += y[j];
	}
}
static void *room(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 63)/64*64);
	if (!p) msg_die("out of memory");
	return p;
}

/* to[n_a][n_b] += the product of a[n_a][n] and b[n_b][n]; lower: but not above the diagonal */
static void add_product(float *to, const float *a, size_t n_a, const float *b, size_t n_b, size_t n, bool lower,
	struct ggu_pool *pool)
{
	float *y = room(PANEL*n_b*sizeof *y);
	void *act = room(quant_act_bytes(QUANT_ACT_FLOAT, PANEL, n));
	void *work = room((size_t)ggu_pool_size(pool)*quant_mul_work_bytes());
	for (size_t first = 0; first < n_a; first += PANEL) {
		size_t rows = n_a - first < PANEL ? n_a - first : PANEL, outputs = lower ? first + rows : n_b;
		struct panel p = { { GGU_TYPE_F32, rows, outputs, n, b, n*sizeof *b, act, y, n_b }, to + first*n_b, n_b,
			work };
		quant_act_pack(QUANT_ACT_FLOAT, a + first*n, n, rows, n, 0, rows, act);
		ggu_pool_run(pool, (outputs + OUTPUTS - 1)/OUTPUTS, panel_task, &p);
	}
	free(y); free(act); free(work);
}
void product_add(const float *w, size_t n_in, size_t n_out, const float *x, size_t n, float *y, struct ggu_pool *pool)
{
	add_product(y, x, n, w, n_out, n_in, false, pool);
}
void cross_add(struct cross *c, const float *a, size_t a_stride, const float *b, size_t b_stride, size_t n,
	struct ggu_pool *pool)
{
	float *bt = room(c->n_b*n*sizeof *bt), *at = c->lower ? bt : room(c->n_a*n*sizeof *at);
	if (!c->lower) turn(a, c->n_a, a_stride, n, at, pool);
	turn(b, c->n_b, b_stride, n, bt, pool);
	add_product(c->sum, at, c->n_a, bt, c->n_b, n, c->lower, pool);
	if (!c->lower) free(at);
	free(bt);
}

/* ---- of a weight's inputs ---- */

void inputs_begin(struct inputs *in, size_t n_in, size_t ends)
{
	*in = (struct inputs){ .n_in = n_in, .block = n_in < BLOCK ? n_in : BLOCK, .ends = ends };
	in->n_blocks = (n_in + in->block - 1)/in->block;
	in->with = calloc(in->n_blocks, sizeof *in->with);
	in->lack = calloc(in->n_blocks, sizeof *in->lack);
	if (!in->with || !in->lack) msg_die("out of memory");
	for (size_t i = 0; i < in->n_blocks; i++) {
		size_t n = n_in - i*in->block < in->block ? n_in - i*in->block : in->block;
		in->with[i] = cross_new(n, n, true);
		if (!ends) in->lack[i] = cross_new(n, n, false);
	}
	if (ends) in->lack[0] = cross_new(ends, n_in, false);
}
void inputs_add(struct inputs *in, const float *x, const float *v, size_t n, struct ggu_pool *pool)
{
	in->tokens += (double)n;
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
