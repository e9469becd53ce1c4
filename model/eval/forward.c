/* SPDX-License-Identifier: MIT
 * forward.c - the layers: norms, attention, feed-forward, as plain functions over the graph.
 *
 * Threads cut what is independent: outputs of a multiplication, tokens of a norm, (head, token) pairs of
 * attention. No sum is ever cut, so neither threads nor batches can change a bit. */
#include <math.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../../quant/vec.h"
#include "session.h"

enum { TOKENS = 8 };    /* of a task that is cut by tokens */
static size_t blocks(size_t n) { return (n + TOKENS - 1)/TOKENS; }

/* ---- multiplication ---- */

struct mul { struct quant_mul q; const struct weight *w; const float *x; size_t tokens, outputs; struct session *s; };

static void mul_pack(void *ctx, size_t task, int worker)
{
	const struct mul *m = ctx;
	size_t step = quant_act_step(), share = (TOKENS + step - 1)/step*step, from = task*share, left = m->q.n_tokens - from;
	(void)worker;
	quant_act_pack(quant_act_of(m->q.type), m->x, m->q.n_in, m->q.n_tokens, m->q.n_in, from, left < share ? left : share, m->s->act);
}
static void mul_task(void *ctx, size_t task, int worker)
{
	const struct mul *m = ctx;
	size_t across = (m->q.n_out + m->outputs - 1)/m->outputs, t0 = task/across*m->tokens, o0 = task%across*m->outputs;
	size_t n_t = m->q.n_tokens - t0 < m->tokens ? m->q.n_tokens - t0 : m->tokens, n_o = m->q.n_out - o0 < m->outputs ? m->q.n_out - o0 : m->outputs;
	quant_mul(&m->q, t0, n_t, o0, n_o, (char *)m->s->work + (size_t)worker*m->s->work_bytes);
	if (m->w->bias) for (size_t t = t0; t < t0 + n_t; t++) vec_add(m->q.y + t*m->q.y_stride + o0, m->w->bias + o0, n_o);
}

enum ggu_status forward_mul(struct forward *f, const struct weight *w, const float *x, size_t n, float *y)
{
	struct ggu_pool *pool = f->s->m->pool;
	struct mul m = { { w->type, n, w->n_out, w->n_in, w->data, w->row_bytes, f->s->act, y, w->n_out }, w, x, .s = f->s };
	size_t step = quant_act_step(), share = (TOKENS + step - 1)/step*step;
	if (f->tap) {
		enum ggu_status s = f->tap(f->tap_ctx, w->name, 1, 0, w->n_in, x, w->n_in, n);
		if (s) return ggu_fail(f->err, s, GGU_NO_OFFSET, w->name, "the receiver of activations refused them");
	}
	quant_mul_cut(&m.q, ggu_pool_size(pool), &m.tokens, &m.outputs);
	ggu_pool_run(pool, (n + share - 1)/share, mul_pack, &m);
	ggu_pool_run(pool, (w->n_out + m.outputs - 1)/m.outputs*((n + m.tokens - 1)/m.tokens), mul_task, &m);
	return GGU_OK;
}

/* ---- norms ---- */

static void norm_row(const struct norm *o, const float *x, float *y)
{
	size_t n = o->n;
	float scale;
	if (y != x) memcpy(y, x, n*sizeof *y);
	if (o->kind == NORM_NONE) return;
	if (o->kind == NORM_LAYER) {
		float mean = vec_sum(x, n)/(float)n;
		for (size_t j = 0; j < n; j++) y[j] -= mean;
	}
	scale = 1/sqrtf(vec_dot(y, y, n)/(float)n + o->eps);
	vec_scale(y, scale, n);
	if (o->w) vec_mul(y, o->w, n);
	if (o->b) vec_add(y, o->b, n);
}

struct norms { const struct norm *o; const float *x; float *y; size_t n; };
static void norm_task(void *ctx, size_t task, int worker)
{
	const struct norms *a = ctx;
	(void)worker;
	for (size_t t = task*TOKENS; t < a->n && t < (task + 1)*TOKENS; t++) norm_row(a->o, a->x + t*a->o->n, a->y + t*a->o->n);
}
void forward_norm(struct forward *f, const struct norm *o, const float *x, float *y)
{
	struct norms a = { o, x, y, f->n };
	ggu_pool_run(f->s->m->pool, blocks(f->n), norm_task, &a);
}

/* ---- attention ---- */

struct attend {
	struct forward *f;
	const struct attention *a;
	float *q, *k, *v;               /* rows of the batch, stride floats apart */
	size_t q_stride, kv_stride;
	float *out;                     /* [n][n_head*head_dim] */
};

static void turn(const struct rope *r, const float *table, float *x)
{
	size_t half = r->dims/2;
	const float *c = table, *s = table + half;
	for (size_t j = 0; j < half; j++) {
		float *a = x + (r->interleaved ? 2*j : j), *b = x + (r->interleaved ? 2*j + 1 : j + half), p = *a, q = *b;
		*a = p*c[j] - q*s[j];
		*b = q*c[j] + p*s[j];
	}
}

/* Per head norm and rope of the tokens' q and k; k and v into the cache. */
static void prepare(void *ctx, size_t task, int worker)
{
	const struct attend *c = ctx;
	const struct attention *a = c->a;
	struct session *s = c->f->s;
	const struct rope *r = a->rope < 0 ? NULL : s->m->graph.rope + a->rope;
	size_t d = a->head_dim, kv = a->n_kv*d;
	(void)worker;
	for (size_t t = task*TOKENS; t < c->f->n && t < (task + 1)*TOKENS; t++) {
		float *q = c->q + t*c->q_stride, *k = c->k + t*c->kv_stride;
		const float *table = r ? s->turn[a->rope] + (s->pos + t)*r->dims : NULL;
		for (size_t h = 0; h < a->n_head; h++) {
			if (a->q_norm.kind) norm_row(&a->q_norm, q + h*d, q + h*d);
			if (r) turn(r, table, q + h*d);
		}
		for (size_t h = 0; h < a->n_kv; h++) {
			if (a->k_norm.kind) norm_row(&a->k_norm, k + h*d, k + h*d);
			if (r) turn(r, table, k + h*d);
		}
		memcpy(s->k[a->cache] + (s->pos + t)*kv, k, kv*sizeof *k);
		memcpy(s->v[a->cache] + (s->pos + t)*kv, c->v + t*c->kv_stride, kv*sizeof *k);
	}
}

float forward_soft_cap(float x, float cap)
{
	double e = num_exp(2.0*x/cap);
	return e > 1e300 ? cap : (float)(cap*((e - 1)/(e + 1)));
}

static void attend_one(const struct attend *c, size_t h, size_t t, float *score)
{
	const struct attention *a = c->a;
	struct session *s = c->f->s;
	size_t d = a->head_dim, kv = a->n_kv*d, g = h/(a->n_head/a->n_kv), pos = s->pos + t;
	size_t from = a->window && pos + 1 > a->window ? pos + 1 - a->window : 0, n = pos + 1 - from;
	float *out = c->out + t*a->n_head*d + h*d;
	vec_dots(c->q + t*c->q_stride + h*d, s->k[a->cache] + from*kv + g*d, kv, n, d, score);
	vec_scale(score, a->scale, n);
	if (a->softcap > 0) for (size_t j = 0; j < n; j++) score[j] = forward_soft_cap(score[j], a->softcap);
	vec_softmax(score, n);
	memset(out, 0, d*sizeof *out);
	vec_mix(out, score, s->v[a->cache] + from*kv + g*d, kv, n, d);
}

static void attend_task(void *ctx, size_t task, int worker)
{
	const struct attend *c = ctx;
	size_t per = blocks(c->f->n), h = task/per, first = task%per*TOKENS;
	for (size_t t = first; t < c->f->n && t < first + TOKENS; t++)
		attend_one(c, h, t, c->f->s->score + (size_t)worker*c->f->s->n_ctx);
}

static enum ggu_status attention(struct forward *f, const struct attention *a, const float *h, float *y)
{
	struct session *s = f->s;
	size_t q = a->n_head*a->head_dim, kv = a->n_kv*a->head_dim;
	struct attend c = { f, a, s->wide, s->wide + q, s->wide + q + kv, q + 2*kv, q + 2*kv, s->wide2 };
	enum ggu_status st;
	if (a->qkv.name) st = forward_mul(f, &a->qkv, h, f->n, s->wide);
	else {
		c.k = c.q + f->n*q;
		c.v = c.k + f->n*kv;
		c.q_stride = q;
		c.kv_stride = kv;
		st = forward_mul(f, &a->q, h, f->n, c.q);
		if (!st) st = forward_mul(f, &a->k, h, f->n, c.k);
		if (!st) st = forward_mul(f, &a->v, h, f->n, c.v);
	}
	if (st) return st;
	ggu_pool_run(s->m->pool, blocks(f->n), prepare, &c);
	ggu_pool_run(s->m->pool, a->n_head*blocks(f->n), attend_task, &c);
	return forward_mul(f, &a->out, c.out, f->n, y);
}

/* ---- feed-forward ---- */

struct gates { const struct ffn *f; float *gate, *up; size_t n, width, gate_stride, up_stride; float *out; };

static void gate_task(void *ctx, size_t task, int worker)
{
	const struct gates *g = ctx;
	(void)worker;
	for (size_t t = task*TOKENS; t < g->n && t < (task + 1)*TOKENS; t++) {
		float *out = g->out + t*g->width;
		memcpy(out, g->gate + t*g->gate_stride, g->width*sizeof *out);
		if (g->f->act == ACT_SILU) vec_silu(out, g->width);
		else if (g->f->act == ACT_GELU) vec_gelu(out, g->width);
		else vec_gelu_tanh(out, g->width);
		if (g->up) vec_mul(out, g->up + t*g->up_stride, g->width);
	}
}

static enum ggu_status ffn(struct forward *f, const struct ffn *o, const float *h, float *y)
{
	struct session *s = f->s;
	size_t w = o->down.n_in;
	struct gates g = { o, s->wide, NULL, f->n, w, w, w, s->wide2 };
	enum ggu_status st = GGU_OK;
	if (o->gate_up.name) {
		st = forward_mul(f, &o->gate_up, h, f->n, s->wide);
		g.up = s->wide + w;
		g.gate_stride = g.up_stride = 2*w;
	} else if (o->gate.name) {
		g.up = s->wide + f->n*w;
		st = forward_mul(f, &o->gate, h, f->n, s->wide);
		if (!st) st = forward_mul(f, &o->up, h, f->n, g.up);
	} else st = forward_mul(f, &o->up, h, f->n, s->wide);
	if (st) return st;
	ggu_pool_run(s->m->pool, blocks(f->n), gate_task, &g);
	return forward_mul(f, &o->down, s->wide2, f->n, y);
}

/* ---- a layer ---- */

/* x += scale * after(sum of branches(before(x))) */
static enum ggu_status step(struct forward *f, const struct step *st)
{
	struct session *s = f->s;
	size_t n = f->n*s->m->graph.n_embd;
	if (st->before.kind) forward_norm(f, &st->before, s->x, s->h);
	else memcpy(s->h, s->x, n*sizeof *s->h);
	for (size_t i = 0; i < st->n_branches; i++) {
		const struct branch *b = st->branch + i;
		float *y = i ? s->sum + s->n_batch*s->m->graph.n_embd : s->sum;
		enum ggu_status r = b->is_ffn ? ffn(f, &b->u.ffn, s->h, y) : attention(f, &b->u.attention, s->h, y);
		if (r) return r;
		if (i) vec_add(s->sum, y, n);
	}
	if (st->after.kind) forward_norm(f, &st->after, s->sum, s->sum);
	if (st->scale != 1) vec_scale(s->sum, st->scale, n);
	vec_add(s->x, s->sum, n);
	return GGU_OK;
}

enum ggu_status forward_layer(struct forward *f, const struct layer *l)
{
	for (size_t i = 0; i < l->n_steps; i++) {
		enum ggu_status s = step(f, l->step + i);
		if (s) return s;
	}
	return GGU_OK;
}
