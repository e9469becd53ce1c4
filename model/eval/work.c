/* SPDX-License-Identifier: MIT
 * work.c - the scratch memory of a work. What a batch of a given number of rows needs on its way through the layers is
 * planned in the order in which eval.c goes, and allocated once. Such plans also give the cost of a model (cost.c). */
#include <stdlib.h>
#include "../../libgguf/pool.h"
#include "../../libgguf/size.h"
#include "../../libgguf/text.h"
#include "model_internal.h"

/* ---- the plan of a batch ---- */

struct run work_begin(struct work *w, size_t n)
{
	const struct graph *g = w->g;
	struct run r = { .be = w->m->be, .w = w, .g = g, .n = n, .seg = w->seg, .plan = { .be = w->m->be } };
	r.x = plan_floats(&r.plan, n, g->n_embd);
	for (size_t i = 0; i < g->max_branches; i++) r.y[i] = plan_floats(&r.plan, n, g->n_embd);
	for (size_t i = 0; i < g->n_ropes; i++) w->turn[i] = plan_floats(&r.plan, n, g->rope[i].dims);
	return r;
}
void input_plan(struct plan *p, struct input *in, unsigned forms)
{
	for (int f = QUANT_ACT_FLOAT; f <= QUANT_ACT_256; f++)
		if (forms & 1u << f) in->act[f] = plan_take(p, p->be->packed_bytes((enum quant_act)f, in->n, in->n_in));
}
/* A norm of the stream: the input of a step's branches. It is computed when the first product asks for it. */
static struct input stream_input(const struct graph *g, const struct norm *norm, unsigned forms, size_t n,
	struct plan *p)
{
	struct input in = { .kind = INPUT_STREAM, .stride = g->n_embd, .n = n, .n_in = g->n_embd, .norm = norm };
	in.at = plan_floats(p, n, g->n_embd);
	input_plan(p, &in, forms);
	return in;
}
struct input work_step_input(const struct graph *g, const struct step *st, size_t n, struct plan *p)
{
	return stream_input(g, &st->before, st->forms, n, p);
}
struct input work_reader_input(const struct graph *g, size_t n, struct plan *p)
{
	return stream_input(g, &g->out_norm, g->reader_forms, n, p);
}

static void measure_readers(const struct graph *g, size_t n, struct measure *m)
{
	size_t outside = m->plan.used, inside;
	work_reader_input(g, n, &m->plan);
	inside = m->plan.used;
	for (size_t i = 0; i < g->n_readers; i++) {
		g->reader[i]->op->measure_read(g->reader[i]->params, n, m);
		m->plan.used = inside;
	}
	m->plan.used = outside;
}

struct measure work_measure(struct work *w, size_t n, size_t n_wanted)
{
	struct run r = work_begin(w, n);
	struct measure m = { .plan = r.plan };
	size_t n_steps = 0;
	for (size_t l = 0; l < r.g->n_layer; l++)
		for (size_t i = 0; i < r.g->layer[l].n_steps; i++) {
			const struct step *st = r.g->layer[l].step + i;
			const struct branch *narrowing = op_narrowing(st);
			const double macs = m.macs;
			size_t outside = m.plan.used, inside;
			work_step_input(r.g, st, n, &m.plan);
			inside = m.plan.used;
			for (size_t k = 0; k < st->n_branches; k++) {
				st->branch[k].op->measure(st->branch[k].params, n, &m);
				m.plan.used = inside;
				m.plan.host_used = 0;
			}
			m.plan.used = outside;
			if (++n_steps != r.g->n_mixing) continue;
			m.macs_all = narrowing ? macs + narrowing->op->macs_early(narrowing->params) : m.macs;
			n = n_wanted;
		}
	if (r.g->n_readers) measure_readers(r.g, n, &m);
	return m;
}

/* ---- room for it ---- */

void *run_host(const struct run *r, size_t at) { return r->w->host + at; }

static void *aligned(size_t n)
{
	void *p;
	return n > SIZE_MAX - 127 || posix_memalign(&p, 64, size_up(n, 64) + 64) ? NULL : p;
}
char *work_room(char **p, size_t *have, size_t n)
{
	if (n <= *have) return *p;
	free(*p);
	*p = aligned(n);
	*have = *p ? n : 0;
	return *p;
}

/* Of each of the host's threads: what the backend needs for either stack, and head.c for its products. */
static size_t local_bytes(const struct work *w)
{
	const struct graph *g = w->g;
	const struct backend *be = w->m->be;
	size_t n = size_most(be->thread_bytes(g), quant_mul_work_bytes(g->head.n_in));
	if (g->source) n = size_most(n, be->thread_bytes(g->source));
	return size_up(n, 64);
}

struct measure work_plan(struct work *w)
{
	struct measure m = work_measure(w, w->n_batch, w->n_batch);
	w->bytes = m.plan.peak;
	w->host_bytes = m.plan.host_peak;
	w->local_bytes = local_bytes(w);
	return m;
}

static bool allocate(struct work *w)
{
	const struct graph *g = w->g;
	const size_t workers = (size_t)ggu_pool_size(w->pool);
	work_plan(w);
	w->base = aligned(w->bytes);
	w->host = aligned(w->host_bytes);
	w->local = w->reader ? w->reader->local : aligned(size_times(workers, w->local_bytes));
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
	return work_new_for(out, m, m->pool, n_batch, err);
}
/* A work like `as`, which has no memory yet. */
static enum ggu_status make(struct work **out, const struct work *as, struct ggu_error *err)
{
	struct work *w = malloc(sizeof *w);
	if (w) *w = *as;
	if (!w || !allocate(w)) {
		work_free(w);
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for batches of %zu token%s",
			as->n_batch, text_s(as->n_batch));
	}
	*out = w;
	return GGU_OK;
}
enum ggu_status work_new_for(struct work **out, struct model *m, struct ggu_pool *pool, size_t n_batch,
	struct ggu_error *err)
{
	return make(out, &(struct work){ .m = m, .pool = pool, .g = &m->graph,
		.n_batch = n_batch ? n_batch : MODEL_BATCH }, err);
}
enum ggu_status work_source(struct work **out, const struct work *w, size_t n_batch, struct ggu_error *err)
{
	return make(out, &(struct work){ .m = w->m, .pool = w->pool, .g = w->g->source, .n_batch = n_batch,
		.reader = w, .profile = w->profile }, err);
}

void work_free(struct work *w)
{
	if (!w) return;
	for (size_t i = 0; i < GRAPH_MAX_ROPES; i++) {
		free(w->freq[i][0]);
		free(w->freq[i][1]);
	}
	if (!w->reader) free(w->local);
	free(w->base); free(w->host); free(w->seg); free(w->ids); free(w->rows); free(w->partial); free(w->cut);
	free(w->head); free(w->turned);
	free(w);
}

double work_total(const struct work *w, size_t n_threads)
{
	double bytes = (double)w->n_batch*(sizeof *w->seg + sizeof *w->rows + sizeof *w->ids + sizeof *w->turned);
	if (!w->reader) bytes += (double)n_threads*(double)w->local_bytes;
	return bytes + (double)w->bytes + (double)w->host_bytes + (double)w->partial_bytes + (double)w->head_bytes;
}
size_t work_bytes(const struct work *w) { return (size_t)work_total(w, (size_t)ggu_pool_size(w->pool)); }
