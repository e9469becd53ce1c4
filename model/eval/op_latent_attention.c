/* SPDX-License-Identifier: MIT
 * op_latent_attention.c - latent attention (DeepSeek-AI 2024): what is kept of a position is one short vector, of which
 * every head makes its keys and values.
 *
 *   latent_attention  q, or q_a q_a_norm q_b; kv_a kv_a_norm out: TENSOR; k_b v_b, or kv_b: TENSOR
 *              heads rank value_dim nope_dim rope_dim: EXPR; rope; [scale q_rank: EXPR] [growth: as in attention]
 *
 * kv_a(x) is the latent vector of `rank`, normed, and rope_dim values that turn with the position and serve all heads.
 * A head's query of nope_dim is taken into the latent space by its matrix of k_b, its result out of it by its matrix of
 * v_b, so that attention has one key-value head of rank + rope_dim whose front is the value.
 *
 * kv_b has for each head the rows that make keys of the latent vector, then those that make values. Checkpoints have
 * it, and GGUF files made before April 2025. k_b and v_b are made from it: the rows of values as they are, and those of
 * keys transposed, in float32, since rows of blocks cannot be transposed. */
#include <math.h>
#include <string.h>
#include "../../libgguf/size.h"
#include "../../libgguf/try.h"
#include "../../quant/quant.h"
#include "op_list.h"

struct latent {
	struct weight q, q_a, q_b, kv_a, kv_b, k_b, v_b, out;
	struct norm q_a_norm, kv_a_norm;
	size_t n_head, rank, q_rank, nope, turned, value;
	struct rope rope_of;
	int rope;
	double scale;
	struct growth growth;
	size_t cache;
};
#define AT(member) offsetof(struct latent, member)
static const struct field fields[] = {
	{ "q", FIELD_WEIGHT, AT(q), .flags = FIELD_INPUT },
	{ "q_a", FIELD_WEIGHT, AT(q_a), .flags = FIELD_INPUT },
	{ "q_a_norm", FIELD_NORM, AT(q_a_norm) },
	{ "q_b", FIELD_WEIGHT, AT(q_b) },
	{ "kv_a", FIELD_WEIGHT, AT(kv_a), .flags = FIELD_INPUT | FIELD_NEEDED },
	{ "kv_a_norm", FIELD_NORM, AT(kv_a_norm) },
	{ "k_b", FIELD_WEIGHT, AT(k_b) },
	{ "v_b", FIELD_WEIGHT, AT(v_b) },
	{ "kv_b", FIELD_WEIGHT, AT(kv_b) },
	{ "out", FIELD_WEIGHT, AT(out), .flags = FIELD_NEEDED },
	{ "heads", FIELD_SIZE, AT(n_head), 0, 1, 1 << 16 },
	{ "rank", FIELD_SIZE, AT(rank), 0, 1, 1 << 16 },
	{ "q_rank", FIELD_SIZE, AT(q_rank), 0, 0, 1 << 16 },
	{ "nope_dim", FIELD_SIZE, AT(nope), 0, 1, 1 << 16 },
	{ "rope_dim", FIELD_SIZE, AT(turned), 0, 1, 1 << 16 },
	{ "value_dim", FIELD_SIZE, AT(value), 0, 1, 1 << 16 },
	{ "rope", FIELD_ROPE, AT(rope_of) },
	{ "scale", FIELD_NUMBER, AT(scale), 0, 0, 1e6 },
	{ "growth", FIELD_MAP, AT(growth), .sub = op_growth_fields },
	{ NULL }
};

static size_t query_dim(const struct latent *a) { return a->nope + a->turned; }
static size_t key_dim(const struct latent *a) { return a->rank + a->turned; }

/* to[n_in][n_out] = the n_out rows at `from`, decoded and transposed */
static void transpose(const struct weight *w, const char *from, size_t n_out, float *row, float *to)
{
	for (size_t o = 0; o < n_out; o++) {
		quant_decode(w->type, from + o*w->row_bytes, row, w->n_in);
		for (size_t i = 0; i < w->n_in; i++) to[i*n_out + o] = row[i];
	}
}
static enum ggu_status make_k_and_v(struct builder *b, struct latent *a)
{
	const struct weight *w = &a->kv_b;
	const size_t head = (a->nope + a->value)*w->row_bytes, keys = a->nope*a->rank, values = a->value*w->row_bytes;
	const char *from = w->data;
	float *k, *row;
	char *v;
	TRY(build_shape(b, w, a->rank, a->n_head*(a->nope + a->value), 1));
	a->k_b = (struct weight){ .name = w->name, .type = GGU_TYPE_F32, .n_in = a->nope, .n_out = a->rank,
		.n_mat = a->n_head, .row_bytes = a->nope*sizeof *k, .made = true };
	a->v_b = (struct weight){ .name = w->name, .type = w->type, .n_in = a->rank, .n_out = a->value,
		.n_mat = a->n_head, .row_bytes = w->row_bytes, .made = true };
	b->g->widest = size_most(b->g->widest, a->nope);
	b->g->made_bytes += a->n_head*(keys*sizeof *k + values);
	if (b->shapes_only) return GGU_OK;
	a->k_b.data = k = build_alloc(b, a->n_head*keys*sizeof *k);
	a->v_b.data = v = build_alloc(b, a->n_head*values);
	row = build_alloc(b, a->rank*sizeof *row);
	if (!k || !v || !row) return GGU_ERR_NOMEM;
	for (size_t h = 0; h < a->n_head; h++, from += head) {
		transpose(w, from, a->nope, row, k + h*keys);
		memcpy(v + h*values, from + a->nope*w->row_bytes, values);
	}
	return GGU_OK;
}

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct latent *a = params;
	size_t e = b->g->n_embd, q = a->n_head*query_dim(a);
	if (!a->q.name == !a->q_a.name || !a->q_a.name != !a->q_b.name)
		return build_fail(b, at, "latent_attention", "expected q, or q_a and q_b");
	if (a->kv_b.name ? a->k_b.name || a->v_b.name : !a->k_b.name || !a->v_b.name)
		return build_fail(b, at, "latent_attention", "expected k_b and v_b, or kv_b");
	if (a->kv_b.bias) return build_fail(b, at, "kv_b", "has a bias, which is not supported");
	if (a->kv_b.name) TRY(make_k_and_v(b, a));
	TRY(build_shape(b, &a->q, e, q, 1));
	TRY(build_shape(b, &a->q_a, e, a->q_rank, 1));
	TRY(build_shape(b, &a->q_b, a->q_a.n_out, q, 1));
	TRY(build_shape(b, &a->kv_a, e, key_dim(a), 1));
	if (!a->kv_b.name) TRY(build_shape(b, &a->k_b, a->nope, a->rank, a->n_head));
	if (!a->kv_b.name) TRY(build_shape(b, &a->v_b, a->rank, a->value, a->n_head));
	TRY(build_shape(b, &a->out, a->n_head*a->value, e, 1));
	TRY(build_norm_width(b, at, "q_a_norm", &a->q_a_norm, a->q_a.n_out, a->q_a.n_out));
	TRY(build_norm_width(b, at, "kv_a_norm", &a->kv_a_norm, a->rank, a->rank));
	TRY(build_rope_width(b, at, &a->rope_of, a->turned, &a->rope));
	if (!(a->scale > 0)) a->scale = 1/sqrt((double)query_dim(a));
	return build_cache(b, b->g, (struct cache){ .heads = { .n = a->n_head, .n_kv = 1, .k_dim = key_dim(a),
		.v_dim = a->rank }, .v_in_k = true, .layer = (size_t)b->layer }, &a->cache);
}

/* ---- run ---- */

struct buffers {
	size_t q_a, q;                  /* rows of q_a; queries as they come */
	size_t absorbed;                /* queries in latent space, [n][n_head][key_dim] */
	size_t kv, mixed, value;        /* latent vectors; results in latent space; the heads' results */
	struct input q_b, out;
	size_t inputs, products;        /* of the heads' matrices, in host memory */
};

static struct input head_rows(size_t n, size_t at, size_t stride, size_t n_in)
{
	return (struct input){ .kind = INPUT_ROWS, .at = at, .stride = stride, .n = n, .n_in = n_in };
}

static struct buffers plan(const struct latent *a, size_t n, struct plan *p)
{
	size_t h = a->n_head;
	struct buffers b = { .kv = plan_floats(p, n, key_dim(a)), .q = plan_floats(p, n, h*query_dim(a)) };
	if (a->q_a.name) {
		size_t width = a->q_a.n_out;
		b.q_a = plan_floats(p, n, width);
		b.q_b = (struct input){ .kind = INPUT_NORM, .at = plan_floats(p, n, width), .stride = width, .n = n,
			.n_in = width,
			.norm = &a->q_a_norm, .from = b.q_a, .from_stride = width };
		input_plan(p, &b.q_b, weight_form(&a->q_b));
	}
	b.absorbed = plan_floats(p, n, h*key_dim(a));
	b.mixed = plan_floats(p, n, h*a->rank);
	b.value = plan_floats(p, n, h*a->value);
	b.out = head_rows(n, b.value, h*a->value, h*a->value);
	input_plan(p, &b.out, weight_form(&a->out));
	b.inputs = plan_host(p, 2*h*sizeof(struct input) + 2*h*sizeof(struct input *));
	b.products = plan_host(p, h*sizeof(struct product));
	return b;
}

/* What by_head multiplies: each head's slice of the rows at `from` by the head's matrix. The `copied` numbers behind a
 * slice, the part of a query that turns, are copied to behind its result. */
struct slices { const struct weight *w; size_t from, from_dim, to, to_dim, copied; };
static enum ggu_status by_head(struct run *r, const struct buffers *b, const struct slices *s)
{
	const struct weight *w = s->w;
	size_t h = w->n_mat, n_in = h;
	struct input *in = run_host(r, b->inputs), **list = (struct input **)(in + 2*h);
	struct product *p = run_host(r, b->products);
	for (size_t i = 0; i < h; i++) {
		size_t x = s->from + i*s->from_dim*sizeof(float), y = s->to + i*s->to_dim*sizeof(float);
		in[i] = head_rows(r->n, x, h*s->from_dim, w->n_in);
		input_plan(&r->plan, in + i, weight_form(w));
		p[i] = (struct product){ w, i, in + i, y, h*s->to_dim };
		list[i] = in + i;
		if (!s->copied) continue;
		in[n_in] = head_rows(r->n, y + w->n_out*sizeof(float), h*s->to_dim, s->copied);
		in[n_in].kind = INPUT_NORM;
		in[n_in].from = x + w->n_in*sizeof(float);
		in[n_in].from_stride = h*s->from_dim;
		list[n_in] = in + n_in;
		n_in++;
	}
	return r->be->multiply(r, list, n_in, p, h);
}

static void plan_heads(const struct latent *a, size_t n, struct plan *p)
{
	struct plan front = *p, back = *p;
	for (size_t i = 0; i < a->n_head; i++) {
		struct input k = head_rows(n, 0, 0, a->nope), v = head_rows(n, 0, 0, a->rank);
		input_plan(&front, &k, weight_form(&a->k_b));
		input_plan(&back, &v, weight_form(&a->v_b));
	}
	if (front.peak > p->peak) p->peak = front.peak;
	if (back.peak > p->peak) p->peak = back.peak;
}

static void measure(const void *params, size_t n, struct measure *m)
{
	const struct latent *a = params;
	const struct weight *const w[] = { &a->q, &a->q_a, &a->q_b, &a->kv_a, &a->k_b, &a->v_b, &a->out };
	plan(a, n, &m->plan);
	plan_heads(a, n, &m->plan);
	for (size_t i = 0; i < sizeof w/sizeof *w; i++) measure_weight(m, w[i], 1);
}

static double macs_early(const void *params)
{
	const struct latent *a = params;
	return (double)a->kv_a.n_out*(double)a->kv_a.n_in;
}

static struct attend attend_of(const struct latent *a, const struct graph *g, const struct buffers *b)
{
	return (struct attend){ .cache = a->cache, .q = b->absorbed, .k = b->kv, .v = b->kv, .out = b->mixed,
		.q_stride = a->n_head*key_dim(a), .k_stride = key_dim(a), .v_stride = key_dim(a),
		.out_stride = a->n_head*a->rank, .k_norm = &a->kv_a_norm, .k_normed = a->rank,
		.rope = a->rope, .rope_at = a->rank, .growth = &a->growth, .scale = a->scale,
		.mask = g->whole ? ATTN_NONE : ATTN_CAUSAL, .stores = true };
}

/* Stores the latent vectors of all rows before the run is narrowed to those that attend. */
static enum ggu_status store_and_narrow(const struct latent *a, struct run *r, struct input *in, struct buffers *b)
{
	const struct product kv = { &a->kv_a, 0, in, b->kv, key_dim(a) };
	struct attend t = attend_of(a, r->g, b);
	t.q = NO_BUFFER;
	TRY(r->be->multiply(r, &in, 1, &kv, 1));
	r->be->store(r, &t);
	run_narrow(r, in);
	b->q_b.n = b->out.n = r->n;
	return GGU_OK;
}

/* Makes the queries and takes them into latent space; makes the latent vectors too, unless they are stored already. */
static enum ggu_status project(const struct latent *a, struct run *r, struct input *in, struct buffers *b, bool stored)
{
	const size_t width = a->n_head*query_dim(a);
	const struct product q_b = { &a->q_b, 0, &b->q_b, b->q, width }, p[2] = {
		a->q.name ? (struct product){ &a->q, 0, in, b->q, width }
			: (struct product){ &a->q_a, 0, in, b->q_a, a->q_a.n_out },
		{ &a->kv_a, 0, in, b->kv, key_dim(a) } };
	TRY(r->be->multiply(r, &in, 1, p, stored ? 1 : 2));
	if (a->q_b.name) TRY(r->be->multiply(r, &(struct input *){ &b->q_b }, 1, &q_b, 1));
	return by_head(r, b, &(struct slices){ &a->k_b, b->q, query_dim(a), b->absorbed, key_dim(a), a->turned });
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct latent *a = params;
	struct buffers b = plan(a, r->n, &r->plan);
	const struct product out = { &a->out, 0, &b.out, y, r->g->n_embd };
	const size_t used = r->plan.used;
	const bool narrows = r->narrows;
	struct attend t = attend_of(a, r->g, &b);
	if (narrows) TRY(store_and_narrow(a, r, in, &b));
	if (!r->n) return GGU_OK;
	TRY(project(a, r, in, &b, narrows));
	t.stores = !narrows;
	r->be->attend(r, &t);
	r->plan.used = used;            /* the heads' packed queries are not needed any more */
	TRY(by_head(r, &b, &(struct slices){ &a->v_b, b.mixed, a->rank, b.value, a->value }));
	return r->be->multiply(r, &(struct input *){ &b.out }, 1, &out, 1);
}

const struct op op_latent_attention = { .name = "latent_attention",
	.bytes = sizeof(struct latent), .fields = fields,
	.build = build, .measure = measure, .run = run, .macs_early = macs_early,
};
