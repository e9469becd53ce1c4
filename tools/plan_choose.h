/* SPDX-License-Identifier: MIT
 * plan_choose.h - the types with the least error for a size. Programs only. */
#ifndef TOOLS_PLAN_CHOOSE_H
#define TOOLS_PLAN_CHOOSE_H
#include "plan_measure.h"

/* Sets the weight of every tensor: how much a relative error in it harms the model's output, judged by its role. The
 * tensors of a role share the role's weight equally, or with by_energy in proportion to what the last matrices of
 * their layer, attn_output or all ffn_down, add to the residual stream. Call it after plan_measure. */
void plan_weigh(struct plan_tensor *list, size_t n, bool by_energy);
/* Sets `chosen` of every tensor so that the sum of weight*error is small while the bytes together are at most `budget`,
 * which must be at least plan_least. For few tensors, and for many whose sizes are multiples of a large number, no sum
 * is smaller; for others it is close to the least, as no tensor is a large part of the whole. */
void plan_choose(struct plan_tensor *list, size_t n, uint64_t budget);
uint64_t plan_least(const struct plan_tensor *list, size_t n);  /* bytes of the smallest options */

#endif
