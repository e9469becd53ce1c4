/* SPDX-License-Identifier: MIT
 * slow.h - the numbers of quant/ one at a time, from the description of the formats and of the numeric contract.
 *
 * Shares the code books (quant/grids.h: data) with quant/ and no code: it is there to disagree. Types are
 * ids of ggml. */
#ifndef TESTS_SLOW_H
#define TESTS_SLOW_H
#include <stddef.h>
#include <stdint.h>

/* weight = d*scale*code - m*min, with the integers of the block and its floats d and m */
struct slow_weight { double d, m; int scale, min, code; };
/* Weight i of a row of blocks. 0: this is no block type that is known here. */
int slow_weight(uint32_t type, const uint8_t *row, size_t i, struct slow_weight *w);
/* Weight i of a row of any type, floats included. 0: unknown. For block types all products are exact in double and the
 * difference is rounded once, as if each operation were one of floats. */
int slow_decode(uint32_t type, const uint8_t *row, size_t i, float *w);

/* An activation is d*q. */
struct slow_act { float d; int q; };
/* Like quant_act_pack for block types, for one token of n columns. */
void slow_pack(uint32_t type, const float *x, size_t n, struct slow_act *act);
/* One element of quant_mul: a row of n weights times a token. `widest`: raised to the largest magnitude of an exact
 * integer sum (64 bits), if that exceeds it. */
float slow_product(uint32_t type, const struct slow_weight *row, size_t n, const struct slow_act *act, int64_t *widest);
/* The same for floats; weights are widened first. Any n. */
float slow_float_product(const float *w, const float *x, size_t n);
/* lane l += lane l+8, then +4, +2, +1 */
float slow_tree(float lane[16]);

#endif
