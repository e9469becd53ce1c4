/* SPDX-License-Identifier: MIT
 * ggu_quant.h - the numbers in GGUF tensors: decode, encode, quantize whole models. Public, part of libggu; see ggu.h
 * for errors and threads.
 *
 * Results are the same bits on every CPU, with every compiler and any number of threads. The calling thread is to be in
 * C's default floating-point environment: it rounds to nearest and keeps subnormal numbers, which the threads of a
 * program linked with -ffast-math may not. */
#ifndef GGU_QUANT_H
#define GGU_QUANT_H
#include "../libgguf/ggu.h"
#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

/* ---- rows ---- */

/* Floats, F64 and every block type, but not Q8_1 and Q8_K, whose blocks are those of activations. */
bool ggu_can_decode(uint32_t type);
bool ggu_can_encode(uint32_t type);
bool ggu_needs_importance(uint32_t type);       /* its weights are of no use when quantized without */
/* n weights, a multiple of the type's block, to float32, as the format defines. */
enum ggu_status ggu_decode(uint32_t type, const void *from, float *to, size_t n, struct ggu_error *err);
/* x[rows][cols] to rows after one another; cols is a multiple of the type's block. importance[cols], at least 0, or
 * NULL: all alike. effort: 1 to 9, how hard to search; 0: the usual 5. */
enum ggu_status ggu_encode(uint32_t type, const float *x, const float *importance, size_t rows, size_t cols,
	int effort, void *to, struct ggu_error *err);

/* ---- models ---- */

/* Recipes by number, from 0: "Q4_K_M" and what it is; NULL after the last. */
const char *ggu_recipe_name(size_t i);
const char *ggu_recipe_summary(size_t i);

enum {
	GGU_QUANTIZE_AGAIN = 1,         /* tensors that are quantized already are taken, too */
	GGU_QUANTIZE_PURE = 2,          /* the recipe's one type for every weight */
	GGU_QUANTIZE_NON_FINITE = 4     /* weights that are not finite are no error */
};
struct ggu_quantize_options {
	unsigned flags;                         /* GGU_QUANTIZE_* */
	int effort;                             /* as for ggu_encode */
	int n_threads;                          /* 0: as many as cores */
	const struct ggu_importance *importance;        /* or NULL */
	/* The type that this tensor is to have; UINT32_MAX: what the recipe says. Or NULL. */
	uint32_t (*choose)(void *ctx, const struct ggu_tensor *t);
	/* A tensor is done; bytes of the model so far, and in all. By one thread at a time. Or NULL. */
	void (*progress)(void *ctx, const struct ggu_tensor *t, uint32_t type, uint64_t done, uint64_t all);
	void *ctx;                              /* of both */
	uint64_t reserved[4];                   /* 0 */
};
/* The whole model f, whose data may come from a pipe, with types chosen by the recipe. options may be NULL. What is
 * written before an error is of no use. */
enum ggu_status ggu_quantize(const struct ggu_file *f, const char *recipe, const struct ggu_quantize_options *options,
	const struct ggu_sink *to, struct ggu_error *err);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
