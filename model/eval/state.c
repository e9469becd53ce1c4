/* SPDX-License-Identifier: MIT
 * state.c - see state.h. A fork shares all pages, a snapshot those of tables with a window; both copy what recurrent
 * layers keep. page.c has the pages, and state_file.c saves and loads. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/grow.h"
#include "../../libgguf/text.h"
#include "model_internal.h"

static enum ggu_status no_memory(struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for a sequence");
}

enum ggu_status state_make_ids(struct state *s, size_t n, struct ggu_error *err)
{
	int32_t *ids = realloc(s->ids, (page_count(n) + 1)*ATTN_BLOCK*sizeof *ids);
	if (!ids) return no_memory(err);
	s->ids = ids;
	return GGU_OK;
}

enum ggu_status state_reserve(struct state *s, size_t n, struct ggu_error *err)
{
	enum ggu_status st = n ? state_make_ids(s, s->pos + n, err) : GGU_OK;
	if (st || !n) return st;
	for (size_t i = 0; i < s->g->n_horizons; i++)
		if (!page_table_reserve(s->table + i, s->pages, s->pos, n)) return no_memory(err);
	return GGU_OK;
}

/* ---- page tables ---- */

static void free_page_tables(struct page_table *t, size_t n)
{
	for (size_t i = 0; t && i < n; i++) page_table_free(t + i);
	free(t);
}
static void cut_page_tables(struct state *s, size_t n_pages)
{
	for (size_t i = 0; i < s->g->n_horizons; i++) page_table_cut(s->table + i, n_pages);
}
/* Shares the pages of another state; only those of tables with a window, if that is asked for. */
static struct page_table *share_page_tables(const struct state *s, bool windows)
{
	size_t n = s->g->n_horizons;
	struct page_table *t = calloc(n + 1, sizeof *t);
	bool ok = t;
	for (size_t i = 0; ok && i < n; i++)
		if (!windows || s->table[i].sees.window) ok = page_table_share(t + i, s->table + i);
	if (ok) return t;
	free_page_tables(t, n);
	return NULL;
}

bool state_lacks(const struct state *s)
{
	for (size_t i = 0; i < s->g->n_horizons; i++) if (page_table_lacks(s->table + i, s->pos)) return true;
	return false;
}
size_t state_page_bytes(const struct state *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->g->n_horizons; i++) n += s->table[i].page_bytes;
	return n;
}
size_t state_bytes(const struct state *s)
{
	size_t n = recurrent_bytes(s->g);
	for (size_t i = 0; i < s->g->n_horizons; i++)
		n += (s->table[i].end - s->table[i].first)*(s->table[i].page_bytes + sizeof(struct page));
	return n + (s->source ? state_bytes(s->source) : 0);
}

/* ---- life ---- */

static enum ggu_status no_such_cache(const char *what, size_t dim, uint32_t type, struct ggu_error *err)
{
	const struct ggu_type_info *t = ggu_type_info(type);
	return ggu_fail(err, GGU_ERR_UNSUPPORTED, GGU_NO_OFFSET, "",
		"%s have heads of %zu number%s, which a cache of type %s in blocks of %u cannot hold", what, dim,
		text_s(dim), t ? t->name : "none", t ? t->block_weights : 0);
}
static enum ggu_status shapes(struct state *s, const struct state_options *o, struct ggu_error *err)
{
	for (size_t i = 0; i < s->g->n_caches; i++) {
		const struct cache *c = s->g->cache + i;
		struct attn_shape *a = s->shape + i;
		*a = cache_shape(c, o->k_type, o->v_type);
		if (!attn_can_store(a->k_type, a->k_dim)) return no_such_cache("keys", a->k_dim, a->k_type, err);
		if (!a->v_in_k && !attn_can_store(a->v_type, a->v_dim))
			return no_such_cache("values", a->v_dim, a->v_type, err);
	}
	return GGU_OK;
}

static enum ggu_status page_tables(struct state *s, struct ggu_error *err)
{
	const struct graph *g = s->g;
	size_t *bytes = calloc(g->n_caches + 1, sizeof *bytes);
	bool ok = bytes && (s->table = calloc(g->n_horizons + 1, sizeof *s->table));
	for (size_t h = 0; ok && h < g->n_horizons; h++) {
		for (size_t i = 0; i < g->n_caches; i++)
			if (g->cache[i].horizon == h) bytes[g->cache[i].slot] = attn_block_bytes(s->shape + i);
		ok = page_table_init(s->table + h, g->horizon + h, bytes);
	}
	free(bytes);
	return ok ? GGU_OK : no_memory(err);
}

/* Rows begin at multiples of a cache line, so that no register of a scan straddles two. */
static float *recurrent_new(const struct graph *g)
{
	void *p;
	return posix_memalign(&p, 64, recurrent_bytes(g) + 1) ? NULL : p;
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
	if ((s->recurrent = recurrent_new(g))) memset(s->recurrent, 0, recurrent_bytes(g));
	st = s->shape && s->recurrent ? shapes(s, o, err) : no_memory(err);
	if (!st) st = page_tables(s, err);
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

static void drop_snapshots(struct state *s, size_t keep)
{
	while (s->n_snaps > keep) {
		free(s->snap[--s->n_snaps].recurrent);
		free_page_tables(s->snap[s->n_snaps].table, s->g->n_horizons);
	}
}

void state_free(struct state *s)
{
	if (!s) return;
	state_free(s->source);
	free_page_tables(s->table, s->g->n_horizons);
	drop_snapshots(s, 0);
	free(s->snap); free(s->ids); free(s->recurrent); free(s->shape);
	free(s);
}

void state_reset(struct state *s)
{
	state_rewind(s);
	if (s->source) state_reset(s->source);
}

void state_rewind(struct state *s)
{
	cut_page_tables(s, 0);
	s->is_long = false;
	state_begin_anew(s);
}

void state_begin_anew(struct state *s)
{
	s->pos = 0;
	drop_snapshots(s, 0);
	if (state_lacks(s)) cut_page_tables(s, 0);
	memset(s->recurrent, 0, recurrent_bytes(s->g));
}

size_t state_pos(const struct state *s) { return s->pos; }
const int32_t *state_ids(const struct state *s) { return s->ids; }

/* ---- forks and cuts ---- */

enum ggu_status state_fork(struct state **out, const struct state *from, struct ggu_error *err)
{
	size_t n = from->g->n_caches;
	struct state *s = calloc(1, sizeof *s);
	if (!s) return no_memory(err);
	s->g = from->g;
	s->pages = from->pages;
	s->shape = malloc((n + 1)*sizeof *s->shape);
	s->recurrent = recurrent_new(s->g);
	s->table = share_page_tables(from, false);
	if (!s->shape || !s->recurrent || !s->table || state_make_ids(s, from->pos, err)) {
		state_free(s);
		return no_memory(err);
	}
	memcpy(s->shape, from->shape, n*sizeof *s->shape);
	memcpy(s->recurrent, from->recurrent, recurrent_bytes(s->g));
	if (from->pos) memcpy(s->ids, from->ids, from->pos*sizeof *s->ids);
	s->pos = from->pos;
	s->is_long = from->is_long;
	if (from->source && state_fork(&s->source, from->source, err)) {
		state_free(s);
		return GGU_ERR_NOMEM;
	}
	*out = s;
	return GGU_OK;
}

static bool has_windows(const struct graph *g)
{
	for (size_t i = 0; i < g->n_horizons; i++) if (g->horizon[i].window) return true;
	return false;
}

enum ggu_status state_snapshot(struct state *s, struct ggu_error *err)
{
	size_t bytes = recurrent_bytes(s->g);
	struct snapshot *snap;
	if (!bytes && !has_windows(s->g)) return GGU_OK;
	if (s->n_snaps && s->snap[s->n_snaps - 1].pos == s->pos) return GGU_OK;
	if (!(snap = ggu_grow(s->snap, s->n_snaps, sizeof *snap))) return no_memory(err);
	s->snap = snap;
	snap += s->n_snaps;
	*snap = (struct snapshot){ s->pos, malloc(bytes + 1), share_page_tables(s, true) };
	s->n_snaps++;
	if (!snap->recurrent || !snap->table) {
		drop_snapshots(s, s->n_snaps - 1);
		return no_memory(err);
	}
	memcpy(snap->recurrent, s->recurrent, bytes);
	return GGU_OK;
}

/* Goes back to what the snapshot has, which stays valid. A table for which there is no memory is treated as if there
 * were no snapshot: what it lacks is computed anew. */
static void return_to(struct state *s, struct snapshot *snap)
{
	memcpy(s->recurrent, snap->recurrent, recurrent_bytes(s->g));
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		struct page_table shared;
		if (!s->table[i].sees.window) continue;
		if (page_table_share(&shared, snap->table + i)) {
			page_table_free(s->table + i);
			s->table[i] = shared;
		} else page_table_free(&shared);
	}
}

enum ggu_status state_truncate(struct state *s, size_t n, struct ggu_error *err)
{
	size_t i = 0;
	if (n > s->pos) return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
		"cannot be cut to %zu position%s: it has %zu", n, text_s(n), s->pos);
	if (n == s->pos) return GGU_OK;
	if (!n) {
		state_rewind(s);
		return GGU_OK;
	}
	while (i < s->n_snaps && s->snap[i].pos < n) i++;
	if (i < s->n_snaps && s->snap[i].pos == n) return_to(s, s->snap + i++);
	else if (s->g->recurrent_floats)
		return ggu_fail(err, GGU_ERR_STATE, GGU_NO_OFFSET, "",
			"a recurrent model has no snapshot at position %zu", n);
	drop_snapshots(s, i);
	s->pos = n;
	cut_page_tables(s, page_count(n));
	return GGU_OK;
}
