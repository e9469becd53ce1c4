/* SPDX-License-Identifier: MIT
 * quant.h - the numbers: decode blocks, multiply with them, make them.
 *
 * One table of functions per instruction set, filled with the portable C first and overlaid by what
 * the CPU has. Portable C is the definition: every instance gives the same bits.
 *
 * The numeric contract
 *   - no contraction by the compiler, no reassociation, no approximate instructions;
 *   - decoding and encoding multiply and add separately; matrix products use fma throughout;
 *   - a quantized product: the activations are packed to the one format of the weight's type (quant_act),
 *     the sum of a block (a super-block where sub-scales are integers) is an exact int32, then one fma
 *     per block (two where there are minima), blocks in order;
 *   - a float product has 16 lanes, element i in lane i mod 16, each lane an fma chain in order of i
 *     from 0.0f; then lane l += lane l+8, then +4, +2, +1. F16 and BF16 weights are widened first.
 * So a row's result depends on nothing but the row and the activations.
 *
 * No function here allocates, fails or keeps state but quant_select. All are thread-safe after it. */
#ifndef QUANT_H
#define QUANT_H
#include "../libgguf/ggu.h"

/* ---- instruction sets ---- */

/* Chooses the instances by the CPU and, if `name` is not NULL, restricts them to it: "c", "avx2",
 * "avxvnni", "avx512", "neon", "dotprod", "i8mm", "native". Programs pass getenv("GGUF_CPU").
 * GGU_ERR_UNSUPPORTED: unknown name, or not available on this CPU. Until it is called: portable C. */
enum ggu_status quant_select(const char *name, struct ggu_error *err);
/* The instance in use: "avxvnni" is served by "avx2", "dotprod" and "i8mm" by "neon". */
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
 * F64 rounds to nearest. src needs no alignment. */
void quant_decode(uint32_t type, const void *src, float *dst, size_t n);

/* ---- multiply ---- */

bool quant_can_multiply(uint32_t type);
/* Bytes of one packed activation row of n elements for weights of this type; for float types 4*n
 * (packing then copies). n is a multiple of the type's block. */
size_t quant_act_bytes(uint32_t type, size_t n);
void quant_act_pack(uint32_t type, const float *x, size_t n, void *act);
/* What the packing kept of x: for tests and for measuring the activations' share of the error. */
void quant_act_unpack(uint32_t type, const void *act, float *x, size_t n);
/* y[t][o] = x[t] . w[o], t < n_tokens, o < n_out, rows of n_in elements.
 *   w       n_out rows, w_stride bytes apart, any alignment
 *   act     n_tokens rows packed for the type, quant_act_bytes apart
 *   y       rows y_stride floats apart; disjoint ranges of o may be computed by different threads
 *   work    quant_mul_work_bytes, 64-byte aligned, one for each thread
 * n_in is a multiple of the block for block types, any number for floats. */
void quant_mul(uint32_t type, size_t n_tokens, size_t n_out, size_t n_in, const void *w, size_t w_stride,
	const void *act, float *y, size_t y_stride, void *work);
size_t quant_mul_work_bytes(void);

/* ---- encode ---- */

bool quant_can_encode(uint32_t type);
bool quant_needs_importance(uint32_t type);     /* types that recipes refuse to make without a matrix */
enum { QUANT_EFFORT_MIN = 1, QUANT_EFFORT_DEFAULT = 5, QUANT_EFFORT_MAX = 9 };
/* x[rows][cols] to rows*cols/block blocks at dst, rows after one another; cols is a multiple of the
 * block. importance[cols], at least 0, or NULL for all alike. effort is brought into its range.
 *
 * Minimised is the sum of importance[j]*(decoded[i][j] - x[i][j])^2 of each row, but for three things that lower a
 * model's divergence more than they raise this error (quant/ENCODERS.md has the figures): a part of their mean is
 * added to all importances; Q2_K counts large weights a little more, and Q3_K without importances; types of code books,
 * of three values and Q3_K give back some of what least squares takes from the weights' size.
 *
 * A row's bytes depend on that row, the importances and the effort alone: rows may be cut over threads at will.
 * F32, F16, BF16 and Q8_0 round exactly as ggml and ignore importance and effort.
 * Finite x decodes to finite weights, but where F16, BF16 and Q8_0 round to infinity, as ggml does.
 * Non-finite x: the blocks decode to something finite or NaN, never crash; callers report them.
 *
 * The seam for error feedback, column by column: x holds targets, each row its own, and need not be the weights. A caller
 * may encode a stretch of columns (whole blocks) of all rows, decode it, add to the later columns' targets what
 * its errors ask of them, and go on. It may rely on this: no block looks at another, so what a stretch becomes depends on
 * its targets, its importances and the effort; and on importances only by their proportions within the call, since
 * the part of their mean that is added is that of the importances given. A stretch is a matrix of its own here: its
 * blocks lie after one another at dst, row by row, and the caller puts them into the rows of the file.
 *
 * NVFP4: the blocks are made as ggml makes them, without a scale of the tensor; see codec/nvfp4.h. */
void quant_encode(uint32_t type, const float *x, const float *importance, size_t rows, size_t cols, int effort, void *dst);

#endif
