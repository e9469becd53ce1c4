/* SPDX-License-Identifier: MIT
 * lane.h - the pages of those of a sequence's caches whose rows see equally far back. Private to model/eval.
 *
 * Page i has positions i*ATTN_BLOCK.. of each of the lane's caches, one behind the other. A page of which no later row
 * sees anything is let go of, but for the last such, so that some tokens can be taken back: where more are, the pages
 * that were needed may be gone (lane_lacks), and the sequence is computed anew. */
#ifndef MODEL_EVAL_LANE_H
#define MODEL_EVAL_LANE_H
#include "graph.h"
#include "page.h"

struct lane {
	struct horizon sees;
	size_t page_bytes;
	size_t *offset;                 /* [n_caches]: of a cache's block in a page */
	struct page **page;             /* [room]; those from `first` to end - 1 are there */
	void **block;                   /* [n_caches][room] */
	size_t first, end, room;
};
/* Pages of the first n positions. */
size_t lane_pages(size_t n);
/* Positions that the last of n rows sees, its own among them. */
size_t lane_sight(const struct horizon *h, size_t n);
/* The first page that is kept when rows from pos on are to come. */
size_t lane_kept(const struct horizon *h, size_t pos);
/* A row at pos sees pages that are gone. */
bool lane_lacks(const struct lane *l, size_t pos);

/* n_bytes[n_caches] of the blocks. false: out of memory; lane_free is due all the same. */
bool lane_init(struct lane *l, const struct horizon *h, const size_t *n_bytes);
void lane_free(struct lane *l);
/* *to, which is zeros, gets the same pages, shared. false as above. */
bool lane_share(struct lane *to, const struct lane *from);
/* Room for positions pos..pos + n - 1 in pages that nobody shares. false: out of memory, with as many as there was
 * memory for. */
bool lane_reserve(struct lane *l, struct pages *pages, size_t pos, size_t n);
/* Fresh pages first..end - 1 in place of all that there are. */
bool lane_begin(struct lane *l, struct pages *pages, size_t first, size_t end);
/* Lets go of those from `end` on. */
void lane_cut(struct lane *l, size_t end);

#endif
