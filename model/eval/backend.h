/* SPDX-License-Identifier: MIT
 * backend.h - the seam between operators and arithmetic. Private to model/eval.
 *
 * Operators say what happens to buffers; a backend does it. A buffer is an offset into the scratch of a batch, so
 * nobody but the backend knows an address: the same run() of an operator is its plan (measured before there is memory)
 * and its execution. The processor's backend is cpu.c; one for a GPU would keep the scratch, the weights and the
 * states' blocks in its memory and fill in the same table. Only what route() decides comes back to the host.
 *
 * Few barriers: how an input's rows come about (input_kind) is data, not a call, so that multiply can make, pack and
 * multiply them in two passes: rows of all inputs are made and packed, cut by tokens; then all products run as one list
 * of tasks, cut by tokens and outputs. A pass over a single row is no barrier at all. The sum that ends a step is put
 * off (run.pending) until the next input that is made of the residual stream.
 *
 * Nothing here depends on the cut: rows are independent of each other but in attend and the scans, which go by a
 * sequence's positions. */
#ifndef MODEL_EVAL_BACKEND_H
#define MODEL_EVAL_BACKEND_H
#include "../../libgguf/size.h"
#include "../../quant/attn.h"
#include "../../quant/quant.h"
#include "graph.h"
#include "model.h"
#include "state.h"

/* ---- buffers ---- */

enum { PLAN_ALIGN = 64 };
/* Bytes of a backend's scratch, and of the host's for what operators themselves look at. */
struct plan { size_t used, peak, host_used, host_peak; };
static inline size_t plan_more(size_t *used, size_t *peak, size_t bytes)
{
	size_t at = *used;
	*used += size_up(bytes, PLAN_ALIGN);
	if (*used > *peak) *peak = *used;
	return at;
}
static inline size_t plan_take(struct plan *p, size_t bytes) { return plan_more(&p->used, &p->peak, bytes); }
static inline size_t plan_floats(struct plan *p, size_t rows, size_t n) { return plan_take(p, rows*n*sizeof(float)); }
static inline size_t plan_host(struct plan *p, size_t bytes) { return plan_more(&p->host_used, &p->host_peak, bytes); }

/* ---- inputs of products ---- */

enum activation { ACT_SILU, ACT_GELU, ACT_GELU_TANH, ACT_RELU, ACT_RELU2, ACT_SIGMOID, ACT_NONE };
/* act(gate)*up; with a limit gate is cut off above it and up beyond it on both sides; alpha is the slope in silu's
 * sigmoid; up_add is added to up. norm: of the result. up may be missing. */
struct gate {
	enum activation act;
	bool has_up;
	size_t gate, up, gate_stride, up_stride;        /* buffers, floats between rows */
	double limit, alpha, up_add;
	const struct norm *norm;
};
enum input_kind {
	INPUT_ROWS,                     /* lie there */
	INPUT_NORM,                     /* norm of rows of `from` */
	INPUT_STREAM,                   /* norm of the residual stream, to which what is pending is added first */
	INPUT_GATE,                     /* a gate's */
	INPUT_PICK,                     /* row i is row pick[i] of `from` */
};
struct input {
	enum input_kind kind;
	size_t at, stride;              /* buffer of the rows, floats between them */
	size_t n, n_in;
	const struct norm *norm;        /* NORM, STREAM; NULL: none */
	size_t from, from_stride;       /* NORM, PICK */
	const uint32_t *pick;
	struct gate gate;
	bool made;
	unsigned packed, wanted;        /* forms that are there, that products ask for: bits of enum quant_act */
	size_t act[4];                  /* by form, where planned */
};
/* Room for n rows packed in these forms. */
void input_plan(struct plan *p, struct input *in, unsigned forms);
static inline unsigned weight_form(const struct weight *w) { return w->name ? 1u << quant_act_of(w->type) : 0; }

struct product {                        /* y = W x + bias for all rows of the input */
	const struct weight *w;
	size_t mat;
	struct input *in;
	size_t y, y_stride;             /* buffer, floats between rows */
};

/* ---- attention, experts, state space ---- */

struct attend {
	struct attn_shape shape;
	size_t q, k, v, out;            /* buffers; v is not looked at where values are in the keys */
	size_t q_stride, k_stride, v_stride, out_stride;
	const struct norm *q_norm, *k_norm, *v_norm;    /* kind NORM_NONE: none */
	size_t k_normed;                /* first floats of k's row that its norm is for; 0: all */
	double clip;                    /* of q, k and v before all else; 0: none */
	int rope;
	size_t rope_at;                 /* first dimension of a head that turns */
	double scale, softcap;
	enum attn_mask mask;
	size_t window;
	enum attn_bias bias_kind;
	const float *bias, *sinks;      /* by the kind of bias; [n_head] or NULL */
	size_t reach;
	size_t cache;
	bool stores;                    /* false: keys and values are there already, of another layer */
	bool across;                    /* ... or of the sequence's source, all of whose positions are seen */
};

enum { ROUTE_MAX_EXPERTS = 4096 };
/* Which experts a row goes to. */
struct router {
	size_t n_experts, n_used, n_groups, n_groups_used, group_best;
	int kind;                       /* enum router_kind */
	bool normalise;
	double scale, jitter;
	const float *bias;              /* for the choice alone; or NULL */
};
enum router_kind { ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_SOFTMAX_CHOSEN, ROUTE_SPARSEMIXER };
struct routes {
	uint32_t *expert;               /* [n][n_used] in order of choice */
	float *weight;                  /* [n][n_used] */
	uint32_t *pick;                 /* [n*n_used]: rows, those of expert 0 first */
	uint32_t *place;                /* [n][n_used]: where a row's share stands in that order */
	size_t *first;                  /* [n_experts + 1]: where an expert's rows begin */
};

/* Causal convolution of each channel over the last `width` rows of its sequence, then silu, in place. `fixed`: where a
 * state keeps the rows before, [width - 1][n]. */
enum { CONV_MAX_WIDTH = 16, SCAN_MAX_STATE = 1024 };
struct conv { size_t x, stride, n, width; const float *w, *bias; size_t fixed; };      /* w[n][width] */
/* Mamba-1: h = h*exp(softplus(dt)*a) + softplus(dt)*x*B, out = h.C + d*x, for each of n channels h[n_state], kept at
 * fixed. Rows of dt and out have n floats. */
struct scan1 {
	size_t x, x_stride, dt, b, c, bc_stride, out;
	size_t n, n_state;
	const float *a, *d;             /* [n][n_state], [n] */
	size_t fixed;
};
/* Mamba-2: the same for heads of `dim` channels that share dt and a; groups of heads share B and C. */
struct scan2 {
	size_t x, b, c, dt, stride, out;        /* rows of out have n_head*dim floats */
	size_t n_head, dim, n_groups, n_state;
	const float *a, *d, *dt_bias;   /* [n_head] */
	size_t fixed;
};

/* ---- a batch on its way ---- */

/* rows t0.. are positions pos.. of a sequence */
struct segment { struct state *state; size_t t0, n, pos; bool is_long; };
struct run {
	const struct backend *be;
	struct work *w;
	const struct graph *g;
	size_t n;                       /* rows; of steps behind graph.n_mixing those that are wanted alone */
	struct segment *seg;            /* as they were before */
	size_t n_seg;
	struct plan plan;
	size_t x;                       /* the residual stream, [n][n_embd] */
	size_t y[STEP_MAX_BRANCHES];    /* outputs of a step's branches, likewise */
	const struct step *pending;     /* the step whose outputs the stream still lacks; NULL: none */
	model_tap *tap;
	void *tap_ctx;
	struct ggu_error *err;
};

struct backend {
	const char *name;
	/* Makes and packs the inputs as far as that is not done, hands them to the tap, and multiplies. */
	enum ggu_status (*multiply)(struct run *r, struct input *const *in, size_t n_in, const struct product *p,
		size_t n);
	void (*attend)(struct run *r, const struct attend *a);
	/* Keys and values into the cache, with which attend begins, and no more. */
	void (*store)(struct run *r, const struct attend *a);
	/* Of scores [n][n_experts] in a buffer; fills what `to` points to. */
	void (*route)(struct run *r, const struct router *o, size_t scores, const struct routes *to);
	/* y[t] = sum over the row's experts, in order of choice, of weight*out[place]; plus what shared[t] has, times
	 * the sigmoid of shared_gate[t]; both may be missing (NO_BUFFER) */
	void (*combine)(struct run *r, const struct routes *o, size_t n_used, size_t out, size_t shared,
		size_t shared_gate, size_t y);
	void (*conv)(struct run *r, const struct conv *c);
	void (*scan1)(struct run *r, const struct scan1 *s);
	void (*scan2)(struct run *r, const struct scan2 *s);
	/* Rows of embeddings into the stream, or those at `from`, [n][n_embd]; the stream after what is pending. */
	void (*embed)(struct run *r, const int32_t *ids, const float *from);
	void (*settle)(struct run *r);
	/* rows from.. of the stream, which is settled, become rows to.., to <= from */
	void (*keep)(const struct run *r, size_t from, size_t n, size_t to);
	/* norm (or NULL) of the stream's rows, which are settled, to the host */
	void (*fetch)(const struct run *r, const struct norm *norm, float *to);
};
#define NO_BUFFER SIZE_MAX
extern const struct backend backend_cpu;
void *run_host(const struct run *r, size_t at);         /* of plan_host */

#endif
