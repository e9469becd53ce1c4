/* SPDX-License-Identifier: MIT
 * memo.h - remembers short texts and their ids, as most words of a text occur more than once. Private to
 * model/vocab. */
#ifndef MODEL_VOCAB_MEMO_H
#define MODEL_VOCAB_MEMO_H
#include "texts.h"

struct memo;
struct memo *memo_new(void);            /* NULL: out of memory. Freed with free. */
/* Appends the ids of text[n] to o, if they are remembered; returns their number, or 0; -1: out of memory. */
int memo_find(const struct memo *m, const char *text, size_t n, struct ids *o);
/* Remembers them, maybe in place of others, unless text or ids are too long. n > 0, n_ids > 0 */
void memo_put(struct memo *m, const char *text, size_t n, const int32_t *ids, size_t n_ids);

#endif
