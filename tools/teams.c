/* SPDX-License-Identifier: MIT
 * teams.c - see teams.h. */
#include <stdlib.h>
#include "msg.h"
#include "progress.h"
#include "teams.h"

size_t teams_apart(const struct ggu_pool *pool, uint64_t groups, double bytes)
{
	const double most = 1 << 30;
	const size_t n = (size_t)ggu_pool_size(pool);
	return n > 1 && n <= groups && bytes*(double)n <= most ? n : 0;
}

uint64_t teams_groups(const struct teams *t, uint64_t windows)
{
	return t->n ? windows/t->side/t->n*t->n : 0;
}

static const struct teams_error *evaluate(const struct teams *t, size_t team, uint64_t first, size_t n)
{
	const struct teams_error *why = t->evaluate(t->ctx, team, first, n);
	if (!why) progress_set(atomic_fetch_add(t->done, n) + n);
	return why;
}

/* failed[n]: the group with which a team has failed, if there is a reason */
struct failed { size_t group; const struct teams_error *why; };
struct apart { const struct teams *t; uint64_t first; struct failed *failed; };
static void evaluate_apart(void *ctx, size_t group, int worker)
{
	const struct apart *a = ctx;
	struct failed *f = a->failed + worker;
	const size_t side = a->t->side;
	if (f->why) return;
	f->group = group;
	f->why = evaluate(a->t, (size_t)worker, a->first + group*side, side);
}
/* A team takes its groups in order, so the first one that fails is not among those that a failed team leaves out. */
static const struct teams_error *run_apart(const struct teams *t, uint64_t first, size_t groups)
{
	struct apart a = { t, first, msg_need(calloc(t->n, sizeof *a.failed)) };
	const struct failed *of = NULL;
	const struct teams_error *why;
	ggu_pool_run(t->pool, groups, evaluate_apart, &a);
	for (const struct failed *f = a.failed; f < a.failed + t->n; f++)
		if (f->why && (!of || f->group < of->group)) of = f;
	why = of ? of->why : NULL;
	free(a.failed);
	return why;
}

const struct teams_error *teams_run(const struct teams *t, uint64_t first, uint64_t end)
{
	const uint64_t groups = teams_groups(t, end - first);
	const struct teams_error *why = groups ? run_apart(t, first, (size_t)groups) : NULL;
	first += groups*t->side;
	while (!why && first < end) {
		const size_t n = end - first < t->side ? (size_t)(end - first) : t->side;
		why = evaluate(t, t->n, first, n);
		first += n;
	}
	return why;
}
