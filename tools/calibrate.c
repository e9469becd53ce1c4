/* SPDX-License-Identifier: MIT
 * calibrate.c - see calibrate.h: the order in which weights are fitted.
 *
 * Two models go through the text side by side, the original and the one that is being made, one step (attention,
 * feed-forward) after another. Between steps the residual stream of every token in both models is kept. Within a step,
 * weights that share an input are a group, and groups are processed in the order of their use: the windows of the text
 * are evaluated up to the group in both models, the sums over its inputs are computed, and its tensors are fitted to
 * them (calibrate_fit.c) and used in the second model until the step is done. If the product of a group ends the step,
 * which the numbers show, the group is fitted to everything that the residual stream after it lacks.
 *
 * The embedding comes first, the output matrix last. Some windows of tokens drawn at random are added to those of the
 * text (drawn.h). */
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "../quant/vec.h"
#include "calibrate_internal.h"
#include "msg.h"
#include "progress.h"

enum { GROUPS = 16, MEMBERS = 16 };       /* at most, of a step and of a group */
/* how much of what a target lacks is corrected: more would fit this text better and other texts worse */
#define FACTOR 0.5

/* ---- groups ---- */

struct group {
	const char *name[MEMBERS];
	size_t tensor[MEMBERS], n, n_in, n_mat, mat;
	uint64_t hash;
	float *x;                       /* the first two tokens of the text */
	bool ends;
};
struct groups { const struct calibration *c; struct group g[GROUPS]; size_t n; };

static size_t tensor_of(const struct calibration *c, const char *name)
{
	size_t i = 0;
	while (i < c->re->n && strcmp(c->re->t[i]->name, name)) i++;
	return i;
}
static bool changes(const struct calibration *c, size_t i)
{
	return i < c->re->n && c->re->t[i]->type != c->re->choice[i].type;
}
static enum ggu_status note(void *ctx, const struct quant_input *in)
{
	struct groups *all = ctx;
	struct group *g = all->n ? all->g + all->n - 1 : NULL;
	uint64_t hash = 0;
	size_t i = tensor_of(all->c, in->weight), row = in->n_in*sizeof *in->x;
	for (size_t k = 0; k < all->n; k++)
		for (size_t j = 0; j < all->g[k].n; j++) if (all->g[k].tensor[j] == i) return GGU_OK;
	if (!changes(all->c, i) || all->c->kept[i].done) return GGU_OK;
	for (size_t t = 0; t < in->n; t++) hash = XXH3_64bits_withSeed(in->x + t*in->stride, row, hash);
	if (!g || g->hash != hash || g->n_in != in->n_in || g->n_mat != in->n_mat || g->mat != in->mat
		|| g->n == MEMBERS) {
		if (all->n == GROUPS)
			msg_die("%s: a step with more than %d inputs cannot be calibrated", in->weight, GROUPS);
		g = all->g + all->n++;
		*g = (struct group){ .n_in = in->n_in, .n_mat = in->n_mat, .mat = in->mat, .hash = hash };
		g->x = calibrate_floats(2, in->n_in);
		for (size_t t = 0; t < in->n && t < 2; t++) memcpy(g->x + t*in->n_in, in->x + t*in->stride, row);
	}
	g->name[g->n] = all->c->re->t[i]->name;
	g->tensor[g->n++] = i;
	return GGU_OK;
}

/* A tensor's bytes in the original model */
static const void *source(const struct calibration *c, const struct ggu_tensor *t)
{
	struct ggu_file *f = (struct ggu_file *)(uintptr_t)model_file(c->f.m);
	const void *p;
	struct ggu_error err;
	if (ggu_map(f, ggu_file_find(f, t->name), &p, &err)) msg_die_error(t->name, &err);
	return p;
}

/* ---- fitting ---- */

static void fit_tensor(struct calibration *c, size_t i, const struct inputs *in)
{
	const struct ggu_tensor *t = c->re->t[i];
	struct kept *kept = c->kept + i;
	kept->y = calibrate_floats((size_t)ggu_tensor_rows(t), (size_t)t->ne[0]);
	kept->at = c->used;
	c->used += sides_room(c, i);
	kept->got = calibrate_fit(&c->fitting, i, in, source(c, t), c->blocks + kept->at, kept->y);
	kept->done = true;
	model_set_weights(c->q.m, t->name, kept->y);
}
static void fit_group(struct calibration *c, const struct group *g, const struct inputs *in)
{
	for (size_t k = 0; k < g->n; k++) if (!c->kept[g->tensor[k]].done) fit_tensor(c, g->tensor[k], in);
}
/* Stops using the tensors that were made for the step: the quantized model has those of the file again. */
static void let_go(struct calibration *c)
{
	for (size_t i = 0; i < c->re->n; i++) {
		if (!c->kept[i].y) continue;
		model_set_weights(c->q.m, c->re->t[i]->name, NULL);
		free(c->kept[i].y);
		c->kept[i].y = NULL;
	}
}

/* ---- a step ---- */

static void subtract(float *x, const float *y, size_t n) { for (size_t i = 0; i < n; i++) x[i] -= y[i]; }
/* Adds inputs of `weight` to the sums; overwrites x and v. */
static void add_inputs(const struct calibration *c, struct inputs *in, const char *weight, float *x, float *v,
	struct windows w)
{
	const size_t n = windows_tokens(c, w), wide = in->ends ? c->e : in->n_in;
	const float root = windows_root(c, w, weight), first = drawn_first_root(c->ctx, 1);
	float *by = calibrate_floats(1, n);
	for (size_t at = 0; at < n; at += c->ctx) {
		imatrix_moderate(v + at*in->n_in, in->n_in, in->n_in, c->ctx, by + at);
		for (size_t t = at; t < at + c->ctx; t++) by[t] *= t == at ? root*first : root;
	}
	for (size_t t = 0; t < n; t++) {
		if (by[t] == 1) continue;
		vec_scale(x + t*wide, by[t], wide);
		vec_scale(v + t*in->n_in, by[t], in->n_in);
	}
	free(by);
	inputs_add(in, x, v, n, (double)(root*root), c->pool);
}

/* Adds up a group's inputs in a batch of windows. */
struct sums { struct calibration *c; const struct group *g; struct inputs in; struct imatrix *im; float *x[2], *out; };

static enum ggu_status experts(void *ctx, const struct quant_input *in)
{
	struct sums *s = ctx;
	struct ggu_error err;
	if (strcmp(in->weight, s->g->name[0])) return GGU_OK;
	if (imatrix_add_covariance(s->im, in, BLOCK, s->c->pool, &err)) msg_die_error(in->weight, &err);
	return GGU_OK;
}
static void add_experts(struct sums *s, struct windows w, size_t step)
{
	struct calibration *c = s->c;
	struct ggu_error err;
	memcpy(s->out, windows_stream(c, c->q.stream, w), windows_tokens(c, w)*c->e*sizeof(float));
	side_step(c, &c->q, w, s->out, step, &(struct listener){ experts, s, NULL });
	if (imatrix_flush(s->im, c->pool, &err)) msg_die_error(s->g->name[0], &err);
}
/* What is kept of a weight's input in some windows. */
struct caught {
	const char *name;
	bool stop, stopped;
	size_t most, n;                 /* tokens: room for, and so far */
	float *x;
};
static enum ggu_status catch(void *ctx, const struct quant_input *in)
{
	struct caught *c = ctx;
	if (strcmp(in->weight, c->name)) return GGU_OK;
	if (in->n > c->most - c->n)
		msg_die("%s: a weight that is used twice in a step cannot be calibrated", in->weight);
	for (size_t t = 0; t < in->n; t++)
		memcpy(c->x + (c->n + t)*in->n_in, in->x + t*in->stride, in->n_in*sizeof *in->x);
	c->n += in->n;
	c->stopped = c->stop;
	return c->stop ? GGU_ERR_STATE : GGU_OK;
}
/* Evaluates both models up to the group, or, if it ends the step, to the end of the step. In that case the streams
 * advance, the quantized one as if the group had not changed (see settle). */
static void add_windows(struct sums *s, struct windows w, size_t step)
{
	struct calibration *c = s->c;
	const size_t n = windows_tokens(c, w), wide = s->g->n_in;
	const struct side *side[2] = { &c->f, &c->q };
	float *x[2] = { s->x[0], s->g->ends ? c->held + w.first*c->ctx*wide : s->x[1] };
	for (int k = 0; k < 2; k++) {
		struct caught caught = { s->g->name[0], !s->g->ends, false, n, 0, x[k] };
		float *stream = windows_stream(c, side[k]->stream, w);
		if (!s->g->ends) memcpy(s->out, stream, n*c->e*sizeof(float));
		side_step(c, side[k], w, s->g->ends ? stream : s->out, step,
			&(struct listener){ catch, &caught, &caught.stopped });
	}
	if (s->g->ends) {
		memcpy(s->out, windows_stream(c, c->f.stream, w), n*c->e*sizeof(float));
		subtract(s->out, windows_stream(c, c->q.stream, w), n*c->e);
	} else subtract(x[0], x[1], n*wide);
	/* add_inputs overwrites its arguments, and held is needed later: it gets a copy */
	if (s->g->ends) memcpy(s->x[1], x[1], n*wide*sizeof(float));
	add_inputs(c, &s->in, s->g->name[0], s->g->ends ? s->out : x[0], s->x[1], w);
}
/* Updates the quantized stream after a group that ends a step: adds what its weights became, less what they were, times
 * its inputs. */
static void settle(struct calibration *c, const struct group *g)
{
	const struct ggu_tensor *t = c->re->t[g->tensor[0]];
	const size_t n = c->e*g->n_in;
	float *change = calibrate_floats(c->e, g->n_in);
	struct windows w = { 0, 0 };
	quant_decode(t->type, source(c, t), change, n);
	for (size_t i = 0; i < n; i++) change[i] = c->kept[g->tensor[0]].y[i] - change[i];
	while (windows_next(c, &w))
		product_add(change, g->n_in, c->e, c->held + w.first*c->ctx*g->n_in, windows_tokens(c, w),
			windows_stream(c, c->q.stream, w), c->pool);
	free(change);
}
static void do_group(struct calibration *c, const struct group *g, size_t step)
{
	const size_t n = c->at_once*c->ctx;
	struct sums s = { .c = c, .g = g };
	struct windows w = { 0, 0 };
	for (int k = 0; k < 2; k++) s.x[k] = calibrate_floats(n, g->n_in);
	s.out = calibrate_floats(n, c->e);
	if (g->n_mat == 1) inputs_begin(&s.in, g->name[0], g->n_in, g->ends ? c->e : 0);
	else {
		s.im = msg_need(imatrix_new());
		s.in = (struct inputs){ .n_in = g->n_in, .im = s.im, .name = g->name[0] };
	}
	while (windows_next(c, &w))
		if (g->n_mat == 1) add_windows(&s, w, step);
		else add_experts(&s, w, step);
	fit_group(c, g, &s.in);
	if (g->ends) settle(c, g);
	free(s.x[0]); free(s.x[1]); free(s.out);
	inputs_free(&s.in);
	imatrix_free(s.im);
}

/* Is what the step adds to the stream between two tokens the product of the group's weight alone? */
static bool ends_step(const struct calibration *c, const struct group *g, const float *in, const float *out)
{
	const struct ggu_tensor *t = c->re->t[g->tensor[0]];
	double error = 0, norm = 0;
	float *row;
	const char *data;
	uint64_t bytes;
	if (g->n != 1 || g->n_mat != 1 || t->ne[1] != c->e || g->n_in > c->held_n_in
		|| !ggu_type_bytes(t->type, t->ne[0], &bytes)) return false;
	data = source(c, t);
	row = calibrate_floats(1, g->n_in);
	for (size_t i = 0; i < c->e; i++) {
		double y = 0, d = ((double)out[c->e + i] - in[c->e + i]) - ((double)out[i] - in[i]);
		quant_decode(t->type, data + i*bytes, row, g->n_in);
		for (size_t k = 0; k < g->n_in; k++) y += (double)row[k]*((double)g->x[g->n_in + k] - g->x[k]);
		error += (y - d)*(y - d);
		norm += d*d;
	}
	free(row);
	return error <= 1e-6*norm;
}
static void find_groups(struct calibration *c, size_t step, struct groups *all)
{
	const struct windows w = { 0, 1 };
	float *out = calibrate_floats(c->ctx, c->e);
	memcpy(out, c->q.stream, c->ctx*c->e*sizeof *out);
	side_step(c, &c->q, w, out, step, &(struct listener){ note, all, NULL });
	for (size_t k = 0; k < all->n; k++) {
		all->g[k].ends = k + 1 == all->n && ends_step(c, all->g + k, c->q.stream, out);
		free(all->g[k].x);
		all->g[k].x = NULL;
	}
	free(out);
}
static void do_step(struct calibration *c, size_t step)
{
	struct groups all = { .c = c };
	struct windows w = { 0, 0 };
	bool ended = false;
	find_groups(c, step, &all);
	if (all.n && !drawn_in_first_block(all.g->name[0])) c->n_windows = c->n_text + c->drawn.whole;
	for (size_t k = 0; k < all.n; k++) {
		do_group(c, all.g + k, step);
		ended = all.g[k].ends;
	}
	while (!ended && windows_next(c, &w)) {
		side_step(c, &c->f, w, windows_stream(c, c->f.stream, w), step, NULL);
		side_step(c, &c->q, w, windows_stream(c, c->q.stream, w), step, NULL);
	}
	let_go(c);
}

/* ---- the ends ---- */

/* If the embedding is the output matrix too, it is made for the inputs that the output matrix has in the original. */
static void tied_inputs(const struct calibration *c, struct inputs *in)
{
	const size_t n = c->at_once*c->ctx;
	float *rows = calibrate_floats(n, c->e), *none = calibrate_floats(n, c->e);
	struct windows w = { 0, 0 };
	memset(none, 0, n*c->e*sizeof *none);
	inputs_begin(in, "token_embd.weight", c->e, 0);
	while (windows_next(c, &w)) {
		side_evaluate(c, &c->f, w, (struct model_call){ .rows = rows }, NULL);
		add_inputs(c, in, "token_embd.weight", none, rows, w);
	}
	free(rows);
	free(none);
}
static void do_embedding(struct calibration *c)
{
	struct group g = { .name = { "token_embd.weight" }, .tensor = { tensor_of(c, "token_embd.weight") }, .n = 1 };
	const bool tied = tensor_of(c, "output.weight") == c->re->n;
	const size_t n_windows = c->n_windows;
	struct inputs in = { 0 };
	struct windows w = { 0, 0 };
	if (changes(c, g.tensor[0])) {
		c->n_windows = c->n_text + c->drawn.whole;
		if (tied) tied_inputs(c, &in);
		c->n_windows = n_windows;
		fit_group(c, &g, tied ? &in : NULL);
		inputs_free(&in);
	}
	while (windows_next(c, &w)) {
		side_step(c, &c->f, w, windows_stream(c, c->f.stream, w), SIZE_MAX, NULL);
		side_step(c, &c->q, w, windows_stream(c, c->q.stream, w), SIZE_MAX, NULL);
	}
	let_go(c);
}
static void last_rows(const struct calibration *c, const struct side *s, struct windows w, float *rows)
{
	const size_t n = model_n_steps(s->m);
	const struct model_call call = { .rows = rows, .stream = windows_stream(c, s->stream, w), .from = n, .to = n };
	side_evaluate(c, s, w, call, NULL);
}
static void do_output(struct calibration *c)
{
	struct group g = { .name = { "output.weight" }, .tensor = { tensor_of(c, "output.weight") }, .n = 1, .n_mat = 1,
		.n_in = c->e };
	struct windows w = { 0, 0 };
	struct inputs in;
	float *x[2];
	if (!changes(c, g.tensor[0])) return;
	inputs_begin(&in, g.name[0], c->e, 0);
	for (int k = 0; k < 2; k++) x[k] = calibrate_floats(c->at_once*c->ctx, c->e);
	while (windows_next(c, &w)) {
		last_rows(c, &c->f, w, x[0]);
		last_rows(c, &c->q, w, x[1]);
		subtract(x[0], x[1], windows_tokens(c, w)*c->e);
		add_inputs(c, &in, g.name[0], x[0], x[1], w);
	}
	fit_group(c, &g, &in);
	let_go(c);
	for (int k = 0; k < 2; k++) free(x[k]);
	inputs_free(&in);
}

struct calibration *calibrate(const struct remake *re, const struct calibrate_options *o)
{
	struct calibration *c = msg_need(calloc(1, sizeof *c));
	size_t steps;
	c->re = re;
	c->kept = msg_need(calloc(re->n + 1, sizeof *c->kept));
	c->pool = msg_need(ggu_pool_new(o->jobs));
	c->fitting = (struct fitting){ re, c->pool, o->damp, FACTOR, o->measure };
	sides_open(c, o);
	steps = model_n_steps(c->f.m);
	progress_begin("calibrating", steps + 1, "steps");
	do_embedding(c);
	for (size_t i = 0; i < steps; i++) {
		do_step(c, i);
		progress_set(i + 1);
	}
	do_output(c);
	progress_end();
	return c;
}
const void *calibrated(const struct calibration *c, size_t i)
{
	return c->kept[i].done ? c->blocks + c->kept[i].at : NULL;
}
struct recode_result calibrated_result(const struct calibration *c, size_t i) { return c->kept[i].got; }
void calibrate_free(struct calibration *c)
{
	if (!c) return;
	sides_close(c);
	ggu_pool_free(c->pool);
	free(c->kept);
	free(c);
}
