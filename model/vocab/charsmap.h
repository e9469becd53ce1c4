/* SPDX-License-Identifier: MIT
 * charsmap.h - the table with which SentencePiece normalizes a text (precompiled_charsmap): it replaces characters, or
 * short sequences of them. Private to model/vocab.
 *
 *   u32 bytes of the trie | trie: u32 units | texts, each ended by a NUL       (all little-endian)
 *
 * The trie is a double array: from the unit at `pos`, byte b leads to the unit at pos ^ b, if b is its label. The next
 * pos is that ^ the unit's offset. If the unit says that a key ends there, the value is at this pos. A value is the
 * byte of the texts where the key's replacement begins. Whatever the units say, nothing outside the table is read. */
#ifndef MODEL_VOCAB_CHARSMAP_H
#define MODEL_VOCAB_CHARSMAP_H
#include "../../libgguf/ggu.h"

struct charsmap { const unsigned char *unit; size_t n_units; const char *texts; size_t n_texts; };
/* Makes a view of bytes[n]. GGU_ERR_FORMAT, _TRUNCATED: this is not such a table. */
enum ggu_status charsmap_read(struct charsmap *m, const void *bytes, size_t n, struct ggu_error *err);
/* Finds the longest key, or the shortest one, that p[n] begins with: returns its length, or 0 if there is none, and its
 * replacement. */
size_t charsmap_find(const struct charsmap *m, const char *p, size_t n, bool shortest, struct ggu_str *to);

#endif
