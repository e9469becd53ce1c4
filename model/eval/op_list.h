/* SPDX-License-Identifier: MIT
 * op_list.h - the operators, OPERATOR(NAME) for each op_NAME.c, NAME being its key in a description; op.c's table is
 * made of them. */
#ifndef MODEL_EVAL_OP_LIST_H
#define MODEL_EVAL_OP_LIST_H
#include "op.h"

#define OPERATORS OPERATOR(attention) OPERATOR(latent_attention) OPERATOR(cross_attention) OPERATOR(ffn) \
	OPERATOR(experts) OPERATOR(mamba) OPERATOR(mamba2)
#define OPERATOR(name) extern const struct op op_##name;
OPERATORS
#undef OPERATOR

#endif
