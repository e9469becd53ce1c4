/* SPDX-License-Identifier: MIT
 * quant.h - the numbers: decode blocks, multiply with them, make them.
 *
 * One table of functions per instruction set, filled with the portable C first and overlaid by what
 * the CPU has. Portable C is the definition: every instance gives the same bits.
 *
 * The numeric contract
 *   - rounding to nearest, ties to even; subnormals are numbers (no flushing to zero); no contraction by the compiler,
 *     no reassociation, no approximate instructions. Results that are not numbers are NaN, with any sign and payload;
 *   - decoding and encoding multiply and add separately; matrix products use fma throughout;
 *   - activations that meet a block type become integers of 12 bits, with one scale for each 256 columns (types with
 *     super-blocks of 256) or each 32 (the others): with amax the largest |x|,
 *         d = amax/2032    X = rint(x*(1/d))    |X| <= 2032    x is about d*X
 *     each operation rounded. d and X are 0 if amax < 2^-96; d is NaN and X 0 if an x is infinite or NaN;
 *   - a weight is dw*c + mw (types without super-blocks, c a small integer, mw 0 for most) or dw*sc*c - mw*mn
 *     (super-blocks, sc and mn integers of its sub-block); y starts at 0.0f, and each block in order does to it
 *         S = sum of c*X, or of sc*c*X           exact: |S| <= 4096*2032*256 = 2130706432 < 2^31, met by Q6_K
 *         y = fma(dw*dx, (float)S, y)            the product of the scales is rounded, then S is, then the fma
 *     and, of types with minima, after that
 *         M = sum of X, or of mn*X
 *         y = fma(mw*dx, (float)M, y)            with -mw for super-blocks
 *     A block is 256 columns of super-blocks, else 32, but 16 (half a block of activations) for NVFP4, whose scale is
 *     one for 16;
 *   - a float product has 16 lanes, element i in lane i mod 16, each lane an fma chain in order of i
 *     from 0.0f; then lane l += lane l+8, then +4, +2, +1. F16 and BF16 weights are widened first;
 *   - of no columns at all (n_in = 0) products are 0.
 * So a row's result depends on nothing but the row and the activations.
 *
 * No function here allocates or keeps state but quant_select. All are thread-safe after it. */
#ifndef QUANT_H
#define QUANT_H
#include <float.h>
#include "../libgguf/pool.h"
#ifdef __FAST_MATH__
#error "the numeric contract does not hold with -ffast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "the numeric contract asks for floats that are computed as floats (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "blocks are read as they lie in the file, which is little-endian"
#endif

/* ---- instruction sets ---- */

/* Chooses the instances by the CPU and, if `name` is not NULL, restricts them to it: "c", "avx2",
 * "avxvnni", "avx512bw", "avx512" (with VNNI), "avx512vbmi" (and with VBMI and GFNI), "zen4" (these, by AMD), "amx",
 * "neon", "dotprod", "i8mm" (with dotprod), "native". Programs pass getenv("GGUF_CPU").
 * GGU_ERR_UNSUPPORTED: unknown name, or not available on this CPU. Until it is called: portable C. */
enum ggu_status quant_select(const char *name, struct ggu_error *err);
/* The instance in use. */
const char *quant_selected(void);
/* The instances this CPU can run, best last; NULL-terminated. For tests. */
const char *const *quant_available(void);

/* ---- scalars ---- */

float quant_f16_to_f32(uint16_t h);             /* exact; NaN payload kept as ggml does */
uint16_t quant_f32_to_f16(float f);             /* nearest even, overflow to infinity, NaN made quiet */
float quant_bf16_to_f32(uint16_t h);
uint16_t quant_f32_to_bf16(float f);            /* nearest even, NaN made quiet, as ggml */

/* ---- decode ---- */

bool quant_can_decode(uint32_t type);           /* floats, F64 and every block type */
/* n elements (a multiple of the block) to float32, as the format defines: bit-equal to ggml's.
 * F64 rounds to nearest. src needs no alignment. GGU_ERR_UNSUPPORTED: no such type; nothing is written then. */
enum ggu_status quant_decode(uint32_t type, const void *src, float *dst, size_t n);

/* ---- multiply ---- */

/* How activations are packed for the weights of a type. Weights that share an input and whose types have the same form
 * share one packing. */
enum quant_act {
	QUANT_ACT_NONE,                 /* there are no products with this type */
	QUANT_ACT_FLOAT,                /* float32: for F32, F16, BF16 */
	QUANT_ACT_32,                   /* integers with a scale for each 32: types without super-blocks */
	QUANT_ACT_256,                  /* integers with a scale for each 256: types with super-blocks */
};
bool quant_can_multiply(uint32_t type);
enum quant_act quant_act_of(uint32_t type);

/* A packing holds n_tokens rows of n_in activations, n_in a multiple of the weights' block (floats: any number). It is
 * opaque, its layout that of the selected instance and of n_tokens; it wants an address that is a multiple of 64. */
size_t quant_act_bytes(enum quant_act form, size_t n_tokens, size_t n_in);
/* Tokens that threads may pack on their own: a call starts at a multiple of this. */
size_t quant_act_step(void);
/* Packs tokens from..from + n - 1 of the n_tokens; x is that of token 0, rows x_stride floats apart. from is a
 * multiple of quant_act_step(); n as well, but where it ends the tokens. Every token is packed before a product reads
 * any. */
void quant_act_pack(enum quant_act form, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from,
	size_t n, void *act);
/* What the packing kept of a token: for tests and for measuring the activations' share of the error. */
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
/* Computes t < n_t, o < n_o from token t0 and output o0: a task of a thread. t0 is a multiple of quant_act_step(); any
 * cut gives the same bits. work: quant_mul_work_bytes(), 64-byte aligned, one for each thread. */
void quant_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);
size_t quant_mul_work_bytes(void);
/* A cut of the product into tasks of *tokens x *outputs (the last ones smaller) that keeps n_threads busy and unpacks
 * weights no oftener than that needs. */
void quant_mul_cut(const struct quant_mul *m, int n_threads, size_t *tokens, size_t *outputs);

/* ---- encode ---- */

bool quant_can_encode(uint32_t type);
bool quant_needs_importance(uint32_t type);     /* types that recipes refuse to make without a matrix */
enum { QUANT_EFFORT_MIN = 1, QUANT_EFFORT_DEFAULT = 5, QUANT_EFFORT_MAX = 9 };

/* What is minimised beside the plain weighted error. All zero: nothing else. */
struct quant_objective {
	float doubt;    /* added to importances of mean 1: the matrix is an estimate from other text */
	float prior;    /* an error of x counts 1 + prior*|x|/rms times, the rms over the block */
	float lift;     /* how much a block's scale gets back of what least squares takes from the weights' size */
};
/* What lowers a model's divergence more than it raises the error (quant/TRIALS.md has the figures). weighed: there are
 * importances. */
struct quant_objective quant_objective_default(uint32_t type, bool weighed);
/* importance[cols], at least 0, to the weights of errors in a row's columns: mean about 1, the doubt added. Made once
 * for a tensor, so that a part of a row is encoded as in the whole. weights may be importance. */
void quant_weigh(const struct quant_objective *o, const float *importance, size_t cols, float *weights);
/* x[rows][cols] to rows*cols/block blocks at dst, rows after one another; cols is a multiple of the
 * block. Minimised is the sum of weights[j]*(decoded[i][j] - x[i][j])^2 of each row, as the objective says; NULL:
 * the default. weights[cols], above 0, or NULL for all alike. effort is brought into its range.
 * GGU_ERR_UNSUPPORTED: the type cannot be encoded; nothing is written then.
 *
 * A row's bytes depend on that row, the weights, the objective and the effort alone: rows may be cut over threads at
 * will. F32, F16, BF16 and Q8_0 round exactly as ggml and ignore weights, objective and effort.
 * Finite x decodes to finite weights, but where F16, BF16 and Q8_0 round to infinity, as ggml does.
 * Non-finite x: the blocks decode to something finite or NaN, never crash; callers report them.
 *
 * No block looks at another: a stretch of columns (whole blocks) becomes what it becomes in the whole row.
 *
 * NVFP4: the blocks are made as ggml makes them, without a scale of the tensor; see codec/nvfp4.h. */
enum ggu_status quant_encode(uint32_t type, const struct quant_objective *o, const float *x, const float *weights,
	size_t rows, size_t cols, int effort, void *dst);

/* ---- encode with error feedback ---- */

/* What the columns of a weight's inputs have to do with each other, factored: rounding a column shifts the targets of
 * those after it (feedback.c). Usable by many threads at once. */
struct quant_feedback;
bool quant_can_feed_back(uint32_t type);        /* every block type */
/* covariance: the mean of x xT over inputs x of n columns, as packed lower triangles ([0][0], [1][0], [1][1], ...) of
 * blocks of `block` columns on its diagonal, the last one smaller; block is n, or a multiple of 256. damp: the share
 * of the diagonal that is added to it, beside 0.01 of its mean. pool may be NULL. GGU_ERR_RANGE: not positive, or n no
 * multiple of 8. Takes 9*n*block bytes while it works and 5*n*block from then on. */
enum ggu_status quant_feedback_new(struct quant_feedback **q, size_t n, size_t block, const float *covariance,
	double damp, struct ggu_pool *pool, struct ggu_error *err);
/* One more holder of it, who frees it too; from any thread. Returns q. */
struct quant_feedback *quant_feedback_share(struct quant_feedback *q);
void quant_feedback_free(struct quant_feedback *q);
/* The damping that suits a type and a covariance of n columns that is the mean of so many tokens, more than 0. */
double quant_feedback_damp(uint32_t type, size_t n, double tokens);
/* Does the type come nearer to the model by one pass with the covariances of its undisturbed inputs? */
bool quant_feedback_pays(uint32_t type);
/* What to minimise where x is corrected for what layers before have lost. */
struct quant_objective quant_corrected_objective(uint32_t type);
/* As quant_encode, for rows of n columns, made to keep (x - decoded) H (x - decoded)T small; the weights of columns are
 * the factor's own. *error, if error is not NULL: that sum over the rows, damping included, by a pass of its own. work:
 * quant_feedback_work_bytes(), 64-byte aligned, one for each thread. More rows at once take less time for each, 128
 * being enough. */
enum ggu_status quant_feedback_encode(const struct quant_feedback *q, uint32_t type, const struct quant_objective *o,
	const float *x, size_t rows, int effort, void *dst, void *work, double *error);
size_t quant_feedback_work_bytes(const struct quant_feedback *q, size_t rows);
/* b = b (H + damping)^-1 for rows b[rows][n]: of products of a target with inputs, what target does best. work: as
 * above. */
void quant_feedback_solve(const struct quant_feedback *q, float *b, size_t rows, void *work);
/* The same sum for rows x that became y. */
double quant_feedback_error(const struct quant_feedback *q, const float *x, const float *y, size_t rows, void *work);

#endif
