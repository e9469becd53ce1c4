/* SPDX-License-Identifier: MIT
 * op.h - the kinds of operators, which are what a branch of a step can be. Private to model/eval.
 *
 * A kind is one file, op_NAME.c, and its name in op_list.h. It has the fields of its mapping in a description
 * (build.h), a struct that they fill, and a few functions. It never touches a number itself: `run` names buffers and
 * calls the backend (backend.h), so that another backend can run its layers.
 *
 * To add one, write the file and add the name. Parts that several kinds have are in files of their own: feed-forwards
 * (op_ffn.h), convolutions (conv.h), ropes (rope.h). Arithmetic that no other kind has is a function of the backend:
 * what it is given and its place in the table go into backend.h, the function into a cpu*.c, its name into
 * cpu_internal.h and the table of cpu.c, a wrapper of it into tests/unit/test_backend.c. It can be written with the
 * functions of quant/vec.h, whose bits are the same everywhere; loops of its own for each instruction set belong into
 * quant/, as those of scan.h. What is nearly there becomes a member of the struct that exists, such as another
 * activation function. */
#ifndef MODEL_EVAL_OP_H
#define MODEL_EVAL_OP_H
#include "backend.h"
#include "build.h"

/* What one operator needs and does, for planning memory and for reporting where time goes. */
struct measure {
	struct plan plan;               /* scratch for a batch */
	double macs;                    /* multiply-adds of a token */
	double macs_all;                /* of these, those that tokens whose rows are not wanted need too */
	double weight_bytes;            /* of weights that one token reads */
};
struct op {
	const char *name;               /* its key in a branch */
	size_t bytes;                   /* of its struct */
	const struct field *fields;
	/* Called after the fields are read: compares sizes, checks shapes, adds caches. */
	enum ggu_status (*build)(struct builder *b, const struct yaml_node *map, void *params);
	/* Adds what n_rows tokens need. */
	void (*measure)(const void *params, size_t n_rows, struct measure *m);
	/* Computes y[r->n][n_embd] from the branch's input; y is a buffer with rows n_embd floats apart, or NO_BUFFER
	 * if nobody reads it. Then products leave it out by themselves, and all else that writes to it must be left
	 * out, but not what is kept for sequences. The rows of the input are there after multiply was given it, be it
	 * without products. Weights may be elsewhere than when the graph was built (model_set_weights): who multiplies
	 * by some rows of one takes them here. */
	enum ggu_status (*run)(const void *params, struct run *r, struct input *in, size_t y);
	/* each row of y depends on that row and its token alone, and run changes nothing that sequences keep */
	bool apart;
	/* The multiply-adds of a token before run, if run->narrows is set, calls run_narrow. After that it goes on with
	 * the wanted rows, maybe none. NULL: it never does. */
	double (*macs_early)(const void *params);
	/* For operators that attend to another stack; NULL for all others. read makes, once for each sequence, what
	 * they keep of that stack's rows, which are `in`; r is the run of that stack. measure_read says what this
	 * needs. */
	void (*measure_read)(const void *params, size_t n_rows, struct measure *m);
	enum ggu_status (*read)(const void *params, struct run *r, struct input *in);
};
/* The operator of a step that can narrow it: the only one that is not apart, and the first. NULL: there is none. */
const struct branch *op_narrowing(const struct step *st);
const struct op *op_find(const char *name);             /* NULL: none */
void op_names(char *to, size_t n);                      /* "attention, ffn or mamba", for messages; at most n bytes */
extern const struct field op_growth_fields[];           /* of a struct growth */
/* share: the part of its matrices that a token uses */
void measure_weight(struct measure *m, const struct weight *w, double share);

#endif
