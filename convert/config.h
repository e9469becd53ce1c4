/* SPDX-License-Identifier: MIT
 * config.h - config.json and generation_config.json as the names of an architecture's expressions.
 *
 * A name is looked up in this order: the loop variable i (and x); `names` of the description's convert part
 * (expressions themselves); config.json's text part (text_config where there is one), then its root; the defaults
 * of the class, for keys that are absent. A key that is there as null is null: that is how Hugging Face tells
 * "none" from "not said". generation is generation_config.json. */
#ifndef CONVERT_CONFIG_H
#define CONVERT_CONFIG_H
#include <jansson.h>
#include "../model/arch/arch.h"
#include "../model/util/expr.h"

struct config {
	json_t *root, *text, *generation;       /* text is borrowed from root; generation may be NULL */
	const struct arch *arch;
	const struct yaml_node *defaults, *names;
	struct expr_arena *arena;
	struct expr_scope scope;
	int64_t i, x;                           /* layer, expert; -1 outside */
	unsigned depth;
	char cause[232];                        /* the name whose own expression failed, and why; "" if none */
};
/* Reads the folder's files and finds the class in `set`. optional: a missing config.json leaves root NULL and takes the
 * architecture whose convert part says vocab_without_config. */
enum ggu_status config_open(struct config *c, const char *dir, const struct arch_set *set, bool optional, struct ggu_error *err);
void config_close(struct config *c);
/* The value of an expression of the description; messages name its line. */
enum ggu_status config_eval(struct config *c, const struct yaml_node *e, struct expr_value *v, struct ggu_error *err);
enum ggu_status config_true(struct config *c, const struct yaml_node *e, bool absent, bool *yes, struct ggu_error *err);
/* The same for text that stands in node `at`, as an argument of a transform does. */
enum ggu_status config_eval_text(struct config *c, const struct yaml_node *at, const char *text, struct expr_value *v, struct ggu_error *err);
/* GGU_ERR_FORMAT naming the architecture's file and the node's line. */
#if defined __GNUC__
__attribute__((format(printf, 4, 5)))
#endif
enum ggu_status config_fail(const struct config *c, const struct yaml_node *at, struct ggu_error *err, const char *what, ...);

#endif
