/* SPDX-License-Identifier: MIT
 * op_ffn.c - feed-forward: down(act(gate(x)) * up(x)).
 *
 *   ffn        [gate] up, or gate_up; down: TENSOR; act: silu, gelu (erf), gelu_tanh, relu or relu2
 *              [limit alpha up_add: EXPR] [down_norm: norm] [width: EXPR]
 *
 * With a limit, gate is at most so much and up at most so far from 0. alpha: act(alpha*x)/alpha; up_add is added to up.
 * down_norm: of down's input. width: of the inner rows, if the metadata states it. */
#include "../../libgguf/try.h"
#include "op_ffn.h"
#include "op_list.h"

static const char *const acts[] = { "silu", "gelu", "gelu_tanh", "relu", "relu2", NULL };
#define AT(member) offsetof(struct ffn, member)
const struct field ffn_fields[] = {
	{ "gate", FIELD_WEIGHT, AT(gate), .flags = FIELD_INPUT },
	{ "up", FIELD_WEIGHT, AT(up), .flags = FIELD_INPUT },
	{ "gate_up", FIELD_WEIGHT, AT(gate_up), .flags = FIELD_INPUT },
	{ "down", FIELD_WEIGHT, AT(down), .flags = FIELD_NEEDED },
	{ "act", FIELD_WORD, AT(act), .words = acts, .flags = FIELD_NEEDED },
	{ "limit", FIELD_NUMBER, AT(limit), 0, 0, 1e6 },
	{ "alpha", FIELD_NUMBER, AT(alpha), 1, 1e-6, 1e6 },
	{ "up_add", FIELD_NUMBER, AT(up_add), 0, -1e6, 1e6 },
	{ "down_norm", FIELD_NORM, AT(down_norm) },
	{ "width", FIELD_SIZE, AT(width), 0, 1, BUILD_MAX_SIZE, .flags = FIELD_MAY_LACK },
	{ NULL }
};

enum ggu_status ffn_build(struct builder *b, const struct yaml_node *at, struct ffn *f, size_t n_mat)
{
	size_t e = b->g->n_embd, n = f->down.n_in;
	TRY(build_shape(b, &f->down, f->width, e, n_mat));
	TRY(build_shape(b, &f->gate_up, e, 2*n, n_mat));
	TRY(build_shape(b, &f->up, e, n, n_mat));
	if (!f->up.name == !f->gate_up.name)
		return ggu_fail(b->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, "ffn", "expected either up or gate_up");
	TRY(build_shape(b, &f->gate, e, n, n_mat));
	return build_norm_width(b, at, "down_norm", &f->down_norm, n, n);
}

void ffn_measure(const struct ffn *f, double share, struct measure *m)
{
	const struct weight *const w[] = { &f->gate, &f->up, &f->gate_up, &f->down };
	for (size_t i = 0; i < 4; i++) measure_weight(m, w[i], share);
}

size_t ffn_products(const struct ffn *f, size_t mat, struct input *in, size_t wide, struct product *p)
{
	size_t stride = ffn_wide(f), n = 0;
	if (f->gate_up.name) p[n++] = (struct product){ &f->gate_up, mat, in, wide, stride };
	else p[n++] = (struct product){ &f->up, mat, in, wide + (f->gate.name ? ffn_width(f)*sizeof(float) : 0),
		stride };
	if (!f->gate_up.name && f->gate.name) p[n++] = (struct product){ &f->gate, mat, in, wide, stride };
	return n;
}

struct input ffn_gated(const struct ffn *f, size_t n, size_t wide)
{
	return (struct input){ .kind = INPUT_GATE, .at = wide, .stride = ffn_wide(f), .n = n, .n_in = ffn_width(f),
		.gate = { .act = (enum activation)f->act, .has_up = f->gate_up.name || f->gate.name, .gate = wide,
			.up = wide + ffn_width(f)*sizeof(float), .gate_stride = ffn_wide(f), .up_stride = ffn_wide(f),
			.limit = f->limit, .alpha = f->alpha, .up_add = f->up_add, .norm = &f->down_norm } };
}

/* ---- the operator ---- */

static enum ggu_status build(struct builder *b, const struct yaml_node *map, void *params)
{
	return ffn_build(b, map, params, 1);
}

struct buffers { size_t wide; struct input down; };
static struct buffers plan(const struct ffn *f, size_t n, struct plan *p)
{
	struct buffers b = { plan_floats(p, n, ffn_wide(f)), { 0 } };
	b.down = ffn_gated(f, n, b.wide);
	input_plan(p, &b.down, weight_form(&f->down));
	return b;
}

static void measure(const void *params, size_t n, struct measure *m)
{
	plan(params, n, &m->plan);
	ffn_measure(params, 1, m);
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct ffn *f = params;
	struct buffers b = plan(f, r->n, &r->plan);
	struct product p[2], down = { &f->down, 0, &b.down, y, r->g->n_embd };
	enum ggu_status s = r->be->multiply(r, &in, 1, p, ffn_products(f, 0, in, b.wide, p));
	return s ? s : r->be->multiply(r, &(struct input *){ &b.down }, 1, &down, 1);
}

const struct op op_ffn = { .name = "ffn",
	.bytes = sizeof(struct ffn), .fields = ffn_fields,
	.build = build, .measure = measure, .run = run, .apart = true,
};
