/* SPDX-License-Identifier: MIT
 * graph.h - what the evaluator does with one model: the `graph` part of its architecture's description,
 * resolved against the model's metadata and tensors. Private to model/.
 *
 * The keys of that part; EXPR is an expression (expr.h) and may be null, TENSOR a name or a list of which the first
 * that exists counts, [] may be left out; any other key is an error.
 *
 *   graph      [names: {NAME: EXPR}] [check: {KEY: [EXPR, message]}] input layers: EXPR layer: {NAME: step} output
 *   input      embed: TENSOR [scale: EXPR] [positions: TENSOR]
 *   output     norm head: TENSOR [softcap: EXPR]
 *   step       [norm] branches: {NAME: {attention: ...} or {ffn: ...}} [post_norm: norm] [scale: EXPR]
 *   norm       {rms: TENSOR, eps: EXPR} or {layer: TENSOR, eps: EXPR}, one name each
 *   attention  q k v, or qkv; out; heads [kv_heads] [head_dim] [window] [scale] [softcap]: EXPR [q_norm k_norm: norm] [rope]
 *   ffn        [gate] up, or gate_up; down; act: silu, gelu (erf) or gelu_tanh
 *   rope       style: half or interleaved [dims base linear original magnitude: EXPR] [divide divide_long: TENSOR]
 *              [yarn: {factor beta_fast beta_slow: EXPR}]
 *
 * All sizes are checked against the tensors' shapes here, so that the forward pass need not look. Vectors
 * (norm weights, biases, rope factors) are float32; matrices stay as they lie in the file. */
#ifndef MODEL_EVAL_GRAPH_H
#define MODEL_EVAL_GRAPH_H
#include "../arch/arch.h"
#include "../util/expr.h"

struct weight {                         /* y[n_out] = W[n_out][n_in] x + bias */
	const char *name;               /* GGUF tensor; NULL: there is none */
	const void *data;
	const float *bias;              /* [n_out] or NULL */
	uint32_t type;
	size_t n_in, n_out, row_bytes;
};
enum norm_kind { NORM_NONE, NORM_RMS, NORM_LAYER };
struct norm { enum norm_kind kind; const float *w, *b; float eps; size_t n; };
enum activation { ACT_SILU, ACT_GELU, ACT_GELU_TANH };

/* Rotary positions: pair j of `dims`/2 turns by position * base^(-2j/dims) / divisor[j]. */
struct rope {
	bool interleaved;               /* pairs (2j, 2j+1), else (j, j + dims/2) */
	size_t dims;
	double base, linear;            /* every angle is divided by linear */
	const float *divisor;           /* [dims/2] or NULL */
	const float *long_divisor;      /* [dims/2]: instead, for contexts above `original` */
	size_t original;                /* context the model was first trained on; 0: unknown */
	double magnitude;               /* factor of sin and cos; 0: what the scaling implies */
	double yarn, beta_fast, beta_slow;      /* yarn: scaling factor, 0: not that */
};
struct attention {
	struct weight q, k, v, qkv, out;        /* either q, k, v or qkv: rows of q, then k, then v */
	struct norm q_norm, k_norm;             /* per head, before rope */
	size_t n_head, n_kv, head_dim;
	int rope;                               /* index into graph.rope; -1: none */
	size_t window;                          /* positions seen, the token's own included; 0: all */
	float scale, softcap;                   /* of scores; softcap 0: none */
	size_t cache;                           /* index of its KV cache */
};
struct ffn { struct weight gate, up, gate_up, down; enum activation act; };     /* gate_up: rows of gate, then up; gate may be missing */
struct branch { bool is_ffn; union { struct attention attention; struct ffn ffn; } u; };
struct step { struct norm before, after; struct branch *branch; size_t n_branches; float scale; };      /* x += scale * after(sum of branches(before(x))) */
struct layer { struct step *step; size_t n_steps; };

enum { GRAPH_MAX_ROPES = 16 };
struct graph {
	size_t n_layer, n_embd, n_vocab, n_ctx_train;
	struct weight embed, positions, head;   /* positions: learned, [n_ctx][n_embd], or none */
	float embed_scale, head_softcap;
	struct norm out_norm;
	struct layer *layer;                    /* [n_layer] */
	struct rope rope[GRAPH_MAX_ROPES];
	size_t n_ropes, n_caches;
};
/* Everything is allocated from the arena; data points into f's map. */
enum ggu_status graph_build(struct graph *g, const struct arch *a, struct ggu_file *f, struct expr_arena *arena, struct ggu_error *err);

#endif
