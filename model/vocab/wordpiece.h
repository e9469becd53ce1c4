/* SPDX-License-Identifier: MIT
 * wordpiece.h - BERT's WordPiece: a word is the longest token that begins it, then the longest that continues it, and
 * so on. Private to model/vocab.
 *
 * Tokens are as in a GGUF: those that begin a word have U+2581 in front, those that continue one have nothing. */
#ifndef MODEL_VOCAB_WORDPIECE_H
#define MODEL_VOCAB_WORDPIECE_H
#include "texts.h"

struct wordpiece;
/* own: of vocab_own */
enum ggu_status wordpiece_new(struct wordpiece **out, const struct vocab *v, const bool *own, struct ggu_error *err);
void wordpiece_free(struct wordpiece *w);
/* A token as vocab.txt spells it; empty if it is not the model's own. */
struct ggu_str wordpiece_text(const struct wordpiece *w, int32_t id);
/* Encodes one word; one that cannot be covered or is too long becomes the unknown token. false: out of memory. */
bool wordpiece_encode(struct wordpiece *w, const char *word, size_t n, struct ids *o);

#endif
