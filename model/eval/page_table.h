/* SPDX-License-Identifier: MIT
 * page_table.h - where a sequence has its keys and values: the table of its pages, for those caches whose rows see
 * equally far back. Private to model/eval.
 *
 * Page i has positions i*ATTN_BLOCK.. of each of the table's caches, one after the other. A page that no later row sees
 * is given up, except the last one, so that a few tokens can be taken back. If more are taken back, pages that are
 * needed may be gone (page_table_lacks), and the sequence is computed anew. */
#ifndef MODEL_EVAL_PAGE_TABLE_H
#define MODEL_EVAL_PAGE_TABLE_H
#include "graph.h"
#include "page.h"

struct page_table {
	struct horizon sees;
	size_t page_bytes;
	size_t *offset;                 /* [n_caches]: of each cache's block in a page */
	struct page **page;             /* [room], of which first..end - 1 exist */
	void **block;                   /* [n_caches][room] */
	size_t first, end, room;
};
/* The number of pages of the first n positions. */
size_t page_count(size_t n);
/* The number of positions that the last of n rows sees, including its own. */
size_t horizon_sight(const struct horizon *h, size_t n);
/* The first page that is kept before rows from pos on are computed. */
size_t horizon_first_page(const struct horizon *h, size_t pos);
/* Does a row at pos see pages that are gone? */
bool page_table_lacks(const struct page_table *t, size_t pos);

/* n_bytes[n_caches]: sizes of the blocks. false: out of memory; page_table_free must be called all the same. */
bool page_table_init(struct page_table *t, const struct horizon *h, const size_t *n_bytes);
void page_table_free(struct page_table *t);
/* Makes *to a table that shares all pages of `from`. false: as above. */
bool page_table_share(struct page_table *to, const struct page_table *from);
/* Makes room for positions pos..pos + n - 1 in pages that are not shared. false: out of memory; as many were added as
 * there was memory for. */
bool page_table_reserve(struct page_table *t, struct pages *pages, size_t pos, size_t n);
/* Replaces all pages by fresh pages first..end - 1. */
bool page_table_begin(struct page_table *t, struct pages *pages, size_t first, size_t end);
/* Frees the pages from `end` on. */
void page_table_cut(struct page_table *t, size_t end);

#endif
