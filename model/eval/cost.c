/* SPDX-License-Identifier: MIT
 * cost.c - what evaluating a model costs, worked out without doing it: the plan of a work that gets no memory, and the
 * sizes of an empty state. */
#include "../../libgguf/size.h"
#include "model_internal.h"

/* The work of a stack, for sequences whose caches are those of s: its sizes, without memory for any. */
static struct measure measure_work(struct work *w, const struct state *s, size_t n_ctx, size_t n_threads)
{
	struct measure m = work_plan(w);
	for (; s; s = s->source)
		for (size_t i = 0; i < s->g->n_caches; i++)
			w->partial_bytes = size_most(w->partial_bytes,
				w->m->be->attend_bytes(s->shape + i, w->n_batch, n_ctx, n_threads));
	return m;
}
/* The most pages of a table on the way to n_ctx positions. */
static size_t most_pages(const struct horizon *h, size_t n_ctx, size_t n_batch)
{
	size_t n = 0;
	if (!h->window) return page_count(n_ctx);
	for (size_t pos = 0; pos < n_ctx; pos += n_batch)
		n = size_most(n, page_count(size_least(pos + n_batch, n_ctx)) - horizon_first_page(h, pos));
	return n;
}
/* What a state holds at most, and what a row in the middle of the context sees of it. */
static void measure_state(const struct state *s, size_t n_ctx, size_t n_batch, struct model_cost *c)
{
	double recurrent = (double)recurrent_bytes(s->g);
	c->state_bytes += recurrent + (double)page_count(n_ctx)*ATTN_BLOCK*sizeof *s->ids;
	c->seen_bytes += recurrent;
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		const struct page_table *t = s->table + i;
		size_t seen = s->g->whole ? n_ctx : horizon_sight(&t->sees, n_ctx/2);
		double pages = (double)most_pages(&t->sees, n_ctx, n_batch);
		c->state_bytes += pages*(double)(t->page_bytes + sizeof(struct page));
		c->slack_bytes += pages_slack(t->page_bytes, pages);
		c->seen_bytes += (double)seen*(double)t->page_bytes/ATTN_BLOCK;
	}
}
/* Adds what an encoder costs to what its decoder does, which begins when the encoder's work is gone. The head counts as
 * if it were the embedding, which the encoder reads. */
static void measure_source(struct work *w, const struct state *s, size_t n_ctx, size_t n_threads, struct model_cost *c)
{
	const double decoder = c->state_bytes + c->slack_bytes + c->weight_bytes;
	double bytes;
	c->source_macs = measure_work(w, s, n_ctx, n_threads).macs;
	bytes = work_total(w, n_threads);
	c->apart_bytes = bytes < decoder ? bytes : decoder;
	c->work_bytes += bytes;
	c->made_bytes += (double)w->g->made_bytes;
	measure_state(s, n_ctx, n_ctx, c);
}

enum ggu_status model_cost(struct model_cost *cost, struct model *m, const struct state_options *o, size_t n_batch,
	size_t n_ctx, size_t n_threads, struct ggu_error *err)
{
	const struct graph *g = &m->graph;
	struct work w = { .m = m, .g = g, .n_batch = n_batch ? n_batch : MODEL_BATCH };
	struct work source = { .m = m, .g = g->source, .n_batch = size_most(n_ctx, w.n_batch), .reader = &w };
	struct measure layers, narrow, head = { .macs = 0 };
	struct state *s;
	enum ggu_status st = state_new(&s, m, o, err);
	if (st) return st;
	layers = measure_work(&w, s, n_ctx, n_threads);
	narrow = g->n_readers ? layers : work_measure(&w, w.n_batch, 1);
	measure_weight(&head, &g->head, 1);
	*cost = (struct model_cost){ .macs = layers.macs, .wanted_macs = layers.macs - layers.macs_all,
		.head_macs = head.macs, .weight_bytes = layers.weight_bytes, .head_bytes = head.weight_bytes };
	measure_state(s, n_ctx, w.n_batch, cost);
	cost->work_bytes = work_total(&w, n_threads);
	cost->made_bytes = (double)g->made_bytes;
	if (g->source) measure_source(&source, s->source, n_ctx, n_threads, cost);
	cost->idle_bytes = (double)(layers.plan.peak - narrow.plan.peak) +
		(double)(layers.plan.host_peak - narrow.plan.host_peak);
	state_free(s);
	return GGU_OK;
}
