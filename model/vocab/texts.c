/* SPDX-License-Identifier: MIT
 * texts.c - a table of ids by text: open addressing, never more than half full. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "../../libgguf/grow.h"
#include "texts.h"

bool ids_add(struct ids *o, int32_t id)
{
	int32_t *v = ggu_grow(o->v, o->n, sizeof *v);
	if (!v) return false;
	o->v = v;
	o->v[o->n++] = id;
	return true;
}

/* id: + 1; 0: empty. hash: the upper half of the text's hash, so that few other texts are compared. */
struct slot { int32_t id; uint32_t hash; };
struct texts { const struct ggu_str *list; size_t mask; struct slot slot[]; };

/* Where the text is, or the empty slot where it would be. */
static size_t slot_of(const struct texts *t, const char *p, size_t n, uint32_t *hash)
{
	uint64_t h = XXH3_64bits(p, n);
	size_t i = h & t->mask;
	*hash = (uint32_t)(h >> 32);
	for (; t->slot[i].id; i = (i + 1) & t->mask) {
		const struct ggu_str *s = t->list + t->slot[i].id - 1;
		if (t->slot[i].hash == *hash && s->n == n && !memcmp(s->p, p, n)) break;
	}
	return i;
}

int32_t texts_find(const struct texts *t, const char *p, size_t n)
{
	uint32_t hash;
	return t->slot[slot_of(t, p, n, &hash)].id - 1;
}

static bool is_text(const struct vocab *v, size_t id)
{
	if (v->tokens[id].n == 1 && !*v->tokens[id].p) return false;    /* sentencepiece ends its pieces at NUL */
	return v->types[id] == VOCAB_NORMAL || v->types[id] == VOCAB_USER_DEFINED || v->types[id] == VOCAB_UNUSED;
}

static struct texts *empty(const struct ggu_str *list, size_t n)
{
	size_t size = 16;
	struct texts *t;
	while (size < 2*n + 2) size *= 2;
	t = calloc(1, sizeof *t + size*sizeof *t->slot);
	if (!t) return NULL;
	t->list = list;
	t->mask = size - 1;
	return t;
}
static void put(struct texts *t, size_t id)
{
	uint32_t hash;
	size_t i = slot_of(t, t->list[id].p, t->list[id].n, &hash);
	if (!t->slot[i].id) t->slot[i] = (struct slot){ (int32_t)id + 1, hash };
}

struct texts *texts_new(const struct vocab *v, const bool *own, bool by_scores)
{
	struct texts *t = empty(v->tokens, v->n);
	for (size_t id = 0; t && id < v->n; id++) if (own[id] && (!by_scores || is_text(v, id))) put(t, id);
	return t;
}
struct texts *texts_of(const struct ggu_str *list, size_t n)
{
	struct texts *t = empty(list, n);
	for (size_t id = 0; t && id < n; id++) if (list[id].n) put(t, id);
	return t;
}

void texts_free(struct texts *t) { free(t); }
