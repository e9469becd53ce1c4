/* SPDX-License-Identifier: MIT
 * state.h - the inside of a state. Private to model/eval; model.h has the public functions.
 *
 * Positions are stored in pages of ATTN_BLOCK, which come from the model's supply (page.h). A state finds them by page
 * tables (page_table.h), one for all caches with the same horizon, which gives up what is behind its window. A page
 * holds the block (attn.h) of each of the table's caches and a count of the tables that use it: a fork shares all
 * pages, and a state that writes to a shared page copies it first. When the last state drops a page, it waits for
 * another sequence (page_drop).
 *
 * A sequence of a model with an encoder has a source, which is a state of the encoder's graph. The encoder's own caches
 * in it are not needed after encoding; what the decoder attends to is in the others. */
#ifndef MODEL_EVAL_STATE_H
#define MODEL_EVAL_STATE_H
#include "../../quant/attn.h"
#include "graph.h"
#include "page_table.h"
#include "model.h"

/* table: copies of those with a window; the others are zeros, as they lose nothing */
struct snapshot { size_t pos; float *recurrent; struct page_table *table; };
struct state {
	const struct graph *g;
	struct state *source;           /* of g->source; NULL: there is none */
	struct pages *pages;            /* the model's, which new ones are taken from */
	size_t pos;
	int32_t *ids;                   /* [pos] */
	struct attn_shape *shape;       /* [n_caches] */
	struct page_table *table;       /* [g->n_horizons] */
	float *recurrent;               /* [g->recurrent_floats]: what recurrent layers keep of the whole past */
	struct snapshot *snap;
	size_t n_snaps;
	bool is_long;                   /* evaluated as a sequence longer than g->long_from */
};
/* Makes room for n more positions, in pages that are not shared. On GGU_ERR_NOMEM the contents are unchanged. */
enum ggu_status state_reserve(struct state *s, size_t n, struct ggu_error *err);
/* Makes room for the ids of n positions only. */
enum ggu_status state_make_ids(struct state *s, size_t n, struct ggu_error *err);
/* Goes back to position 0, but keeps what was encoded. */
void state_rewind(struct state *s);
/* The same, and keeps its pages. */
void state_begin_anew(struct state *s);
/* Have pages been freed that the next row would see? */
bool state_lacks(const struct state *s);
/* Bytes of one page of each table. */
size_t state_page_bytes(const struct state *s);
static inline size_t recurrent_bytes(const struct graph *g) { return g->recurrent_floats*sizeof(float); }
static inline struct attn_shape cache_shape(const struct cache *c, uint32_t k_type, uint32_t v_type)
{
	const struct heads *h = &c->heads;
	return (struct attn_shape){ h->n, h->n_kv, h->k_dim, h->v_dim, k_type, v_type, c->v_in_k };
}
static inline void *const *state_blocks(const struct state *s, size_t cache)
{
	const struct page_table *t = s->table + s->g->cache[cache].horizon;
	return t->block + s->g->cache[cache].slot*t->room;
}

#endif
