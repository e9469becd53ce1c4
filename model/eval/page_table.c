/* SPDX-License-Identifier: MIT
 * page_table.c - see page_table.h. Positions become numbers of pages. A table holds its pages by reference: forks share
 * them, and a page is copied before a table that shares it writes to it. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/size.h"
#include "../../quant/attn.h"
#include "page_table.h"

size_t page_count(size_t n) { return size_parts(n, ATTN_BLOCK); }
/* The first position that a row at pos sees. */
static size_t seen_from(const struct horizon *h, size_t pos)
{
	size_t w = h->window;
	if (!w) return 0;
	if (h->mask == ATTN_CHUNK) return pos/w*w;
	return pos + 1 > w ? pos + 1 - w : 0;
}
size_t horizon_sight(const struct horizon *h, size_t n) { return n ? n - seen_from(h, n - 1) : 0; }
size_t horizon_first_page(const struct horizon *h, size_t pos)
{
	size_t seen = seen_from(h, pos)/ATTN_BLOCK;
	return seen ? seen - 1 : 0;
}
bool page_table_lacks(const struct page_table *t, size_t pos) { return t->first > seen_from(&t->sees, pos)/ATTN_BLOCK; }

bool page_table_init(struct page_table *t, const struct horizon *h, const size_t *n_bytes)
{
	*t = (struct page_table){ .sees = *h, .offset = calloc(h->n_caches + 1, sizeof *t->offset) };
	for (size_t i = 0; t->offset && i < h->n_caches; i++) {
		t->offset[i] = t->page_bytes;
		t->page_bytes += size_up(n_bytes[i], 64);
	}
	return t->offset;
}

void page_table_free(struct page_table *t)
{
	page_table_cut(t, 0);
	free(t->offset); free(t->page); free(t->block);
	*t = (struct page_table){ .page = NULL };
}

static void set_page(struct page_table *t, size_t i, struct page *p)
{
	t->page[i] = p;
	for (size_t c = 0; c < t->sees.n_caches; c++) t->block[c*t->room + i] = p->bytes + t->offset[c];
}

static bool make_room(struct page_table *t, size_t n)
{
	size_t room = t->room ? t->room : 4;
	struct page **page;
	void **block;
	while (room < n) room *= 2;
	if (room == t->room) return true;
	if (!(page = realloc(t->page, room*sizeof *page))) return false;
	t->page = page;
	if (!(block = calloc(t->sees.n_caches*room + 1, sizeof *block))) return false;
	free(t->block);
	t->block = block;
	t->room = room;
	for (size_t i = t->first; i < t->end; i++) set_page(t, i, t->page[i]);
	return true;
}

bool page_table_share(struct page_table *to, const struct page_table *from)
{
	size_t n = from->sees.n_caches;
	*to = (struct page_table){ .sees = from->sees, .page_bytes = from->page_bytes, .first = from->first,
		.end = from->first, .offset = malloc((n + 1)*sizeof *to->offset) };
	if (!to->offset || !make_room(to, from->end)) return false;
	memcpy(to->offset, from->offset, n*sizeof *to->offset);
	for (; to->end < from->end; to->end++) {
		from->page[to->end]->refs++;
		set_page(to, to->end, from->page[to->end]);
	}
	return true;
}

/* Makes pages from..to - 1 exist and belong to this table alone. Those that exist keep their contents. */
static bool own_pages(struct page_table *t, struct pages *pages, size_t from, size_t to)
{
	if (!make_room(t, to)) return false;
	for (size_t i = from; i < to; i++) {
		struct page *p;
		if (i < t->end && t->page[i]->refs == 1) continue;
		if (!(p = page_new(pages, t->page_bytes))) return false;
		if (i < t->end) {
			memcpy(p->bytes, t->page[i]->bytes, t->page_bytes);
			page_drop(t->page[i]);
		} else t->end++;
		set_page(t, i, p);
	}
	return true;
}

/* Gives up page i, which page_drop keeps for another sequence if no other table holds it. */
static void let_go(struct page_table *t, size_t i)
{
	page_drop(t->page[i]);
	for (size_t c = 0; c < t->sees.n_caches; c++) t->block[c*t->room + i] = NULL;
}

bool page_table_reserve(struct page_table *t, struct pages *pages, size_t pos, size_t n)
{
	size_t kept = horizon_first_page(&t->sees, pos);
	while (t->first < kept && t->first < t->end) let_go(t, t->first++);
	return own_pages(t, pages, pos/ATTN_BLOCK, page_count(pos + n));
}

bool page_table_begin(struct page_table *t, struct pages *pages, size_t first, size_t end)
{
	page_table_cut(t, 0);
	t->first = t->end = first;
	return own_pages(t, pages, first, end);
}

void page_table_cut(struct page_table *t, size_t end)
{
	while (t->end > end && t->end > t->first) let_go(t, --t->end);
	if (t->first > end) t->first = t->end = end;
}
