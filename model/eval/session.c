/* SPDX-License-Identifier: MIT
 * session.c - one sequence: its buffers, rope tables and KV cache, and the loop over batches and layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../../quant/vec.h"
#include "session.h"

enum { DEFAULT_BATCH = 512 };

static void *zeros(size_t a, size_t b, size_t c)
{
	size_t n;
	if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, c, &n)) return NULL;
	return calloc(n ? n : 1, 1);
}
/* 64-byte aligned */
static void *aligned(size_t a, size_t b)
{
	size_t n;
	void *p;
	if (__builtin_mul_overflow(a, b, &n) || n > SIZE_MAX - 64) return NULL;
	return posix_memalign(&p, 64, (n + 63)/64*64 + 64) ? NULL : p;
}

/* ---- rope ---- */

/* Yarn's share of the scaled angle for pair j, 0 to 1: pairs that turn fast are left alone. The bounds of the
 * ramp are rounded outwards to whole pairs (Peng et al. 2023, as transformers computes it). */
static double yarn_ramp(const struct rope *r, size_t j)
{
	double per = (double)r->dims/(2*num_log(r->base)), original = (double)r->original, two_pi = 6.283185307179586;
	double low = floor(per*num_log(original/(r->beta_fast*two_pi))), high = ceil(per*num_log(original/(r->beta_slow*two_pi))), x;
	if (low < 0) low = 0;
	if (high > (double)(r->dims - 1)) high = (double)(r->dims - 1);
	if (low == high) high += 0.001;
	x = ((double)j - low)/(high - low);
	return x < 0 ? 0 : x > 1 ? 1 : x;
}

/* Frequencies and angles are rounded to float32 where the reference implementation (transformers) does. */
static float rope_frequency(const struct rope *r, const float *divisor, size_t j)
{
	float power = (float)num_pow(r->base, (double)((float)(2*j)/(float)r->dims)), freq, keep;
	if (divisor) power *= divisor[j];
	freq = 1.0f/power;
	if (r->linear != 1) freq /= (float)r->linear;
	if (r->yarn <= 0) return freq;
	keep = 1 - (float)yarn_ramp(r, j);
	return freq/(float)r->yarn*(1 - keep) + freq*keep;
}

enum { ROPE_TASK = 1024 };      /* positions; with many of them sines take seconds, so threads share them */
struct rope_table { const struct rope *r; size_t n_ctx; float *table; };

static void rope_task(void *ctx, size_t task, int worker)
{
	const struct rope_table *t = ctx;
	const struct rope *r = t->r;
	size_t half = r->dims/2, from = task*ROPE_TASK, to = t->n_ctx - from < ROPE_TASK ? t->n_ctx : from + ROPE_TASK;
	const float *divisor = r->long_divisor && t->n_ctx > r->original ? r->long_divisor : r->divisor;
	double magnitude = r->magnitude > 0 ? r->magnitude : r->yarn > 1 ? 0.1*num_log(r->yarn) + 1 : 1;
	(void)worker;
	for (size_t j = 0; j < half; j++) {
		float freq = rope_frequency(r, divisor, j);
		for (size_t p = from; p < to; p++) {
			float angle = (float)p*freq;
			t->table[p*r->dims + j] = (float)(num_cos(angle))*(float)magnitude;
			t->table[p*r->dims + half + j] = (float)(num_sin(angle))*(float)magnitude;
		}
	}
}

/* ---- buffers ---- */

static void grow(size_t *n, size_t x) { if (x > *n) *n = x; }

static void width_of(const struct branch *b, size_t *wide, size_t *act, size_t *n_in)
{
	const struct weight *w[7];
	size_t n = 0;
	if (b->is_ffn) {
		const struct ffn *f = &b->u.ffn;
		grow(wide, 2*f->down.n_in);
		w[n++] = &f->gate; w[n++] = &f->up; w[n++] = &f->gate_up; w[n++] = &f->down;
	} else {
		const struct attention *a = &b->u.attention;
		grow(wide, (a->n_head + 2*a->n_kv)*a->head_dim);
		w[n++] = &a->q; w[n++] = &a->k; w[n++] = &a->v; w[n++] = &a->qkv; w[n++] = &a->out;
	}
	for (size_t i = 0; i < n; i++) if (w[i]->name) {
		grow(act, quant_act_bytes(quant_act_of(w[i]->type), 1, w[i]->n_in));
		grow(n_in, w[i]->n_in);
	}
}

static bool caches(struct session *s)
{
	const struct graph *g = &s->m->graph;
	s->k = calloc(g->n_caches + 1, sizeof *s->k);
	s->v = calloc(g->n_caches + 1, sizeof *s->v);
	if (!s->k || !s->v) return false;
	for (size_t l = 0; l < g->n_layer; l++)
		for (size_t i = 0; i < g->layer[l].n_steps; i++)
			for (size_t j = 0; j < g->layer[l].step[i].n_branches; j++) {
				const struct branch *b = g->layer[l].step[i].branch + j;
				const struct attention *a = &b->u.attention;
				if (b->is_ffn) continue;
				s->k[a->cache] = zeros(s->n_ctx, a->n_kv*a->head_dim, sizeof(float));
				s->v[a->cache] = zeros(s->n_ctx, a->n_kv*a->head_dim, sizeof(float));
				if (!s->k[a->cache] || !s->v[a->cache]) return false;
			}
	return true;
}

static bool buffers(struct session *s)
{
	const struct graph *g = &s->m->graph;
	size_t workers = (size_t)ggu_pool_size(s->m->pool), act = quant_act_bytes(quant_act_of(g->head.type), 1, g->head.n_in), n_in = 0, e = g->n_embd*sizeof(float);
	for (size_t l = 0; l < g->n_layer; l++)
		for (size_t i = 0; i < g->layer[l].n_steps; i++)
			for (size_t j = 0; j < g->layer[l].step[i].n_branches; j++)
				width_of(g->layer[l].step[i].branch + j, &s->wide_n, &act, &n_in);
	s->x = aligned(s->n_batch, e);
	s->h = aligned(s->n_batch, e);
	s->sum = aligned(s->n_batch, 2*e);
	s->wide = aligned(s->n_batch, s->wide_n*sizeof(float));
	s->wide2 = aligned(s->n_batch, n_in*sizeof(float));
	s->score = aligned(workers, s->n_ctx*sizeof(float));
	s->act = aligned(s->n_batch, act);
	s->work_bytes = (quant_mul_work_bytes() + 63)/64*64;
	s->work = aligned(workers, s->work_bytes);
	for (size_t i = 0; i < g->n_ropes; i++) {
		s->turn[i] = zeros(s->n_ctx, g->rope[i].dims, sizeof(float));
		if (!s->turn[i]) return false;
		ggu_pool_run(s->m->pool, (s->n_ctx + ROPE_TASK - 1)/ROPE_TASK, rope_task, &(struct rope_table){ g->rope + i, s->n_ctx, s->turn[i] });
	}
	return s->x && s->h && s->sum && s->wide && s->wide2 && s->score && s->act && s->work && caches(s);
}

enum ggu_status session_new(struct session **out, struct model *m, size_t n_ctx, size_t n_batch, struct ggu_error *err)
{
	struct session *s = calloc(1, sizeof *s);
	if (!n_ctx || n_ctx > 1 << 24) {
		free(s);
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "a context of %zu positions", n_ctx);
	}
	if (s) {
		s->m = m;
		s->n_ctx = n_ctx;
		s->n_batch = n_batch ? n_batch : DEFAULT_BATCH;
		if (s->n_batch > n_ctx) s->n_batch = n_ctx;
	}
	if (!s || !buffers(s)) {
		session_free(s);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for a context of %zu positions", n_ctx);
	}
	*out = s;
	return GGU_OK;
}

void session_free(struct session *s)
{
	if (!s) return;
	for (size_t i = 0; i < s->m->graph.n_caches; i++) {
		if (s->k) free(s->k[i]);
		if (s->v) free(s->v[i]);
	}
	for (size_t i = 0; i < GRAPH_MAX_ROPES; i++) free(s->turn[i]);
	free(s->k); free(s->v); free(s->x); free(s->h); free(s->sum); free(s->wide); free(s->wide2);
	free(s->score); free(s->act); free(s->work);
	free(s);
}

void session_reset(struct session *s) { s->pos = 0; }
size_t session_pos(const struct session *s) { return s->pos; }

/* ---- evaluation ---- */

static void embed(struct session *s, const int32_t *ids, size_t n)
{
	const struct graph *g = &s->m->graph;
	size_t e = g->n_embd;
	for (size_t t = 0; t < n; t++) {
		float *x = s->x + t*e;
		quant_decode(g->embed.type, (const char *)g->embed.data + (size_t)ids[t]*g->embed.row_bytes, x, e);
		if (g->embed_scale != 1) vec_scale(x, g->embed_scale, e);
		if (!g->positions.name) continue;
		quant_decode(g->positions.type, (const char *)g->positions.data + (s->pos + t)*g->positions.row_bytes, s->h, e);
		vec_add(x, s->h, e);
	}
}

/* Logits of the batch's tokens from `first` on, to[n - first][n_vocab]. */
static enum ggu_status logits(struct forward *f, size_t first, float *to)
{
	struct session *s = f->s;
	const struct graph *g = &s->m->graph;
	size_t n = f->n - first;
	struct forward part = *f;
	enum ggu_status st;
	part.n = n;
	forward_norm(&part, &g->out_norm, s->x + first*g->n_embd, s->h);
	st = forward_mul(&part, &g->head, s->h, n, to);
	if (!st && g->head_softcap > 0)
		for (size_t i = 0; i < n*g->n_vocab; i++) to[i] = forward_soft_cap(to[i], g->head_softcap);
	return st;
}

static enum ggu_status batch(struct session *s, const struct session_eval *e, size_t at, size_t n, struct ggu_error *err)
{
	const struct graph *g = &s->m->graph;
	struct forward f = { s, n, e->tap, e->tap_ctx, err };
	size_t row = g->n_embd*sizeof(float), first = e->first > at ? e->first - at : 0;
	enum ggu_status st = GGU_OK;
	embed(s, e->ids + at, n);
	for (size_t l = 0; l <= g->n_layer && !st; l++) {
		if (e->hidden) memcpy(e->hidden + (l*e->n + at)*g->n_embd, s->x, n*row);
		if (l < g->n_layer) st = forward_layer(&f, g->layer + l);
	}
	if (!st && e->logits && first < n) st = logits(&f, first, e->logits + (at + first - e->first)*g->n_vocab);
	s->pos += n;
	return st;
}

enum ggu_status session_eval(struct session *s, const struct session_eval *e, struct ggu_error *err)
{
	const struct graph *g = &s->m->graph;
	enum ggu_status st = GGU_OK;
	if (e->n > s->n_ctx - s->pos) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "more than %zu positions", s->n_ctx);
	if (g->positions.name && s->pos + e->n > g->positions.n_out)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, g->positions.name, "the model knows %zu positions", g->positions.n_out);
	for (size_t i = 0; i < e->n; i++)
		if (e->ids[i] < 0 || (size_t)e->ids[i] >= g->n_vocab)
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "token %d is not in the vocabulary of %zu", (int)e->ids[i], g->n_vocab);
	for (size_t at = 0; at < e->n && !st; at += s->n_batch)
		st = batch(s, e, at, e->n - at < s->n_batch ? e->n - at : s->n_batch, err);
	return st;
}
