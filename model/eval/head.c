/* SPDX-License-Identifier: MIT
 * head.c - from rows of the last layer to logits, or to scores.
 *
 * Scores need no matrix of tokens x vocabulary. A task multiplies TILE rows of the output matrix with up to TOKENS
 * tokens into its own scratch memory and keeps, for each token, the largest logit and the sum of exp of all logits
 * relative to it, in float32 with 16 lanes. The results of the tiles are then added up in order, in double. Tiles do
 * not depend on the number of threads, so neither do the results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/pool.h"
#include "../../quant/vec.h"
#include "cpu_internal.h"

enum { TOKENS = 128, TILE = 512 };

struct tile { float max, sum; int32_t top; };
/* Rows on their way to logits or scores. */
struct head {
	const struct work *w;
	const float *rows;
	size_t n, tokens, outputs;      /* cut of the logits */
	void *act;
	float *logits;
	const int32_t *next;            /* scores instead: */
	struct tile *tile;              /* [n][tiles] */
	float *chosen;                  /* [n]: logit of next */
	char *own;                      /* [workers][TOKENS][TILE] */
};

static void pack_task(void *ctx, size_t task, int worker)
{
	const struct head *h = ctx;
	const struct weight *w = &h->w->g->head;
	const enum quant_act form = quant_act_of(w->type);
	size_t share = cpu_row_share(1u << form, h->n), from = task*share;
	(void)worker;
	quant_act_pack(form, h->rows, w->n_in, h->n, w->n_in, from, size_least(share, h->n - from),
		h->act);
}
static void pack(struct head *h)
{
	const size_t share = cpu_row_share(1u << quant_act_of(h->w->g->head.type), h->n);
	cpu_run(h->w, PASS("inputs"), size_parts(h->n, share), pack_task, h);
}

/* Bias, scale and cap of n logits from output o0 on. */
static void finish(const struct graph *g, float *x, size_t o0, size_t n)
{
	if (g->head.bias) vec_add(x, g->head.bias + o0, n);
	if (g->head_scale != 1) vec_scale(x, (float)g->head_scale, n);
	if (!(g->head_softcap > 0)) return;
	vec_scale(x, (float)(1/g->head_softcap), n);
	vec_tanh(x, n);
	vec_scale(x, (float)g->head_softcap, n);
}

static struct quant_mul product(const struct head *h, size_t o0, size_t n_o, float *y, size_t stride)
{
	const struct weight *w = &h->w->g->head;
	return (struct quant_mul){ w->type, h->n, n_o, w->n_in, (const char *)w->data + o0*w->row_bytes, w->row_bytes,
		h->act, y, stride };
}

static void logits_task(void *ctx, size_t task, int worker)
{
	const struct head *h = ctx;
	const struct graph *g = h->w->g;
	struct quant_mul m = product(h, 0, g->head.n_out, h->logits, g->head.n_out);
	size_t across = size_parts(g->head.n_out, h->outputs), t0 = task/across*h->tokens, o0 = task%across*h->outputs;
	size_t n_t = size_least(h->tokens, h->n - t0), n_o = size_least(h->outputs, g->head.n_out - o0);
	quant_mul(&m, t0, n_t, o0, n_o, work_local(h->w, worker));
	for (size_t t = t0; t < t0 + n_t; t++) finish(g, h->logits + t*g->head.n_out + o0, o0, n_o);
}

/* The largest of x[n], whose ids begin at o0, and the sum of exp relative to it. */
static struct tile tile_of(const float *x, size_t o0, size_t n)
{
	size_t top = vec_top(x, n);
	return (struct tile){ x[top], vec_sum_exp(x, n, x[top]), (int32_t)(o0 + top) };
}

static void score_task(void *ctx, size_t task, int worker)
{
	const struct head *h = ctx;
	const struct graph *g = h->w->g;
	size_t tiles = size_parts(g->head.n_out, TILE), o0 = task*TILE, n_o = size_least(TILE, g->head.n_out - o0);
	float *own = (float *)(void *)(h->own + (size_t)worker*TOKENS*TILE*sizeof(float));
	struct quant_mul m = product(h, o0, n_o, own, TILE);
	quant_mul(&m, 0, h->n, 0, n_o, work_local(h->w, worker));
	for (size_t t = 0; t < h->n; t++) {
		float *x = own + t*TILE;
		size_t next = h->next[t] < 0 ? SIZE_MAX : (size_t)h->next[t];
		finish(g, x, o0, n_o);
		if (next >= o0 && next < o0 + n_o) h->chosen[t] = x[next - o0];
		h->tile[t*tiles + task] = tile_of(x, o0, n_o);
	}
}

/* Room for packed rows and, if scores are wanted, everything else. */
static char *room(struct work *w, size_t n, struct ggu_error *err)
{
	char *p = work_room(&w->head, &w->head_bytes, n);
	if (!p) ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for logits");
	return p;
}
static size_t act_bytes(const struct weight *w, size_t n)
{
	return size_up(quant_act_most_bytes(quant_act_of(w->type), n, w->n_in), 64);
}

enum ggu_status model_logits(struct work *w, const float *rows, size_t n, float *logits, model_tap *tap, void *tap_ctx,
	struct ggu_error *err)
{
	const struct graph *g = w->g;
	const struct quant_input in = { .weight = g->head.name, .n_mat = 1, .n_in = g->n_embd, .x = rows,
		.stride = g->n_embd, .n = n };
	enum ggu_status s;
	if (!g->head.name)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "the model has no logits");
	s = tap ? tap(tap_ctx, &in) : GGU_OK;
	if (s)
		return ggu_fail(err, s, GGU_NO_OFFSET, g->head.name, "the receiver of activations refused them");
	for (size_t at = 0; logits && at < n; at += w->n_batch) {
		struct head h = { .w = w, .rows = rows + at*g->n_embd, .n = size_least(n - at, w->n_batch),
			.logits = logits + at*g->head.n_out };
		struct quant_mul m;
		if (!(h.act = room(w, act_bytes(&g->head, h.n), err))) return GGU_ERR_NOMEM;
		m = product(&h, 0, g->head.n_out, h.logits, g->head.n_out);
		quant_mul_cut(&m, ggu_pool_size(w->pool), &h.tokens, &h.outputs);
		pack(&h);
		cpu_run(w, PASS("output", (double)h.n*(double)g->n_embd*(double)g->head.n_out, GGU_TAKE_NEAR),
			size_parts(h.n, h.tokens)*size_parts(g->head.n_out, h.outputs), logits_task, &h);
	}
	return GGU_OK;
}

/* The sum is of exp relative to max, the largest logit of the tiles so far, which are added in order. */
struct sum { double max, sum; int32_t top; };
static void add_tile(struct sum *s, const struct tile *t)
{
	if (!(t->max <= s->max)) {
		s->sum *= num_exp(s->max - t->max);
		s->max = t->max;
		s->top = t->top;
	}
	s->sum += t->sum*num_exp(t->max - s->max);
}
static struct model_score score_of(const struct sum *s, float chosen)
{
	return (struct model_score){ num_log(s->sum) + s->max, chosen, s->top };
}

struct model_score model_score_row(const float *x, size_t n, int32_t next)
{
	struct sum sum = { -INFINITY, 0, 0 };
	float chosen = next >= 0 && (size_t)next < n ? x[next] : 0;
	for (size_t o0 = 0; o0 < n; o0 += TILE) {
		struct tile t = tile_of(x + o0, o0, size_least(TILE, n - o0));
		add_tile(&sum, &t);
	}
	return score_of(&sum, chosen);
}

enum ggu_status model_scores(struct work *w, const float *rows, size_t n, const int32_t *next,
	struct model_score *score, struct ggu_error *err)
{
	const struct graph *g = w->g;
	size_t tiles = size_parts(g->head.n_out, TILE), workers = (size_t)ggu_pool_size(w->pool),
		act = act_bytes(&g->head, TOKENS);
	size_t own = workers*TOKENS*TILE*sizeof(float),
		bytes = act + own + TOKENS*(tiles*sizeof(struct tile) + sizeof(float));
	if (!g->head.name)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "", "the model has no logits");
	for (size_t at = 0; at < n; at += TOKENS) {
		struct head h = { .w = w, .rows = rows + at*g->n_embd, .n = size_least(n - at, TOKENS),
			.next = next + at };
		if (!(h.act = room(w, bytes, err))) return GGU_ERR_NOMEM;
		h.own = (char *)h.act + act;
		h.chosen = (float *)(void *)(h.own + own);
		h.tile = (struct tile *)(h.chosen + TOKENS);
		memset(h.chosen, 0, TOKENS*sizeof *h.chosen);
		pack(&h);
		cpu_run(w, PASS("output", (double)h.n*(double)g->n_embd*(double)g->head.n_out), tiles, score_task, &h);
		for (size_t t = 0; t < h.n; t++) {
			struct sum sum = { -INFINITY, 0, 0 };
			for (size_t i = 0; i < tiles; i++) add_tile(&sum, h.tile + t*tiles + i);
			score[at + t] = score_of(&sum, h.chosen[t]);
		}
	}
	return GGU_OK;
}
