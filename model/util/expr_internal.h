/* SPDX-License-Identifier: MIT
 * expr_internal.h - the parsed form, shared by expr.c (text to tree) and expr_eval.c (tree to value). */
#ifndef MODEL_UTIL_EXPR_INTERNAL_H
#define MODEL_UTIL_EXPR_INTERNAL_H
#include "../../libgguf/arena.h"
#include "expr.h"

enum expr_op {
	OP_VALUE, OP_NAME, OP_MEMBER, OP_INDEX, OP_CALL, OP_LIST,
	OP_NEG, OP_NOT, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD,
	OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_IN, OP_AND, OP_OR, OP_ALT, OP_COND
};
struct expr_node {
	enum expr_op op;
	size_t at;                      /* position in the text */
	struct expr_value value;        /* OP_VALUE */
	const char *name;               /* NAME, MEMBER, CALL */
	struct expr_node **arg;         /* operands */
	size_t n_args;
};
struct expr_arena {
	struct ggu_arena memory;
	size_t items, steps;            /* how many are left */
};
struct expr { struct expr_arena *arena; const struct expr_node *root; };

#endif
