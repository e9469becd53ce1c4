/* SPDX-License-Identifier: MIT
 * slow.h - the numbers of quant/ one at a time, from the description of the formats and of the numeric contract.
 *
 * Shares the code books (quant/grids.h: data) with quant/ and no code: it is there to disagree. Types are
 * ids of ggml. */
#ifndef TESTS_SLOW_H
#define TESTS_SLOW_H
#include <stddef.h>
#include <stdint.h>

/* weight = d*scale*code - m*min: the integers of the block, d and m floats of it */
struct slow_weight { double d, m; int scale, min, code; };
/* Weight i of a row of blocks. 0: not a block type known here. */
int slow_weight(uint32_t type, const uint8_t *row, size_t i, struct slow_weight *w);
/* Weight i of a row of any type, floats included. 0: not known. All products of a block type are exact in double
 * and the difference is rounded once, as it is when each operation is one of float. */
int slow_decode(uint32_t type, const uint8_t *row, size_t i, float *w);

/* An activation is d*q. */
struct slow_act { float d; int q; };
/* As quant_act_pack for block types, one token of n. */
void slow_pack(uint32_t type, const float *x, size_t n, struct slow_act *act);
/* One element of quant_mul: a row of n weights times a token. `widest` takes the greatest magnitude of an
 * integer sum (an exact one, in 64 bits) if that is above what it holds. */
float slow_product(uint32_t type, const struct slow_weight *row, size_t n, const struct slow_act *act, int64_t *widest);
/* The same for floats, weights widened. Any n. */
float slow_float_product(const float *w, const float *x, size_t n);
/* lane l += lane l+8, then +4, +2, +1 */
float slow_tree(float lane[16]);

#endif
