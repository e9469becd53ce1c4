/* SPDX-License-Identifier: MIT
 * calibrate_fit.c - makes a tensor do with the inputs of the quantized model what the original does with its own.
 *
 * With x and v the inputs of the two and H the mean of v vT, W v lacks W (x - v). The part of that which is linear in v
 * is W E[(x - v) vT] H^-1, and some of it is added to the weights before they are encoded with error feedback. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../quant/quant.h"
#include "../quant/vec.h"
#include "calibrate_internal.h"
#include "msg.h"

enum { ROWS = 128 };

static void *aligned(size_t bytes)
{
	return msg_need(aligned_alloc(64, size_room(bytes, 64)));
}

struct fit {
	const struct fitting *how;
	uint32_t from, to;
	size_t n_in, rows, in_row, out_row;
	const unsigned char *src;
	unsigned char *dst;
	float *y;
	const struct quant_feedback *q;         /* or NULL: */
	const float *weights;                   /* by quant_weigh, or NULL */
	const struct inputs *in;                /* with `lack`, or NULL */
	char *work;                             /* [workers][work_bytes] */
	size_t work_bytes;
	const float *importance;                /* of columns, or NULL */
	struct recode_result *result;           /* [tasks] */
};
struct room { float *x, *b; void *act, *work; };
static size_t room_bytes(const struct fit *f, struct room *r, char *base)
{
	const size_t row = size_room(size_times(f->n_in, ROWS*sizeof(float)), 64);
	const size_t act = size_up(quant_act_bytes(QUANT_ACT_FLOAT, ROWS, f->n_in), 64),
		mul = quant_mul_work_bytes(f->n_in);
	const size_t feedback = f->q ? quant_feedback_work_bytes(f->q, ROWS) : 0;
	if (r) *r = (struct room){ (void *)base, (void *)(base + row), base + 2*row, base + 2*row + act };
	return size_room(size_plus(size_times(2, row), size_plus(act, size_most(feedback, mul))), 64);
}
/* Adds to x what the targets lack, from row `first` on. */
static void correct(const struct fit *f, const struct room *r, size_t first, size_t rows)
{
	const struct inputs *in = f->in;
	const float scale = (float)(f->how->factor/in->tokens);
	if (in->ends) memcpy(r->b, in->lack->sum + first*f->n_in, rows*f->n_in*sizeof *r->b);
	for (size_t i = 0; !in->ends && i < in->n_blocks; i++) {
		const struct cross *c = in->lack + i;
		const struct quant_mul m = { GGU_TYPE_F32, rows, c->n_a, c->n_a, c->sum, c->n_a*sizeof *c->sum, r->act,
			r->b + i*in->block, f->n_in };
		quant_act_pack(QUANT_ACT_FLOAT, r->x + i*in->block, f->n_in, rows, c->n_a, 0, rows, r->act);
		quant_mul(&m, 0, rows, 0, c->n_a, r->work);
	}
	for (size_t i = 0; i < rows*f->n_in; i++) r->b[i] *= scale;
	quant_feedback_solve(f->q, r->b, rows, r->work);
	for (size_t i = 0; i < rows*f->n_in; i++) r->x[i] += r->b[i];
}
static void fit_task(void *ctx, size_t task, int worker)
{
	const struct fit *f = ctx;
	const struct remake *re = f->how->re;
	const struct quant_objective corrected = quant_corrected_objective(f->to);
	const size_t first = task*ROWS, rows = f->rows - first < ROWS ? f->rows - first : ROWS;
	struct room r;
	room_bytes(f, &r, f->work + (size_t)worker*f->work_bytes);
	quant_decode(f->from, f->src + first*f->in_row, r.x, rows*f->n_in);
	for (size_t k = 0; k < rows*f->n_in; k++)
		if (!isfinite(r.x[k]) && f->result[task].n_bad++ == 0) f->result[task].bad_at = first*f->n_in + k;
	if (f->result[task].n_bad && !re->keep_non_finite) return;
	if (f->q && f->in->lack) correct(f, &r, first, rows);
	if (f->q && f->how->measure) {
		quant_encode(f->to, re->objective, r.x, f->weights, rows, f->n_in, re->effort,
			f->dst + first*f->out_row);
		quant_decode(f->to, f->dst + first*f->out_row, f->y + first*f->n_in, rows*f->n_in);
		f->result[task].without += quant_feedback_error(f->q, r.x, f->y + first*f->n_in, rows, r.work);
	}
	if (f->q)
		quant_feedback_encode(f->q, f->to, re->objective ? re->objective : &corrected, r.x, rows, re->effort,
			f->dst + first*f->out_row, r.work, f->how->measure ? &f->result[task].with : NULL);
	else
		quant_encode(f->to, re->objective, r.x, f->weights, rows, f->n_in, re->effort,
			f->dst + first*f->out_row);
	quant_decode(f->to, f->dst + first*f->out_row, f->y + first*f->n_in, rows*f->n_in);
	quant_decode(f->from, f->src + first*f->in_row, r.x, rows*f->n_in);
	for (size_t row = 0; row < rows; row++)
		vec_loss(r.x + row*f->n_in, f->y + (first + row)*f->n_in, f->importance, f->n_in,
			&f->result[task].error, &f->result[task].norm);
}

/* The mean of v vT in the form for quant_feedback_new; *seen: over how many tokens. NULL: none. */
static float *mean_of(const struct inputs *in, size_t mat, size_t *block, double *seen)
{
	struct imatrix_covariance c = { 0 };
	struct ggu_error err;
	float *mean, *to;
	for (size_t k = 0; !in->im && k < in->n_blocks; k++) c.n_floats += in->with[k].n_a*(in->with[k].n_a + 1)/2;
	*block = in->block;
	*seen = in->tokens;
	if (in->im) {
		if (!imatrix_has_covariance(in->im, in->name, &c) || mat >= c.n_mat || !(c.counts[mat] > 0))
			return NULL;
		*block = c.block;
		*seen = c.counts[mat];
	}
	mean = to = aligned(c.n_floats*sizeof *mean);
	if (in->im && imatrix_covariance(in->im, in->name, mat, mean, &err)) msg_die_error(in->name, &err);
	for (size_t k = 0; !in->im && k < in->n_blocks; k++)
		for (size_t i = 0; i < in->with[k].n_a; i++)
			for (size_t j = 0; j <= i; j++)
				*to++ = (float)((double)in->with[k].sum[i*in->with[k].n_b + j]/in->tokens);
	for (size_t i = 0; i < c.n_floats; i++)
		if (!isfinite(mean[i])) msg_die("the inputs of %s are not finite", in->name);
	return mean;
}
/* What is known of matrix `mat`: its error feedback, and the importances and weights of its columns. */
struct known { struct quant_feedback *q; float *importance, *weights; };
static struct known know(const struct fit *f, const struct inputs *in, size_t mat)
{
	const struct quant_objective usual = quant_objective_default(f->to, true);
	struct known known = { 0 };
	struct ggu_error err;
	double seen;
	size_t block;
	float *mean = in ? mean_of(in, mat, &block, &seen) : NULL;
	if (!mean) return known;
	/* if the numbers are no covariance, only importances are used; lack of memory must not change the result */
	if (seen >= (double)f->n_in && quant_can_feed_back(f->to)
		&& quant_feedback_new(&known.q, f->n_in, block, mean,
			f->how->damp >= 0 ? f->how->damp : quant_feedback_damp(f->to, f->n_in, seen), f->how->pool,
			&err) == GGU_ERR_NOMEM)
		msg_die("out of memory");
	known.importance = aligned(f->n_in*sizeof *known.importance);
	known.weights = aligned(f->n_in*sizeof *known.weights);
	for (size_t k = 0, at = 0; k < f->n_in; k++, at++) {
		at += k%block;
		known.importance[k] = mean[at];
	}
	quant_weigh(f->how->re->objective ? f->how->re->objective : &usual, known.importance, f->n_in, known.weights);
	free(mean);
	return known;
}
/* Adds up the results of a matrix's tasks. first: the number of its first weight. */
static void add_up(struct recode_result *to, struct recode_result *part, size_t n, uint64_t first)
{
	for (size_t i = 0; i < n; i++) {
		if (!to->n_bad) to->bad_at = first + part[i].bad_at;
		to->n_bad += part[i].n_bad;
		to->error += part[i].error;
		to->norm += part[i].norm;
		to->without += part[i].without;
		to->with += part[i].with;
	}
	memset(part, 0, n*sizeof *part);
}
struct recode_result calibrate_fit(const struct fitting *fitting, size_t i, const struct inputs *in, const void *from,
	void *to, float *y)
{
	const struct ggu_tensor *t = fitting->re->t[i];
	const size_t mats = (size_t)(t->ne[2]*t->ne[3]), workers = (size_t)ggu_pool_size(fitting->pool);
	struct fit f = { .how = fitting, .from = t->type, .to = fitting->re->choice[i].type, .n_in = (size_t)t->ne[0],
		.rows = (size_t)t->ne[1], .in = in };
	const size_t tasks = size_parts(f.rows, ROWS);
	struct recode_result result = { 0 };
	uint64_t in_row, out_row;
	if (!ggu_type_bytes(f.from, t->ne[0], &in_row) || !ggu_type_bytes(f.to, t->ne[0], &out_row))
		msg_die("%s: bad size", t->name);
	f.in_row = (size_t)in_row;
	f.out_row = (size_t)out_row;
	f.result = msg_need(calloc(tasks + 1, sizeof *f.result));
	for (size_t mat = 0; mat < mats; mat++) {
		struct known known = know(&f, in, mat);
		f.q = known.q;
		f.weights = known.weights;
		f.importance = known.importance;
		f.src = (const unsigned char *)from + mat*f.rows*f.in_row;
		f.dst = (unsigned char *)to + mat*f.rows*f.out_row;
		f.y = y + mat*f.rows*f.n_in;
		f.work_bytes = room_bytes(&f, NULL, NULL);
		f.work = aligned(size_times(workers, f.work_bytes));
		ggu_pool_run(fitting->pool, tasks, fit_task, &f);
		add_up(&result, f.result, tasks, (uint64_t)mat*f.rows*f.n_in);
		free(f.work);
		free(known.importance);
		free(known.weights);
		quant_feedback_free(known.q);
	}
	free(f.result);
	if (result.n_bad && !fitting->re->keep_non_finite) msg_die("%s has weights that are not finite", t->name);
	return result;
}
