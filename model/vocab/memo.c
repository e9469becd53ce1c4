/* SPDX-License-Identifier: MIT
 * memo.c - see memo.h. The hash of a text gives the only place where it can be. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "memo.h"

enum { PLACES = 1 << 13, TEXT = 30, IDS = 8 };
struct memo { struct place { uint8_t n, n_ids; char text[TEXT]; int32_t ids[IDS]; } place[PLACES]; };

struct memo *memo_new(void) { return calloc(1, sizeof(struct memo)); }

static size_t place_of(const char *text, size_t n) { return XXH3_64bits(text, n)%PLACES; }

int memo_find(const struct memo *m, const char *text, size_t n, struct ids *o)
{
	const struct place *p;
	if (n > TEXT) return 0;
	p = m->place + place_of(text, n);
	if (p->n != n || memcmp(p->text, text, n)) return 0;
	for (int i = 0; i < p->n_ids; i++) if (!ids_add(o, p->ids[i])) return -1;
	return p->n_ids;
}

void memo_put(struct memo *m, const char *text, size_t n, const int32_t *ids, size_t n_ids)
{
	struct place *p;
	if (n > TEXT || n_ids > IDS) return;
	p = m->place + place_of(text, n);
	p->n = (uint8_t)n;
	p->n_ids = (uint8_t)n_ids;
	memcpy(p->text, text, n);
	memcpy(p->ids, ids, n_ids*sizeof *ids);
}
