/* SPDX-License-Identifier: MIT
 * op_cross_attention.c - attention across: queries of the input, keys and values of the encoder's rows.
 *
 *   cross_attention  q k v out: TENSOR; heads [kv_heads head_dim value_dim: EXPR] [scale softcap: EXPR]
 *
 * Keys and values are made once for a sequence (read), as many positions as its source has; every token sees all. */
#include <math.h>
#include "../../libgguf/try.h"
#include "op_list.h"

struct cross {
	struct weight q, k, v, out;
	struct heads heads;
	size_t cache;
	double scale, softcap;
};
#define AT(member) offsetof(struct cross, member)
static const struct field fields[] = {
	{ "q", FIELD_WEIGHT, AT(q), .flags = FIELD_INPUT | FIELD_NEEDED },
	{ "k", FIELD_WEIGHT, AT(k), .flags = FIELD_NEEDED },
	{ "v", FIELD_WEIGHT, AT(v), .flags = FIELD_NEEDED },
	{ "out", FIELD_WEIGHT, AT(out), .flags = FIELD_NEEDED },
	{ "heads", FIELD_SIZE, AT(heads.n), 0, 1, BUILD_MAX_SIZE },
	{ "kv_heads", FIELD_SIZE, AT(heads.n_kv), 0, 0, BUILD_MAX_SIZE },
	{ "head_dim", FIELD_SIZE, AT(heads.k_dim), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "value_dim", FIELD_SIZE, AT(heads.v_dim), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "scale", FIELD_NUMBER, AT(scale), 0, 0, 1e6 },
	{ "softcap", FIELD_NUMBER, AT(softcap), 0, 0, 1e6 },
	{ NULL }
};

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct cross *c = params;
	struct graph *source = b->g->source;
	size_t e = b->g->n_embd;
	TRY(build_heads(b, at, "cross_attention", &c->heads));
	TRY(build_shape(b, &c->q, e, heads_q(&c->heads), 1));
	TRY(build_shape(b, &c->k, source->n_embd, heads_k(&c->heads), 1));
	TRY(build_shape(b, &c->v, source->n_embd, heads_v(&c->heads), 1));
	TRY(build_shape(b, &c->out, heads_out(&c->heads), e, 1));
	if (!(c->scale > 0)) c->scale = 1/sqrt((double)c->heads.k_dim);
	source->reader_forms |= weight_form(&c->k) | weight_form(&c->v);
	return build_cache(b, source, (struct cache){ .heads = c->heads, .across = true, .layer = (size_t)b->layer },
		&c->cache);
}

/* ---- of the encoder's rows ---- */

struct kept { size_t k, v, stride; };
static struct kept plan_read(const struct cross *c, size_t n, struct plan *p)
{
	struct kept b = { .stride = heads_k(&c->heads) + heads_v(&c->heads) };
	b.k = plan_floats(p, n, b.stride);
	b.v = b.k + heads_k(&c->heads)*sizeof(float);
	return b;
}

static void measure_read(const void *params, size_t n, struct measure *m)
{
	const struct cross *c = params;
	plan_read(c, n, &m->plan);
	measure_weight(m, &c->k, 1);
	measure_weight(m, &c->v, 1);
}

static enum ggu_status read_rows(const void *params, struct run *r, struct input *in)
{
	const struct cross *c = params;
	struct kept b = plan_read(c, r->n, &r->plan);
	const struct product p[] = { { &c->k, 0, in, b.k, b.stride }, { &c->v, 0, in, b.v, b.stride } };
	const struct attend a = { .q = NO_BUFFER, .k = b.k, .v = b.v, .k_stride = b.stride, .v_stride = b.stride,
		.rope = -1, .cache = c->cache, .stores = true };
	TRY(r->be->multiply(r, &in, 1, p, 2));
	r->be->store(r, &a);
	return GGU_OK;
}

/* ---- run ---- */

struct buffers { size_t q; struct input out; };
static struct buffers plan(const struct cross *c, size_t n, struct plan *p)
{
	struct buffers b = { plan_floats(p, n, heads_q(&c->heads)),
		{ .kind = INPUT_ROWS, .stride = heads_out(&c->heads), .n = n, .n_in = heads_out(&c->heads) } };
	b.out.at = plan_floats(p, n, heads_out(&c->heads));
	input_plan(p, &b.out, weight_form(&c->out));
	return b;
}

static void measure(const void *params, size_t n, struct measure *m)
{
	const struct cross *c = params;
	plan(c, n, &m->plan);
	measure_weight(m, &c->q, 1);
	measure_weight(m, &c->out, 1);
}

/* Nothing of the rows is stored here. */
static double macs_early(const void *params) { (void)params; return 0; }

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct cross *c = params;
	struct buffers b = plan(c, r->n, &r->plan);
	struct product q = { &c->q, 0, in, b.q, heads_q(&c->heads) }, out = { &c->out, 0, &b.out, y, r->g->n_embd };
	const struct attend a = { .q = b.q, .out = b.out.at, .q_stride = q.y_stride, .out_stride = b.out.stride,
		.rope = -1, .scale = c->scale, .softcap = c->softcap, .mask = ATTN_NONE, .cache = c->cache,
		.across = true };
	if (r->narrows) run_narrow(r, in);
	if (!r->n) return GGU_OK;
	b.out.n = r->n;
	TRY(r->be->multiply(r, &in, 1, &q, 1));
	r->be->attend(r, &a);
	return r->be->multiply(r, &(struct input *){ &b.out }, 1, &out, 1);
}

const struct op op_cross_attention = { .name = "cross_attention",
	.bytes = sizeof(struct cross), .fields = fields,
	.build = build, .measure = measure, .run = run, .macs_early = macs_early,
	.measure_read = measure_read, .read = read_rows,
};
