/* SPDX-License-Identifier: MIT
 * calibrate_internal.h - what calibrate.c (order), calibrate_sides.c (both models), calibrate_sums.c (inputs) and
 * calibrate_fit.c (a tensor) share. */
#ifndef TOOLS_CALIBRATE_INTERNAL_H
#define TOOLS_CALIBRATE_INTERNAL_H
#include "../imatrix/imatrix.h"
#include "../libgguf/pool.h"
#include "../model/eval/model.h"
#include "calibrate.h"
#include "drawn.h"

/* All failures exit with a message, out of memory among them. */
float *calibrate_floats(size_t rows, size_t n);         /* [rows][n], to be freed */

/* ---- sums over a weight's inputs ---- */

enum { BLOCK = 8192 };          /* the most columns of v vT that are summed, and inverted, together */

/* Sums over tokens of a[n_a] bT[n_b]: sum[n_a][n_b]. */
struct cross { size_t n_a, n_b; bool lower; float *sum; };
/* Sums are 0. lower: a is b, and what is above the diagonal does not matter. */
struct cross cross_new(size_t n_a, size_t n_b, bool lower);
void cross_free(struct cross *c);
/* Adds n tokens, rows a_stride and b_stride floats apart; a may be NULL if lower. The result does not depend on the
 * number of threads, but on how tokens are divided among calls. */
void cross_add(struct cross *c, const float *a, size_t a_stride, const float *b, size_t b_stride, size_t n,
	struct ggu_pool *pool);

/* y[n][n_out] += x[n][n_in] WT, w[n_out][n_in] */
void product_add(const float *w, size_t n_in, size_t n_out, const float *x, size_t n, float *y, struct ggu_pool *pool);

/* Sums over a weight's inputs v in the quantized model and x in the original; columns in blocks. */
struct inputs {
	size_t n_in, block, n_blocks;
	double tokens;
	struct cross *with;             /* [n_blocks]: v vT, or NULL: */
	const struct imatrix *im;       /* for experts: it has the sums */
	const char *name;               /* of the weight, the first of those with these inputs */
	/* one: what the step's output lacks times v, [n_out][n_in]; or [n_blocks]: what v lacks, x - v, times v; or
	 * NULL */
	struct cross *lack;
	bool ends;                      /* `lack` has the first of these forms */
};
void inputs_begin(struct inputs *in, const char *name, size_t n_in, size_t ends);
/* Adds n tokens of x (or, for inputs that end a step, of what its output lacks) and v, rows of n_in floats (n_out);
 * both are already multiplied by the root of `weight`. */
void inputs_add(struct inputs *in, const float *x, const float *v, size_t n, double weight, struct ggu_pool *pool);
void inputs_free(struct inputs *in);

/* ---- a tensor ---- */

struct fitting {
	const struct remake *re;
	struct ggu_pool *pool;
	double damp, factor;
	bool measure;                   /* the error without feedback */
};
/* Fits tensor i: its bytes go to `to`, its decoded weights to y. in NULL: without covariance and importances. */
struct recode_result calibrate_fit(const struct fitting *f, size_t i, const struct inputs *in, const void *from,
	void *to, float *y);

/* ---- both models ---- */

/* stream[n_windows*ctx][e]: residual streams where the last step left them. part[at_once]: a call's windows. */
struct side { struct model *m; struct work *w; struct part *part; float *stream; };
/* The result for a tensor: blocks from byte `at` on, and decoded weights while the second model uses them. */
struct kept { bool done; size_t at; float *y; struct recode_result got; };
struct calibration {
	const struct remake *re;
	const char *model;              /* the file, for messages */
	struct ggu_pool *pool;
	struct side f, q;               /* original and quantized */
	float *held;                    /* for every token, the input of the product that ends a step */
	size_t held_n_in;               /* room for inputs of so many columns */
	int32_t *ids;                   /* [n_windows][ctx] */
	size_t ctx, n_windows, e;       /* n_windows: all, or those past the first block; e: the model's width */
	size_t n_text;                  /* windows of the text; those after them are drawn at random (drawn.h): */
	struct drawn drawn;
	size_t at_once;                 /* windows */
	struct kept *kept;              /* [re->n] */
	unsigned char *map, *blocks;    /* streams, held and blocks are in map */
	size_t map_bytes;
	size_t used;                    /* of blocks */
	struct fitting fitting;
};
/* Opens the model twice, reads the text and cuts it into windows, and makes room. c has re and pool. */
void sides_open(struct calibration *c, const struct calibrate_options *o);
void sides_close(struct calibration *c);
size_t sides_room(const struct calibration *c, size_t i);       /* bytes of blocks that tensor i becomes */

/* Windows that are evaluated side by side: n from `first` on. */
struct windows { size_t first, n; };
/* The next of them, from { 0, 0 } on; false: there are no more. */
bool windows_next(const struct calibration *c, struct windows *w);
/* The factor for inputs of `weight` in windows w that gives w its share of sums of products. */
static inline float windows_root(const struct calibration *c, struct windows w, const char *weight)
{
	return w.first < c->n_text ? 1 : drawn_root(c->n_text, c->drawn, 1, weight);
}
static inline size_t windows_tokens(const struct calibration *c, struct windows w) { return w.n*c->ctx; }
static inline float *windows_stream(const struct calibration *c, float *stream, struct windows w)
{
	return stream + w.first*c->ctx*c->e;
}
/* Evaluates windows in one call. *stopped: the tap has ended it, which is no error; stopped may be NULL. */
void side_evaluate(const struct calibration *c, const struct side *s, struct windows w, struct model_call call,
	const bool *stopped);
/* Who is shown the inputs of products. *stopped: the tap has ended the call, which is no error; stopped may be NULL. */
struct listener { model_tap *tap; void *ctx; const bool *stopped; };
/* One step, or, with `step` SIZE_MAX, the embeddings; stream is replaced. to: NULL for nobody */
void side_step(const struct calibration *c, const struct side *s, struct windows w, float *stream, size_t step,
	const struct listener *to);

#endif
