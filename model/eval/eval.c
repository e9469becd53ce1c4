/* SPDX-License-Identifier: MIT
 * eval.c - takes parts of sequences through the layers, a batch at a time, in the scratch memory of a work (work.c).
 * head.c makes logits from the rows that come out. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/text.h"
#include "../../libgguf/try.h"
#include "model_internal.h"
#include "op.h"

/* ---- a batch ---- */

/* Runs the branches of a step. Adding the sum of their outputs to x is left pending. */
static enum ggu_status step(struct run *r, const struct step *st)
{
	struct plan outside = r->plan;
	struct input in = work_step_input(r->g, st, r->n, &r->plan);
	struct plan inside = r->plan;
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < st->n_branches && r->n && !s; i++) {
		const struct branch *b = st->branch + i;
		const struct norm *norm = b->before.kind ? &b->before : &st->before;
		if (norm != in.norm) {          /* made anew, in the same buffers */
			in.norm = norm;
			in.made = false;
			in.packed = 0;
		}
		s = b->op->run(b->params, r, &in, r->unread ? NO_BUFFER : r->y[i]);
		in.n = r->n;
		r->plan = inside;
	}
	r->pending = r->unread ? NULL : st;
	r->plan = outside;
	return s;
}

/* A call on its way through the batches, which count its tokens over all parts. fetched: rows that were delivered. */
struct call { const struct model_call *c; size_t n_tokens, fetched; };

/* Lists the segments of the batch's rows, which begin with token `at` of the call, and copies their ids. */
static enum ggu_status fill(struct run *r, struct call *o, size_t at)
{
	size_t from = 0, t = 0;
	for (size_t i = 0; i < o->c->n_parts && t < r->n; i++) {
		const struct part *p = o->c->part + i;
		size_t skip = at > from ? at - from : 0, n, end;
		from += p->n;
		if (skip >= p->n) continue;
		n = size_least(p->n - skip, r->n - t);
		end = skip + n;
		TRY(state_reserve(p->state, n, r->err));
		r->seg[r->n_seg++] = (struct segment){ .state = p->state, .t0 = t, .n = n, .pos = p->state->pos,
			.wanted = o->c->rows ? size_least(n, end - size_least(p->first, end)) : 0, .turn = t,
			.is_long = p->state->is_long };
		memcpy(r->w->ids + t, p->ids + skip, n*sizeof *p->ids);
		memcpy(p->state->ids + p->state->pos, p->ids + skip, n*sizeof *p->ids);
		t += n;
	}
	return GGU_OK;
}

static size_t wanted(const struct run *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_seg; i++) n += r->seg[i].wanted;
	return n;
}
/* Buffers begin with the first row that is kept, so that nothing moves if the rows are adjacent. */
void run_narrow(struct run *r, struct input *in)
{
	const size_t e = r->g->n_embd;
	const bool made = in && in->made;
	size_t first = r->n, n = 0;
	r->be->settle(r);
	for (size_t i = 0; i < r->n_seg; i++) {
		struct segment *s = r->seg + i;
		const size_t skip = s->n - s->wanted, from = s->t0 + skip;
		if (!n) first = from;
		if (s->wanted) {
			r->be->keep(r, r->x, e, from, s->wanted, first + n);
			if (made) r->be->keep(r, in->at, in->stride, from, s->wanted, first + n);
		}
		s->t0 = n;
		s->n = s->wanted;
		s->pos += skip;
		s->turn += skip;
		n += s->n;
	}
	r->x += first*e*sizeof(float);
	r->n = n;
	r->narrows = false;
	if (in) in->n = n;
	if (made) {
		in->at += first*in->stride*sizeof(float);
		in->packed = 0;
	}
}

/* Makes what other stacks keep of the last layer's rows. */
static enum ggu_status readers(struct run *r)
{
	struct plan outside = r->plan;
	struct input in = work_reader_input(r->g, r->n, &r->plan);
	struct plan inside = r->plan;
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < r->g->n_readers && !s; i++) {
		s = r->g->reader[i]->op->read(r->g->reader[i]->params, r, &in);
		r->plan = inside;
	}
	r->plan = outside;
	return s;
}

static bool is_end(const struct run *r, size_t layer, size_t step)
{
	return layer + 1 == r->g->n_layer && step + 1 == r->g->layer[layer].n_steps;
}
/* Goes through all layers. In the last step that mixes rows, or after it, unwanted rows are dropped, unless the caller
 * looks at all of them. */
static enum ggu_status layers(struct run *r, const struct call *o, size_t at)
{
	enum ggu_status s = GGU_OK;
	size_t k = 0, last = o->c->hidden || o->c->tap || r->g->n_readers ? 0 : r->g->n_mixing;
	for (size_t l = 0; l <= r->g->n_layer && !s; l++) {
		if (o->c->hidden) r->be->settle(r);
		if (o->c->hidden) r->be->fetch(r, NULL, o->c->hidden + (l*o->n_tokens + at)*r->g->n_embd);
		for (size_t i = 0; l < r->g->n_layer && i < r->g->layer[l].n_steps && r->n && !s; i++) {
			const struct step *st = r->g->layer[l].step + i;
			const bool narrows = ++k == last && wanted(r) < r->n;
			r->narrows = narrows && op_narrowing(st);
			r->unread = is_end(r, l, i) && !o->c->hidden && !r->g->n_readers && !wanted(r);
			s = step(r, st);
			if (narrows) run_narrow(r, NULL);
		}
	}
	if (!s && r->g->n_readers) s = readers(r);
	run_narrow(r, NULL);
	return s;
}
/* Goes through the steps that the call names. */
static enum ggu_status steps(struct run *r, const struct model_call *c, float *stream)
{
	enum ggu_status s = GGU_OK;
	size_t k = 0;
	for (size_t l = 0; l < r->g->n_layer; l++)
		for (size_t i = 0; i < r->g->layer[l].n_steps && !s; i++, k++)
			if (k >= c->from && k < c->to) s = step(r, r->g->layer[l].step + i);
	r->be->settle(r);
	if (!s) r->be->fetch(r, NULL, stream);
	return s;
}

static enum ggu_status batch(struct work *w, struct call *o, size_t at, size_t n, struct ggu_error *err)
{
	struct run r = work_begin(w, n);
	float *stream = o->c->stream ? o->c->stream + at*r.g->n_embd : NULL;
	enum ggu_status s;
	r.tap = o->c->tap;
	r.tap_ctx = o->c->tap_ctx;
	r.err = err;
	TRY(fill(&r, o, at));
	r.be->embed(&r, w->ids, o->c->to ? stream : NULL);
	s = stream ? steps(&r, o->c, stream) : layers(&r, o, at);
	if (stream) run_narrow(&r, NULL);
	if (!s && o->c->rows) {
		r.be->fetch(&r, &r.g->out_norm, o->c->rows + o->fetched*r.g->n_embd);
		o->fetched += r.n;
	}
	for (size_t i = 0; i < r.n_seg; i++) r.seg[i].state->pos = r.seg[i].pos + r.seg[i].n;
	return s;
}

/* The rows that go together: what is left, at most a batch; if sequences must be whole, only whole ones. */
static size_t batch_rows(const struct work *w, const struct call *o, size_t at)
{
	size_t n = size_least(o->n_tokens - at, w->n_batch), from = 0, end = at;
	if (!w->g->whole) return n;
	for (size_t i = 0; i < o->c->n_parts; i++) {
		from += o->c->part[i].n;
		if (from > at && from - at <= n) end = from;
	}
	return end - at;
}

static enum ggu_status batches(struct work *w, const struct model_call *c, struct ggu_error *err)
{
	struct call o = { .c = c };
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < c->n_parts; i++) o.n_tokens += c->part[i].n;
	for (size_t at = 0; at < o.n_tokens && !s; ) {
		size_t n = batch_rows(w, &o, at);
		s = batch(w, &o, at, n, err);
		at += n;
	}
	return s;
}

/* ---- a call ---- */

/* Can this part, which will then be at pos, go together with one whose state is `first`? */
static enum ggu_status check(const struct work *w, const struct part *p, size_t pos, const struct state *first,
	struct ggu_error *err)
{
	const struct graph *g = w->g;
	size_t end = pos + p->n;
	if (p->n > MODEL_MAX_POS || end > MODEL_MAX_POS)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "more than %d positions", MODEL_MAX_POS);
	if (g->positions.name && end > g->positions.n_out)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, g->positions.name,
			"the model has only %zu position%s", g->positions.n_out, text_s(g->positions.n_out));
	if (g->whole && (p->n > w->n_batch || (p->n && pos)))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"the model needs whole sequences in one batch: %zu tokens in batches of %zu", end, w->n_batch);
	if (g->source && !p->state->source->pos)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "",
			"the model's encoder has not been given any tokens");
	if (g->n_caches && (p->state->shape->k_type != first->shape->k_type
		|| p->state->shape->v_type != first->shape->v_type))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"a call cannot mix sequences with caches of different types");
	for (size_t i = 0; i < p->n; i++)
		if (p->ids[i] < 0 || (size_t)p->ids[i] >= g->n_vocab)
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
				"token %d is not in the vocabulary of %zu", (int)p->ids[i], g->n_vocab);
	return GGU_OK;
}

/* Computes what a sequence has anew if it outgrew the first context of its rope, or was cut to less than that, since
 * other divisors then turn all of it; or if it was cut and lacks positions that its windows see again. */
static enum ggu_status compute_anew(struct work *w, struct state *s, size_t n, struct ggu_error *err)
{
	size_t end = s->pos + n, long_from = w->g->long_from;
	bool is_long = long_from && end > long_from;
	struct part again = { .state = s, .n = s->pos, .first = s->pos };
	int32_t *ids;
	enum ggu_status st;
	if (s->is_long == is_long && !state_lacks(s)) return GGU_OK;
	s->is_long = is_long;
	if (!s->pos) return GGU_OK;
	if (!(ids = malloc(s->pos*sizeof *ids)))
		return ggu_no_memory(err);
	memcpy(ids, s->ids, s->pos*sizeof *ids);
	again.ids = ids;
	state_rewind(s);
	s->is_long = is_long;
	st = batches(w, &(struct model_call){ .part = &again, .n_parts = 1 }, err);
	free(ids);
	return st;
}

static enum ggu_status check_stretch(const struct graph *g, struct ggu_error *err)
{
	if (g->source)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"the model has an encoder: no layer can be evaluated alone");
	if (g->borrows)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"layers of the model use keys and values of others: no layer can be evaluated alone");
	return GGU_OK;
}

enum ggu_status model_eval(struct work *w, const struct model_call *c, struct ggu_error *err)
{
	enum ggu_status s = c->stream ? check_stretch(w->g, err) : GGU_OK;
	for (size_t i = 0; i < c->n_parts && !s; i++) {
		s = check(w, c->part + i, c->stream ? 0 : c->part[i].state->pos, c->part->state, err);
		for (size_t k = 0; k < i && !s; k++)
			if (c->part[k].state == c->part[i].state)
				s = ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
					"a sequence appears in two parts of a call");
	}
	for (size_t i = 0; i < c->n_parts && !s && c->stream; i++) state_begin_anew(c->part[i].state);
	for (size_t i = 0; i < c->n_parts && !s; i++) s = compute_anew(w, c->part[i].state, c->part[i].n, err);
	return s ? s : batches(w, c, err);
}
