/* SPDX-License-Identifier: MIT
 * state_file.c - a state as bytes, in the layout and byte order of this machine:
 *
 *   struct header | attn_shape of each cache | first page of each table | ids[pos] | pages, table by table |
 *   recurrent floats | those of its source, if it has one
 *
 * The model's number (graph_id.c), shapes and sizes say what the state belongs to; they must match those of the state
 * that loads it. So must the number in `magic`, which grows with each change of the layout: states of another version
 * are refused, since they can always be computed anew. A table's pages are those from its first page on; what it lacks
 * is computed anew. */
#include <stdlib.h>
#include <string.h>
#include "model_internal.h"

static const char magic[] = "ggustat5";
struct header {
	char magic[8];
	uint64_t model, n_layer, n_embd, n_vocab, n_caches, recurrent_floats, page_bytes, pos, is_long;
};

static struct header header_of(const struct state *s)
{
	struct header h = { .model = graph_id(s->g), .n_layer = s->g->n_layer, .n_embd = s->g->n_embd,
		.n_vocab = s->g->n_vocab, .n_caches = s->g->n_caches, .recurrent_floats = s->g->recurrent_floats,
		.page_bytes = state_page_bytes(s), .pos = s->pos, .is_long = s->is_long };
	memcpy(h.magic, magic, sizeof h.magic);
	return h;
}

/* A cache's shape as numbers, without the padding of a struct. */
enum { SHAPE_NUMBERS = 6 };
static void shape_numbers(const struct attn_shape *a, uint64_t v[SHAPE_NUMBERS])
{
	const uint64_t n[SHAPE_NUMBERS] = { a->n_kv, a->k_dim, a->v_dim, a->k_type, a->v_type, a->v_in_k };
	memcpy(v, n, sizeof n);
}

/* The size of the pages if table i begins with page first[i] (8 bytes each); false: no sequence of n tokens can have
 * these. */
static bool pages_bytes(const struct state *s, size_t n, const void *first, uint64_t *bytes)
{
	*bytes = 0;
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		uint64_t from;
		memcpy(&from, (const char *)first + i*sizeof from, sizeof from);
		if (from > (s->table[i].sees.window ? page_count(n) : 0)) return false;
		*bytes += (page_count(n) - from)*s->table[i].page_bytes;
	}
	return true;
}

size_t state_save_bytes(const struct state *s)
{
	size_t n = sizeof(struct header) + (s->g->n_caches*SHAPE_NUMBERS + s->g->n_horizons)*sizeof(uint64_t);
	for (size_t i = 0; i < s->g->n_horizons; i++)
		n += (page_count(s->pos) - s->table[i].first)*s->table[i].page_bytes;
	n += s->pos*sizeof *s->ids + recurrent_bytes(s->g);
	return n + (s->source ? state_save_bytes(s->source) : 0);
}

static char *put(char *to, const void *from, size_t n)
{
	if (n) memcpy(to, from, n);
	return to + n;
}

void state_save(const struct state *s, void *to)
{
	struct header h = header_of(s);
	char *p = put(to, &h, sizeof h);
	for (size_t i = 0; i < s->g->n_caches; i++) {
		uint64_t v[SHAPE_NUMBERS];
		shape_numbers(s->shape + i, v);
		p = put(p, v, sizeof v);
	}
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		uint64_t first = s->table[i].first;
		p = put(p, &first, sizeof first);
	}
	p = put(p, s->ids, s->pos*sizeof *s->ids);
	for (size_t i = 0; i < s->g->n_horizons; i++) {
		const struct page_table *t = s->table + i;
		for (size_t k = t->first; k < page_count(s->pos); k++) p = put(p, t->page[k]->bytes, t->page_bytes);
	}
	p = put(p, s->recurrent, recurrent_bytes(s->g));
	if (s->source) state_save(s->source, p);
}

/* The next n bytes, NULL if there are fewer. */
struct cursor { const char *p; size_t left; };
static const void *take(struct cursor *c, size_t n)
{
	const char *p = c->p;
	if (n > c->left) return NULL;
	c->p += n;
	c->left -= n;
	return p;
}

static bool shapes_match(const struct state *s, const char *bytes)
{
	for (size_t i = 0; i < s->g->n_caches; i++) {
		uint64_t v[SHAPE_NUMBERS];
		shape_numbers(s->shape + i, v);
		if (memcmp(bytes + i*sizeof v, v, sizeof v)) return false;
	}
	return true;
}

/* The parts of a saved state, as pointers into its bytes; rest: what follows it. */
struct loaded { struct header h; const char *first, *ids, *pages, *recurrent; struct cursor rest; };
static enum ggu_status known_ids(const struct state *s, const struct loaded *l, struct ggu_error *err)
{
	for (size_t i = 0; i < l->h.pos; i++) {
		int32_t id;
		memcpy(&id, l->ids + i*sizeof id, sizeof id);
		if (id < 0 || (size_t)id >= s->g->n_vocab)
			return ggu_fail(err, GGU_ERR_FORMAT, sizeof l->h, "", "token %d is not in the vocabulary",
				(int)id);
	}
	return GGU_OK;
}

static enum ggu_status parse(const struct state *s, struct cursor c, struct loaded *l, struct ggu_error *err)
{
	struct header own = header_of(s);
	size_t n = c.left, recurrent = recurrent_bytes(s->g);
	uint64_t pages, all;            /* which may be more than size_t counts */
	const void *at = take(&c, sizeof l->h), *shapes = take(&c, s->g->n_caches*SHAPE_NUMBERS*sizeof(uint64_t));
	l->first = take(&c, s->g->n_horizons*sizeof(uint64_t));
	if (!at || !shapes || !l->first)
		return ggu_fail(err, GGU_ERR_TRUNCATED, n, "", "the state ends within its header");
	memcpy(&l->h, at, sizeof l->h);
	own.pos = l->h.pos;
	own.is_long = l->h.is_long;
	if (memcmp(&l->h, &own, sizeof own) || l->h.is_long > 1 || !shapes_match(s, shapes))
		return ggu_fail(err, GGU_ERR_FORMAT, 0, "",
			"this is not a state of this model with these types of cache");
	if (l->h.pos > MODEL_MAX_POS || !pages_bytes(s, (size_t)l->h.pos, l->first, &pages))
		return ggu_fail(err, GGU_ERR_FORMAT, 0, "", "the state begins after its end");
	all = l->h.pos*sizeof *s->ids + pages + recurrent;
	if (c.left < all || (!s->source && c.left > all))
		return ggu_fail(err, GGU_ERR_TRUNCATED, n, "",
			"the state does not have the length that its header gives");
	l->ids = take(&c, (size_t)l->h.pos*sizeof *s->ids);
	l->pages = take(&c, (size_t)pages);
	l->recurrent = take(&c, recurrent);
	l->rest = c;
	return known_ids(s, l, err);
}

static enum ggu_status fill(struct state *s, const struct loaded *l, struct ggu_error *err)
{
	enum ggu_status st = state_make_ids(s, l->h.pos, err);
	const char *from = l->pages;
	for (size_t i = 0; i < s->g->n_horizons && !st; i++) {
		struct page_table *to = s->table + i;
		uint64_t first;
		memcpy(&first, l->first + i*sizeof first, sizeof first);
		if (!page_table_begin(to, s->pages, (size_t)first, page_count(l->h.pos)))
			st = ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, "", "out of memory for a sequence");
		for (size_t k = to->first; k < to->end; k++, from += to->page_bytes)
			memcpy(to->page[k]->bytes, from, to->page_bytes);
	}
	if (st) return st;
	s->pos = l->h.pos;
	s->is_long = l->h.is_long;
	if (s->pos) memcpy(s->ids, l->ids, s->pos*sizeof *s->ids);
	if (s->g->recurrent_floats) memcpy(s->recurrent, l->recurrent, recurrent_bytes(s->g));
	return GGU_OK;
}

enum ggu_status state_load(struct state *s, const void *bytes, size_t n, struct ggu_error *err)
{
	struct loaded own, source;
	enum ggu_status st = parse(s, (struct cursor){ bytes, n }, &own, err);
	if (!st && s->source) st = parse(s->source, own.rest, &source, err);
	if (st) return st;
	state_reset(s);
	st = fill(s, &own, err);
	if (!st && s->source) st = fill(s->source, &source, err);
	if (st) state_reset(s);         /* tables that were filled begin anywhere */
	return st;
}
