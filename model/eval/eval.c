/* SPDX-License-Identifier: MIT
 * eval.c - parts of sequences through the layers, a batch at a time, and the scratch that this takes. head.c makes
 * logits of the rows that come out. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/pool.h"
#include "cpu_internal.h"
#include "op.h"

/* ---- scratch ---- */

/* What a batch needs throughout: the stream, outputs of a step's branches, sines and cosines. */
static struct run begin(struct work *w, size_t n)
{
	const struct graph *g = w->g;
	struct run r = { .be = w->be, .w = w, .g = g, .n = n, .seg = w->seg };
	r.x = plan_floats(&r.plan, n, g->n_embd);
	for (size_t i = 0; i < g->max_branches; i++) r.y[i] = plan_floats(&r.plan, n, g->n_embd);
	for (size_t i = 0; i < g->n_ropes; i++) w->turn[i] = plan_floats(&r.plan, n, g->rope[i].dims);
	return r;
}
/* A norm of the stream: the input of a step's branches, made when the first product asks for it. */
static struct input stream_input(const struct graph *g, const struct norm *norm, unsigned forms, size_t n,
	struct plan *p)
{
	struct input in = { .kind = INPUT_STREAM, .stride = g->n_embd, .n = n, .n_in = g->n_embd, .norm = norm };
	in.at = plan_floats(p, n, g->n_embd);
	input_plan(p, &in, forms);
	return in;
}
static struct input step_input(const struct graph *g, const struct step *st, size_t n, struct plan *p)
{
	return stream_input(g, &st->before, st->forms, n, p);
}
/* What other stacks' branches that keep this one's rows have in common. */
static struct input reader_input(const struct graph *g, size_t n, struct plan *p)
{
	return stream_input(g, &g->out_norm, g->reader_forms, n, p);
}

static void measure_readers(const struct graph *g, size_t n, struct measure *m)
{
	size_t outside = m->plan.used, inside;
	reader_input(g, n, &m->plan);
	inside = m->plan.used;
	for (size_t i = 0; i < g->n_readers; i++) {
		g->reader[i]->op->measure_read(g->reader[i]->params, n, m);
		m->plan.used = inside;
	}
	m->plan.used = outside;
}

static struct measure measure_layers(struct work *w, size_t n)
{
	struct run r = begin(w, n);
	struct measure m = { .plan = r.plan };
	size_t n_steps = 0;
	for (size_t l = 0; l < r.g->n_layer; l++)
		for (size_t i = 0; i < r.g->layer[l].n_steps; i++) {
			const struct step *st = r.g->layer[l].step + i;
			size_t outside = m.plan.used, inside;
			step_input(r.g, st, n, &m.plan);
			inside = m.plan.used;
			for (size_t k = 0; k < st->n_branches; k++) {
				st->branch[k].op->measure(st->branch[k].params, n, &m);
				m.plan.used = inside;
				m.plan.host_used = 0;
			}
			m.plan.used = outside;
			if (++n_steps == r.g->n_mixing) m.macs_all = m.macs;
		}
	if (r.g->n_readers) measure_readers(r.g, n, &m);
	return m;
}

void *run_host(const struct run *r, size_t at) { return r->w->host + at; }

static void *aligned(size_t n)
{
	void *p;
	return n > SIZE_MAX - 64 || posix_memalign(&p, 64, (n + 63)/64*64 + 64) ? NULL : p;
}

static size_t attend_bytes(const struct graph *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_caches; i++) {
		const struct cache *c = g->cache + i;
		size_t a = attn_work_bytes(&(struct attn_shape){ c->n_query, c->n_heads, c->k_dim, c->v_dim,
			GGU_TYPE_F32, GGU_TYPE_F32, c->v_in_k });
		if (a > n) n = a;
	}
	return n;
}
static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static size_t local_bytes(const struct graph *g)
{
	size_t n = most(quant_mul_work_bytes(), g->n_embd*sizeof(float));
	n = most(n, most(attend_bytes(g), g->source ? attend_bytes(g->source) : 0));
	return (n + 63)/64*64;
}

static bool allocate(struct work *w)
{
	const struct graph *g = w->g;
	struct plan p = measure_layers(w, w->n_batch).plan;
	size_t workers = (size_t)ggu_pool_size(w->m->pool);
	w->bytes = p.peak;
	w->host_bytes = p.host_peak;
	w->local_bytes = local_bytes(g);
	w->base = aligned(w->bytes);
	w->host = aligned(w->host_bytes);
	w->local = aligned(workers*w->local_bytes);
	w->seg = calloc(w->n_batch, sizeof *w->seg);
	w->rows = calloc(w->n_batch, sizeof *w->rows);
	w->ids = calloc(w->n_batch, sizeof *w->ids);
	w->turned = calloc(w->n_batch, sizeof *w->turned);
	for (size_t i = 0; i < g->n_ropes; i++)
		for (int is_long = 0; is_long < 2; is_long++) {
			if (!(w->freq[i][is_long] = malloc(g->rope[i].dims*sizeof(float)))) return false;
			rope_frequencies(g->rope + i, is_long, w->freq[i][is_long]);
		}
	return w->base && w->host && w->local && w->seg && w->rows && w->ids && w->turned;
}

enum ggu_status work_new(struct work **out, struct model *m, size_t n_batch, struct ggu_error *err)
{
	return work_of(out, m, &m->graph, n_batch, err);
}

enum ggu_status work_of(struct work **out, struct model *m, const struct graph *g, size_t n_batch,
	struct ggu_error *err)
{
	struct work *w = calloc(1, sizeof *w);
	if (w) {
		w->m = m;
		w->g = g;
		w->be = &backend_cpu;
		w->n_batch = n_batch ? n_batch : WORK_DEFAULT_BATCH;
	}
	if (!w || !allocate(w)) {
		work_free(w);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for batches of %zu tokens",
			n_batch ? n_batch : WORK_DEFAULT_BATCH);
	}
	*out = w;
	return GGU_OK;
}

void work_free(struct work *w)
{
	if (!w) return;
	work_free(w->source);
	for (size_t i = 0; i < GRAPH_MAX_ROPES; i++) {
		free(w->freq[i][0]);
		free(w->freq[i][1]);
	}
	free(w->base); free(w->host); free(w->local); free(w->seg); free(w->ids); free(w->rows); free(w->partial);
	free(w->cut); free(w->head); free(w->turned);
	free(w);
}

static size_t bytes_of(const struct work *w, size_t threads)
{
	size_t rows = w->n_batch*(sizeof *w->seg + sizeof *w->rows + sizeof *w->ids + sizeof *w->turned);
	rows += w->source ? bytes_of(w->source, threads) : 0;
	return w->bytes + w->host_bytes + threads*w->local_bytes + rows + w->partial_bytes + w->head_bytes;
}
size_t work_bytes(const struct work *w) { return bytes_of(w, (size_t)ggu_pool_size(w->m->pool)); }

/* Of a stack whose sequences' caches are those of s. */
static struct measure measure_work(struct work *w, const struct state *s, size_t n_ctx)
{
	struct measure m = measure_layers(w, w->n_batch);
	w->bytes = m.plan.peak;
	w->host_bytes = m.plan.host_peak;
	w->local_bytes = local_bytes(w->g);
	for (; s; s = s->source)
		for (size_t i = 0; i < s->g->n_caches; i++)
			w->partial_bytes = most(w->partial_bytes, cpu_partial_bytes(s->shape + i, w->n_batch, n_ctx));
	return m;
}
/* Most pages of a lane on the way to n_ctx positions. */
static size_t most_pages(const struct horizon *h, size_t n_ctx, size_t n_batch)
{
	size_t n = 0;
	if (!h->window) return lane_pages(n_ctx);
	for (size_t pos = 0; pos < n_ctx; pos += n_batch)
		n = most(n, lane_pages(cpu_least(pos + n_batch, n_ctx)) - lane_kept(h, pos));
	return n;
}
/* What a state has at most, and a row halfway sees of it. */
static void measure_state(const struct state *s, size_t n_ctx, size_t n_batch, struct model_cost *c)
{
	double fixed = (double)s->g->fixed_floats*sizeof *s->fixed;
	c->state_bytes += fixed + (double)lane_pages(n_ctx)*ATTN_BLOCK*sizeof *s->ids;
	c->seen_bytes += fixed;
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		const struct lane *l = s->lane + i;
		size_t seen = s->g->whole ? n_ctx : lane_sight(&l->sees, n_ctx/2);
		c->state_bytes += (double)most_pages(&l->sees, n_ctx, n_batch)
			*(double)(l->page_bytes + sizeof(struct page));
		c->seen_bytes += (double)seen*(double)l->page_bytes/ATTN_BLOCK;
	}
}

enum ggu_status model_cost(struct model_cost *cost, struct model *m, const struct state_options *o, size_t n_batch,
	size_t n_ctx, size_t threads, struct ggu_error *err)
{
	const struct graph *g = &m->graph;
	struct work w = { .m = m, .g = g, .be = &backend_cpu, .n_batch = n_batch ? n_batch : WORK_DEFAULT_BATCH };
	struct work source = { .m = m, .g = g->source, .be = &backend_cpu, .n_batch = most(n_ctx, w.n_batch) };
	struct measure layers, encoder, head = { .macs = 0 };
	struct state *s;
	enum ggu_status st = state_new(&s, m, o, err);
	if (st) return st;
	layers = measure_work(&w, s, n_ctx);
	measure_weight(&head, &g->head, 1);
	*cost = (struct model_cost){ layers.macs, layers.macs - layers.macs_all, head.macs, layers.weight_bytes,
		head.weight_bytes };
	measure_state(s, n_ctx, w.n_batch, cost);
	if (g->source) {
		encoder = measure_work(&source, s->source, n_ctx);
		cost->source_macs = encoder.macs;
		cost->source_weight_bytes = encoder.weight_bytes;
		measure_state(s->source, n_ctx, n_ctx, cost);
		w.source = &source;
	}
	cost->work_bytes = (double)bytes_of(&w, threads);
	state_free(s);
	return GGU_OK;
}

/* ---- a batch ---- */

/* x is left as it was, but for what is pending: the sum over the branches' outputs. */
static enum ggu_status step(struct run *r, const struct step *st)
{
	struct plan outside = r->plan;
	struct input in = step_input(r->g, st, r->n, &r->plan);
	struct plan inside = r->plan;
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < st->n_branches && !s; i++) {
		const struct branch *b = st->branch + i;
		struct input own = in;
		own.norm = &b->before;
		own.made = false;
		own.packed = 0;
		if (i && !b->before.kind && st->branch[i - 1].before.kind) {
			in.made = false;
			in.packed = 0;
		}
		s = b->op->run(b->params, r, b->before.kind ? &own : &in, r->y[i]);
		r->plan = inside;
	}
	r->pending = st;
	r->plan = outside;
	return s;
}

/* Tokens at..at + n of all parts, in order. */
struct calls { const struct model_call *c; size_t n_tokens, fetched; };

/* The segments of the batch's rows, and their ids. */
static enum ggu_status fill(struct run *r, struct calls *o, size_t at)
{
	enum ggu_status s = GGU_OK;
	size_t from = 0, t = 0;
	for (size_t i = 0; i < o->c->n_parts && t < r->n && !s; i++) {
		const struct part *p = o->c->part + i;
		size_t skip = at > from ? at - from : 0, n;
		from += p->n;
		if (skip >= p->n) continue;
		n = cpu_least(p->n - skip, r->n - t);
		if ((s = state_reserve(p->state, n, r->err))) break;
		r->seg[r->n_seg++] = (struct segment){ p->state, t, n, p->state->pos, p->state->is_long };
		memcpy(r->w->ids + t, p->ids + skip, n*sizeof *p->ids);
		memcpy(p->state->ids + p->state->pos, p->ids + skip, n*sizeof *p->ids);
		t += n;
	}
	return s;
}

/* Only the rows that are wanted go on. */
static void narrow(struct run *r, const struct calls *o, size_t at)
{
	size_t from = 0, n = 0;
	r->be->settle(r);
	for (size_t i = 0; i < o->c->n_parts && o->c->rows; from += o->c->part[i++].n) {
		const struct part *p = o->c->part + i;
		size_t a = from + p->first > at ? from + p->first : at, b = cpu_least(from + p->n, at + r->n);
		if (a >= b) continue;
		r->be->keep(r, a - at, b - a, n);
		n += b - a;
	}
	r->n = n;
}

/* What other stacks keep of the last layer's rows. */
static enum ggu_status readers(struct run *r)
{
	struct plan outside = r->plan;
	struct input in = reader_input(r->g, r->n, &r->plan);
	struct plan inside = r->plan;
	enum ggu_status s = GGU_OK;
	for (size_t i = 0; i < r->g->n_readers && !s; i++) {
		s = r->g->reader[i]->op->read(r->g->reader[i]->params, r, &in);
		r->plan = inside;
	}
	r->plan = outside;
	return s;
}

/* Nobody looks at rows that are not wanted once their sequences have them, unless the caller does. */
static enum ggu_status layers(struct run *r, const struct calls *o, size_t at)
{
	enum ggu_status s = GGU_OK;
	size_t k = 0, last = o->c->hidden || o->c->tap || r->g->n_readers ? 0 : r->g->n_mixing;
	bool all = true;
	for (size_t l = 0; l <= r->g->n_layer && !s; l++) {
		if (o->c->hidden) r->be->settle(r);
		if (o->c->hidden) r->be->fetch(r, NULL, o->c->hidden + (l*o->n_tokens + at)*r->g->n_embd);
		for (size_t i = 0; l < r->g->n_layer && i < r->g->layer[l].n_steps && r->n && !s; i++) {
			s = step(r, r->g->layer[l].step + i);
			if (++k != last || s) continue;
			narrow(r, o, at);
			all = false;
		}
	}
	if (all && !s && r->g->n_readers) s = readers(r);
	if (all) narrow(r, o, at);
	r->be->settle(r);
	return s;
}
/* Of a stretch: its steps alone. */
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

static enum ggu_status batch(struct work *w, struct calls *o, size_t at, size_t n, struct ggu_error *err)
{
	struct run r = begin(w, n);
	float *stream = o->c->stream ? o->c->stream + at*r.g->n_embd : NULL;
	enum ggu_status s;
	r.tap = o->c->tap;
	r.tap_ctx = o->c->tap_ctx;
	r.err = err;
	if ((s = fill(&r, o, at))) return s;
	r.be->embed(&r, w->ids, o->c->to ? stream : NULL);
	s = stream ? steps(&r, o->c, stream) : layers(&r, o, at);
	if (stream) narrow(&r, o, at);
	if (!s && o->c->rows) {
		r.be->fetch(&r, &r.g->out_norm, o->c->rows + o->fetched*r.g->n_embd);
		o->fetched += r.n;
	}
	for (size_t i = 0; i < r.n_seg; i++) r.seg[i].state->pos += r.seg[i].n;
	return s;
}

/* Rows that go together: what is left, at most a batch; of whole sequences only whole ones. */
static size_t batch_rows(const struct work *w, const struct calls *o, size_t at)
{
	size_t n = cpu_least(o->n_tokens - at, w->n_batch), from = 0, end = at;
	if (!w->g->whole) return n;
	for (size_t i = 0; i < o->c->n_parts; i++) {
		from += o->c->part[i].n;
		if (from > at && from - at <= n) end = from;
	}
	return end - at;
}

static enum ggu_status go(struct work *w, const struct model_call *c, struct ggu_error *err)
{
	struct calls o = { .c = c };
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

static enum ggu_status check(const struct work *w, const struct part *p, const struct state *first,
	struct ggu_error *err)
{
	const struct graph *g = w->g;
	size_t end = p->state->pos + p->n;
	if (p->n > STATE_MAX_POS || end > STATE_MAX_POS)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "more than %d positions", STATE_MAX_POS);
	if (g->positions.name && end > g->positions.n_out)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, g->positions.name, "the model knows %zu positions",
			g->positions.n_out);
	if (g->whole && (p->n > w->n_batch || (p->n && p->state->pos)))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"the model sees whole sequences: %zu tokens in batches of %zu", end, w->n_batch);
	if (g->source && !p->state->source->pos)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "", "the model's encoder has been given nothing");
	if (g->n_caches && (p->state->shape->k_type != first->shape->k_type
		|| p->state->shape->v_type != first->shape->v_type))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"sequences with caches of several types in one call");
	for (size_t i = 0; i < p->n; i++)
		if (p->ids[i] < 0 || (size_t)p->ids[i] >= g->n_vocab)
			return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
				"token %d is not in the vocabulary of %zu", (int)p->ids[i], g->n_vocab);
	return GGU_OK;
}

/* A sequence that has become longer (or, cut, shorter) than its rope's first context turns by other factors, all of it,
 * and one that was cut may lack what its windows want again: what it had is computed anew. */
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
	st = go(w, &(struct model_call){ .part = &again, .n_parts = 1 }, err);
	free(ids);
	return st;
}

/* The sequences of a stretch, in the memory that they have. */
static enum ggu_status begin_anew(const struct work *w, const struct model_call *c, struct ggu_error *err)
{
	const struct graph *g = w->g;
	if (g->source)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"the model has an encoder: no layer can be evaluated alone");
	if (g->borrows)
		return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
			"layers of the model use keys and values of others: no layer can be evaluated alone");
	for (size_t i = 0; i < c->n_parts; i++) state_begin_anew(c->part[i].state);
	return GGU_OK;
}

enum ggu_status model_eval(struct work *w, const struct model_call *c, struct ggu_error *err)
{
	enum ggu_status s = c->stream ? begin_anew(w, c, err) : GGU_OK;
	for (size_t i = 0; i < c->n_parts && !s; i++) {
		s = check(w, c->part + i, c->part->state, err);
		for (size_t k = 0; k < i && !s; k++)
			if (c->part[k].state == c->part[i].state)
				s = ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
					"a sequence stands in two parts of a call");
	}
	for (size_t i = 0; i < c->n_parts && !s; i++) s = compute_anew(w, c->part[i].state, c->part[i].n, err);
	return s ? s : go(w, c, err);
}
