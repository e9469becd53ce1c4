/* SPDX-License-Identifier: MIT
 * ggu_quant.h - the numbers in GGUF tensors: decode, encode, quantize whole models. Public, part of libggu; see ggu.h
 * for errors and threads.
 *
 * Results are the same bits on every CPU, with every compiler and any number of threads. The calling thread is to be in
 * C's default floating-point environment: it rounds to nearest and keeps subnormal numbers, which the threads of a
 * program linked with -ffast-math may not. It needs 128 KiB of stack, as musl's threads have. */
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
bool ggu_can_encode(uint32_t type);             /* the same, but not F64 */
bool ggu_needs_importance(uint32_t type);       /* without importances its weights are useless */
/* Decodes n weights, a multiple of the type's block, to float32, as the format defines. */
enum ggu_status ggu_decode(uint32_t type, const void *from, float *to, size_t n, struct ggu_error *err);
/* Encodes x[rows][cols], row after row; cols is a multiple of the type's block. importance[cols], at least 0; NULL: all
 * alike. effort: 1 to 9, how hard to search; 0: the usual 5. */
enum ggu_status ggu_encode(uint32_t type, const float *x, const float *importance, size_t rows, size_t cols,
	int effort, void *to, struct ggu_error *err);

/* ---- models ---- */

/* Recipes by number, from 0: the name ("Q4_K_M") and a summary; NULL after the last. */
const char *ggu_recipe_name(size_t i);
const char *ggu_recipe_summary(size_t i);

enum {
	GGU_QUANTIZE_AGAIN = 1,         /* quantize tensors that are quantized already, too */
	GGU_QUANTIZE_PURE = 2,          /* use the recipe's one type for every weight */
	GGU_QUANTIZE_NON_FINITE = 4     /* accept weights that are not finite */
};
struct ggu_quantize_options {
	unsigned flags;                         /* GGU_QUANTIZE_* */
	int effort;                             /* as for ggu_encode */
	int n_threads;                          /* 0: as many as cores */
	const struct ggu_importance *importance;        /* or NULL */
	/* The type that this tensor is to have; UINT32_MAX: what the recipe says. Or NULL. */
	uint32_t (*choose)(void *ctx, const struct ggu_tensor *t);
	/* Called when a tensor is done, by one thread at a time; done, all: bytes of the model. Or NULL. */
	void (*progress)(void *ctx, const struct ggu_tensor *t, uint32_t type, uint64_t done, uint64_t all);
	void *ctx;                              /* of both */
	uint64_t reserved[4];                   /* 0 */
};
/* Quantizes the whole model f, whose data may come from a pipe, with types chosen by the recipe. options may be NULL.
 * What is written before an error is of no use. GGU_ERR_TRUNCATED: f lacks data, or part of its header. */
enum ggu_status ggu_quantize(const struct ggu_file *f, const char *recipe, const struct ggu_quantize_options *options,
	const struct ggu_sink *to, struct ggu_error *err);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
