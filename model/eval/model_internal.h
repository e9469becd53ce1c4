/* SPDX-License-Identifier: MIT
 * model_internal.h - the insides of models and works. */
#ifndef MODEL_EVAL_MODEL_INTERNAL_H
#define MODEL_EVAL_MODEL_INTERNAL_H
#include "../../libgguf/pool.h"
#include "backend.h"

enum { WORK_DEFAULT_BATCH = 512 };

struct model {
	struct ggu_file *file;
	struct arch_set *archs;
	struct expr_arena *arena;
	struct ggu_pool *pool;
	struct graph graph;
	struct pages pages;             /* of its states */
};

struct work {
	struct model *m;
	const struct graph *g;          /* the stack that it is for */
	struct work *source;            /* that of the encoder's, once there was something to encode */
	const struct backend *be;
	size_t n_batch;
	char *base; size_t bytes;       /* buffers */
	char *host; size_t host_bytes;
	char *local; size_t local_bytes;        /* each worker's */
	float *freq[GRAPH_MAX_ROPES][2];        /* of a rope, in short and in long sequences */
	size_t turn[GRAPH_MAX_ROPES];   /* buffers: sines and cosines of the batch's rows, [n][dims] */
	/* what they are of: of batches of that many rows, each row's position and kind of rope; they stay, so that
	 * windows of a text do not make them anew */
	size_t turned_n;
	uint64_t *turned;               /* [n_batch] */
	struct segment *seg;            /* [n_batch] */
	int32_t *ids;                   /* [n_batch] */
	struct attn_rows *rows;         /* [n_batch] */
	char *partial; size_t partial_bytes;    /* results of attention over parts of the positions */
	struct cut *cut; size_t n_cut;  /* of products into tasks */
	char *head; size_t head_bytes;  /* head.c's */
	struct profile *profile;        /* or NULL */
};
enum ggu_status work_of(struct work **w, struct model *m, const struct graph *g, size_t n_batch, struct ggu_error *err);
/* A batch of n rows at its beginning: in its plan what it needs throughout, which are the stream, outputs of a step's
 * branches, sines and cosines. */
struct run work_begin(struct work *w, size_t n);
/* The input that a step's branches have in common, and that of other stacks' branches which keep this one's rows. */
struct input work_step_input(const struct graph *g, const struct step *st, size_t n, struct plan *p);
struct input work_reader_input(const struct graph *g, size_t n, struct plan *p);
static inline float *work_at(const struct work *w, size_t buffer) { return (float *)(void *)(w->base + buffer); }
static inline void *work_local(const struct work *w, int worker) { return w->local + (size_t)worker*w->local_bytes; }

#endif
