/* SPDX-License-Identifier: MIT
 * op_mamba2.c - selective state space, second form (Dao and Gu 2024).
 *
 *   mamba2     in out a d dt_bias: TENSOR; {a convolution, conv.h}; heads state: EXPR; [groups inner: EXPR] [norm]
 *
 * in(x) is z, x, B, C and dt, of which x, B and C go through the convolution. The norm is of y*silu(z), by groups where
 * its weights say so. */
#include "../../libgguf/try.h"
#include "conv.h"
#include "op_list.h"

struct mamba2 {
	struct weight in, out;
	struct convolution conv;
	struct vector a, d, dt_bias;
	struct norm norm;
	size_t n_head, n_groups, n_state, inner, state_at;
};
#define AT(member) offsetof(struct mamba2, member)
static const struct field fields[] = {
	{ "in", FIELD_WEIGHT, AT(in), .flags = FIELD_INPUT | FIELD_NEEDED },
	CONV_FIELDS(AT(conv)),
	{ "out", FIELD_WEIGHT, AT(out), .flags = FIELD_NEEDED },
	{ "a", FIELD_VECTOR, AT(a), .flags = FIELD_NEEDED },
	{ "d", FIELD_VECTOR, AT(d), .flags = FIELD_NEEDED },
	{ "dt_bias", FIELD_VECTOR, AT(dt_bias), .flags = FIELD_NEEDED },
	{ "heads", FIELD_SIZE, AT(n_head), 0, 1, 1 << 16 },
	{ "groups", FIELD_SIZE, AT(n_groups), 1, 1, 1 << 16 },
	{ "state", FIELD_SIZE, AT(n_state), 0, 1, 1 << 16 },
	{ "inner", FIELD_SIZE, AT(inner), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "norm", FIELD_NORM, AT(norm) },
	{ NULL }
};

static size_t channels(const struct mamba2 *m)
{
	return size_plus(m->inner, size_times(2*m->n_groups, m->n_state));
}

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct mamba2 *m = params;
	size_t e = b->g->n_embd;
	TRY(build_shape(b, &m->out, m->inner, e, 1));
	m->inner = m->out.n_in;
	if (m->inner%m->n_head || m->n_head%m->n_groups)
		return build_fail(b, at, "heads", "do not divide the inner width, or are not a multiple of the groups");
	TRY(conv_build(b, at, &m->conv, channels(m)));
	TRY(build_shape(b, &m->in, e, m->inner + channels(m) + m->n_head, 1));
	TRY(build_length(b, at, "a", &m->a, m->n_head));
	TRY(build_length(b, at, "d", &m->d, m->n_head));
	TRY(build_length(b, at, "dt_bias", &m->dt_bias, m->n_head));
	TRY(build_norm_width(b, at, "norm", &m->norm, m->inner, m->inner/m->n_groups));
	return build_recurrent(b, at, "state", m->n_state, m->inner, &m->state_at);
}

/* ---- run ---- */

struct buffers { size_t all, stride, y; struct input out; };

static struct buffers plan(const struct mamba2 *m, size_t n, struct plan *p)
{
	struct buffers b = { .stride = m->inner + channels(m) + m->n_head };
	b.all = plan_floats(p, n, b.stride);
	b.y = plan_floats(p, n, m->inner);
	b.out = (struct input){ .kind = INPUT_GATE, .at = plan_floats(p, n, m->inner), .stride = m->inner, .n = n,
		.n_in = m->inner,
		.gate = { .act = ACT_SILU, .has_up = true, .gate = b.all, .up = b.y, .gate_stride = b.stride,
			.up_stride = m->inner, .alpha = 1, .norm = &m->norm } };
	input_plan(p, &b.out, weight_form(&m->out));
	return b;
}

static void measure(const void *params, size_t n, struct measure *to)
{
	const struct mamba2 *m = params;
	plan(m, n, &to->plan);
	measure_weight(to, &m->in, 1);
	measure_weight(to, &m->out, 1);
	to->macs += conv_macs(&m->conv) + (double)m->inner*(double)(3*m->n_state);
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct mamba2 *m = params;
	struct buffers b = plan(m, r->n, &r->plan);
	size_t f = sizeof(float), x = b.all + m->inner*f, shared = m->n_groups*m->n_state*f;
	struct product first = { &m->in, 0, in, b.all, b.stride }, out = { &m->out, 0, &b.out, y, r->g->n_embd };
	struct head_scan scan = { .x = x, .b = x + m->inner*f, .c = x + m->inner*f + shared, .dt = x + channels(m)*f,
		.stride = b.stride, .out = b.y,
		.n_head = m->n_head, .dim = m->inner/m->n_head, .n_groups = m->n_groups, .n_state = m->n_state,
		.a = m->a.v, .d = m->d.v, .dt_bias = m->dt_bias.v, .kept = m->state_at };
	enum ggu_status s = r->be->multiply(r, &in, 1, &first, 1);
	if (s) return s;
	conv_run(&m->conv, r, x, b.stride);
	r->be->scan_heads(r, &scan);
	return r->be->multiply(r, &(struct input *){ &b.out }, 1, &out, 1);
}

const struct op op_mamba2 = { .name = "mamba2",
	.bytes = sizeof(struct mamba2), .fields = fields,
	.build = build, .measure = measure, .run = run,
};
