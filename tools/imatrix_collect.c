/* SPDX-License-Identifier: MIT
 * imatrix_collect.c - see imatrix_collect.h. Teams (teams.h) that have windows of their own sum in turns (turns.h). */
#include <stdlib.h>
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/text.h"
#include "imatrix_collect.h"
#include "load.h"
#include "msg.h"
#include "teams.h"
#include "turns.h"

struct team {
	struct collect *c;
	struct ggu_pool *pool;  /* NULL: one thread */
	struct work *w;
	size_t n;               /* windows at once */
	struct part *part, *source;     /* [n] */
	int32_t *target;        /* [n][seen]: with an encoder */
	float *rows;            /* [n*seen][n_embd]: with process_output */
	enum { TEXT, DRAWN, DRAWN_FOR_FIRST_BLOCK } now;        /* what is being evaluated */
	/* order among teams; turn: the number of this team's windows in it */
	struct turns *turns;
	size_t turn;
	bool stopped;           /* after the first block */
	struct teams_error why; /* it failed */
	struct ggu_error refused;       /* why tap does not take activations, if a code is set */
};

/* ---- sums ---- */

/* Is it the output matrix? The embedding may be that too. */
static bool is_output(const char *weight)
{
	return !strcmp(weight, "output.weight") || !strcmp(weight, "token_embd.weight");
}
/* "blk.3.attn_q.weight"; of a model with an encoder "enc.blk.3.attn_q.weight" */
static bool is_layers(const char *weight)
{
	return text_starts(weight, "blk.") || strstr(weight, ".blk.");
}
static enum ggu_status tap(void *ctx, const struct quant_input *in)
{
	struct team *t = ctx;
	struct collect *c = t->c;
	enum ggu_status s;
	if (!is_layers(in->weight) && !(c->process_output && is_output(in->weight))) return GGU_OK;
	if (t->now == DRAWN_FOR_FIRST_BLOCK && !drawn_in_first_block(in->weight)) {
		t->stopped = true;
		return GGU_ERR_STATE;
	}
	if (t->turns && !turns_wait(t->turns, t->turn)) return GGU_ERR_STATE;
	s = t->now != TEXT ? GGU_OK : imatrix_add(c->im, in, t->pool, &t->refused);
	if (t->turns) turns_next(t->turns, t->turn);
	if (s || !c->covariance) return s;
	if (t->now != TEXT)
		imatrix_sample(c->im, 1, drawn_root((size_t)c->n_chunks, c->drawn, c->stride, in->weight),
			drawn_first_root(c->ctx, 1));
	return imatrix_add_covariance(c->im, in, c->block, t->pool, &t->refused);
}

/* ---- a team ---- */

/* How many windows are evaluated side by side: as many as fit into a batch, or one if sums are taken by window. */
static size_t side_by_side(const struct collect *c, size_t batch)
{
	return c->covariance || batch < c->ctx ? 1 : batch/c->ctx;
}

/* Tokens that a work takes at once: those of a whole window if a window must not be cut. */
static size_t whole_batch(const struct collect *c, size_t batch)
{
	return model_is_whole(c->model) && batch < c->ctx ? c->ctx : batch;
}

/* How many tokens of a window the decoder, or the only stack, sees. If there is an encoder, it gets the first half, and
 * the decoder the second, after the token that it begins with. */
static size_t half(const struct collect *c) { return c->ctx/2; }
static size_t seen(const struct collect *c) { return model_has_encoder(c->model) ? c->ctx - half(c) : c->ctx; }

static struct team team_new(struct collect *c, struct ggu_pool *pool, size_t batch)
{
	struct team t = { .c = c, .pool = pool, .n = side_by_side(c, batch), .why = { .path = c->name } };
	struct ggu_error err;
	t.part = msg_need(calloc(t.n, sizeof *t.part));
	t.source = msg_need(calloc(t.n, sizeof *t.source));
	t.target = msg_need(malloc(t.n*c->ctx*sizeof *t.target));
	if (c->process_output)
		t.rows = msg_need(malloc(size_times(t.n*c->ctx, size_times(model_n_embd(c->model), sizeof *t.rows))));
	if (work_new_for(&t.w, c->model, pool, whole_batch(c, batch), &err)) msg_die_error(c->name, &err);
	for (size_t i = 0; i < t.n; i++)
		if (state_new(&t.part[i].state, c->model, NULL, &err)) msg_die_error(c->name, &err);
	return t;
}
static void team_free(struct team *t)
{
	for (size_t i = 0; i < t->n; i++) state_free(t->part[i].state);
	work_free(t->w);
	free(t->part);
	free(t->source);
	free(t->target);
	free(t->rows);
}

/* Passes the first halves of windows through the encoder side by side. What the decoder sees replaces the windows. */
static enum ggu_status encode(struct team *t, size_t n)
{
	const size_t h = half(t->c), rest = t->c->ctx - h;
	for (size_t i = 0; i < n; i++) {
		struct part *p = t->part + i;
		int32_t *to = t->target + i*rest;
		t->source[i] = (struct part){ p->state, p->ids, h, h };
		*to = t->c->start;
		memcpy(to + 1, p->ids + h, (rest - 1)*sizeof *to);
		p->ids = to;
	}
	return model_encode(t->w, t->source, n, tap, t, &t->why.err);
}

/* Evaluates windows chunk..chunk + n - 1. NULL, or why that failed. */
static const struct teams_error *evaluate(struct team *t, uint64_t chunk, size_t n)
{
	struct collect *c = t->c;
	struct model_call call = { .part = t->part, .n_parts = n, .rows = t->rows, .tap = tap, .tap_ctx = t };
	size_t n_seen = seen(c);
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < n; i++) {
		state_reset(t->part[i].state);
		t->part[i].ids = c->ids + (chunk + i)*c->ctx;
		t->part[i].n = n_seen;
		t->part[i].first = t->rows ? 0 : n_seen;
	}
	t->stopped = false;
	if (model_has_encoder(c->model)) s = encode(t, n);
	if (!s) s = model_eval(t->w, &call, &t->why.err);
	if (!s && t->rows) s = model_logits(t->w, t->rows, n*n_seen, NULL, tap, t, &t->why.err);
	if (c->covariance && (!s || t->stopped)) s = imatrix_flush(c->im, t->pool, &t->why.err);
	if (s && t->refused.code) t->why.err = t->refused;
	return s ? &t->why : NULL;
}

/* ---- teams ---- */

struct collect_teams {
	struct collect *c;
	struct team all;                /* of all threads; made when it is needed */
	struct team *apart;             /* [n_apart], of a thread each */
	size_t n_apart;
	/* of the call of collect_to: its first window, and the turns of the groups that go to teams of one thread */
	uint64_t first;
	struct turns *turns;
};

/* How many teams of one thread there are. Turns need windows with the same inputs, each once. */
static size_t n_apart(const struct collect *c)
{
	struct model_cost cost;
	struct ggu_error err;
	const size_t n = side_by_side(c, c->batch), batch = whole_batch(c, c->batch);
	const double tokens = (double)n*(double)c->ctx, rows = tokens*(double)model_n_embd(c->model)*sizeof(float);
	if (c->covariance || batch < c->ctx || !model_is_even(c->model)) return 0;
	if (model_cost(&cost, c->model, NULL, batch, c->ctx, 1, &err)) msg_die_error(c->name, &err);
	return teams_apart(c->pool, c->n_chunks/n,
		cost.work_bytes + (double)n*cost.state_bytes + (c->process_output ? rows : 0));
}

struct collect_teams *collect_teams_new(struct collect *c)
{
	struct collect_teams *t = msg_need(calloc(1, sizeof *t));
	t->c = c;
	t->n_apart = n_apart(c);
	t->apart = msg_need(calloc(t->n_apart + 1, sizeof *t->apart));
	for (size_t i = 0; i < t->n_apart; i++) t->apart[i] = team_new(c, NULL, c->batch);
	return t;
}
void collect_teams_free(struct collect_teams *t)
{
	for (size_t i = 0; i < t->n_apart; i++) team_free(t->apart + i);
	team_free(&t->all);
	free(t->apart);
	free(t);
}

static const struct teams_error *evaluate_alone(struct team *t, struct turns *turns, size_t turn, uint64_t first)
{
	const struct teams_error *why;
	t->turns = turns;
	t->turn = turn;
	why = evaluate(t, first, t->n);
	if (why) turns_fail(turns, turn);
	else turns_end(turns, turn);
	return why;
}
static const struct teams_error *evaluate_group(void *ctx, size_t team, uint64_t first, size_t n)
{
	struct collect_teams *t = ctx;
	if (team < t->n_apart) return evaluate_alone(t->apart + team, t->turns, (size_t)((first - t->first)/n), first);
	if (!t->all.w) t->all = team_new(t->c, t->c->pool, t->c->batch);
	return evaluate(&t->all, first, n);
}

void collect_to(struct collect_teams *t, uint64_t end)
{
	struct collect *c = t->c;
	const struct teams teams = { c->pool, t->n_apart, side_by_side(c, c->batch), evaluate_group, t, &c->done };
	const struct teams_error *why;
	t->first = c->done;
	t->turns = msg_need(turns_new((size_t)teams_groups(&teams, end - t->first)));
	why = teams_run(&teams, t->first, end);
	if (why) msg_die_error(why->path, &why->err);
	turns_free(t->turns);
}

void collect_drawn(struct collect *c)
{
	struct team t;
	if (!c->drawn.n) return;
	t = team_new(c, c->pool, c->ctx);
	for (size_t i = 0; i < c->drawn.n; i++) {
		const struct teams_error *why;
		t.now = i < c->drawn.whole ? DRAWN : DRAWN_FOR_FIRST_BLOCK;
		why = evaluate(&t, c->n_chunks + i, 1);
		if (why) msg_die_error(why->path, &why->err);
	}
	team_free(&t);
}
