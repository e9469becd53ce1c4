/* SPDX-License-Identifier: MIT
 * config.h - config.json, generation_config.json and what sentence-transformers says of pooling as the names in an
 * architecture's expressions.
 *
 * A name is looked up in this order: the loop variables i and x; `names` of the description's convert part (expressions
 * themselves, in which their own name means the key); the text part of config.json (text_config, language_config or
 * llm_config, if there is one), then its root; the defaults of the class and of the description, for keys that are
 * absent. A key that exists with the value null is null: this is how Hugging Face distinguishes "none" from "not
 * given". Keys of objects have no defaults; gives(object, 'key') tells one that is null from one that is absent.
 * layer(X) picks this layer's value from a list with a value for each layer and leaves anything else as it is.
 * `whole` is the root of config.json, `generation` is generation_config.json, `pooling` the config.json of the folder
 * that modules.json names for that, `nested` whether the text part is one of several, `untied` the result of copies.h,
 * `coded` that of coded_is (coded.h), and `value` the value that `matters` asks about. */
#ifndef CONVERT_CONFIG_H
#define CONVERT_CONFIG_H
#include <jansson.h>
#include "../model/arch/arch.h"
#include "../model/util/expr.h"

enum { CONFIG_MAX_LAYERS = 65536, CONFIG_MAX_EXPERTS = 65536 };
struct config_keys;
struct config {
	json_t *root, *text, *generation, *pooling;     /* text is borrowed from root; the last two may be NULL */
	const json_t *value;
	struct config_keys *keys;               /* which keys were read */
	const struct arch *arch;
	const char *hf_class;                   /* of config.json, to which arch belongs; in root */
	const struct yaml_node *defaults, *names;
	struct expr_arena *arena;
	struct expr_scope scope;
	int64_t i, x;                           /* layer, expert; -1 outside */
	int64_t n_layers;                       /* that i runs over: config_layers */
	bool untied;                            /* copies.h */
	bool coded;                             /* coded.h */
	unsigned depth;
	const struct yaml_node *within;         /* the shorthand being evaluated */
	char module[64];                        /* what sentence-transformers does beyond pooling; "" if nothing */
	char cause[232];                        /* the name whose own expression failed, and why; "" if none */
};
/* Reads the folder's files and finds the class in `set`. optional: if config.json is missing, root is NULL and the
 * architecture is the one marked as fallback. */
enum ggu_status config_open(struct config *c, const char *dir, struct arch_set *set, bool optional,
	struct ggu_error *err);
void config_close(struct config *c);
/* The value of an expression of the description; messages name its line. */
enum ggu_status config_eval(struct config *c, const struct yaml_node *e, struct expr_value *v, struct ggu_error *err);
enum ggu_status config_true(struct config *c, const struct yaml_node *e, bool absent, bool *yes, struct ggu_error *err);
/* The same for text inside node `at`, such as the argument of a transform. */
enum ggu_status config_eval_text(struct config *c, const struct yaml_node *at, const char *text, struct expr_value *v,
	struct ggu_error *err);
/* The value of `key` of the mapping `in`, a count; `absent` if there is no such key or, if `absent` is a count, it is
 * null. */
enum ggu_status config_count(struct config *c, const struct yaml_node *in, const char *key, int64_t absent,
	int64_t max, int64_t *n, struct ggu_error *err);
/* The number of layers, before a loop over them. absent: as above. */
enum ggu_status config_layers(struct config *c, int64_t absent, int64_t *n, struct ggu_error *err);
/* Evaluates `check` and `check_layer`: the conditions under which the graph is right. Messages name the class and the
 * architecture, since a condition may be that of a description that this one is like. */
enum ggu_status config_check(struct config *c, struct ggu_error *err);
/* To be called after everything has been evaluated: checks the keys that no rule read and `ignore` does not list. Those
 * listed in `matters` are an error; the others and `module` are reported to warn one by one (NULL: not at all). */
enum ggu_status config_unread(struct config *c, void (*warn)(void *ctx, const struct ggu_error *what), void *ctx,
	struct ggu_error *err);
/* "*" in a pattern matches anything but dots, "**" anything. */
bool config_matches(const char *pattern, const char *name);
/* Fails with GGU_ERR_FORMAT, naming the description's file and the place of the node. */
#if defined __GNUC__
__attribute__((format(printf, 4, 5)))
#endif
enum ggu_status config_fail(const struct config *c, const struct yaml_node *at, struct ggu_error *err,
	const char *what, ...);

#endif
