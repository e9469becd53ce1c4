/* SPDX-License-Identifier: MIT
 * op_experts.c - a mixture of experts: each token goes through the few feed-forwards that a router chooses for it.
 *
 *   experts    router: TENSOR; kind: softmax, sigmoid, softmax_chosen or sparsemixer; count used: EXPR
 *              each: {an ffn whose tensors hold `count` matrices}
 *              [normalise scale jitter weigh_input: EXPR] [choice_bias: TENSOR]
 *              [groups groups_used group_best: EXPR] [shared: {an ffn}] [shared_gate: TENSOR]
 *
 * softmax and sigmoid give each expert a score, of which `used` are chosen; softmax_chosen chooses first and then takes
 * the softmax of the chosen; sparsemixer (Liu et al. 2023) chooses one after the other, each weighed against the
 * experts whose logits are within 2*jitter of the best. normalise: the chosen scores add up to 1; scale: then times
 * this. weigh_input: they multiply what goes into an expert, not what comes out. choice_bias is added for the choice
 * alone. groups: experts lie in so many groups, of which groups_used are open, those whose group_best best scores add
 * up to the most. Every token goes through shared too, times the sigmoid of shared_gate(x). */
#include "../../libgguf/size.h"
#include "../../libgguf/try.h"
#include "op_ffn.h"
#include "op_list.h"

struct experts {
	struct weight router, shared_gate;
	struct ffn each, shared;
	struct router route;
	struct vector choice_bias;
	bool weigh_input;
};
static const char *const kinds[] = { "softmax", "sigmoid", "softmax_chosen", "sparsemixer", NULL };
#define AT(member) offsetof(struct experts, member)
static const struct field fields[] = {
	{ "router", FIELD_WEIGHT, AT(router), .flags = FIELD_INPUT | FIELD_NEEDED },
	{ "kind", FIELD_WORD, AT(route.kind), .words = kinds, .flags = FIELD_NEEDED },
	{ "count", FIELD_SIZE, AT(route.n_experts), 0, 1, ROUTE_MAX_EXPERTS },
	{ "used", FIELD_SIZE, AT(route.n_used), 0, 1, ROUTE_MAX_EXPERTS },
	{ "normalise", FIELD_FLAG, AT(route.normalise), 0 },
	{ "scale", FIELD_NUMBER, AT(route.scale), 1, -1e6, 1e6 },
	{ "weigh_input", FIELD_FLAG, AT(weigh_input) },
	{ "jitter", FIELD_NUMBER, AT(route.jitter), 0.01, 0, 1e3 },
	{ "choice_bias", FIELD_VECTOR, AT(choice_bias) },
	{ "groups", FIELD_SIZE, AT(route.n_groups), 1, 1, ROUTE_MAX_EXPERTS },
	{ "groups_used", FIELD_SIZE, AT(route.n_groups_used), 1, 1, ROUTE_MAX_EXPERTS },
	{ "group_best", FIELD_SIZE, AT(route.group_best), 2, 1, ROUTE_MAX_EXPERTS },
	{ "each", FIELD_MAP, AT(each), .sub = ffn_fields },
	{ "shared", FIELD_MAP, AT(shared), .sub = ffn_fields },
	{ "shared_gate", FIELD_WEIGHT, AT(shared_gate), .flags = FIELD_INPUT },
	{ NULL }
};

static enum ggu_status build(struct builder *b, const struct yaml_node *at, void *params)
{
	struct experts *o = params;
	struct router *r = &o->route;
	size_t e = b->g->n_embd;
	char key[BUILD_KEY];
	enum ggu_status s;
	if (r->n_used > r->n_experts)
		return build_fail(b, at, build_key(b, at, "used", key), "is more than the number of experts");
	if (r->n_experts%r->n_groups)
		return build_fail(b, at, build_key(b, at, "groups", key), "does not divide the number of experts");
	if (r->n_groups_used > r->n_groups)
		return build_fail(b, at, build_key(b, at, "groups_used", key), "is more than the number of groups");
	if (r->n_groups_used*(r->n_experts/r->n_groups) < r->n_used)
		return build_fail(b, at, build_key(b, at, "used", key), "is more than the groups that are used have");
	if (r->kind == ROUTE_SPARSEMIXER && (o->choice_bias.v || r->n_groups > 1))
		return build_fail(b, at, "kind", "sparsemixer has neither groups nor a bias");
	if (r->group_best > r->n_experts/r->n_groups) r->group_best = r->n_experts/r->n_groups;
	if (!o->each.down.name) return build_fail(b, at, "each", "is missing");
	TRY(build_shape(b, &o->router, e, r->n_experts, 1));
	TRY(ffn_build(b, yaml_get(at, "each"), &o->each, r->n_experts));
	TRY(build_length(b, at, "choice_bias", &o->choice_bias, r->n_experts));
	r->bias = o->choice_bias.v;
	b->g->most_experts = size_most(b->g->most_experts, r->n_experts);
	if (!o->shared.down.name)
		return o->shared_gate.name ? build_fail(b, at, "shared_gate", "needs a shared expert") : GGU_OK;
	s = ffn_build(b, yaml_get(at, "shared"), &o->shared, 1);
	return s ? s : build_shape(b, &o->shared_gate, e, 1, 1);
}

/* ---- run ---- */

/* At most `active` experts have rows. wide and done have `pairs` rows, one for each pair of a row and an expert, sorted
 * by expert. */
struct buffers {
	size_t active, pairs, scores, gate, picked, wide, done;
	size_t shared_wide, shared_done;
	struct input shared_down;
	size_t route, inputs, products, by;     /* in host memory */
};

static size_t route_bytes(const struct router *o, size_t n)
{
	const size_t pairs = size_times(size_times(n, o->n_used), 3*sizeof(uint32_t) + sizeof(float));
	return size_plus(pairs, (o->n_experts + 1)*sizeof(size_t));
}
static struct routes route_at(const struct router *o, size_t n, void *at)
{
	size_t pairs = n*o->n_used;
	struct routes x = { .first = at };
	x.expert = (uint32_t *)(x.first + o->n_experts + 1);
	x.pick = x.expert + pairs;
	x.place = x.pick + pairs;
	x.weight = (float *)(void *)(x.place + pairs);
	return x;
}

/* Do experts have rows of their own, or the one row that all share? */
static bool picks(const struct experts *o, size_t n) { return n > 1 || o->weigh_input; }

static struct buffers plan(const struct experts *o, size_t n, size_t n_embd, struct plan *p)
{
	size_t pairs = size_times(n, o->route.n_used), active = size_least(pairs, o->route.n_experts),
		wide = ffn_wide(&o->each);
	struct buffers b = { .active = active, .pairs = pairs, .scores = plan_floats(p, n, o->route.n_experts),
		.gate = NO_BUFFER, .shared_done = NO_BUFFER };
	if (picks(o, n)) b.picked = plan_floats(p, pairs, n_embd);
	b.wide = plan_floats(p, pairs, wide);
	b.done = plan_floats(p, pairs, n_embd);
	if (o->shared.down.name) {
		b.shared_wide = plan_floats(p, n, ffn_wide(&o->shared));
		b.shared_down = ffn_gated(&o->shared, n, b.shared_wide);
		input_plan(p, &b.shared_down, weight_form(&o->shared.down));
		b.shared_done = plan_floats(p, n, n_embd);
		if (o->shared_gate.name) b.gate = plan_floats(p, n, 1);
	}
	b.route = plan_host(p, route_bytes(&o->route, n));
	b.inputs = plan_host(p, (active + 1)*(2*sizeof(struct input) + sizeof(struct input *)));
	b.products = plan_host(p, (2*active + 1)*sizeof(struct product));
	if (o->weigh_input) b.by = plan_host(p, pairs*sizeof(float));
	return b;
}

/* Room for the experts' packed rows, however the rows are distributed among them. */
static void plan_packed(const struct experts *o, size_t n, size_t n_embd, const struct buffers *b, struct plan *p)
{
	size_t step = QUANT_ACT_STEPS, spare = size_least(b->active, b->pairs), steps = b->pairs/step + spare;
	struct input one = { .n = step, .n_in = n_embd }, down = { .n = step, .n_in = ffn_width(&o->each) };
	for (size_t i = 0; i < steps; i++) {
		if (picks(o, n)) input_plan(p, &one, ffn_forms(&o->each));
		input_plan(p, &down, weight_form(&o->each.down));
	}
}

static void measure(const void *params, size_t n, struct measure *m)
{
	const struct experts *o = params;
	size_t e = o->router.n_in;
	struct buffers b = plan(o, n, e, &m->plan);
	plan_packed(o, n, e, &b, &m->plan);
	measure_weight(m, &o->router, 1);
	measure_weight(m, &o->shared_gate, 1);
	ffn_measure(&o->each, (double)o->route.n_used/(double)o->route.n_experts, m);
	ffn_measure(&o->shared, 1, m);
}

/* Takes the weights of experts from what comes out of them to what goes in. Returns them by place. */
static const float *weigh_before(struct run *r, const struct experts *o, const struct buffers *b, struct routes *x)
{
	float *by = run_host(r, b->by);
	for (size_t i = 0; i < r->n*o->route.n_used; i++) {
		by[x->place[i]] = x->weight[i];
		x->weight[i] = 1;
	}
	return by;
}

/* What is in host memory at b->inputs: experts' inputs, those of their down, and the list for multiply. */
struct lists { struct input *one, *gated, **in; struct product *p; };
static struct lists lists_at(const struct run *r, const struct buffers *b)
{
	struct lists l = { .one = run_host(r, b->inputs), .p = run_host(r, b->products) };
	l.gated = l.one + b->active + 1;
	l.in = (struct input **)(l.gated + b->active + 1);
	return l;
}

/* Gate and up of all experts that have rows. */
static enum ggu_status gate_and_up(struct run *r, const struct experts *o, const struct buffers *b, struct routes *x,
	struct input *in)
{
	const float *by = o->weigh_input ? weigh_before(r, o, b, x) : NULL;
	const struct lists l = lists_at(r, b);
	size_t e = r->g->n_embd, n_p = 0, n_in = 0, wide = ffn_wide(&o->each);
	for (size_t m = 0, i = 0; m < o->route.n_experts; m++) {
		size_t at = x->first[m], n = x->first[m + 1] - at;
		struct input *one = l.one + i;
		if (!n) continue;
		if (picks(o, r->n)) {
			*one = (struct input){ .kind = INPUT_PICK, .at = b->picked + at*e*sizeof(float), .stride = e,
				.n = n, .n_in = e,
				.from = in->at, .from_stride = in->stride, .pick = x->pick + at,
				.by = by ? by + at : NULL };
			input_plan(&r->plan, one, ffn_forms(&o->each));
			l.in[n_in++] = one;
		} else one = in;
		n_p += ffn_products(&o->each, m, one, b->wide + at*wide*sizeof(float), l.p + n_p);
		l.gated[i++] = ffn_gated(&o->each, n, b->wide + at*wide*sizeof(float));
	}
	if (!picks(o, r->n)) l.in[n_in++] = in;
	return r->be->multiply(r, l.in, n_in, l.p, n_p);
}

/* Down of the same. */
static enum ggu_status down_each(struct run *r, const struct experts *o, const struct buffers *b,
	const struct routes *x)
{
	const struct lists l = lists_at(r, b);
	size_t e = r->g->n_embd, n = 0;
	for (size_t m = 0; m < o->route.n_experts; m++) {
		if (x->first[m + 1] == x->first[m]) continue;
		input_plan(&r->plan, l.gated + n, weight_form(&o->each.down));
		l.in[n] = l.gated + n;
		l.p[n] = (struct product){ &o->each.down, m, l.gated + n, b->done + x->first[m]*e*sizeof(float), e };
		n++;
	}
	return r->be->multiply(r, l.in, n, l.p, n);
}

static enum ggu_status run(const void *params, struct run *r, struct input *in, size_t y)
{
	const struct experts *o = params;
	struct buffers b = plan(o, r->n, r->g->n_embd, &r->plan);
	struct routes x = route_at(&o->route, r->n, run_host(r, b.route));
	struct product p[4] = { { &o->router, 0, in, b.scores, o->route.n_experts } },
		down = { &o->shared.down, 0, &b.shared_down, b.shared_done, r->g->n_embd };
	size_t n = 1;
	enum ggu_status s;
	if (o->shared.down.name) n += ffn_products(&o->shared, 0, in, b.shared_wide, p + n);
	if (o->shared_gate.name) p[n++] = (struct product){ &o->shared_gate, 0, in, b.gate, 1 };
	s = r->be->multiply(r, &in, 1, p, n);
	if (!s && o->shared.down.name) s = r->be->multiply(r, &(struct input *){ &b.shared_down }, 1, &down, 1);
	if (s) return s;
	r->be->route(r, &o->route, b.scores, &x);
	TRY(gate_and_up(r, o, &b, &x, in));
	TRY(down_each(r, o, &b, &x));
	r->be->combine(r, &(struct combine){ .routes = &x, .n_used = o->route.n_used, .out = b.done,
		.shared = b.shared_done, .shared_gate = b.gate, .y = y });
	return GGU_OK;
}

const struct op op_experts = { .name = "experts",
	.bytes = sizeof(struct experts), .fields = fields,
	.build = build, .measure = measure, .run = run, .apart = true,
};
