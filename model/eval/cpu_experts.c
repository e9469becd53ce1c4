/* SPDX-License-Identifier: MIT
 * cpu_experts.c - routing and combining of experts on the processor. Equal scores: the lower index first. */
#include <math.h>
#include <string.h>
#include "../../quant/vec.h"
#include "cpu_internal.h"

struct routing { struct run *r; const struct router *o; float *scores; const struct routes *to; };

/* The position of the largest of x[n] that is not taken; the first of these if none is a number; n if all are taken. */
static size_t best(const float *x, const bool *taken, size_t n)
{
	size_t top = n;
	for (size_t i = 0; i < n; i++) if (!taken[i] && x[i] == x[i] && (top == n || x[i] > x[top])) top = i;
	for (size_t i = 0; i < n && top == n; i++) if (!taken[i]) top = i;
	return top;
}

/* A worker's scratch for one row at a time. Experts may be thousands, too many for its stack. */
struct scratch {
	float *choice, *group;          /* [n_experts], [n_groups]: by what they are chosen */
	bool *taken, *seen, *open;      /* [n_experts], [n_experts], [n_groups] */
};
size_t cpu_route_bytes(size_t n_experts) { return n_experts*(2*sizeof(float) + 3*sizeof(bool)); }
static struct scratch scratch_at(const struct router *o, void *at)
{
	const size_t n = o->n_experts;
	struct scratch s = { .choice = at };
	s.group = s.choice + n;
	s.taken = (bool *)(void *)(s.group + n);
	s.seen = s.taken + n;
	s.open = s.seen + n;
	return s;
}

/* Takes all experts whose group is not open. */
static void close_groups(const struct router *o, const struct scratch *s)
{
	const size_t per = o->n_experts/o->n_groups;
	memset(s->seen, 0, o->n_experts*sizeof *s->seen);
	memset(s->open, 0, o->n_groups*sizeof *s->open);
	for (size_t g = 0; g < o->n_groups; g++) {
		s->group[g] = 0;
		for (size_t k = 0; k < o->group_best; k++) {
			size_t i = g*per + best(s->choice + g*per, s->seen + g*per, per);
			s->seen[i] = true;
			s->group[g] += s->choice[i];
		}
	}
	for (size_t k = 0; k < o->n_groups_used; k++) s->open[best(s->group, s->open, o->n_groups)] = true;
	for (size_t i = 0; i < o->n_experts; i++) s->taken[i] = !s->open[i/per];
}

static bool reaches(const struct router *o, float x, float top)
{
	float size = fabsf(x) > top ? fabsf(x) : top;
	return !((top - x)/size > (float)(2*o->jitter));
}

/* Chooses one expert after the other; its weight is its share among those whose logits nearly reach its own. */
static void sparsemixer(const struct router *o, const float *x, uint32_t *expert, float *weight, bool *taken)
{
	for (size_t k = 0; k < o->n_used; k++) {
		size_t top = best(x, taken, o->n_experts);
		double sum = 0;
		for (size_t i = 0; i < o->n_experts; i++)
			if (!taken[i] && reaches(o, x[i], x[top])) sum += num_exp((double)x[i] - x[top]);
		expert[k] = (uint32_t)top;
		weight[k] = (float)(1/sum);
		taken[top] = true;
	}
}

static void weigh(const struct router *o, const float *score, const uint32_t *expert, float *weight)
{
	double sum = 0;
	for (size_t k = 0; k < o->n_used; k++) weight[k] = score[expert[k]];
	if (o->kind == ROUTE_SOFTMAX_CHOSEN) vec_softmax(weight, o->n_used);
	for (size_t k = 0; k < o->n_used && o->normalise; k++) sum += weight[k];
	for (size_t k = 0; k < o->n_used && o->normalise; k++) weight[k] = (float)(weight[k]/(sum + 1e-20));
}

static void route_row(const struct router *o, const struct scratch *s, float *score, uint32_t *expert, float *weight)
{
	const size_t n = o->n_experts;
	memset(s->taken, 0, n*sizeof *s->taken);
	if (o->kind == ROUTE_SPARSEMIXER) sparsemixer(o, score, expert, weight, s->taken);
	else {
		if (o->kind == ROUTE_SOFTMAX) vec_softmax(score, n);
		if (o->kind == ROUTE_SIGMOID) for (size_t i = 0; i < n; i++) score[i] = (float)cpu_sigmoid(score[i]);
		for (size_t i = 0; i < n; i++) s->choice[i] = score[i] + (o->bias ? o->bias[i] : 0);
		if (o->n_groups_used < o->n_groups) close_groups(o, s);
		for (size_t k = 0; k < o->n_used; k++) {
			expert[k] = (uint32_t)best(s->choice, s->taken, n);
			s->taken[expert[k]] = true;
		}
		weigh(o, score, expert, weight);
	}
	if (o->scale != 1) vec_scale(weight, (float)o->scale, o->n_used);
}

static void route_task(void *ctx, size_t task, int worker)
{
	const struct routing *c = ctx;
	const struct scratch s = scratch_at(c->o, work_local(c->r->w, worker));
	size_t n = c->o->n_experts, k = c->o->n_used;
	for (size_t t = task*CPU_ROWS; t < c->r->n && t < (task + 1)*CPU_ROWS; t++)
		route_row(c->o, &s, c->scores + t*n, c->to->expert + t*k, c->to->weight + t*k);
}

void cpu_route(struct run *r, const struct router *o, size_t scores, const struct routes *to)
{
	size_t pairs = r->n*o->n_used;
	cpu_run(r->w, PASS("routing"), size_parts(r->n, CPU_ROWS), route_task,
		&(struct routing){ r, o, cpu_at(r, scores), to });
	memset(to->first, 0, (o->n_experts + 1)*sizeof *to->first);
	for (size_t i = 0; i < pairs; i++) to->first[to->expert[i] + 1]++;
	for (size_t e = 0; e < o->n_experts; e++) to->first[e + 1] += to->first[e];
	/* first[e] advances to where expert e + 1 begins, and is set back below */
	for (size_t i = 0; i < pairs; i++) {
		to->place[i] = (uint32_t)to->first[to->expert[i]]++;
		to->pick[to->place[i]] = (uint32_t)(i/o->n_used);
	}
	memmove(to->first + 1, to->first, o->n_experts*sizeof *to->first);
	to->first[0] = 0;
}

/* ---- combining ---- */

struct combining { struct run *r; const struct combine *c; };

static void combine_task(void *ctx, size_t task, int worker)
{
	const struct combining *o = ctx;
	const struct combine *c = o->c;
	const struct run *r = o->r;
	size_t e = r->g->n_embd;
	(void)worker;
	for (size_t t = task*CPU_ROWS; t < r->n && t < (task + 1)*CPU_ROWS; t++) {
		float *y = cpu_at(r, c->y) + t*e;
		memset(y, 0, e*sizeof *y);
		for (size_t k = t*c->n_used; k < (t + 1)*c->n_used; k++)
			vec_axpy(y, c->routes->weight[k], cpu_at(r, c->out) + c->routes->place[k]*e, e);
		if (c->shared == NO_BUFFER) continue;
		vec_axpy(y, c->shared_gate == NO_BUFFER ? 1 : (float)cpu_sigmoid(cpu_at(r, c->shared_gate)[t]),
			cpu_at(r, c->shared) + t*e, e);
	}
}

void cpu_combine(struct run *r, const struct combine *c)
{
	if (c->y == NO_BUFFER) return;
	cpu_run(r->w, PASS("sums of experts"), size_parts(r->n, CPU_ROWS), combine_task, &(struct combining){ r, c });
}
