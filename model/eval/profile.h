/* SPDX-License-Identifier: MIT
 * profile.h - where the time of an evaluation goes: each pass of the threads over their tasks, by what it does. */
#ifndef MODEL_EVAL_PROFILE_H
#define MODEL_EVAL_PROFILE_H
#include "model.h"

enum { PROFILE_ROWS = 64, PROFILE_NAME = 64 };
/* All passes of one name together. A product's is that of its tensors without layer and ".weight", "attn_q attn_k
 * attn_v"; "inputs" are norms, sums, activations and the packing of what is multiplied. */
struct profile_row { char name[PROFILE_NAME]; uint64_t n_passes; double secs, macs; };
struct profile { size_t n; struct profile_row row[PROFILE_ROWS]; };

/* From here on what w does is added to p, which begins with zeros; NULL: no more. Names beyond PROFILE_ROWS are added
 * to the last row. */
void work_profile(struct work *w, struct profile *p);

#endif
