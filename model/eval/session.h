/* SPDX-License-Identifier: MIT
 * session.h - the insides of models and sessions. Private to model/. */
#ifndef MODEL_EVAL_SESSION_H
#define MODEL_EVAL_SESSION_H
#include "graph.h"
#include "model.h"

struct model {
	struct ggu_file *file;
	struct arch_set *archs;
	struct expr_arena *arena;
	struct ggu_pool *pool;
	struct graph graph;
};

/* Buffers are float32, tokens of the batch slowest: [n_batch][width]. */
struct session {
	struct model *m;
	size_t n_ctx, n_batch, pos;
	float **k, **v;                 /* [n_caches], each [n_ctx][n_kv*head_dim] */
	float *turn[GRAPH_MAX_ROPES];   /* [n_ctx][dims]: cos of the pairs, then sin */
	float *x, *h, *sum;             /* [n_embd]: residual stream, normed input, sum of branches */
	float *wide, *wide2;            /* q, k, v or gate and up; the attention's or activation's output */
	size_t wide_n;
	float *score;                   /* [workers][n_ctx] */
	void *act;                      /* packed input of a multiplication */
	void *work; size_t work_bytes;  /* [workers] */
};

/* session.c calls these with a batch of n tokens at positions pos.. in s->x. */
struct forward { struct session *s; size_t n; model_tap *tap; void *tap_ctx; struct ggu_error *err; };
void forward_norm(struct forward *f, const struct norm *o, const float *x, float *y);
enum ggu_status forward_layer(struct forward *f, const struct layer *l);
/* y[n][w->n_out] = x[n][w->n_in] W + bias */
enum ggu_status forward_mul(struct forward *f, const struct weight *w, const float *x, size_t n, float *y);
/* cap * tanh(x / cap), in double so that small values keep their digits */
float forward_soft_cap(float x, float cap);

#endif
