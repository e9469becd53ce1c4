/* SPDX-License-Identifier: MIT
 * graph.h - what the evaluator does with one model: the `graph` part of its architecture's description, resolved
 * against the model's metadata and tensors. Private to model/.
 *
 * The keys of that part are listed below. EXPR is an expression (expr.h) and may be null. TENSOR is a name, or a list
 * of which the first that exists is used (with a null at its end, there may be none). What is in [] is optional; any
 * other key is an error, also in a part that `when` leaves out.
 *
 *   graph      [names: {NAME: EXPR}] [check: {KEY: [EXPR, message]}] [ignore: {PREFIX: EXPR}, see build_unread.c]
 *              and a stack's keys, or stacks: {encoder: stack, decoder: stack}
 *   stack      [mask: causal or none] [blocks: PREFIX] input layers: EXPR layer: {NAME: step} output [start: EXPR]
 *   input      embed: TENSOR [scale: EXPR] [positions token_types: TENSOR] [n_positions: EXPR] [norm]
 *   step       branches: {NAME: branch} [norm post_norm residual_norm: norm] [scale when: EXPR]
 *   branch     one operator by its name (op.h) [norm post_norm: norm] [when: EXPR]
 *   norm       {rms: TENSOR, eps: EXPR} or {layer: TENSOR, eps: EXPR}; [when: EXPR]; without weights if TENSOR is [],
 *              no norm at all if there may be none and is none
 *   rope       see rope.h
 *   output     [norm] [head: TENSOR] [rows: EXPR, of the head, by default those of the embedding] [scale softcap: EXPR]
 *
 * A step computes x = residual_norm(x + scale * post_norm(sum over branches of post_norm(operator(norm(x))))). A
 * branch's own norm replaces the step's. If `when` is false, the step, branch or norm does not exist, so the structure
 * may depend on the layer, which is `i` in its expressions. A model without a head gives the last layer's rows instead
 * of logits. mask: none makes an encoder, whose tokens see the whole sequence.
 *
 * With two stacks, the operators of the decoder that attend to the encoder (cross_attention) keep what they need of its
 * output for a sequence, after the encoder's norm, once; the model's logits are the decoder's. A key that a stack
 * leaves out is taken from the graph, for both. blocks is the prefix of the names of a layer's tensors ("blk" before
 * ".0."), start the first token of a decoder's sequence.
 *
 * All sizes are checked against the tensors' shapes here, so that the forward pass need not. Vectors (norm weights,
 * biases, rope factors) become float32; matrices stay as they are in the file. */
#ifndef MODEL_EVAL_GRAPH_H
#define MODEL_EVAL_GRAPH_H
#include "../arch/arch.h"
#include "../util/expr.h"
#include "../../quant/attn.h"
#include "rope.h"

struct weight {                         /* n_mat matrices: y[n_out] = W[n_out][n_in] x + bias */
	const char *name;               /* GGUF tensor; NULL: there is none */
	const void *data;
	const float *bias;              /* [n_mat][n_out] or NULL */
	uint32_t type;
	size_t n_in, n_out, n_mat, row_bytes;
	bool made;                      /* made from that tensor's rows: no tap is told of its inputs */
};
/* v NULL: there is none; row: the first dimension of its tensor, leaving out those of 1 */
struct vector { const float *v; size_t n, row; };
enum norm_kind { NORM_NONE, NORM_RMS, NORM_LAYER };
/* A row of several times n values is normed in groups of n. The weights, n_w of them, a multiple of n, repeat. */
struct norm { enum norm_kind kind; const float *w, *b; double eps; size_t n, n_w; };

struct branch {
	const struct op *op;
	void *params;                   /* op's */
	struct norm before, after;
};
struct step {
	struct norm before, after, residual;
	struct branch *branch;
	size_t n_branches;
	double scale;
	unsigned forms;                 /* packings of the input that its weights need: bits of enum quant_act */
};
enum { STEP_MAX_BRANCHES = 8 };
struct layer { struct step *step; size_t n_steps; };

/* How far back rows see (attn.h); window 0: to the beginning. Caches with the same horizon are kept together. */
struct horizon { enum attn_mask mask; size_t window, n_caches; };
/* Heads of attention: of queries, of keys and values, and their widths. heads_q and the others are the widths of a row
 * of all heads: of queries, keys, values and results. */
struct heads { size_t n, n_kv, k_dim, v_dim; };
static inline size_t heads_q(const struct heads *h) { return h->n*h->k_dim; }
static inline size_t heads_k(const struct heads *h) { return h->n_kv*h->k_dim; }
static inline size_t heads_v(const struct heads *h) { return h->n_kv*h->v_dim; }
static inline size_t heads_out(const struct heads *h) { return h->n*h->v_dim; }
static inline bool heads_same(const struct heads *a, const struct heads *b)
{
	return a->n == b->n && a->n_kv == b->n_kv && a->k_dim == b->k_dim && a->v_dim == b->v_dim;
}
/* A layer's keys and values. */
struct cache {
	struct heads heads;
	bool v_in_k;                    /* values are the front of the keys */
	bool across;                    /* kept for another stack, whose layer it is */
	size_t layer;
	enum attn_mask mask;            /* with window: what rows see of it */
	size_t window;
	size_t horizon, slot;           /* index of its horizon, and its place among the caches there */
};
enum { GRAPH_MAX_ROPES = 16 };
struct graph {
	struct ggu_file *file;                  /* what it was built from, with the description */
	const struct arch *arch;
	size_t n_layer, n_embd, n_vocab, max_branches;
	struct weight embed, positions, token_types, head;      /* positions: learned, [n_positions][n_embd], or none */
	size_t n_positions;                     /* 0: as many as there are */
	size_t head_rows;                       /* 0: as many as the embedding has */
	double embed_scale, head_scale, head_softcap;
	struct norm embed_norm, out_norm;
	bool whole;                             /* tokens see the whole sequence, which is computed at once */
	struct layer *layer;                    /* [n_layer] */
	size_t n_mixing;                        /* steps up to the last one whose rows depend on each other */
	struct rope rope[GRAPH_MAX_ROPES];
	size_t n_ropes;
	struct cache *cache;                    /* [n_caches]: what a state keeps for each position */
	size_t n_caches;
	size_t recurrent_floats;                /* what it keeps of the whole past */
	struct horizon *horizon;                /* [n_horizons] of its caches */
	size_t n_horizons;
	size_t widest;                          /* the most inputs of a weight */
	size_t most_experts;                    /* that a row chooses from; 0: there are none */
	size_t made_bytes;                      /* of weights that operators made from tensors' */
	bool borrows;                           /* some layers use the keys and values of others */
	/* sequences longer than this use other divisors (rope.h); 0: there is no such rope */
	size_t long_from;
	int32_t start;                          /* the token that sequences begin with; -1: none is named */
	struct graph *source;                   /* the stack that this one attends to; NULL: none */
	/* of a source: the branches of the other stack that keep its rows, and the packings that they need */
	const struct branch **reader;
	size_t n_readers;
	unsigned reader_forms;
};
/* Everything is allocated from the arena; data points into the mapping of f. */
enum ggu_status graph_build(struct graph *g, const struct arch *a, struct ggu_file *f, struct expr_arena *arena,
	struct ggu_error *err);
/* The same checks for a file without data: whether metadata and shapes fit each other. */
enum ggu_status graph_check(const struct arch *a, struct ggu_file *f, struct ggu_error *err);
/* Identifies the model that the graph is of (graph_id.c). */
uint64_t graph_id(const struct graph *g);

#endif
