/* SPDX-License-Identifier: MIT
 * op_list.h - the operators that op.c's table holds. */
#ifndef MODEL_EVAL_OP_LIST_H
#define MODEL_EVAL_OP_LIST_H
#include "op.h"

extern const struct op op_attention, op_latent, op_ffn, op_experts, op_mamba, op_mamba2, op_cross;

#endif
