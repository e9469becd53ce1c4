/* SPDX-License-Identifier: MIT
 * state.c - see state.h: forks, snapshots. page.c has the pages, state_file.c saves and loads. */
#include <stdlib.h>
#include <string.h>
#include "model_internal.h"

static enum ggu_status no_memory(struct ggu_error *err) { return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "",
	"out of memory for a sequence"); }

/* ---- pages ---- */

static void set_page(struct state *s, size_t i, struct page *p)
{
	s->page[i] = p;
	for (size_t c = 0; c < s->g->n_caches; c++) s->block[c*s->room + i] = p->bytes + s->offset[c];
}

static bool make_room(struct state *s, size_t n)
{
	size_t room = s->room ? s->room : 4;
	struct page **page;
	void **block;
	while (room < n) room *= 2;
	if (room == s->room) return true;
	if (!(page = realloc(s->page, room*sizeof *page))) return false;
	s->page = page;
	if (!(block = malloc((s->g->n_caches*room + 1)*sizeof *block))) return false;
	free(s->block);
	s->block = block;
	s->room = room;
	for (size_t i = 0; i < s->n_pages; i++) set_page(s, i, s->page[i]);
	return true;
}

static bool make_ids(struct state *s, size_t n)
{
	int32_t *ids = realloc(s->ids, (n + ATTN_BLOCK - 1)/ATTN_BLOCK*ATTN_BLOCK*sizeof *ids);
	if (ids) s->ids = ids;
	return ids;
}

enum ggu_status state_reserve(struct state *s, size_t n, struct ggu_error *err)
{
	size_t last = (s->pos + n + ATTN_BLOCK - 1)/ATTN_BLOCK;
	if (!n) return GGU_OK;
	if (!make_ids(s, s->pos + n) || !make_room(s, last)) return no_memory(err);
	for (size_t i = s->pos/ATTN_BLOCK; i < last; i++) {
		struct page *p;
		if (i < s->n_pages && s->page[i]->refs == 1) continue;
		if (!(p = page_new(s->pages, s->page_bytes))) return no_memory(err);
		if (i < s->n_pages) {
			memcpy(p->bytes, s->page[i]->bytes, s->page_bytes);
			page_drop(s->page[i]);
		} else s->n_pages++;
		set_page(s, i, p);
	}
	return GGU_OK;
}

static void drop_pages(struct state *s, size_t keep) { while (s->n_pages > keep) page_drop(s->page[--s->n_pages]); }

/* ---- life ---- */

static enum ggu_status shapes(struct state *s, const struct state_options *o, struct ggu_error *err)
{
	for (size_t i = 0; i < s->g->n_caches; i++) {
		const struct cache *c = s->g->cache + i;
		struct attn_shape *a = s->shape + i;
		*a = (struct attn_shape){ c->n_query, c->n_heads, c->k_dim, c->v_dim, o->k_type, o->v_type, c->v_in_k };
		if (!attn_can_store(a->k_type, a->k_dim) || (!a->v_in_k && !attn_can_store(a->v_type, a->v_dim)))
			return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
				"a cache of such a type does not go with heads of %zu and %zu", a->k_dim, a->v_dim);
		s->offset[i] = s->page_bytes;
		s->page_bytes += (attn_block_bytes(a) + 63)/64*64;
	}
	return GGU_OK;
}

static enum ggu_status new_state(struct state **out, const struct graph *g, struct pages *pages,
	const struct state_options *o, struct ggu_error *err)
{
	struct state *s = calloc(1, sizeof *s);
	enum ggu_status st;
	if (!s) return no_memory(err);
	s->g = g;
	s->pages = pages;
	s->shape = calloc(g->n_caches + 1, sizeof *s->shape);
	s->offset = calloc(g->n_caches + 1, sizeof *s->offset);
	s->fixed = calloc(g->fixed_floats + 1, sizeof *s->fixed);
	st = s->shape && s->offset && s->fixed ? shapes(s, o, err) : no_memory(err);
	if (!st && g->source) st = new_state(&s->source, g->source, pages, o, err);
	if (st) state_free(s);
	else *out = s;
	return st;
}
enum ggu_status state_new(struct state **out, struct model *m, const struct state_options *o, struct ggu_error *err)
{
	static const struct state_options floats = { GGU_TYPE_F32, GGU_TYPE_F32 };
	return new_state(out, &m->graph, &m->pages, o ? o : &floats, err);
}

static void drop_snapshots(struct state *s, size_t beyond)
{
	while (s->n_snaps && s->snap[s->n_snaps - 1].pos > beyond) free(s->snap[--s->n_snaps].fixed);
}

void state_free(struct state *s)
{
	if (!s) return;
	state_free(s->source);
	drop_pages(s, 0);
	while (s->n_snaps) free(s->snap[--s->n_snaps].fixed);
	free(s->snap); free(s->page); free(s->block); free(s->ids); free(s->fixed); free(s->shape); free(s->offset);
	free(s);
}

void state_reset(struct state *s)
{
	state_rewind(s);
	if (s->source) state_reset(s->source);
}

void state_rewind(struct state *s)
{
	s->pos = 0;
	s->is_long = false;
	drop_pages(s, 0);
	drop_snapshots(s, 0);
	memset(s->fixed, 0, s->g->fixed_floats*sizeof *s->fixed);
}

size_t state_pos(const struct state *s) { return s->pos; }
const int32_t *state_ids(const struct state *s) { return s->ids; }

/* ---- forks and cuts ---- */

enum ggu_status state_fork(struct state **out, const struct state *from, struct ggu_error *err)
{
	size_t n = from->g->n_caches, fixed = from->g->fixed_floats;
	struct state *s = calloc(1, sizeof *s);
	if (!s) return no_memory(err);
	s->g = from->g;
	s->pages = from->pages;
	s->page_bytes = from->page_bytes;
	s->shape = malloc((n + 1)*sizeof *s->shape);
	s->offset = malloc((n + 1)*sizeof *s->offset);
	s->fixed = malloc((fixed + 1)*sizeof *s->fixed);
	if (!s->shape || !s->offset || !s->fixed || !make_ids(s, from->pos + 1) || !make_room(s, from->n_pages)) {
		state_free(s);
		return no_memory(err);
	}
	memcpy(s->shape, from->shape, n*sizeof *s->shape);
	memcpy(s->offset, from->offset, n*sizeof *s->offset);
	memcpy(s->fixed, from->fixed, fixed*sizeof *s->fixed);
	if (from->pos) memcpy(s->ids, from->ids, from->pos*sizeof *s->ids);
	for (; s->n_pages < from->n_pages; s->n_pages++) {
		from->page[s->n_pages]->refs++;
		set_page(s, s->n_pages, from->page[s->n_pages]);
	}
	s->pos = from->pos;
	s->is_long = from->is_long;
	if (from->source && state_fork(&s->source, from->source, err)) {
		state_free(s);
		return GGU_ERR_NOMEM;
	}
	*out = s;
	return GGU_OK;
}

enum ggu_status state_snapshot(struct state *s, struct ggu_error *err)
{
	size_t bytes = s->g->fixed_floats*sizeof *s->fixed;
	struct snapshot *snap;
	if (!bytes || (s->n_snaps && s->snap[s->n_snaps - 1].pos == s->pos)) return GGU_OK;
	if (!(snap = realloc(s->snap, (s->n_snaps + 1)*sizeof *snap))) return no_memory(err);
	s->snap = snap;
	snap += s->n_snaps;
	snap->pos = s->pos;
	if (!(snap->fixed = malloc(bytes))) return no_memory(err);
	memcpy(snap->fixed, s->fixed, bytes);
	s->n_snaps++;
	return GGU_OK;
}

enum ggu_status state_truncate(struct state *s, size_t n, struct ggu_error *err)
{
	size_t i = 0;
	if (n > s->pos) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "", "%zu positions of %zu", n, s->pos);
	if (n == s->pos) return GGU_OK;
	if (!n) {
		state_rewind(s);
		return GGU_OK;
	}
	if (s->g->fixed_floats) {
		while (i < s->n_snaps && s->snap[i].pos != n) i++;
		if (i == s->n_snaps)
			return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "",
				"a recurrent model has no snapshot at position %zu", n);
		memcpy(s->fixed, s->snap[i].fixed, s->g->fixed_floats*sizeof *s->fixed);
	}
	s->pos = n;
	drop_snapshots(s, n);
	drop_pages(s, (n + ATTN_BLOCK - 1)/ATTN_BLOCK);
	return GGU_OK;
}
