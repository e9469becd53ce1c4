/* SPDX-License-Identifier: MIT
 * typeplan.h - chooses the type of each tensor from what the user gave: a recipe and options, or a plan file. Programs
 * only; all failures exit 2 with a message. */
#ifndef TOOLS_TYPEPLAN_H
#define TOOLS_TYPEPLAN_H
#include "../quant/recipe.h"
#include "opt.h"

/* Options that change what a recipe says. */
struct typeplan_given {
	bool pure, leave_output;
	struct opt_list tensor_type;            /* "REGEX=T" */
	const char *output_type, *embd_type;    /* "q6_K" or NULL */
};
#define TYPEPLAN_OPTIONS(to) \
	OPT_FLAG(0, "pure", &(to)->pure, "use the recipe's one type for every weight"), \
	OPT_LIST(0, "tensor-type", &(to)->tensor_type, "REGEX=T", \
		"use type T for tensors whose name matches REGEX; first match wins"), \
	OPT_STR(0, "output-tensor-type", &(to)->output_type, "T", "type of output.weight"), \
	OPT_STR(0, "token-embedding-type", &(to)->embd_type, "T", "type of token_embd.weight"), \
	OPT_FLAG(0, "leave-output-tensor", &(to)->leave_output, "keep output.weight as it is")
struct typeplan_options {
	struct typeplan_given given;
	struct recipe_options recipe;           /* what `given` says is filled in */
	const char *plan;                       /* file name, or NULL: a recipe */
};
/* Chooses the types of tensors t[n] of the model `name` into choice[n]; returns the general.file_type to record. With a
 * plan, that is the one of the first recipe whose own type holds most weights. A plan is a YAML list of mappings with
 * `tensor` and `type`, and maybe `shape`, which must be the model's; tensors that it does not name stay as they are. A
 * byte of a name that is not UTF-8, which YAML cannot represent, is written \xNN there, as is U+00NN. */
uint32_t typeplan_choose(const struct typeplan_options *p, const struct recipe *r, const char *name,
	const struct ggu_meta *meta, const struct ggu_tensor *const *t, size_t n, struct recipe_choice *choice);
/* A type that can be encoded, by name in any case; for any other, the argument of `option` is wrong. */
uint32_t typeplan_type(const char *option, const char *name);
/* Prints names and summaries of all recipes on stderr. The list is longer than many terminals, so what is wrong is to
 * be said after it. */
void typeplan_list_recipes(void);
/* None of the operands v[n] is a recipe: says which one may be meant, or lists all; exits 2. */
_Noreturn void typeplan_no_recipe(const char *const *v, int n);
/* The file's SHA-256 as 64 hex digits and a NUL; false if it is a pipe or the like, which cannot be read again. */
bool typeplan_sha256(const char *path, char hex[65]);

#endif
