/* SPDX-License-Identifier: MIT
 * state.h - the inside of a state. Private to model/eval; model.h has what others may do.
 *
 * Positions lie in pages of ATTN_BLOCK, those of caches that are seen equally far back together: a lane (lane.h), which
 * lets go of what is behind its window. A page holds the block (attn.h) of each of the lane's caches and a count of the
 * states that have it: a fork shares all pages, and who writes into one that is shared copies it first. The last that
 * lets go of a page frees it (page_drop).
 *
 * A sequence of a model with an encoder has a source, a state of the encoder's graph: what its own caches hold is of no
 * use any more, what the decoder looks across to lies in the others. */
#ifndef MODEL_EVAL_STATE_H
#define MODEL_EVAL_STATE_H
#include "../../quant/attn.h"
#include "graph.h"
#include "lane.h"
#include "model.h"

enum { STATE_MAX_POS = 1 << 24 };

/* lane: those with a window; the others are zeros, for nothing of them goes */
struct snapshot { size_t pos; float *fixed; struct lane *lane; };
struct state {
	const struct graph *g;
	struct state *source;           /* of g->source; NULL: there is none */
	struct pages *pages;            /* the model's */
	size_t pos;
	int32_t *ids;                   /* [pos] */
	struct attn_shape *shape;       /* [n_caches] */
	struct lane *lane;              /* [g->n_horizons] */
	float *fixed;                   /* [g->fixed_floats] */
	struct snapshot *snap;
	size_t n_snaps;
	bool is_long;                   /* evaluated as a sequence longer than g->long_from */
};
/* Room for n more positions, in pages that nobody shares. GGU_ERR_NOMEM leaves the state as it was, but for room. */
enum ggu_status state_reserve(struct state *s, size_t n, struct ggu_error *err);
/* Room for the ids of n positions alone. */
enum ggu_status state_make_ids(struct state *s, size_t n, struct ggu_error *err);
/* Back to position 0, but with what the encoder was given. */
void state_rewind(struct state *s);
/* The same, with the pages that it has. */
void state_begin_anew(struct state *s);
/* Pages that the next row would see were let go of. */
bool state_lacks(const struct state *s);
/* Of a page of each lane. */
size_t state_page_bytes(const struct state *s);
static inline void *const *state_blocks(const struct state *s, size_t cache)
{
	const struct lane *l = s->lane + s->g->cache[cache].horizon;
	return l->block + s->g->cache[cache].slot*l->room;
}

#endif
