/* SPDX-License-Identifier: MIT
 * lane.c - see lane.h. Positions become numbers of pages. A lane holds its pages by reference: forks share them, and a
 * page is copied before a lane that shares it writes to it. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/size.h"
#include "../../quant/attn.h"
#include "lane.h"

size_t lane_pages(size_t n) { return size_parts(n, ATTN_BLOCK); }
/* The first position that a row at pos sees. */
static size_t seen_from(const struct horizon *h, size_t pos)
{
	size_t w = h->window;
	if (!w) return 0;
	if (h->mask == ATTN_CHUNK) return pos/w*w;
	return pos + 1 > w ? pos + 1 - w : 0;
}
size_t lane_sight(const struct horizon *h, size_t n) { return n ? n - seen_from(h, n - 1) : 0; }
size_t lane_kept(const struct horizon *h, size_t pos)
{
	size_t seen = seen_from(h, pos)/ATTN_BLOCK;
	return seen ? seen - 1 : 0;
}
bool lane_lacks(const struct lane *l, size_t pos) { return l->first > seen_from(&l->sees, pos)/ATTN_BLOCK; }

bool lane_init(struct lane *l, const struct horizon *h, const size_t *n_bytes)
{
	*l = (struct lane){ .sees = *h, .offset = calloc(h->n_caches + 1, sizeof *l->offset) };
	for (size_t i = 0; l->offset && i < h->n_caches; i++) {
		l->offset[i] = l->page_bytes;
		l->page_bytes += size_up(n_bytes[i], 64);
	}
	return l->offset;
}

void lane_free(struct lane *l)
{
	lane_cut(l, 0);
	free(l->offset); free(l->page); free(l->block);
	*l = (struct lane){ .page = NULL };
}

static void set_page(struct lane *l, size_t i, struct page *p)
{
	l->page[i] = p;
	for (size_t c = 0; c < l->sees.n_caches; c++) l->block[c*l->room + i] = p->bytes + l->offset[c];
}

static bool make_room(struct lane *l, size_t n)
{
	size_t room = l->room ? l->room : 4;
	struct page **page;
	void **block;
	while (room < n) room *= 2;
	if (room == l->room) return true;
	if (!(page = realloc(l->page, room*sizeof *page))) return false;
	l->page = page;
	if (!(block = calloc(l->sees.n_caches*room + 1, sizeof *block))) return false;
	free(l->block);
	l->block = block;
	l->room = room;
	for (size_t i = l->first; i < l->end; i++) set_page(l, i, l->page[i]);
	return true;
}

bool lane_share(struct lane *to, const struct lane *from)
{
	size_t n = from->sees.n_caches;
	*to = (struct lane){ .sees = from->sees, .page_bytes = from->page_bytes, .first = from->first,
		.end = from->first, .offset = malloc((n + 1)*sizeof *to->offset) };
	if (!to->offset || !make_room(to, from->end)) return false;
	memcpy(to->offset, from->offset, n*sizeof *to->offset);
	for (; to->end < from->end; to->end++) {
		from->page[to->end]->refs++;
		set_page(to, to->end, from->page[to->end]);
	}
	return true;
}

/* Makes pages from..to - 1 exist and belong to this lane alone. Those that exist keep their contents. */
static bool own_pages(struct lane *l, struct pages *pages, size_t from, size_t to)
{
	if (!make_room(l, to)) return false;
	for (size_t i = from; i < to; i++) {
		struct page *p;
		if (i < l->end && l->page[i]->refs == 1) continue;
		if (!(p = page_new(pages, l->page_bytes))) return false;
		if (i < l->end) {
			memcpy(p->bytes, l->page[i]->bytes, l->page_bytes);
			page_drop(l->page[i]);
		} else l->end++;
		set_page(l, i, p);
	}
	return true;
}

/* Gives up page i, which page_drop keeps for another sequence if no other lane holds it. */
static void let_go(struct lane *l, size_t i)
{
	page_drop(l->page[i]);
	for (size_t c = 0; c < l->sees.n_caches; c++) l->block[c*l->room + i] = NULL;
}

bool lane_reserve(struct lane *l, struct pages *pages, size_t pos, size_t n)
{
	size_t kept = lane_kept(&l->sees, pos);
	while (l->first < kept && l->first < l->end) let_go(l, l->first++);
	return own_pages(l, pages, pos/ATTN_BLOCK, lane_pages(pos + n));
}

bool lane_begin(struct lane *l, struct pages *pages, size_t first, size_t end)
{
	lane_cut(l, 0);
	l->first = l->end = first;
	return own_pages(l, pages, first, end);
}

void lane_cut(struct lane *l, size_t end)
{
	while (l->end > end && l->end > l->first) let_go(l, --l->end);
	if (l->first > end) l->first = l->end = end;
}
