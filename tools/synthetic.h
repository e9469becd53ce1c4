/* SPDX-License-Identifier: MIT
 * synthetic.h - models made of nothing, for measuring without a file. Programs only.
 *
 *   "1.1B,Q4_K_M"      about as many weights, in the types of a recipe, or all in one type
 *
 * Shaped like Llama models of that size, and random: each matrix is made of blocks drawn from a few hundred that were
 * encoded from weights of a bell curve. A specification always gives the same bytes. It has a vocabulary's size and no
 * vocabulary. */
#ifndef TOOLS_SYNTHETIC_H
#define TOOLS_SYNTHETIC_H
#include "../libgguf/pool.h"

/* The bytes of a whole GGUF file, each worker's share of every tensor in its own memory; *n of them, for munmap.
 * Exits 2 with a message if spec is invalid or there is not enough memory. */
void *synthetic_make(const char *spec, struct ggu_pool *pool, size_t *n);

#endif
