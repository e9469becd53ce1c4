/* SPDX-License-Identifier: MIT
 * quant.h - the numbers: decode blocks, multiply with them, encode them.
 *
 * Each instruction set has tables of functions, its own or those of a weaker set (sets.inc). Portable C is the
 * definition: every instance gives the same bits.
 *
 * The numeric contract
 *   - rounding to nearest, ties to even; subnormals are numbers (no flushing to zero); no contraction by the compiler,
 *     no reassociation, no approximate instructions. Results that are not numbers are NaN, with any sign and payload;
 *   - decoding and encoding multiply and add separately; matrix products use fma throughout;
 *   - activations that are multiplied with a block type become integers of 12 bits, with one scale for 256 columns
 *     (types with super-blocks of 256) or for 32 (the others): with amax the largest |x|,
 *         d = amax/2032    X = rint(x*(1/d))    |X| <= 2032    x is about d*X
 *     each operation rounded. d and X are 0 if amax < 2^-96; d is NaN and X 0 if an x is infinite or NaN;
 *   - a weight is dw*c + mw (types without super-blocks, c a small integer, mw 0 for most) or dw*sc*c - mw*mn
 *     (super-blocks, sc and mn integers of its sub-block); y starts at 0.0f and is updated for each block in order by
 *         S = sum of c*X, or of sc*c*X           exact: |S| <= 4096*2032*256 = 2130706432 < 2^31, reached by Q6_K
 *         y = fma(dw*dx, (float)S, y)            the product of the scales is rounded, then S is, then the fma
 *     and then, for types with mins, by
 *         M = sum of X, or of mn*X
 *         y = fma(mw*dx, (float)M, y)            with -mw for super-blocks
 *     Here a block is 256 columns of super-blocks, otherwise 32; but 16, half a block of activations, for NVFP4, which
 *     has a scale for 16;
 *   - a float product has 16 lanes, element i in lane i mod 16, each lane an fma chain in order of i
 *     from 0.0f; then lane l += lane l+8, then +4, +2, +1. F16 and BF16 weights are widened first;
 *   - without columns (n_in = 0) products are 0.
 * So the result for a row depends only on the row and the activations.
 *
 * Only quant_feedback_new allocates, and only quant_select keeps state. All functions are thread-safe after it. */
#ifndef QUANT_H
#define QUANT_H
#include <float.h>
#include "../libgguf/pool.h"
/* Clang says of the options that make up -ffast-math only that numbers are taken to be finite. */
#if defined __FAST_MATH__ || (defined __FINITE_MATH_ONLY__ && __FINITE_MATH_ONLY__) || \
	defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__
#error "the numeric contract does not hold with -ffast-math or a part of it"
#endif
#if FLT_EVAL_METHOD != 0
#error "the numeric contract asks for floats that are computed as floats (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif

/* ---- instruction sets ---- */

/* Chooses the instances by the CPU, restricted to the set `name`: "c", "avx2", "avxvnni", "avx512bw", "avx512" (with
 * VNNI), "avx512vbmi" (also with VBMI and GFNI), "zen4" (the same on AMD), "amx", "neon", "dotprod", "i8mm" (with
 * dotprod). NULL, "" and "native": not restricted. Programs pass getenv("GGUF_CPU"). GGU_ERR_UNSUPPORTED: an unknown
 * name, or not available on this CPU. Until it is called, portable C is used. */
enum ggu_status quant_select(const char *name, struct ggu_error *err);
/* The name of the set in use. */
const char *quant_selected(void);
/* The sets that this CPU can run, best last; NULL-terminated. For tests. */
const char *const *quant_available(void);

/* ---- scalars ---- */

float quant_f16_to_f32(uint16_t h);             /* exact; NaN payload kept as ggml does */
uint16_t quant_f32_to_f16(float f);             /* nearest even, overflow to infinity, NaN made quiet */
float quant_bf16_to_f32(uint16_t h);            /* exact */
uint16_t quant_f32_to_bf16(float f);            /* nearest even, NaN made quiet, as ggml */

/* ---- decode ---- */

bool quant_can_decode(uint32_t type);           /* floats, F64 and every block type but Q8_1 and Q8_K */
/* Decodes n elements (a multiple of the block) to float32, as the format defines: bit-equal to ggml's. F64 rounds to
 * nearest. src needs no alignment. GGU_ERR_UNSUPPORTED: no such type; nothing is written then. */
enum ggu_status quant_decode(uint32_t type, const void *src, float *dst, size_t n);

/* ---- multiply ---- */

/* How activations are packed for the weights of a type. Weights with the same input can share one packing if their
 * types have the same form. */
enum quant_act {
	QUANT_ACT_NONE,                 /* there are no products with this type */
	QUANT_ACT_FLOAT,                /* float32: for F32, F16, BF16 */
	QUANT_ACT_32,                   /* integers with a scale for 32: types without super-blocks */
	QUANT_ACT_256,                  /* integers with a scale for 256: types with super-blocks */
};
bool quant_can_multiply(uint32_t type);
enum quant_act quant_act_of(uint32_t type);

/* A packing holds n_tokens rows of n_in activations, n_in a multiple of the weights' block (floats: any number). It is
 * opaque; its layout depends on the selected instance and on n_tokens. Its address must be a multiple of 64. */
size_t quant_act_bytes(enum quant_act form, size_t n_tokens, size_t n_in);
/* Enough for any number of tokens up to n_tokens: a few can take more bytes than some more do. */
size_t quant_act_most_bytes(enum quant_act form, size_t n_tokens, size_t n_in);
/* Threads may pack the n_tokens independently if each call starts at a multiple of this many. All steps divide
 * QUANT_ACT_STEPS. */
enum { QUANT_ACT_STEPS = 48 };
size_t quant_act_step(enum quant_act form, size_t n_tokens);
/* Packs tokens from..from + n - 1 of the n_tokens; x is that of token 0, rows x_stride floats apart. from is a multiple
 * of the form's step, and so is n unless it reaches the last token. All tokens must be packed before a product reads
 * any. */
void quant_act_pack(enum quant_act form, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from,
	size_t n, void *act);
/* Decodes a token of a packing: for tests, and to measure the activations' share of the error. */
void quant_act_unpack(enum quant_act form, const void *act, size_t n_tokens, size_t n_in, size_t token, float *x);

/* y[t][o] = sum over i of x[t][i]*w[o][i] */
struct quant_mul {
	uint32_t type;
	size_t n_tokens, n_out, n_in;
	const void *w;                  /* n_out rows, w_stride bytes apart, any alignment */
	size_t w_stride;
	const void *act;                /* all n_tokens, packed in the form of the type */
	float *y;                       /* [n_tokens][n_out], rows y_stride floats apart */
	size_t y_stride;
};
/* Computes n_t tokens from token t0 on, and n_o outputs from output o0 on: the task of a thread. t0 is a multiple of
 * the form's step; every cut gives the same bits. work: quant_mul_work_bytes(n_in or more) of the set in use, 64-byte
 * aligned, one for each thread. */
void quant_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);
size_t quant_mul_work_bytes(size_t n_in);
/* Cuts the product into tasks of *tokens x *outputs (the last ones smaller) that keep n_threads busy and unpack weights
 * no more often than necessary. */
void quant_mul_cut(const struct quant_mul *m, int n_threads, size_t *tokens, size_t *outputs);

/* ---- encode ---- */

bool quant_can_encode(uint32_t type);
bool quant_needs_importance(uint32_t type);     /* types that recipes refuse without a matrix */
enum { QUANT_EFFORT_MIN = 1, QUANT_EFFORT_DEFAULT = 5, QUANT_EFFORT_MAX = 9 };

/* What is minimised in addition to the plain weighted error. All zero: nothing. */
struct quant_objective {
	/* added to importances of mean 1, as the matrix is an estimate from other text; less of it if the mean comes
	 * from a few columns */
	float doubt;
	float prior;    /* an error of x counts 1 + prior*|x|/rms times, the rms over the block */
	float lift;     /* how much of the size that weights lose by least squares a block's scale gets back */
};
/* The objective that lowers a model's divergence more than it raises the error (figures in quant/TRIALS.md). weighed:
 * there are importances. */
struct quant_objective quant_objective_default(uint32_t type, bool weighed);
/* Turns importance[cols], at least 0, into the weights of errors in a row's columns: mean about 1, the doubt added.
 * Done once for a tensor, so that a part of a row is encoded as in the whole. weights may be importance. */
void quant_weigh(const struct quant_objective *o, const float *importance, size_t cols, float *weights);
/* Encodes x[rows][cols] as rows*cols/block blocks at dst, row after row; cols is a multiple of the block. It minimises
 * the sum of weights[j]*(decoded[i][j] - x[i][j])^2 of each row, modified by the objective (NULL: the default).
 * weights[cols] are above 0, or NULL for equal ones. effort is clamped to its range. GGU_ERR_UNSUPPORTED: the type
 * cannot be encoded; nothing is written then.
 *
 * A row's bytes depend only on that row, the weights, the objective and the effort, so rows may be divided among
 * threads in any way. F32, F16, BF16 and Q8_0 round exactly as ggml and ignore weights, objective and effort. Finite x
 * decodes to finite weights, except where F16, BF16 or the scale of Q8_0 round to infinity, as ggml's do. Non-finite x
 * stays so in F32, F16 and BF16, and an infinity makes its block in Q8_0 non-finite; all else becomes something finite.
 * Callers report it.
 *
 * No block depends on another: a stretch of columns (whole blocks) is encoded as it is in the whole row.
 *
 * NVFP4: blocks are those of ggml, without a scale for the tensor; see codec/nvfp4.h. */
enum ggu_status quant_encode(uint32_t type, const struct quant_objective *o, const float *x, const float *weights,
	size_t rows, size_t cols, int effort, void *dst);

/* ---- encode with error feedback ---- */

/* The covariance of a weight's inputs, factored: when a column is rounded, the targets of the following columns shift
 * (feedback.c). May be used by many threads at once. */
struct quant_feedback;
bool quant_can_feed_back(uint32_t type);        /* every block type but Q8_1 and Q8_K */
/* covariance: the mean of x xT over inputs x of n columns, as packed lower triangles ([0][0], [1][0], [1][1], ...) of
 * blocks of `block` columns on its diagonal, the last one smaller; block is n or more, or a multiple of 256. damp: the
 * share of the diagonal that is added to it, in addition to 0.01 of its mean. pool may be NULL. GGU_ERR_RANGE: not
 * positive, n is not a multiple of 8, or block not as stated. Takes 9*n*block bytes while it works and 5*n*block from
 * then on. */
enum ggu_status quant_feedback_new(struct quant_feedback **q, size_t n, size_t block, const float *covariance,
	double damp, struct ggu_pool *pool, struct ggu_error *err);
/* Adds a holder, who must free it too; from any thread. Returns q. */
struct quant_feedback *quant_feedback_share(struct quant_feedback *q);
void quant_feedback_free(struct quant_feedback *q);
/* The damping for a type and a covariance of n columns, the mean over `tokens` tokens, more than 0. */
double quant_feedback_damp(uint32_t type, size_t n, double tokens);
/* Does the type gain from one pass with the covariances of the original model's inputs? */
bool quant_feedback_pays(uint32_t type);
/* What to minimise if x is corrected for the losses of earlier layers. */
struct quant_objective quant_corrected_objective(uint32_t type);
/* As quant_encode, for rows of n columns, but keeps (x - decoded) H (x - decoded)T small; the weights of columns are
 * the factor's own. *error, if error is not NULL: that sum over the rows, damping included, computed in a separate
 * pass. work: quant_feedback_work_bytes(), 64-byte aligned, one for each thread. More rows at once take less time for
 * each; 128 are enough. GGU_ERR_RANGE: n is not a multiple of the type's block; nothing is written then. */
enum ggu_status quant_feedback_encode(const struct quant_feedback *q, uint32_t type, const struct quant_objective *o,
	const float *x, size_t rows, int effort, void *dst, void *work, double *error);
size_t quant_feedback_work_bytes(const struct quant_feedback *q, size_t rows);
/* b = b (H + damping)^-1 for rows b[rows][n]: from products of a target with inputs, the weights that come closest to
 * the target. work: as above. */
void quant_feedback_solve(const struct quant_feedback *q, float *b, size_t rows, void *work);
/* The same sum for rows x that were encoded as y. */
double quant_feedback_error(const struct quant_feedback *q, const float *x, const float *y, size_t rows, void *work);

#endif
