/* SPDX-License-Identifier: MIT
 * backend.h - the interface between operators and arithmetic. Private to model/eval.
 *
 * Operators say what happens to buffers; a backend does it. A buffer is an offset into the scratch memory of a batch,
 * so only the backend knows addresses: an operator's plan is measured before there is memory, and its run() names the
 * same buffers. The processor's backend is cpu.c; model_open chooses it, for a model and all its works and states.
 *
 * One for a GPU would fill in the same table. What comes back to the host is what route() decides, the inputs that a
 * tap is told, and the rows that fetch() copies. But these assume today that the host and the backend share memory:
 *   - work.c allocates the buffers, and for each of the host's threads what thread_bytes asks for; only cpu*.c and
 *     head.c look into them.
 *   - Weights (struct weight) are in the mapped file, vectors (norms, biases, slopes, the factors of scans) in the
 *     graph's arena. Operators compute with their addresses without looking there, except that latent attention
 *     decodes kv_b while the graph is built, and model_set_weights puts in its caller's weights.
 *   - page.c clears pages, page_table.c copies those that are written to while shared, state.c clears and copies what
 *     recurrent layers keep (`recurrent`), and state_file.c saves and loads both.
 *   - Experts' inputs (INPUT_PICK) name rows and factors by arrays of the host.
 *   - head.c makes logits and scores from the rows fetched, on the processor, whatever the backend.
 *   - Nothing opens or closes a backend, and nothing makes or frees memory of its own for a model, work or state.
 *   - Nothing tells a backend that queues its work to finish: a call of the evaluator may end without a fetch(), and
 *     its caller may then copy or save states. So what a function of the table does is done when it returns.
 *   - Only multiply can fail.
 *
 * What a backend may rely on:
 *   - Functions that are given a run are called by the thread that called model_eval, in an order in which each may use
 *     what those before have left. Works with pools of their own (work_new_for) may call them at the same time, with
 *     other states.
 *   - What pointers lead to (structs, lists of inputs, pick, by, ids) is the caller's, and stays until the function
 *     returns; graph, weights and vectors stay until model_eval does.
 *   - Buffers hold floats, except those of packed rows. They begin anywhere in what was planned, at a multiple of a
 *     float, as operators add rows and columns to them. They are not cleared, and the next operator's take their place.
 *   - An input's `at` may be its `from` or its gate.gate. Otherwise no number is written twice in a call, or made by it
 *     and read by another of its inputs. Inputs may be listed that no product has.
 *   - These may be overwritten, as nobody reads them again: rows at gate.up when the input is made, r->y when it is
 *     added to the stream, q, k and v when they have been stored or attended with.
 *   - After run_narrow there may be no rows. Only settle and fetch are called then.
 *
 * To save barriers, the way an input's rows are made (input_kind) is data, not a call. So multiply can do its work in
 * two passes: the first makes and packs the rows of all inputs, cut by tokens; the second runs all products as one list
 * of tasks, cut by tokens and outputs. A pass over a single row is no barrier. The sum that ends a step is put off
 * (run.pending) until the next input that is made from the residual stream.
 *
 * No result depends on the cut: rows are independent of each other except in attend and the scans, which go by the
 * positions of a sequence. */
#ifndef MODEL_EVAL_BACKEND_H
#define MODEL_EVAL_BACKEND_H
#include "../../libgguf/size.h"
#include "../../quant/attn.h"
#include "../../quant/quant.h"
#include "../../quant/scan.h"
#include "graph.h"
#include "model.h"
#include "state.h"

/* ---- buffers ---- */

#define NO_BUFFER SIZE_MAX
enum { PLAN_ALIGN = 64 };
/* Bytes of scratch memory: the backend's, and the host's for what operators themselves look at. SIZE_MAX, or nearly:
 * there cannot be as much, and the plan is never carried out. */
struct plan { const struct backend *be; size_t used, peak, host_used, host_peak; };
static inline size_t plan_more(size_t *used, size_t *peak, size_t bytes)
{
	size_t at = *used;
	*used = size_plus(at, size_room(bytes, PLAN_ALIGN));
	if (*used > *peak) *peak = *used;
	return at;
}
static inline size_t plan_take(struct plan *p, size_t bytes) { return plan_more(&p->used, &p->peak, bytes); }
static inline size_t plan_floats(struct plan *p, size_t rows, size_t n)
{
	return plan_take(p, size_times(rows, size_times(n, sizeof(float))));
}
static inline size_t plan_host(struct plan *p, size_t bytes) { return plan_more(&p->host_used, &p->host_peak, bytes); }

/* ---- inputs of products ---- */

enum activation { ACT_SILU, ACT_GELU, ACT_GELU_TANH, ACT_RELU, ACT_RELU2, ACT_SIGMOID, ACT_NONE };
/* act(gate)*up. With a limit, gate is clamped from above and up from both sides. alpha is the slope in silu's sigmoid;
 * up_add is added to up. norm is applied to the result. up may be missing. spread: so many numbers in a row share one
 * of gate; 0: none do. */
struct gate {
	enum activation act;
	bool has_up;
	size_t gate, up, gate_stride, up_stride, spread;        /* buffers, floats between rows */
	double limit, alpha, up_add;
	const struct norm *norm;
};
enum input_kind {
	INPUT_ROWS,                     /* there already */
	INPUT_NORM,                     /* norm of rows of `from` */
	INPUT_STREAM,                   /* norm of the residual stream, after adding what is pending */
	INPUT_GATE,                     /* result of `gate` */
	INPUT_PICK,                     /* row i is row pick[i] of `from`, times by[i] */
};
struct input {
	enum input_kind kind;
	size_t at, stride;              /* buffer of the rows, floats between them */
	size_t n, n_in;
	const struct norm *norm;        /* NORM, STREAM; NULL: none */
	size_t from, from_stride;       /* NORM, PICK */
	const uint32_t *pick;
	const float *by;                /* NULL: times 1 */
	struct gate gate;
	bool made;
	unsigned packed, needed;        /* packings that there are, and that products need: bits of enum quant_act */
	size_t act[4];                  /* buffers by enum quant_act, if planned */
};
/* Plans room for the input's rows packed in these forms, as much as the backend asks for. */
void input_plan(struct plan *p, struct input *in, unsigned forms);
static inline unsigned weight_form(const struct weight *w) { return w->name ? 1u << quant_act_of(w->type) : 0; }

/* y = W x + bias for all rows of the input. If nobody reads y, it is NO_BUFFER, and only the tap sees the input. */
struct product {
	const struct weight *w;
	size_t mat;
	struct input *in;
	size_t y, y_stride;             /* buffer, floats between rows */
};

/* ---- attention, experts, state space ---- */

/* Queries are multiplied by 1 + by*log(1 + floor((position + from)/every)); every 0: they are not. */
struct growth { double by; size_t every, from; };
/* What a layer does with a cache (graph.h), whose heads are its own. Their types are those of the sequences' caches,
 * which model_eval has checked to be the same. */
struct attend {
	size_t cache;
	size_t q, k, v, out;            /* buffers; q NO_BUFFER: none yet; v is not used if values are in the keys */
	size_t q_stride, k_stride, v_stride, out_stride;
	const struct norm *q_norm, *k_norm, *v_norm;    /* kind NORM_NONE: none */
	size_t k_normed;                /* first floats of k's row to which its norm applies; 0: all */
	double clip;                    /* applied to q, k and v first; 0: none */
	int rope;                       /* index in graph.rope; -1: none */
	size_t rope_at;                 /* first dimension of a head that rope turns */
	bool rope_first;                /* rope comes before the norms */
	const struct growth *growth;    /* NULL: none */
	double scale, softcap;
	enum attn_mask mask;
	size_t window;
	enum attn_bias bias_kind;
	const float *bias, *sinks;      /* by the kind of bias; [n_head] or NULL */
	size_t reach;
	bool stores;                    /* false: keys and values are those of another layer, there already */
	bool across;                    /* ... or those of the sequence's source, all of whose positions are seen */
};

enum { ROUTE_MAX_EXPERTS = 4096 };
enum router_kind { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_SOFTMAX_CHOSEN, ROUTE_SPARSEMIXER };
/* Which experts a row goes to. */
struct router {
	size_t n_experts, n_used, n_groups, n_groups_used, group_best;
	int kind;                       /* enum router_kind, as a field of a description */
	bool normalise;
	double scale, jitter;
	const float *bias;              /* only for the choice; or NULL */
};
struct routes {
	uint32_t *expert;               /* [n][n_used] in order of choice */
	float *weight;                  /* [n][n_used] */
	uint32_t *pick;                 /* [n*n_used]: rows, sorted by expert */
	uint32_t *place;                /* [n][n_used]: the place of a row's share in that order */
	size_t *first;                  /* [n_experts + 1]: where an expert's rows begin */
};

/* y[t] = sum over the row's experts, in order of choice, of weight*out[place], plus shared[t] times the sigmoid of
 * shared_gate[t]; both, and y, may be missing (NO_BUFFER). */
struct combine { const struct routes *routes; size_t n_used, out, shared, shared_gate, y; };

/* kept, in what follows: where the operator's part of state.recurrent begins, in floats (build_recurrent). */

/* Causal convolution of each channel over the last `width` rows of its sequence, at most SCAN_MAX_WIDTH, then silu, in
 * place. The state has the preceding rows, [width - 1][n]. */
struct conv { size_t x, stride, n, width; const float *w, *bias; size_t kept; };       /* w[n][width] */
/* Mamba-1: h = h*exp(softplus(dt)*a) + softplus(dt)*x*B, out = h.C + d*x, for each of n channels. The state has
 * h[n][n_state]. Rows of dt and out have n floats. */
struct channel_scan {
	size_t x, x_stride, dt, b, c, bc_stride, out;
	size_t n, n_state;
	const float *a, *d;             /* [n][n_state], [n] */
	size_t kept;
};
/* Mamba-2: the same for heads of `dim` channels that share dt and a; groups of heads share B and C. */
struct head_scan {
	size_t x, b, c, dt, stride, out;        /* rows of out have n_head*dim floats */
	size_t n_head, dim, n_groups, n_state;
	const float *a, *d, *dt_bias;   /* [n_head] */
	size_t kept;
};

/* ---- a batch on its way ---- */

/* Rows t0..t0 + n - 1 are positions pos.. of a sequence, their tokens state->ids + pos. The last `wanted` of them are
 * wanted. Row t0 is turned by the sines and cosines of row `turn`. */
struct segment { struct state *state; size_t t0, n, pos, wanted, turn; bool is_long; };
struct run {
	const struct backend *be;
	struct work *w;
	const struct graph *g;
	size_t n;                       /* rows; after graph.n_mixing steps only those that are wanted */
	bool narrows;                   /* the operator that is run calls run_narrow as soon as it can */
	bool unread;                    /* nobody reads the output of the step that is run */
	struct segment *seg;
	size_t n_seg;
	struct plan plan;
	size_t x;                       /* the residual stream, [n][n_embd] */
	size_t y[STEP_MAX_BRANCHES];    /* outputs of a step's branches, of the same shape */
	const struct step *pending;     /* the step whose outputs are not yet added to the stream; NULL: none */
	model_tap *tap;
	void *tap_ctx;
	struct ggu_error *err;
};

struct backend {
	/* Bytes of up to n rows of n_in floats packed in this form. What a form rounds to is the contract's (quant.h),
	 * how it lies in memory the backend's. Not more than for the same rows in groups of QUANT_ACT_STEPS, whatever
	 * the number of groups that are not full (op_experts.c). */
	size_t (*packed_bytes)(enum quant_act form, size_t n, size_t n_in);
	/* The most that attending to a cache of this shape sets aside besides the plan, for n_rows that see up to n_pos
	 * positions */
	size_t (*attend_bytes)(const struct attn_shape *s, size_t n_rows, size_t n_pos, size_t n_threads);
	/* Bytes of each of the host's threads (work_local) for evaluating a graph of this shape; head.c's products are
	 * not among them. */
	size_t (*thread_bytes)(const struct graph *g);
	/* Makes and packs the inputs that are not ready, hands them to the tap, and multiplies. Without products
	 * (n = 0), inputs are only made, all at the same time: none from the rows of another. */
	enum ggu_status (*multiply)(struct run *r, struct input *const *in, size_t n_in, const struct product *p,
		size_t n);
	void (*attend)(struct run *r, const struct attend *a);
	/* Only stores keys and values in the cache, as attend does first. */
	void (*store)(struct run *r, const struct attend *a);
	/* Routes by the scores [n][n_experts] in a buffer; fills what `to` points to. */
	void (*route)(struct run *r, const struct router *o, size_t scores, const struct routes *to);
	void (*combine)(struct run *r, const struct combine *c);
	void (*conv)(struct run *r, const struct conv *c);
	void (*scan_channels)(struct run *r, const struct channel_scan *s);
	void (*scan_heads)(struct run *r, const struct head_scan *s);
	/* Sets the stream to the embeddings of ids, or to the rows at `from`, [n][n_embd], and the buffers w->turn to
	 * the sines and cosines of the rows' positions. settle adds what is pending. */
	void (*embed)(struct run *r, const int32_t *ids, const float *from);
	void (*settle)(struct run *r);
	/* moves n rows of a buffer, `stride` floats each, from row `from` to row `to`, to <= from */
	void (*keep)(const struct run *r, size_t at, size_t stride, size_t from, size_t n, size_t to);
	/* copies the norm (or NULL) of the stream's rows, which are settled, to the host */
	void (*fetch)(const struct run *r, const struct norm *norm, float *to);
};
extern const struct backend backend_cpu;
void *run_host(const struct run *r, size_t at);         /* of plan_host */
/* Leaves only the wanted rows: of the stream, of the segments and, if they are made, of `in` (or NULL), whose packings
 * are forgotten. */
void run_narrow(struct run *r, struct input *in);

#endif
