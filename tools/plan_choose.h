/* SPDX-License-Identifier: MIT
 * plan_choose.h - the types with the least error for a size. Programs only. */
#ifndef TOOLS_PLAN_CHOOSE_H
#define TOOLS_PLAN_CHOOSE_H
#include "plan_measure.h"

/* Sets the weight of every tensor: how much a relative error of it takes from the model's output, going by what it is
 * for. Of a role with many tensors each has an equal part, or with by_energy that of its layer: what the layer's last
 * matrix, attn_output or ffn_down, adds to the residual stream, of what those of all layers add. Call it after
 * plan_measure. */
void plan_weigh(struct plan_tensor *list, size_t n, bool by_energy);
/* Sets `chosen` of every tensor so that the sum of weight*error is small while the bytes together are at most `budget`,
 * which must be at least plan_least. For few tensors, and for many whose sizes are multiples of a large number, no sum
 * is smaller; for others the least is missed by little, as no tensor is a large part of the whole. */
void plan_choose(struct plan_tensor *list, size_t n, uint64_t budget);
uint64_t plan_least(const struct plan_tensor *list, size_t n);  /* bytes of the smallest options */

#endif
