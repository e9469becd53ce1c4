/* SPDX-License-Identifier: MIT
 * op.h - kinds of operators: what a branch of a step can be. Private to model/eval.
 *
 * A kind is one file, op_NAME.c, and its name in op_list.h. It has the fields of its mapping in a description
 * (build.h), a struct that they fill, and a few functions. It never touches a number itself: `run` names buffers and
 * calls the backend (backend.h), so that another backend can take its layers.
 *
 * To add one: the file, the name, and, where it needs arithmetic that no other has, a function of the backend. */
#ifndef MODEL_EVAL_OP_H
#define MODEL_EVAL_OP_H
#include "backend.h"
#include "build.h"

/* What one operator takes and does, for planning memory and for telling where time goes. */
struct measure {
	struct plan plan;               /* scratch for a batch */
	double macs;                    /* multiply-adds of a token */
	double macs_all;                /* of these, those of tokens that are not wanted too */
	double macs_seen;               /* more of them for each position that it sees */
	double weight_bytes;            /* of weights that one token reads */
};
struct op {
	const char *name;               /* its key in a branch */
	size_t bytes;                   /* of its struct */
	const struct field *fields;
	/* After the fields are read: sizes against each other, shapes, caches. */
	enum ggu_status (*build)(struct builder *b, const struct yaml_node *map, void *params);
	/* Adds what n_rows tokens take. */
	void (*measure)(const void *params, size_t n_rows, struct measure *m);
	/* y[r->n][n_embd] from the branch's input; y is a buffer with rows n_embd floats apart. */
	enum ggu_status (*run)(const void *params, struct run *r, struct input *in, size_t y);
	/* a row of y comes of that row alone, and run looks at no sequence */
	bool apart;
	/* Operators that look across to another stack: what they make, once for each sequence, of that stack's rows,
	 * which are `in` and whose run it is; and what that takes. NULL for all others. */
	void (*measure_read)(const void *params, size_t n_rows, struct measure *m);
	enum ggu_status (*read)(const void *params, struct run *r, struct input *in);
};
const struct op *op_find(const char *name);             /* NULL: none */
void op_names(char *to, size_t n);                      /* "attention, ffn or mamba", for messages; cut off at n */
/* share: of its matrices that a token meets */
void measure_weight(struct measure *m, const struct weight *w, double share);

#endif
