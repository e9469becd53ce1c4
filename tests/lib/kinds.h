/* SPDX-License-Identifier: MIT
 * kinds.h - small models that several tests evaluate: a transformer with shared heads and a window, two recurrent ones,
 * one with ropes for long contexts, a mixture of experts. What must hold of all models is tested with each of `kinds`:
 * an architecture with an operator of its own adds one. */
#ifndef TESTS_LIB_KINDS_H
#define TESTS_LIB_KINDS_H
#include "models.h"

#define ATTENTION { "blk.%d.attn_norm.weight", { WIDE }, 1 }, { "blk.%d.attn_q.weight", { WIDE, WIDE }, 0 }, \
	{ "blk.%d.attn_k.weight", { WIDE, WIDE/2 }, 0 }, { "blk.%d.attn_v.weight", { WIDE, WIDE/2 }, 0 }, \
	{ "blk.%d.attn_output.weight", { WIDE, WIDE }, 0 }
#define EMBEDDING { "token_embd.weight", { WIDE, VOCAB }, 0 }, { "output_norm.weight", { WIDE }, 1 }
extern const struct key transformer_keys[7];
extern const struct tensor transformer_tensors[12];
extern const struct kind transformer, experts, recurrent, long_rope;
extern const struct kind *const kinds[];                /* all of them, then NULL */

#endif
