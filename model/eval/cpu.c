/* SPDX-License-Identifier: MIT
 * cpu.c - the processor's backend: the rows of inputs and the products; the table.
 *
 * Threads cut what is independent: rows of an input, tiles of tokens x outputs of all products of a call. No sum is
 * ever cut, so neither threads nor batches can change a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/pool.h"
#include "../../quant/vec.h"
#include "cpu_internal.h"
#include "profile.h"

/* ---- norms ---- */

void cpu_norm(const struct norm *o, const float *x, float *y, size_t width)
{
	bool none = !o || o->kind == NORM_NONE;
	if (y != x && (none || o->kind == NORM_LAYER || !o->w)) {
		memcpy(y, x, width*sizeof *y);
		x = y;
	}
	for (size_t at = 0; !none && at < width; at += o->n) {
		float *g = y + at, scale;
		if (o->kind == NORM_LAYER) {
			float mean = vec_sum(g, o->n)/(float)o->n;
			for (size_t j = 0; j < o->n; j++) g[j] -= mean;
		}
		scale = 1/sqrtf(vec_dot(x + at, x + at, o->n)/(float)o->n + (float)o->eps);
		if (o->w) vec_scale_mul(g, x + at, scale, o->w + at%o->n_w, o->n);
		else vec_scale(g, scale, o->n);
		if (o->b) vec_add(g, o->b + at%o->n_w, o->n);
	}
}

/* ---- the residual stream ---- */

/* x = residual(x + scale*after(sum of branches)) */
static void settle_rows(struct run *r, size_t t0, size_t n)
{
	const struct step *st = r->pending;
	size_t e = r->g->n_embd;
	for (size_t t = t0; t < t0 + n; t++) {
		float *x = cpu_at(r, r->x) + t*e, *sum = cpu_at(r, r->y[0]) + t*e;
		for (size_t i = 0; i < st->n_branches; i++) {
			float *y = cpu_at(r, r->y[i]) + t*e;
			if (st->branch[i].after.kind) cpu_norm(&st->branch[i].after, y, y, e);
			if (i) vec_add(sum, y, e);
		}
		if (st->after.kind) cpu_norm(&st->after, sum, sum, e);
		if (st->scale != 1) vec_scale(sum, (float)st->scale, e);
		vec_add(x, sum, e);
		if (st->residual.kind) cpu_norm(&st->residual, x, x, e);
	}
}
static void settle_task(void *ctx, size_t task, int worker)
{
	struct run *r = ctx;
	(void)worker;
	settle_rows(r, task*CPU_ROWS, size_least(CPU_ROWS, r->n - task*CPU_ROWS));
}
static void settle(struct run *r)
{
	if (r->pending) cpu_run(r->w, PASS("sums"), size_parts(r->n, CPU_ROWS), settle_task, r);
	r->pending = NULL;
}

static void keep(const struct run *r, size_t at, size_t stride, size_t from, size_t n, size_t to)
{
	float *x = cpu_at(r, at);
	if (from != to) memmove(x + to*stride, x + from*stride, n*stride*sizeof *x);
}

struct fetches { const struct run *r; const struct norm *norm; float *to; };
static void fetch_task(void *ctx, size_t task, int worker)
{
	const struct fetches *c = ctx;
	size_t e = c->r->g->n_embd;
	(void)worker;
	for (size_t t = task*CPU_ROWS; t < c->r->n && t < (task + 1)*CPU_ROWS; t++)
		cpu_norm(c->norm, cpu_at(c->r, c->r->x) + t*e, c->to + t*e, e);
}
static void fetch(const struct run *r, const struct norm *norm, float *to)
{
	cpu_run(r->w, PASS("rows out"), size_parts(r->n, CPU_ROWS), fetch_task, &(struct fetches){ r, norm, to });
}

struct embed { struct run *r; const int32_t *ids; const float *from; };

static void embed_row(struct run *r, int32_t id, size_t pos, float *x, float *scratch)
{
	const struct graph *g = r->g;
	size_t e = g->n_embd;
	quant_decode(g->embed.type, (const char *)g->embed.data + (size_t)id*g->embed.row_bytes, x, e);
	if (g->embed_scale != 1) vec_scale(x, (float)g->embed_scale, e);
	if (g->token_types.name) {
		quant_decode(g->token_types.type, g->token_types.data, scratch, e);
		vec_add(x, scratch, e);
	}
	if (g->positions.name) {
		quant_decode(g->positions.type, (const char *)g->positions.data + pos*g->positions.row_bytes,
			scratch, e);
		vec_add(x, scratch, e);
	}
	if (g->embed_norm.kind) cpu_norm(&g->embed_norm, x, x, e);
}

/* Computes the sines and cosines of a row's position, unless they are there. */
static void turn_row(const struct run *r, size_t t, size_t pos, bool is_long)
{
	const uint64_t key = 2*(uint64_t)pos + is_long;
	if (r->w->turned[t] == key) return;
	r->w->turned[t] = key;
	for (size_t i = 0; i < r->g->n_ropes; i++)
		rope_turn(r->g->rope + i, r->w->freq[i][is_long], pos, cpu_at(r, r->w->turn[i]) + t*r->g->rope[i].dims);
}
/* A row's embedding, or what has become of it since, and the sines and cosines of its position. */
static void embed_task(void *ctx, size_t task, int worker)
{
	const struct embed *c = ctx;
	struct run *r = c->r;
	float *x = cpu_at(r, r->x);
	size_t s = 0, e = r->g->n_embd;
	for (size_t t = task*CPU_ROWS; t < r->n && t < (task + 1)*CPU_ROWS; t++) {
		size_t pos;
		while (t >= r->seg[s].t0 + r->seg[s].n) s++;
		pos = r->seg[s].pos + t - r->seg[s].t0;
		if (c->from) memcpy(x + t*e, c->from + t*e, e*sizeof *x);
		else embed_row(r, c->ids[t], pos, x + t*e, work_local(r->w, worker));
		turn_row(r, t, pos, r->seg[s].is_long);
	}
}
static void embed(struct run *r, const int32_t *ids, const float *from)
{
	if (r->w->turned_n != r->n) memset(r->w->turned, 0xff, r->w->n_batch*sizeof *r->w->turned);
	r->w->turned_n = r->n;
	cpu_run(r->w, PASS("embeddings"), size_parts(r->n, CPU_ROWS), embed_task, &(struct embed){ r, ids, from });
}

/* ---- rows of inputs ---- */

/* y = act(x)*by, or act(x) if by is NULL; y may be x. */
static void activate(enum activation act, float *y, const float *x, const float *by, size_t n)
{
	switch (act) {
	case ACT_SILU: vec_silu(y, x, by, n); return;
	case ACT_GELU: vec_gelu(y, x, by, n); return;
	case ACT_GELU_TANH: vec_gelu_tanh(y, x, by, n); return;
	case ACT_RELU: for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0; break;
	case ACT_RELU2: for (size_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i]*x[i] : 0; break;
	case ACT_SIGMOID: for (size_t i = 0; i < n; i++) y[i] = (float)cpu_sigmoid(x[i]); break;
	case ACT_NONE: for (size_t i = 0; i < n; i++) y[i] = x[i]; break;
	}
	if (by) vec_mul(y, by, n);
}

static void gate_row(const struct gate *g, const float *gate, float *up, float *y, size_t n)
{
	float limit = (float)g->limit;
	if (g->spread > 1) {
		for (size_t i = 0; i < n; i++) y[i] = gate[i/g->spread];
		gate = y;
	}
	if (limit > 0) {
		for (size_t i = 0; i < n; i++) y[i] = gate[i] > limit ? limit : gate[i];
		if (up) cpu_clip(up, n, limit);
		gate = y;
	}
	if (up && g->up_add != 0) for (size_t i = 0; i < n; i++) up[i] += (float)g->up_add;
	if (g->alpha == 1) activate(g->act, y, gate, up, n);
	else {
		if (y != gate) memcpy(y, gate, n*sizeof *y);
		vec_scale(y, (float)g->alpha, n);
		activate(g->act, y, y, NULL, n);
		vec_scale(y, (float)(1/g->alpha), n);
		if (up) vec_mul(y, up, n);
	}
	if (g->norm) cpu_norm(g->norm, y, y, n);
}

static void make_rows(struct run *r, const struct input *in, size_t t0, size_t n)
{
	if (in->kind == INPUT_STREAM && r->pending) settle_rows(r, t0, n);
	for (size_t t = t0; t < t0 + n; t++) {
		float *y = cpu_at(r, in->at) + t*in->stride;
		switch (in->kind) {
		case INPUT_ROWS: break;
		case INPUT_STREAM: cpu_norm(in->norm, cpu_at(r, r->x) + t*in->n_in, y, in->n_in); break;
		case INPUT_NORM: cpu_norm(in->norm, cpu_at(r, in->from) + t*in->from_stride, y, in->n_in); break;
		case INPUT_PICK:
			memcpy(y, cpu_at(r, in->from) + in->pick[t]*in->from_stride, in->n_in*sizeof *y);
			if (in->by) vec_scale(y, in->by[t], in->n_in);
			break;
		case INPUT_GATE:
			gate_row(&in->gate, cpu_at(r, in->gate.gate) + t*in->gate.gate_stride,
				in->gate.has_up ? cpu_at(r, in->gate.up) + t*in->gate.up_stride : NULL, y, in->n_in);
			break;
		}
	}
}

/* The rows of several inputs, cut into tasks, one input after the other. */
struct rows { struct run *r; struct input *const *in; size_t n_in; };

static size_t row_share(const struct input *in) { return cpu_row_share(in->needed & ~in->packed, in->n); }
static size_t row_tasks(const struct input *in) { return size_parts(in->n, row_share(in)); }
static void rows_task(void *ctx, size_t task, int worker)
{
	const struct rows *c = ctx;
	size_t i = 0, t0, n;
	struct input *in;
	(void)worker;
	for (; task >= row_tasks(c->in[i]); i++) task -= row_tasks(c->in[i]);
	in = c->in[i];
	t0 = task*row_share(in);
	n = size_least(row_share(in), in->n - t0);
	if (!in->made) make_rows(c->r, in, t0, n);
	for (int f = QUANT_ACT_FLOAT; f <= QUANT_ACT_256; f++)
		if (in->needed & 1u << f & ~in->packed)
			quant_act_pack((enum quant_act)f, cpu_at(c->r, in->at), in->stride, in->n, in->n_in, t0, n,
				cpu_at(c->r, in->act[f]));
}

static void prepare(struct run *r, struct input *const *in, size_t n_in)
{
	size_t tasks = 0;
	bool any = false;
	for (size_t i = 0; i < n_in; i++) {
		tasks += row_tasks(in[i]);
		any |= !in[i]->made || in[i]->needed & ~in[i]->packed;
	}
	if (!any) return;
	cpu_run(r->w, PASS("inputs"), tasks, rows_task, &(struct rows){ r, in, n_in });
	for (size_t i = 0; i < n_in; i++) {
		if (in[i]->kind == INPUT_STREAM) r->pending = NULL;
		in[i]->made = true;
		in[i]->packed |= in[i]->needed;
	}
}

/* ---- products ---- */

/* Tasks go through the tokens of some outputs first, so that neighbouring tasks share rows of weights. Each thread's
 * tasks are then a range of rows, which is in memory of its own node if there are several. */
struct cut {
	struct quant_mul q;
	const float *bias;
	size_t tokens, outputs;         /* of a task */
	size_t down;                    /* tasks that go through all tokens */
	size_t n_tasks, first;          /* first: the number of its first task among those of all products */
};
struct products { const struct work *w; const struct cut *cut; size_t n; };

static void product_task(void *ctx, size_t task, int worker)
{
	const struct products *c = ctx;
	const struct cut *m;
	size_t lo = 0, hi = c->n, t0, o0, n_t, n_o;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo)/2;
		if (c->cut[mid].first <= task) lo = mid;
		else hi = mid;
	}
	m = c->cut + lo;
	t0 = (task - m->first)%m->down*m->tokens;
	o0 = (task - m->first)/m->down*m->outputs;
	n_t = size_least(m->tokens, m->q.n_tokens - t0);
	n_o = size_least(m->outputs, m->q.n_out - o0);
	quant_mul(&m->q, t0, n_t, o0, n_o, work_local(c->w, worker));
	if (m->bias) for (size_t t = t0; t < t0 + n_t; t++) vec_add(m->q.y + t*m->q.y_stride + o0, m->bias + o0, n_o);
}

static struct cut cut_of(const struct run *r, const struct product *p)
{
	const struct weight *w = p->w;
	const char *rows = (const char *)w->data + p->mat*w->n_out*w->row_bytes;
	const void *act = cpu_at(r, p->in->act[quant_act_of(w->type)]);
	struct cut c = { .q = { w->type, p->in->n, w->n_out, w->n_in, rows, w->row_bytes, act, cpu_at(r, p->y),
		p->y_stride },
		.bias = w->bias ? w->bias + p->mat*w->n_out : NULL };
	quant_mul_cut(&c.q, ggu_pool_size(r->w->pool), &c.tokens, &c.outputs);
	c.down = size_parts(p->in->n, c.tokens);
	c.n_tasks = c.down*size_parts(w->n_out, c.outputs);
	return c;
}

static bool room_for_cuts(struct work *w, size_t n)
{
	struct cut *cut = n > w->n_cut ? realloc(w->cut, n*sizeof *cut) : w->cut;
	if (!cut) return false;
	w->cut = cut;
	if (n > w->n_cut) w->n_cut = n;
	return true;
}

static enum ggu_status tell(struct run *r, const struct product *p)
{
	const struct quant_input in = { p->w->name, p->w->n_mat, p->mat, p->w->n_in, cpu_at(r, p->in->at),
		p->in->stride, p->in->n };
	enum ggu_status s = r->tap(r->tap_ctx, &in);
	return s ? ggu_fail(r->err, s, GGU_NO_OFFSET, p->w->name, "the receiver of activations refused them") : GGU_OK;
}

static void run_products(struct run *r, const struct product *p, size_t n)
{
	char name[PROFILE_NAME];
	struct pass pass = { name, 0, GGU_TAKE_NEAR };
	size_t tasks = 0, n_cut = 0;
	for (size_t i = 0; i < n; i++) {
		struct cut *c = r->w->cut + n_cut;
		if (p[i].y == NO_BUFFER) continue;
		*c = cut_of(r, p + i);
		c->first = tasks;
		tasks += c->n_tasks;
		n_cut++;
		pass.macs += (double)p[i].in->n*(double)p[i].w->n_in*(double)p[i].w->n_out;
	}
	if (!n_cut) return;
	if (r->w->profile) cpu_pass_name(name, sizeof name, p, n);
	cpu_run(r->w, &pass, tasks, product_task, &(struct products){ r->w, r->w->cut, n_cut });
}

static enum ggu_status multiply(struct run *r, struct input *const *in, size_t n_in, const struct product *p, size_t n)
{
	enum ggu_status s = GGU_OK;
	if (n && !room_for_cuts(r->w, n)) return ggu_no_memory(r->err);
	for (size_t i = 0; i < n_in; i++) in[i]->needed = 0;
	for (size_t i = 0; i < n; i++) if (p[i].y != NO_BUFFER) p[i].in->needed |= weight_form(p[i].w);
	prepare(r, in, n_in);
	for (size_t i = 0; i < n && r->tap && !s; i++) if (!p[i].w->made) s = tell(r, p + i);
	if (!s) run_products(r, p, n);
	return s;
}

/* For products, for rows of position embeddings (embed_row), for attention, and to route. */
static size_t thread_bytes(const struct graph *g)
{
	size_t n = size_most(quant_mul_work_bytes(g->widest), g->n_embd*sizeof(float));
	for (size_t i = 0; i < g->n_caches; i++) {
		const struct attn_shape shape = cache_shape(g->cache + i, GGU_TYPE_F32, GGU_TYPE_F32);
		n = size_most(n, attn_work_bytes(&shape));
	}
	return size_most(n, cpu_route_bytes(g->most_experts));
}

const struct backend backend_cpu = {
	.packed_bytes = quant_act_most_bytes, .attend_bytes = cpu_attend_bytes, .thread_bytes = thread_bytes,
	.multiply = multiply, .attend = cpu_attend, .store = cpu_store, .route = cpu_route,
	.combine = cpu_combine, .conv = cpu_conv, .scan_channels = cpu_scan_channels, .scan_heads = cpu_scan_heads,
	.embed = embed, .settle = settle, .keep = keep, .fetch = fetch,
};
