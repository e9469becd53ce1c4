/* SPDX-License-Identifier: MIT
 * cpu_attend.c - attention on the processor: clips, norms and rope of the rows' queries, keys and values, keys and
 * values into the cache; then attn.h's kernels. */
#include <stdlib.h>
#include "../../libgguf/pool.h"
#include "../../quant/vec.h"
#include "cpu_internal.h"

enum { STORE_ROWS = 16, MAX_PARTIAL = 64 << 20 };

struct stores { struct run *r; const struct attend *a; const struct attn_shape *shape; };

/* The heads of a row, and what is done to them: norm of the first `normed` floats, 0 for all; turn NULL: no rope. */
struct row { float *x; size_t n, dim, normed; const struct norm *norm; const float *turn; };
static void turn_heads(const struct attend *a, const struct graph *g, const struct row *o)
{
	for (size_t h = 0; o->turn && h < o->n; h++)
		rope_apply(g->rope + a->rope, o->turn, o->x + h*o->dim + a->rope_at);
}
static void clip_norm_and_turn(const struct attend *a, const struct graph *g, const struct row *o)
{
	if (a->clip > 0) cpu_clip(o->x, o->n*o->dim, (float)a->clip);
	if (a->rope_first) turn_heads(a, g, o);
	if (o->norm && o->norm->kind) cpu_norm(o->norm, o->x, o->x, o->normed ? o->normed : o->n*o->dim);
	if (!a->rope_first) turn_heads(a, g, o);
}

static bool grows(const struct attend *a) { return a->growth && a->growth->every; }
/* Multiplies a row of queries by what its position asks for. */
static void grow(const struct growth *g, size_t pos, float *q, size_t n)
{
	const size_t steps = (pos + g->from)/g->every;
	if (steps) vec_scale(q, (float)(1 + g->by*num_log(1 + (double)steps)), n);
}

static void store_rows(const struct stores *c, const struct segment *seg, size_t t0, size_t n)
{
	const struct attend *a = c->a;
	const struct attn_shape *s = c->shape;
	const struct run *r = c->r;
	const struct graph *g = r->g;
	float *k = cpu_at(r, a->k), *v = s->v_in_k ? k : cpu_at(r, a->v);
	for (size_t t = t0; t < t0 + n; t++) {
		const size_t row = seg->turn + t - seg->t0;
		const float *turn = a->rope < 0 ? NULL
			: cpu_at(r, r->w->turn[a->rope]) + row*g->rope[a->rope].dims;
		if (a->q != NO_BUFFER) {
			float *q = cpu_at(r, a->q) + t*a->q_stride;
			clip_norm_and_turn(a, g, &(struct row){ q, s->n_head, s->k_dim, 0, a->q_norm, turn });
			if (grows(a)) grow(a->growth, seg->pos + t - seg->t0, q, s->n_head*s->k_dim);
		}
		if (!a->stores) continue;
		clip_norm_and_turn(a, g, &(struct row){ k + t*a->k_stride, s->n_kv, s->k_dim, a->k_normed,
			a->k_norm, turn });
		if (s->v_in_k) continue;
		clip_norm_and_turn(a, g, &(struct row){ v + t*a->v_stride, s->n_kv, s->v_dim, 0, a->v_norm, NULL });
	}
	if (a->stores)
		attn_store(s, state_blocks(seg->state, a->cache), seg->pos + t0 - seg->t0, n, k + t0*a->k_stride,
			a->k_stride, v + t0*a->v_stride, a->v_stride);
}

static void store_task(void *ctx, size_t task, int worker)
{
	const struct stores *c = ctx;
	size_t from = task*STORE_ROWS, to = size_least(from + STORE_ROWS, c->r->n);
	(void)worker;
	for (size_t i = 0; i < c->r->n_seg; i++) {
		const struct segment *s = c->r->seg + i;
		size_t a = s->t0 > from ? s->t0 : from, b = size_least(s->t0 + s->n, to);
		if (a < b) store_rows(c, s, a, b - a);
	}
}

struct attends { const struct attn *a; const struct work *w; };
static void attend_task(void *ctx, size_t task, int worker)
{
	const struct attends *c = ctx;
	attn_run(c->a, task, work_local(c->w, worker));
}
static void merge_task(void *ctx, size_t task, int worker)
{
	const struct attends *c = ctx;
	(void)worker;
	attn_merge(c->a, task);
}

size_t cpu_attend_bytes(const struct attn_shape *s, size_t n_rows, size_t n_pos, size_t n_threads)
{
	return size_least(attn_partial_most(s, n_rows, n_pos, (int)n_threads), MAX_PARTIAL);
}

/* Room for the results of splits: what this batch needs, or none if that is too much or there is no memory. */
static void partial(struct work *w, struct attn *a)
{
	size_t bytes = attn_partial_bytes(a, ggu_pool_size(w->pool));
	if (bytes <= MAX_PARTIAL) work_room(&w->partial, &w->partial_bytes, bytes);
	a->partial = w->partial;
	a->partial_bytes = w->partial_bytes;
}

static const struct state *past_of(const struct run *r, const struct attend *a, size_t segment)
{
	const struct state *s = r->seg[segment].state;
	return a->across ? s->source : s;
}

/* All sequences of a run have the same. */
static const struct attn_shape *shape_of(const struct run *r, const struct attend *a)
{
	return past_of(r, a, 0)->shape + a->cache;
}

void cpu_store(struct run *r, const struct attend *a)
{
	if (!a->stores && a->rope < 0 && !(a->clip > 0) && !(a->q_norm && a->q_norm->kind) && !grows(a)) return;
	cpu_run(r->w, PASS("rope, cache"), size_parts(r->n, STORE_ROWS), store_task,
		&(struct stores){ r, a, shape_of(r, a) });
}

void cpu_attend(struct run *r, const struct attend *a)
{
	struct attn t = { .shape = *shape_of(r, a), .scale = (float)a->scale, .softcap = (float)a->softcap,
		.mask = a->mask, .window = a->window,
		.bias_kind = a->bias_kind, .bias = a->bias, .reach = a->reach, .sink = a->sinks,
		.rows = r->w->rows, .n_rows = r->n_seg };
	struct attends c = { &t, r->w };
	struct attn_plan plan;
	double bytes, macs = 0;
	for (size_t i = 0; i < r->n_seg; i++) {
		const struct segment *s = r->seg + i;
		const struct state *past = past_of(r, a, i);
		size_t seen = a->across ? past->pos : s->pos + s->n;
		t.rows[i] = (struct attn_rows){ .block = state_blocks(past, a->cache), .n = s->n, .pos = s->pos,
			.n_pos = seen,
			.q = cpu_at(r, a->q) + s->t0*a->q_stride, .out = cpu_at(r, a->out) + s->t0*a->out_stride,
			.q_stride = a->q_stride, .out_stride = a->out_stride };
	}
	cpu_store(r, a);
	partial(r->w, &t);
	plan = attn_plan(&t, ggu_pool_size(r->w->pool));
	if (r->w->profile) attn_cost(&t, &bytes, &macs);
	/* a thread computes adjacent splits: each prefetches the first keys of the next */
	cpu_run(r->w, PASS("attention", macs, plan.n_merges ? GGU_TAKE_NEAR : GGU_TAKE_ANY), plan.n_tasks, attend_task,
		&c);
	if (plan.n_merges) cpu_run(r->w, PASS("attention"), plan.n_merges, merge_task, &c);
}
