/* SPDX-License-Identifier: MIT
 * relative.h - attention's bias by the distance of positions, in buckets (T5). Private to model/eval.
 *
 * Small distances have a bucket each; larger ones share ever wider buckets up to `distance`, and all from there on
 * share the last. If tokens see both sides, half of the buckets are for later positions. */
#ifndef MODEL_EVAL_RELATIVE_H
#define MODEL_EVAL_RELATIVE_H
#include <stdbool.h>
#include <stddef.h>

/* The bucket of a key that is `away` positions after its query (negative: before it). buckets: even, at least 4.
 * distance: more than half of the buckets of a side. */
size_t relative_bucket(ptrdiff_t away, size_t buckets, size_t distance, bool both_sides);
/* to[n_head][2*distance + 1], by `away` from -distance on, of bias[buckets][n_head] */
void relative_table(const float *bias, size_t n_head, size_t buckets, size_t distance, bool both_sides, float *to);

#endif
