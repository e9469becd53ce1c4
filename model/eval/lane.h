/* SPDX-License-Identifier: MIT
 * lane.h - the pages of a sequence for caches whose rows see equally far back. Private to model/eval.
 *
 * Page i has positions i*ATTN_BLOCK.. of each of the lane's caches, one after the other. A page that no later row sees
 * is freed, except the last one, so that a few tokens can be taken back. If more are taken back, pages that are needed
 * may be gone (lane_lacks), and the sequence is computed anew. */
#ifndef MODEL_EVAL_LANE_H
#define MODEL_EVAL_LANE_H
#include "graph.h"
#include "page.h"

struct lane {
	struct horizon sees;
	size_t page_bytes;
	size_t *offset;                 /* [n_caches]: of each cache's block in a page */
	struct page **page;             /* [room], of which first..end - 1 exist */
	void **block;                   /* [n_caches][room] */
	size_t first, end, room;
};
/* The number of pages of the first n positions. */
size_t lane_pages(size_t n);
/* The number of positions that the last of n rows sees, including its own. */
size_t lane_sight(const struct horizon *h, size_t n);
/* The first page that is kept before rows from pos on are computed. */
size_t lane_kept(const struct horizon *h, size_t pos);
/* Does a row at pos see pages that are gone? */
bool lane_lacks(const struct lane *l, size_t pos);

/* n_bytes[n_caches]: sizes of the blocks. false: out of memory; lane_free must be called all the same. */
bool lane_init(struct lane *l, const struct horizon *h, const size_t *n_bytes);
void lane_free(struct lane *l);
/* Shares all pages with *to, which is zeros before. false: as above. */
bool lane_share(struct lane *to, const struct lane *from);
/* Makes room for positions pos..pos + n - 1 in pages that are not shared. false: out of memory; as many were added as
 * there was memory for. */
bool lane_reserve(struct lane *l, struct pages *pages, size_t pos, size_t n);
/* Replaces all pages by fresh pages first..end - 1. */
bool lane_begin(struct lane *l, struct pages *pages, size_t first, size_t end);
/* Frees the pages from `end` on. */
void lane_cut(struct lane *l, size_t end);

#endif
