/* SPDX-License-Identifier: MIT
 * gram.c - see gram.h. Columns become codes, panel by panel; then panels are multiplied with each other as far as the
 * triangle goes. The codes of all columns stay in L2, and the triangle is read and written once. */
#include <stdlib.h>
#include "../libgguf/size.h"
#include "gram_internal.h"

/* Rows of a task. */
enum { ROWS = 16 };
const struct gram_table *quant_gram_table = &quant_gram_c;

struct work { const struct gram *g; struct gram_panels p; };

static void pack_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	(void)worker;
	quant_gram_table->pack(w->g, task*GRAM_PACKED, &w->p);
}
/* Begins with the last rows, which are the longest, so that the threads end together. */
static void add_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	(void)worker;
	quant_gram_table->add(w->g, &w->p, (w->g->n - 1)/ROWS*ROWS - task*ROWS, ROWS);
}
/* Makes room for at least so many bytes, a multiple of 64. */
static bool make_room(struct gram_room *r, size_t bytes)
{
	if (r->bytes >= bytes) return true;
	gram_room_free(r);
	r->p = aligned_alloc(64, bytes);
	r->bytes = r->p ? bytes : 0;
	return r->p;
}
void gram_room_free(struct gram_room *r)
{
	free(r->p);
	*r = (struct gram_room){ 0 };
}
enum ggu_status gram_add(const struct gram *g, struct gram_room *room, struct ggu_pool *pool)
{
	const size_t in_word = quant_gram_table->in_word, packs = size_parts(g->n, GRAM_PACKED),
		columns = packs*GRAM_PACKED;
	struct work w = { .g = g, .p.n_words = size_parts(g->n_tokens, in_word) };
	const struct ggu_phase phases[] = { { pack_task, &w, packs, GGU_TAKE_ANY },
		{ add_task, &w, size_parts(g->n, ROWS), GGU_TAKE_ANY } };
	if (!g->n || !g->n_tokens) return GGU_OK;
	/* a multiple of 64, as columns are one of GRAM_PACKED */
	if (!make_room(room, columns*(w.p.n_words*sizeof *w.p.words + sizeof *w.p.scale + sizeof *w.p.sum)))
		return GGU_ERR_NOMEM;
	w.p.words = room->p;
	w.p.sum = w.p.words + columns*w.p.n_words;
	w.p.scale = (void *)(w.p.sum + columns);
	ggu_pool_phases(pool, phases, 2);
	return GGU_OK;
}
