/* SPDX-License-Identifier: MIT
 * index.h - finds the positions of names in a list of the caller's, by hash. Not installed.
 *
 * It is for lists whose names come from a file: nobody can make a file whose names all collide, and a look-up takes as
 * long in a list of a million names as in one of ten. The list may move, and grow at its end. */
#ifndef GGU_INDEX_H
#define GGU_INDEX_H
#include "ggu.h"

struct ggu_index { uint64_t *slot; size_t n_slots, n; };        /* all 0: empty */
typedef struct ggu_str (*ggu_index_key)(const void *list, size_t i);
/* Position in list of the name of n bytes at s, or SIZE_MAX. */
size_t ggu_index_find(const struct ggu_index *x, const void *list, ggu_index_key key, const char *s, size_t n);
/* Enters position i, whose name must not be there yet. false: out of memory. */
bool ggu_index_add(struct ggu_index *x, const void *list, ggu_index_key key, size_t i);
void ggu_index_free(struct ggu_index *x);

#endif
