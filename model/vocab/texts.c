/* SPDX-License-Identifier: MIT
 * texts.c - a table of ids by text: open addressing, never more than half full. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "texts.h"

bool ids_add(struct ids *o, int32_t id)
{
	if (o->n == o->cap) {
		size_t cap = o->cap ? 2*o->cap : 256;
		int32_t *v = realloc(o->v, cap*sizeof *v);
		if (!v) return false;
		o->v = v;
		o->cap = cap;
	}
	o->v[o->n++] = id;
	return true;
}

struct texts { const struct vocab *v; size_t mask; int32_t slot[]; };   /* id + 1, 0: empty */

/* Where the text is, or the empty slot where it would be. */
static size_t slot_of(const struct texts *t, const char *p, size_t n)
{
	size_t i = XXH3_64bits(p, n) & t->mask;
	for (; t->slot[i]; i = (i + 1) & t->mask) {
		const struct ggu_str *s = t->v->tokens + t->slot[i] - 1;
		if (s->n == n && !memcmp(s->p, p, n)) break;
	}
	return i;
}

int32_t texts_find(const struct texts *t, const char *p, size_t n) { return t->slot[slot_of(t, p, n)] - 1; }

static bool is_text(const struct vocab *v, size_t id)
{
	if (v->tokens[id].n == 1 && !*v->tokens[id].p) return false;    /* sentencepiece ends its pieces at NUL */
	return v->types[id] == VOCAB_NORMAL || v->types[id] == VOCAB_USER_DEFINED || v->types[id] == VOCAB_UNUSED;
}

struct texts *texts_new(const struct vocab *v, bool by_scores)
{
	size_t size = 16;
	struct texts *t;
	while (size < 2*v->n + 2) size *= 2;
	t = calloc(1, sizeof *t + size*sizeof *t->slot);
	if (!t) return NULL;
	t->v = v;
	t->mask = size - 1;
	for (size_t id = 0; id < v->n; id++) {
		size_t i;
		if (by_scores && !is_text(v, id)) continue;
		i = slot_of(t, v->tokens[id].p, v->tokens[id].n);
		if (!t->slot[i]) t->slot[i] = (int32_t)id + 1;
	}
	return t;
}

void texts_free(struct texts *t) { free(t); }
