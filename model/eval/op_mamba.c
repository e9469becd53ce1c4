/* SPDX-License-Identifier: MIT
 * op_mamba.c - selective state space, first form (Gu and Dao 2023).
 *
 *   mamba      in dt_bc dt out: TENSOR; a d: TENSOR; {a convolution, conv.h} [dt_norm b_norm c_norm: norm]
 *              [inner state rank: EXPR]
 *
 * in(x) is x and z; x goes through the convolution; dt_bc(x) is dt's low rank, B and C; dt is made of that. Sizes that
 * are left out come from the tensors: conv [inner][kernel], a [inner][state], dt [inner][rank]. */
#include "../../libgguf/try.h"
#include "conv.h"
#include "op_list.h"

struct mamba {
	struct weight in, dt_bc, dt, out;
	struct convolution conv;
	struct vector a, d;
	struct norm dt_norm, b_norm, c_norm;
	size_t inner, n_state, rank, state_at;
};
#define AT(member) offsetof(struct mamba, member)
static const struct field fields[] = {
	{ "in", FIELD_WEIGHT, AT(in), .flags = FIELD_INPUT | FIELD_NEEDED },
	CONV_FIELDS(AT(conv)),
	{ "dt_bc", FIELD_WEIGHT, AT(dt_bc), .flags = FIELD_NEEDED },
	{ "dt", FIELD_WEIGHT, AT(dt), .flags = FIELD_NEEDED },
	{ "out", FIELD_WEIGHT, AT(out), .flags = FIELD_NEEDED },
	{ "a", FIELD_VECTOR, AT(a), .flags = FIELD_NEEDED },
	{ "d", FIELD_VECTOR, AT(d), .flags = FIELD_NEEDED },
	{ "dt_norm", FIELD_NORM, AT(dt_norm) },
	{ "b_norm", FIELD_NORM, AT(b_norm) },
	{ "c_norm", FIELD_NORM, AT(c_norm) },
	{ "inner", FIELD_SIZE, AT(inner), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ "state", FIELD_SIZE, AT(n_state), 0, 1, 1 << 16, .flags = FIELD_MAY_LACK },
	{ "rank", FIELD_SIZE, AT(rank), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ NULL }
};

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct mamba *m = params;
	size_t e = b->g->n_embd;
	TRY(build_shape(b, &m->out, m->inner, e, 1));
	m->inner = m->out.n_in;
	if (!m->n_state) m->n_state = m->a.n/m->inner;
	if (!m->rank) m->rank = m->dt.n_in;
	if (!m->n_state) return build_fail(b, at, "a", "does not have a state of the inner width");
	TRY(conv_build(b, at, &m->conv, m->inner));
	TRY(build_rows(b, at, "a", &m->a, m->n_state, m->inner));
	TRY(build_shape(b, &m->in, e, 2*m->inner, 1));
	TRY(build_shape(b, &m->dt, m->rank, m->inner, 1));
	TRY(build_shape(b, &m->dt_bc, m->inner, m->rank + 2*m->n_state, 1));
	TRY(build_length(b, at, "d", &m->d, m->inner));
	TRY(build_norm_width(b, at, "dt_norm", &m->dt_norm, m->rank, m->rank));
	TRY(build_norm_width(b, at, "b_norm", &m->b_norm, m->n_state, m->n_state));
	TRY(build_norm_width(b, at, "c_norm", &m->c_norm, m->n_state, m->n_state));
	return build_recurrent(b, at, "a", m->n_state, m->inner, &m->state_at);
}

/* ---- run ---- */

struct buffers { size_t xz, dbc, dt, y; struct input x, low, b, c, out; };

static struct buffers plan(const struct mamba *m, size_t n, struct plan *p)
{
	size_t inner = m->inner, wide = m->rank + 2*m->n_state, state = m->n_state;
	struct buffers b = { .xz = plan_floats(p, n, 2*inner), .dbc = plan_floats(p, n, wide),
		.dt = plan_floats(p, n, inner), .y = plan_floats(p, n, inner) };
	b.x = (struct input){ .kind = INPUT_ROWS, .at = b.xz, .stride = 2*inner, .n = n, .n_in = inner };
	b.low = (struct input){ .kind = INPUT_NORM, .at = b.dbc, .stride = wide, .n = n, .n_in = m->rank,
		.norm = &m->dt_norm, .from = b.dbc, .from_stride = wide };
	b.b = b.c = b.low;
	b.b.at = b.b.from = b.dbc + m->rank*sizeof(float);
	b.c.at = b.c.from = b.b.at + state*sizeof(float);
	b.b.n_in = b.c.n_in = state;
	b.b.norm = &m->b_norm;
	b.c.norm = &m->c_norm;
	b.out = (struct input){ .kind = INPUT_GATE, .at = b.y, .stride = inner, .n = n, .n_in = inner,
		.gate = { .act = ACT_SILU, .has_up = true, .gate = b.xz + inner*sizeof(float), .up = b.y,
			.gate_stride = 2*inner, .up_stride = inner, .alpha = 1 } };
	b.out.at = plan_floats(p, n, inner);
	input_plan(p, &b.x, weight_form(&m->dt_bc));
	input_plan(p, &b.low, weight_form(&m->dt));
	input_plan(p, &b.out, weight_form(&m->out));
	return b;
}

static void measure(const void *params, size_t n, struct measure *to)
{
	const struct mamba *m = params;
	plan(m, n, &to->plan);
	measure_weight(to, &m->in, 1);
	measure_weight(to, &m->dt_bc, 1);
	measure_weight(to, &m->dt, 1);
	measure_weight(to, &m->out, 1);
	to->macs += conv_macs(&m->conv) + (double)m->inner*(double)(3*m->n_state);
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct mamba *m = params;
	struct buffers b = plan(m, r->n, &r->plan);
	struct product first = { &m->in, 0, in, b.xz, 2*m->inner }, dbc = { &m->dt_bc, 0, &b.x, b.dbc, b.low.stride };
	struct product dt = { &m->dt, 0, &b.low, b.dt, m->inner }, out = { &m->out, 0, &b.out, y, r->g->n_embd };
	struct input *low[3] = { &b.low, &b.b, &b.c };
	enum ggu_status s = r->be->multiply(r, &in, 1, &first, 1);
	if (s) return s;
	conv_run(&m->conv, r, b.xz, 2*m->inner);
	TRY(r->be->multiply(r, &(struct input *){ &b.x }, 1, &dbc, 1));
	TRY(r->be->multiply(r, low, 3, &dt, 1));
	r->be->scan_channels(r, &(struct channel_scan){ .x = b.xz, .x_stride = 2*m->inner, .dt = b.dt, .b = b.b.at,
		.c = b.c.at, .bc_stride = b.low.stride, .out = b.y, .n = m->inner, .n_state = m->n_state,
		.a = m->a.v, .d = m->d.v, .kept = m->state_at });
	return r->be->multiply(r, &(struct input *){ &b.out }, 1, &out, 1);
}

const struct op op_mamba = { .name = "mamba",
	.bytes = sizeof(struct mamba), .fields = fields,
	.build = build, .measure = measure, .run = run,
};
