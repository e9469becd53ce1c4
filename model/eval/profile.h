/* SPDX-License-Identifier: MIT
 * profile.h - where the time of an evaluation goes: each pass of the threads over their tasks, by what it does. */
#ifndef MODEL_EVAL_PROFILE_H
#define MODEL_EVAL_PROFILE_H
#include "model.h"

enum { PROFILE_ROWS = 64, PROFILE_NAME = 64 };
/* The passes of one name, added up. The name of a product is that of its tensors without layer and ".weight", such as
 * "attn_q attn_k attn_v"; "inputs" are norms, sums, activation functions and packing. */
struct profile_row { char name[PROFILE_NAME]; uint64_t n_passes; double secs, macs; };
struct profile { size_t n; struct profile_row row[PROFILE_ROWS]; };

/* Adds what w does from now on to p, which begins with zeros; NULL: stops. Names beyond PROFILE_ROWS go to the last
 * row. */
void work_profile(struct work *w, struct profile *p);
void profile_add(struct profile *p, const char *name, double secs, double macs);        /* one pass */

#endif
