/* SPDX-License-Identifier: MIT
 * op_attention.c - attention with queries, keys and values of the input.
 *
 *   attention  q k v, or qkv (rows of q, then k, then v); out: TENSOR; heads [kv_heads head_dim value_dim: EXPR]
 *              [q_norm k_norm v_norm: norm] [rope] [window chunk scale softcap clip: EXPR] [sinks: TENSOR]
 *              [alibi: EXPR] [relative: {bias: TENSOR, buckets distance: EXPR}] [gate: TENSOR] [out_norm: norm]
 *              [growth: {by every [from when]: EXPR}] [rope_first keys_of: EXPR]
 *
 * window: positions seen, the token's own included; chunk: only those of its own stretch of so many; clip: bound of q,
 * k and v; alibi: the largest slope's exponent (8 in the paper); relative: bias[buckets][heads] by distance,
 * relative.h; gate: out's input times its sigmoid, for each number or each head; out_norm: of out's input, after the
 * gate; growth: queries are multiplied by 1 + by*log(1 + floor((position + from)/every)); rope_first: rope comes before
 * q_norm and k_norm; keys_of: the earlier layer whose keys and values are used. Without v, the values are the keys as
 * they come from k; v: [NAME, null], without qkv, leaves that to each layer. Norms go by head where their weights have
 * a head's length, or there are none (rms: []), else over the whole row. */
#include <math.h>
#include "../../libgguf/try.h"
#include "../../quant/vec.h"
#include "op_list.h"
#include "relative.h"

struct relative { struct vector bias; size_t buckets, distance; };
struct attention {
	struct weight q, k, v, qkv, out, gate;
	struct norm q_norm, k_norm, v_norm, out_norm;
	struct heads heads;
	size_t window, chunk;
	struct rope rope_of;
	bool rope_first;
	int rope;
	double scale, softcap, clip, alibi, keys_of;
	struct vector sinks;
	struct growth growth;
	struct relative relative;
	enum attn_bias bias_kind;
	const float *bias;
	size_t cache;
	bool stores;
};
#define AT(member) offsetof(struct attention, member)
#define RELATIVE(member) offsetof(struct relative, member)
/* MOST_BIASES: floats of the tables of all layers, which a file with few weights could make too large for any memory */
enum { MOST_BUCKETS = 1 << 12, MOST_DISTANCE = 1 << 16, MOST_BIASES = 1 << 26 };
static const struct field relative_fields[] = {
	{ "bias", FIELD_VECTOR, RELATIVE(bias), .flags = FIELD_NEEDED },
	{ "buckets", FIELD_SIZE, RELATIVE(buckets), 0, 4, MOST_BUCKETS },
	{ "distance", FIELD_SIZE, RELATIVE(distance), 0, 1, MOST_DISTANCE },
	{ NULL }
};
static const struct field fields[] = {
	{ "q", FIELD_WEIGHT, AT(q), .flags = FIELD_INPUT },
	{ "k", FIELD_WEIGHT, AT(k), .flags = FIELD_INPUT },
	{ "v", FIELD_WEIGHT, AT(v), .flags = FIELD_INPUT },
	{ "qkv", FIELD_WEIGHT, AT(qkv), .flags = FIELD_INPUT },
	{ "gate", FIELD_WEIGHT, AT(gate), .flags = FIELD_INPUT },
	{ "out", FIELD_WEIGHT, AT(out), .flags = FIELD_NEEDED },
	{ "heads", FIELD_SIZE, AT(heads.n), 0, 1, BUILD_MAX_SIZE },
	{ "kv_heads", FIELD_SIZE, AT(heads.n_kv), 0, 0, BUILD_MAX_SIZE },
	{ "head_dim", FIELD_SIZE, AT(heads.k_dim), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "value_dim", FIELD_SIZE, AT(heads.v_dim), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "q_norm", FIELD_NORM, AT(q_norm) },
	{ "k_norm", FIELD_NORM, AT(k_norm) },
	{ "v_norm", FIELD_NORM, AT(v_norm) },
	{ "out_norm", FIELD_NORM, AT(out_norm) },
	{ "rope", FIELD_ROPE, AT(rope_of) },
	{ "rope_first", FIELD_FLAG, AT(rope_first) },
	{ "window", FIELD_SIZE, AT(window), 0, 0, BUILD_MAX_SIZE },
	{ "chunk", FIELD_SIZE, AT(chunk), 0, 0, BUILD_MAX_SIZE },
	{ "scale", FIELD_NUMBER, AT(scale), 0, 0, 1e6 },
	{ "softcap", FIELD_NUMBER, AT(softcap), 0, 0, 1e6 },
	{ "clip", FIELD_NUMBER, AT(clip), 0, 0, 1e6 },
	{ "alibi", FIELD_NUMBER, AT(alibi), 0, 0, 1e3 },
	{ "relative", FIELD_MAP, AT(relative), .sub = relative_fields },
	{ "growth", FIELD_MAP, AT(growth), .sub = op_growth_fields },
	{ "sinks", FIELD_VECTOR, AT(sinks) },
	{ "keys_of", FIELD_NUMBER, AT(keys_of), -1, -1, BUILD_MAX_SIZE },
	{ NULL }
};

/* ---- build ---- */

static enum ggu_status weights(struct builder *b, const struct yaml_node *at, struct attention *a)
{
	size_t e = b->g->n_embd, q = heads_q(&a->heads), k = heads_k(&a->heads), v = heads_v(&a->heads);
	if (a->qkv.name && (a->q.name || a->k.name || a->v.name || a->keys_of >= 0))
		return build_fail(b, at, "attention", "qkv already includes q, k and v");
	if (!a->qkv.name) {
		if (!a->q.name) return build_absent(b, at, "q");
		if (!a->k.name && a->keys_of < 0) return build_absent(b, at, "k");
		/* with qkv beside it, [v, null] means that v may be in there */
		if (!a->v.name && a->keys_of < 0 && !yaml_null(yaml_get(at, "v")) && !yaml_null(yaml_get(at, "qkv")))
			return build_absent(b, at, "v");
	}
	if (!a->qkv.name && !a->v.name && a->keys_of < 0 && k != v)
		return build_fail(b, at, "attention", "v is needed: values and keys differ in width");
	TRY(build_shape(b, &a->q, e, q, 1));
	TRY(build_shape(b, &a->k, e, k, 1));
	TRY(build_shape(b, &a->v, e, v, 1));
	TRY(build_shape(b, &a->qkv, e, q + k + v, 1));
	TRY(build_shape(b, &a->out, heads_out(&a->heads), e, 1));
	TRY(build_shape(b, &a->gate, e, a->gate.n_out == a->heads.n ? a->heads.n : heads_out(&a->heads), 1));
	TRY(build_length(b, at, "sinks", &a->sinks, a->heads.n));
	TRY(build_norm_width(b, at, "q_norm", &a->q_norm, q, a->heads.k_dim));
	TRY(build_norm_width(b, at, "k_norm", &a->k_norm, k, a->heads.k_dim));
	TRY(build_norm_width(b, at, "v_norm", &a->v_norm, v, a->heads.v_dim));
	return build_norm_width(b, at, "out_norm", &a->out_norm, heads_out(&a->heads), a->heads.v_dim);
}

/* 2^(-alibi*(i + 1)/n) for the first n heads, n a power of two; the others between them (Press et al. 2021). */
static enum ggu_status slopes(struct builder *b, struct attention *a)
{
	size_t n = 1;
	float *v;
	if (!(a->alibi > 0)) return GGU_OK;
	if (!(v = build_alloc(b, a->heads.n*sizeof *v))) return GGU_ERR_NOMEM;
	while (2*n <= a->heads.n) n *= 2;
	for (size_t h = 0; h < a->heads.n; h++) {
		double i = h < n ? (double)(h + 1)/(double)n : (double)(2*(h - n) + 1)/(double)(2*n);
		v[h] = (float)num_pow(2, -a->alibi*i);
	}
	a->bias_kind = ATTN_ALIBI;
	a->bias = v;
	return GGU_OK;
}
static enum ggu_status relative(struct builder *b, const struct yaml_node *at, struct attention *a)
{
	const struct relative *r = &a->relative;
	size_t side = b->g->whole ? r->buckets/2 : r->buckets, n = a->heads.n*(2*r->distance + 1);
	float *v;
	if (!r->bias.v) return GGU_OK;
	if (a->bias_kind) return build_fail(b, at, "relative", "and alibi are two biases");
	if (r->buckets%2 || r->distance <= side/2)
		return build_fail(b, at, "relative", "buckets are odd, or too many for the distance");
	TRY(build_rows(b, yaml_get(at, "relative"), "bias", &r->bias, a->heads.n, r->buckets));
	if (n > MOST_BIASES - b->n_biases)
		return build_fail(b, at, "relative", "the biases of all heads for all distances are too many");
	b->n_biases += n;
	if (!(v = build_alloc(b, n*sizeof *v))) return GGU_ERR_NOMEM;
	relative_table(r->bias.v, a->heads.n, r->buckets, r->distance, b->g->whole, v);
	a->bias_kind = ATTN_RELATIVE;
	a->bias = v;
	return GGU_OK;
}

static enum attn_mask mask_of(const struct graph *g, const struct attention *a)
{
	if (g->whole) return a->window ? ATTN_AROUND : ATTN_NONE;
	return a->window ? ATTN_WINDOW : a->chunk ? ATTN_CHUNK : ATTN_CAUSAL;
}

static enum ggu_status caches(struct builder *b, const struct yaml_node *at, struct attention *a)
{
	size_t other = a->keys_of < 0 ? 0 : (size_t)a->keys_of;
	size_t window = b->g->whole ? 0 : a->window ? a->window : a->chunk;
	struct cache *c;
	a->stores = a->keys_of < 0;
	b->g->borrows |= !a->stores;
	if (!a->stores && a->keys_of != (double)other) return build_fail(b, at, "keys_of", "expected a whole number");
	if (!a->stores && b->g->whole) return build_fail(b, at, "keys_of", "of a whole sequence: they are not kept");
	if (a->stores)
		return build_cache(b, b->g, (struct cache){ .heads = a->heads, .layer = (size_t)b->layer,
			.mask = mask_of(b->g, a), .window = window }, &a->cache);
	for (a->cache = 0; a->cache < b->g->n_caches && b->g->cache[a->cache].layer != other; a->cache++) continue;
	c = b->g->cache + a->cache;
	if (a->cache == b->g->n_caches || !heads_same(&c->heads, &a->heads) || c->v_in_k)
		return build_fail(b, at, "keys_of", "is not a layer before this one with the same heads");
	build_sight(c, mask_of(b->g, a), window);
	return GGU_OK;
}

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct attention *a = params;
	TRY(build_heads(b, at, "attention", &a->heads));
	if (a->window && a->chunk) return build_fail(b, at, "attention", "expected window or chunk, not both");
	if (a->chunk && b->g->whole) return build_fail(b, at, "chunk", "expected mask: causal");
	TRY(weights(b, at, a));
	TRY(build_rope_width(b, at, &a->rope_of, a->heads.k_dim, &a->rope));
	if (!(a->scale > 0)) a->scale = 1/sqrt((double)a->heads.k_dim);
	TRY(slopes(b, a));
	TRY(relative(b, at, a));
	return caches(b, at, a);
}

/* ---- run ---- */

struct buffers { size_t q, k, v, mixed, gate, stride; struct input out; };

static struct buffers plan(const struct attention *a, size_t n, struct plan *p)
{
	const bool own = a->keys_of < 0;
	size_t q = heads_q(&a->heads), k = own ? heads_k(&a->heads) : 0, v = own ? heads_v(&a->heads) : 0;
	size_t o = heads_out(&a->heads);
	struct buffers b = { .stride = q + k + v };
	b.q = plan_floats(p, n, b.stride);
	b.k = b.q + q*sizeof(float);
	b.v = b.k + k*sizeof(float);
	b.gate = a->gate.name ? plan_floats(p, n, a->gate.n_out) : NO_BUFFER;
	b.mixed = plan_floats(p, n, o);
	b.out = (struct input){ .kind = a->out_norm.kind ? INPUT_NORM : INPUT_ROWS, .at = b.mixed, .stride = o, .n = n,
		.n_in = o, .norm = &a->out_norm, .from = b.mixed, .from_stride = o };
	if (a->gate.name) {
		b.out.kind = INPUT_GATE;
		b.out.gate = (struct gate){ .act = ACT_SIGMOID, .has_up = true, .gate = b.gate, .up = b.mixed,
			.gate_stride = a->gate.n_out, .up_stride = o, .spread = o/a->gate.n_out, .alpha = 1,
			.norm = &a->out_norm };
		b.out.at = plan_floats(p, n, o);
	}
	input_plan(p, &b.out, weight_form(&a->out));
	return b;
}

static void measure(const void *params, size_t n, struct measure *m)
{
	const struct attention *a = params;
	const struct weight *const w[] = { &a->q, &a->k, &a->v, &a->qkv, &a->gate, &a->out };
	plan(a, n, &m->plan);
	for (size_t i = 0; i < sizeof w/sizeof *w; i++) measure_weight(m, w[i], 1);
}

static double macs_early(const void *params)
{
	const struct attention *a = params;
	size_t n_in = a->qkv.name ? a->qkv.n_in : a->q.n_in;
	return a->stores ? (double)(heads_k(&a->heads) + heads_v(&a->heads))*(double)n_in : 0;
}

/* Some of the rows of a matrix */
static struct weight part_of(const struct weight *w, size_t from, size_t n)
{
	struct weight part = *w;
	part.data = (const char *)w->data + from*w->row_bytes;
	part.bias = w->bias ? w->bias + from : NULL;
	part.n_out = n;
	return part;
}

static struct attend attend_of(const struct attention *a, const struct graph *g, const struct buffers *b)
{
	return (struct attend){ .q = b->q, .k = b->k, .v = b->v, .out = b->mixed,
		.q_stride = b->stride, .k_stride = b->stride, .v_stride = b->stride, .out_stride = heads_out(&a->heads),
		.q_norm = &a->q_norm, .k_norm = &a->k_norm, .v_norm = &a->v_norm, .clip = a->clip, .rope = a->rope,
		.rope_first = a->rope_first, .growth = &a->growth,
		.scale = a->scale, .softcap = a->softcap, .window = a->window ? a->window : a->chunk,
		.bias_kind = a->bias_kind, .bias = a->bias, .reach = a->relative.distance, .sinks = a->sinks.v,
		.mask = mask_of(g, a), .cache = a->cache, .stores = a->stores };
}

/* Stores keys and values of all rows before the run is narrowed to those that attend. */
static enum ggu_status store_and_narrow(const struct attention *a, struct run *r, struct input *in, struct buffers *b)
{
	const size_t keys_and_values = heads_k(&a->heads) + heads_v(&a->heads);
	const struct weight k = a->qkv.name ? part_of(&a->qkv, heads_q(&a->heads), keys_and_values) : a->k;
	const struct product p[2] = { { &k, 0, in, b->k, b->stride },
		{ a->v.name ? &a->v : &a->k, 0, in, b->v, b->stride } };
	struct attend t = attend_of(a, r->g, b);
	t.q = NO_BUFFER;
	if (a->stores) {
		TRY(r->be->multiply(r, &in, 1, p, a->qkv.name ? 1 : 2));
		r->be->store(r, &t);
	}
	run_narrow(r, in);
	b->out.n = r->n;
	return GGU_OK;
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct attention *a = params;
	const bool narrows = r->narrows, stores = a->stores && !narrows;
	const struct weight q = a->qkv.name ? part_of(&a->qkv, 0, heads_q(&a->heads)) : a->q;
	struct buffers b = plan(a, r->n, &r->plan);
	struct product p[4], out = { &a->out, 0, &b.out, y, r->g->n_embd };
	struct attend t = attend_of(a, r->g, &b);
	size_t n = 0;
	if (narrows) TRY(store_and_narrow(a, r, in, &b));
	if (!r->n) return GGU_OK;
	p[n++] = (struct product){ a->qkv.name && !narrows ? &a->qkv : &q, 0, in, b.q, b.stride };
	if (stores && !a->qkv.name) {
		p[n++] = (struct product){ &a->k, 0, in, b.k, b.stride };
		p[n++] = (struct product){ a->v.name ? &a->v : &a->k, 0, in, b.v, b.stride };
	}
	if (a->gate.name) p[n++] = (struct product){ &a->gate, 0, in, b.gate, a->gate.n_out };
	TRY(r->be->multiply(r, &in, 1, p, n));
	t.stores = stores;
	r->be->attend(r, &t);
	return r->be->multiply(r, &(struct input *){ &b.out }, 1, &out, 1);
}

const struct op op_attention = { .name = "attention",
	.bytes = sizeof(struct attention), .fields = fields,
	.build = build, .measure = measure, .run = run, .macs_early = macs_early,
};
