/* SPDX-License-Identifier: MIT
 * relative.h - attention's bias by the distance of positions, in buckets (T5). Private to model/eval.
 *
 * Near distances have a bucket each, those further on share ever larger ones up to `distance`, from which on all share
 * the last. Where tokens see both sides, half of the buckets are for what comes after. */
#ifndef MODEL_EVAL_RELATIVE_H
#define MODEL_EVAL_RELATIVE_H
#include <stdbool.h>
#include <stddef.h>

/* The bucket of a key `away` positions behind its query, negative ones before it. buckets: even, 4 at least; distance:
 * more than half of those of a side. */
size_t relative_bucket(ptrdiff_t away, size_t buckets, size_t distance, bool both_sides);
/* to[n_head][2*distance + 1], by `away` from -distance on, of bias[buckets][n_head] */
void relative_table(const float *bias, size_t n_head, size_t buckets, size_t distance, bool both_sides, float *to);

#endif
