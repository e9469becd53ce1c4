/* SPDX-License-Identifier: MIT
 * build.h - how a mapping of a description becomes an operator's struct: a table of fields says which keys there are,
 * what they hold, where their values are stored and what the defaults are. Private to model/eval.
 *
 * Expressions can use: `i` (the layer), the shorthands under `names`, the model's own keys without the architecture's
 * prefix, tensor('NAME') (whether there is such a tensor), and layer(X), which picks this layer's value from a list
 * with a value for each layer and leaves anything else as it is. Tensor names are given without "blk.N." and ".weight",
 * or in full with a slash in front ("/blk.0.NAME"); NAME.bias is used if it exists. */
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
	const char *blocks;     /* the prefix of names of layers' tensors */
	int64_t layer;          /* -1: outside the layers */
	int depth, used;        /* of names that use names; names that one expression has used */
	const char **keys;      /* [ggu_meta_count(meta)], sorted */
	struct { const struct ggu_kv *kv; const struct expr_value *v; } list;   /* the list that was read last */
	bool *read;             /* [ggu_file_n_tensors(f)]: the tensors that something has read */
	unsigned forms;         /* packings for the weights with FIELD_INPUT read so far: bits of enum quant_act */
	size_t n_biases;        /* by distance, of all layers so far */
	bool shapes_only;       /* f has no data: weights have none, and vectors are zeros */
};

enum field_kind {
	FIELD_SIZE,             /* size_t */
	FIELD_NUMBER,           /* double */
	FIELD_FLAG,             /* bool, by expr_true */
	FIELD_WORD,             /* int: index into words; the value is one of them, or an expression that gives one */
	FIELD_WEIGHT,           /* struct weight: NAME.weight and NAME.bias */
	FIELD_VECTOR,           /* struct vector, of any shape until build_rows: NAME.weight, NAME or NAME.bias */
	FIELD_NORM,             /* struct norm, whose width build_norm_width sets */
	FIELD_ROPE,             /* struct rope, whose dims build_rope_width sets; base 0: there is none */
	FIELD_MAP,              /* a mapping whose fields (sub) go into the struct at `at`; [when: EXPR] */
	FIELD_OWN               /* read by the operator itself; as a mapping it has these keys (sub) and [when: EXPR] */
};
/* INPUT: a weight that is multiplied with the branch's input. MAY_LACK: a number that may be left out although `none`
 * is outside its range, so that the operator can tell. */
enum { FIELD_NEEDED = 1, FIELD_INPUT = 2, FIELD_MAY_LACK = 4 };
struct field {
	const char *key;
	enum field_kind kind;
	size_t at;                      /* offsetof the member */
	/* SIZE, NUMBER: the default and the range; it is needed if the default is outside the range */
	double none, lo, hi;
	unsigned flags;
	const char *const *words;       /* WORD: NULL-terminated; the first is the default, unless it is needed */
	const struct field *sub;        /* MAP; OWN: NULL if it is checked elsewhere */
};
/* Fills the struct at `to` from map, whose keys were checked. fields ends with a NULL key. */
enum ggu_status build_fields(struct builder *b, const struct yaml_node *map, const struct field *fields, void *to);

/* A part of a description is checked as a whole before it is built, whatever its conditions say of this model. */

/* Checks that all keys of map are among those of fields or among `words`. */
enum ggu_status build_only(const struct builder *b, const struct yaml_node *map, const struct field *fields,
	const char *words);
/* Checks what map gives to fields: mappings have only keys that they may have, and expressions can be parsed. */
enum ggu_status build_values(const struct builder *b, const struct yaml_node *map, const struct field *fields);
/* Both. */
enum ggu_status build_keys(const struct builder *b, const struct yaml_node *map, const struct field *fields,
	const char *words);
/* Checks that the graph's `key` is a mapping, or null, of expressions. */
enum ggu_status build_list(const struct builder *b, const char *key);
/* The same for `names`, of which each that is not inherited must be read by some expression. */
enum ggu_status build_names(const struct builder *b);

/* Fails with a message that has the file, line and column of `at`. */
enum ggu_status build_fail(const struct builder *b, const struct yaml_node *at, const char *where, const char *what);
enum { BUILD_KEY = 256 };
/* The key of the metadata whose value map[key] is, maybe by way of names or of layer(X), in `to`; an expression over
 * several, or none, is called `key`. For messages. */
const char *build_key(const struct builder *b, const struct yaml_node *map, const char *key, char to[BUILD_KEY]);
void *build_alloc(const struct builder *b, size_t bytes);               /* zeroed; fills err when it returns NULL */
/* map[key] as a number in lo..hi; `none` if it is absent or null, which is an error if `none` is outside */
enum ggu_status build_number(struct builder *b, const struct yaml_node *map, const char *key, double none, double lo,
	double hi, double *x);
enum ggu_status build_eval(struct builder *b, const struct yaml_node *at, struct expr_value *v);
/* The value of map's `when`; true if there is none. */
enum ggu_status build_when(struct builder *b, const struct yaml_node *map, bool *yes);
enum ggu_status build_sort_keys(struct builder *b);
/* Fails for want of a field that may be null elsewhere: names the first tensor that it could be, if there is one. */
enum ggu_status build_absent(const struct builder *b, const struct yaml_node *map, const char *key);
/* Fails if there is a tensor that nothing has read. */
enum ggu_status build_unread(struct builder *b);

/* Check shapes, once the sizes are known; 0: any. A weight or vector that does not exist passes. */
enum ggu_status build_shape(const struct builder *b, const struct weight *w, size_t n_in, size_t n_out, size_t n_mat);
enum ggu_status build_length(const struct builder *b, const struct yaml_node *map, const char *key,
	const struct vector *v, size_t n);
/* The same for a matrix that is kept as a vector, row after row */
enum ggu_status build_rows(const struct builder *b, const struct yaml_node *map, const char *key,
	const struct vector *v, size_t n_row, size_t n_rows);
/* Completes the heads of an operator called `kind`. Where h has 0, there are as many heads of keys and values as of
 * queries, the heads share the layer's width, and values are as wide as keys. */
enum ggu_status build_heads(const struct builder *b, const struct yaml_node *at, const char *kind, struct heads *h);
/* Sets the width of a norm of rows of n values in groups (heads) of n_group: the norm is by group if its weights have
 * that length, otherwise by row. */
enum ggu_status build_norm_width(const struct builder *b, const struct yaml_node *map, const char *key, struct norm *o,
	size_t n, size_t n_group);
/* Sets the dims of map's rope, by default a whole head. *index: its place in graph.rope, which layers share; -1: there
 * is none. */
enum ggu_status build_rope_width(struct builder *b, const struct yaml_node *map, struct rope *r, size_t head_dim,
	int *index);
/* Adds a cache to the states of g, which is this stack or its source; *index: its place in g->cache. Layers that see
 * the whole sequence share one cache, which each layer is done with before the next begins. */
enum ggu_status build_cache(struct builder *b, struct graph *g, struct cache c, size_t *index);
void build_sight(struct cache *c, enum attn_mask mask, size_t window);
/* Adds room for n_rows of n floats, n > 0, to what a state keeps of the whole past; *at: where it begins, in floats.
 * All are 0 before a sequence's first token. Each of the two sizes may be that of a tensor, but no tensor has as many
 * numbers. If they are too many, it fails with key. */
enum ggu_status build_recurrent(struct builder *b, const struct yaml_node *map, const char *key, size_t n_rows,
	size_t n, size_t *at);

#endif
