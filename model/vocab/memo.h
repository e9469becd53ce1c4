/* SPDX-License-Identifier: MIT
 * memo.h - short texts and the ids that they became: most words of a text have stood in it before. Private to
 * model/vocab. */
#ifndef MODEL_VOCAB_MEMO_H
#define MODEL_VOCAB_MEMO_H
#include "texts.h"

struct memo;
struct memo *memo_new(void);            /* NULL: out of memory. Freed with free. */
/* Appends the ids of text[n] to o, if they are remembered: their number, or 0; -1: out of memory. */
int memo_find(const struct memo *m, const char *text, size_t n, struct ids *o);
/* Remembers them in another's place, unless text or ids are too long. n > 0, n_ids > 0 */
void memo_put(struct memo *m, const char *text, size_t n, const int32_t *ids, size_t n_ids);

#endif
