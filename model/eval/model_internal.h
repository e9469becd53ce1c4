/* SPDX-License-Identifier: MIT
 * model_internal.h - the insides of models and works. */
#ifndef MODEL_EVAL_MODEL_INTERNAL_H
#define MODEL_EVAL_MODEL_INTERNAL_H
#include "../../libgguf/pool.h"
#include "op.h"

struct model {
	struct ggu_file *file;
	bool lent;                      /* the file stays open when the model is closed */
	struct arch_set *archs;
	struct expr_arena *arena;
	struct ggu_pool *pool;
	const struct backend *be;       /* of its works */
	struct graph graph;
	struct pages pages;             /* of its states */
};

struct work {
	struct model *m;
	struct ggu_pool *pool;
	const struct graph *g;          /* the stack that it evaluates */
	const struct work *reader;      /* NULL, or the decoder's work, whose threads' memory an encoder's uses */
	size_t n_batch;
	char *base; size_t bytes;       /* buffers */
	char *host; size_t host_bytes;
	float *freq[GRAPH_MAX_ROPES][2];        /* of a rope, in short and in long sequences */
	size_t turn[GRAPH_MAX_ROPES];   /* buffers: cosines and sines of the batch's rows, [n][dims] */
	/* what `turn` was made for: the number of rows, and each row's position and kind of rope. It is kept, so that
	 * the windows of a text do not compute it again */
	size_t turned_n;
	uint64_t *turned;               /* [n_batch] */
	struct segment *seg;            /* [n_batch] */
	int32_t *ids;                   /* [n_batch] */
	/* the processor's, whose threads also make the logits (head.c) */
	char *local; size_t local_bytes;        /* each worker's */
	struct attn_rows *rows;         /* [n_batch] */
	char *partial; size_t partial_bytes;    /* results of attention over parts of the positions */
	struct cut *cut; size_t n_cut;  /* of products into tasks */
	char *head; size_t head_bytes;  /* head.c's */
	struct profile *profile;        /* or NULL */
};
/* The encoder's work for the decoder's, which outlives it and is not in use meanwhile. */
enum ggu_status work_source(struct work **source, const struct work *w, size_t n_batch, struct ggu_error *err);
/* What the layers need and do if n rows go in, and n_wanted of them on after the last step that mixes rows. */
struct measure work_measure(struct work *w, size_t n, size_t n_wanted);
/* The same for whole batches; sets the sizes of the work's buffers. */
struct measure work_plan(struct work *w);
/* The bytes of a work with those of n_threads, planned or allocated. In double, as the plan of a model that is not
 * evaluated may be more than memory holds. */
double work_total(const struct work *w, size_t n_threads);
/* Room for n bytes, aligned to 64: *p if that has as many, otherwise new room in its place, without the contents. NULL:
 * out of memory; *p and *have, its bytes, say so too. */
char *work_room(char **p, size_t *have, size_t n);
/* A batch of n rows at its beginning. Its plan has what every step needs: the stream, the outputs of a step's branches,
 * cosines and sines. */
struct run work_begin(struct work *w, size_t n);
/* The input that a step's branches share, and the input of branches of another stack that keep this one's rows. */
struct input work_step_input(const struct graph *g, const struct step *st, size_t n, struct plan *p);
struct input work_reader_input(const struct graph *g, size_t n, struct plan *p);
static inline float *work_at(const struct work *w, size_t buffer) { return (float *)(void *)(w->base + buffer); }
static inline void *work_local(const struct work *w, int worker) { return w->local + (size_t)worker*w->local_bytes; }

#endif
