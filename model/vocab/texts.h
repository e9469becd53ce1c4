/* SPDX-License-Identifier: MIT
 * texts.h - ids by the texts of tokens, and growing lists of ids. Private to model/vocab. */
#ifndef MODEL_VOCAB_TEXTS_H
#define MODEL_VOCAB_TEXTS_H
#include "vocab_internal.h"

/* Grown with ggu_grow. most: how many are wanted, 0: all; once there are so many, a function may stop. */
struct ids { int32_t *v; size_t n, most; };
static inline bool ids_enough(const struct ids *o) { return o->most && o->n >= o->most; }
bool ids_add(struct ids *o, int32_t id);                /* false: out of memory */

struct texts;
/* The texts of v's tokens, those with own[id]; if several have the same, the first is found. v must outlive it.
 * by_scores: as in SentencePiece, control, unknown and byte pieces have no text. NULL: out of memory. */
struct texts *texts_new(const struct vocab *v, const bool *own, bool by_scores);
/* The same for list[n], which must outlive it; empty texts are left out. */
struct texts *texts_of(const struct ggu_str *list, size_t n);
void texts_free(struct texts *t);
int32_t texts_find(const struct texts *t, const char *p, size_t n);     /* -1: no token of that text */

#endif
