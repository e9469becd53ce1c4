/* SPDX-License-Identifier: MIT
 * state.h - the inside of a state. Private to model/eval; model.h has what others may do.
 *
 * Positions lie in pages of ATTN_BLOCK. A page holds the block (attn.h) of each of the graph's caches one behind the
 * other and a count of the states that have it: a fork shares all pages, and who writes into one that is shared copies
 * it first. A page is freed in page_drop (page.c), by the last that lets go of it.
 *
 * A sequence of a model with an encoder has a source, a state of the encoder's graph: what its own caches hold is of no
 * use any more, what the decoder looks across to lies in the others. */
#ifndef MODEL_EVAL_STATE_H
#define MODEL_EVAL_STATE_H
#include "../../quant/attn.h"
#include "graph.h"
#include "model.h"
#include "page.h"

enum { STATE_MAX_POS = 1 << 24 };

struct snapshot { size_t pos; float *fixed; };
struct state {
	const struct graph *g;
	struct state *source;           /* of g->source; NULL: there is none */
	struct pages *pages;            /* the model's */
	size_t pos;
	int32_t *ids;                   /* [pos] */
	struct attn_shape *shape;       /* [n_caches] */
	size_t *offset;                 /* [n_caches]: of a cache's block in a page */
	size_t page_bytes;
	struct page **page;
	size_t n_pages, room;           /* pages there are, and there is room for */
	void **block;                   /* [n_caches][room] */
	float *fixed;                   /* [g->fixed_floats] */
	struct snapshot *snap;
	size_t n_snaps;
	bool is_long;                   /* evaluated as a sequence longer than g->long_from */
};
/* Room for n more positions, in pages that nobody shares. GGU_ERR_NOMEM leaves the state as it was, but for room. */
enum ggu_status state_reserve(struct state *s, size_t n, struct ggu_error *err);
/* Back to position 0, but with what the encoder was given. */
void state_rewind(struct state *s);
static inline void *const *state_blocks(const struct state *s, size_t cache) { return s->block + cache*s->room; }

#endif
