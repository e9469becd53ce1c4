/* SPDX-License-Identifier: MIT
 * build.h - how a mapping of a description becomes an operator's struct: a table of fields says what keys there are,
 * what they hold, where they go and what they are where they are left out. Private to model/eval.
 *
 * Expressions see: `i` (the layer), the shorthands under `names`, the model's own keys without the architecture's
 * prefix, tensor('NAME'), whether there is such a tensor, and layer(X), which of a list with a value for each layer
 * takes this layer's and leaves all else as it is. Tensor names are without "blk.N." and ".weight", or from the root
 * with a slash in front ("/blk.0.NAME"); NAME.bias is added where it exists. */
#ifndef MODEL_EVAL_BUILD_H
#define MODEL_EVAL_BUILD_H
#include "graph.h"

enum { BUILD_MAX_SIZE = 1 << 24 };

struct builder {
	struct graph *g;
	const struct arch *arch;
	struct ggu_file *f;
	const struct ggu_meta *meta;
	struct expr_arena *arena;
	struct ggu_error *err;
	const struct yaml_node *names, *stack;  /* stack: the one being built; NULL: the graph is the stack */
	const char *blocks;     /* what names of layers' tensors begin with */
	int64_t layer;          /* -1: outside the layers */
	int depth, used;        /* of names that use names; names that one expression came to */
	const char **keys;      /* [ggu_meta_count(meta)], sorted */
	unsigned forms;         /* bits of enum quant_act of the weights with FIELD_INPUT that were read */
	bool shapes_only;       /* f has no data: weights have none, and vectors' numbers are 0 */
};

enum field_kind {
	FIELD_SIZE,             /* size_t */
	FIELD_NUMBER,           /* double */
	FIELD_FLAG,             /* bool: what expr_true says */
	FIELD_WORD,             /* int: index into words, of which it is one, or an expression that gives one */
	FIELD_WEIGHT,           /* struct weight: NAME.weight and NAME.bias */
	FIELD_VECTOR,           /* struct vector, whatever its shape: NAME.weight, NAME or NAME.bias */
	FIELD_NORM,             /* struct norm, its width still open: build_norm_width */
	FIELD_ROPE,             /* struct rope, its dims still open: build_rope_width; base 0: there is none */
	FIELD_MAP,              /* a mapping whose fields (sub) go into the struct at `at`; [when: EXPR] */
	FIELD_OWN               /* read by the operator itself */
};
/* INPUT: a weight that is multiplied with the branch's input. MAY_LACK: a number that is `none` where nothing is said,
 * which no value that is said may be. */
enum { FIELD_NEEDED = 1, FIELD_INPUT = 2, FIELD_MAY_LACK = 4 };
struct field {
	const char *key;
	enum field_kind kind;
	size_t at;                      /* offsetof the member */
	/* SIZE, NUMBER: where it is left out, and its range; none outside that: it is needed */
	double none, lo, hi;
	unsigned flags;
	const char *const *words;       /* WORD: NULL-terminated; the first where it is left out, unless it is needed */
	const struct field *sub;        /* MAP */
};
/* Fills the struct at `to` from map, fields ending with a NULL key; keys it does not list are errors. */
enum ggu_status build_fields(struct builder *b, const struct yaml_node *map, const struct field *fields, void *to);
/* The same for some of map's keys, whatever others it has. */
enum ggu_status build_some(struct builder *b, const struct yaml_node *map, const struct field *fields, void *to);
/* The keys of map are among those of fields, or among these words. */
enum ggu_status build_only(const struct builder *b, const struct yaml_node *map, const struct field *fields,
	const char *words);

/* A message with file, line and column of `at`. */
enum ggu_status build_fail(const struct builder *b, const struct yaml_node *at, const char *where, const char *what);
void *build_alloc(const struct builder *b, size_t bytes);               /* zeroed; fills err when it returns NULL */
/* map[key] as a number in lo..hi; `none` where it is absent or null, which is an error if that is outside */
enum ggu_status build_number(struct builder *b, const struct yaml_node *map, const char *key, double none, double lo,
	double hi, double *x);
enum ggu_status build_eval(struct builder *b, const struct yaml_node *at, struct expr_value *v);
/* What map's `when` says, true where it says nothing. */
enum ggu_status build_when(struct builder *b, const struct yaml_node *map, bool *yes);
enum ggu_status build_sort_keys(struct builder *b);

/* Shapes, once the sizes are known; 0: any. A weight or vector that is not there passes. */
enum ggu_status build_shape(const struct builder *b, const struct weight *w, size_t n_in, size_t n_out, size_t n_mat);
enum ggu_status build_length(const struct builder *b, const struct yaml_node *map, const char *key,
	const struct vector *v, size_t n);
/* A row of n values whose groups (heads) have n_group: the norm goes by group where its weights say so, else by the
 * row. */
enum ggu_status build_norm_width(const struct builder *b, const struct yaml_node *map, const char *key, struct norm *o,
	size_t n, size_t n_group);
/* A rope that says nothing of its dims turns a whole head. *index: into graph.rope, where layers share them; -1:
 * none. */
enum ggu_status build_rope_width(struct builder *b, const struct yaml_node *map, const char *key, struct rope *r,
	size_t head_dim, int *index);
/* One more cache of each state of g, this stack or its source; *index: into g->cache. Layers that see the whole
 * sequence share one, which each is done with before the next begins. */
enum ggu_status build_cache(struct builder *b, struct graph *g, struct cache c, size_t *index);
void build_sight(struct cache *c, enum attn_mask mask, size_t window);
/* Room in what a state keeps of the whole past; returns where it begins, in floats. */
size_t build_fixed(struct builder *b, size_t n_floats);

#endif
