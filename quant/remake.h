/* SPDX-License-Identifier: MIT
 * remake.h - a model's tensors written in other types: the metadata, the table and the data of the new file.
 *
 * The source is a list of tensors, in the order of writing, and a function that reads them; types come from recipe.h.
 * Then remake_check, remake_meta, remake_writer and remake_write, each of which only looks at the struct. */
#ifndef QUANT_REMAKE_H
#define QUANT_REMAKE_H
#include "../libgguf/pool.h"
#include "recipe.h"
#include "recode.h"

/* What is known of how the inputs of weights move together, as imatrix.h has it; for error feedback. */
struct remake_known {
	const char *of;                         /* what weights that share a covariance have in common */
	size_t n_in, block, n_floats;           /* as quant_feedback_new wants it */
	double tokens;                          /* it is the mean of so many */
};
struct remake_covariance {
	/* About matrix `mat` of a tensor. false: nothing is known, or too little. */
	bool (*find)(void *ctx, const char *tensor, size_t mat, struct remake_known *known);
	enum ggu_status (*get)(void *ctx, const char *tensor, size_t mat, float *mean, struct ggu_error *err);
	void *ctx;
	double damp;                            /* below 0: what suits type and tokens */
};
struct remake {
	size_t n;
	const struct ggu_tensor *const *t;
	const uint32_t *from;                   /* [n] types that read delivers; NULL: those of t */
	const struct recipe_choice *choice;     /* [n] */
	/* n bytes of tensor i from byte `at` of its data on; called forward, tensor after tensor, by one thread at a
	 * time, unless read_anywhere: then by several threads at once, in any order */
	enum ggu_status (*read)(void *ctx, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err);
	void *read_ctx;
	bool read_anywhere;
	const struct ggu_importance *importance;        /* or NULL */
	const struct remake_covariance *covariance;     /* or NULL: no feedback */
	int effort;
	const struct quant_objective *objective;        /* NULL: the default of each type */
	bool keep_non_finite;
	bool measure;                           /* the errors that done is told */
	/* Tensor i is written. error: of its weights, relative, by their importances; below 0 if it is not measured
	 * or the bytes were copied. n_unseen: its matrices that no token reached. By one thread at a time, in order;
	 * or NULL. */
	void (*done)(void *ctx, size_t i, const struct recode_result *result, double error, size_t n_unseen);
	void *done_ctx;
};
/* Does tensor i's new type weigh errors by an importance matrix, if there is one? */
bool remake_is_weighed(const struct remake *r, size_t i);
/* That a type can be had from each tensor's, and that the matrix is this model's and says what types need to know:
 * GGU_ERR_RANGE and GGU_ERR_MISSING with the tensor's name. lacks, NULL or [n]: set for tensors whose columns weigh
 * alike because the matrix has nothing about them. */
enum ggu_status remake_check(const struct remake *r, bool *lacks, struct ggu_error *err);
/* A copy of `from` with what is true of the new file: general.file_type, unless that is RECIPE_KEEP, and
 * general.quantization_version; no split.*, and no quantize.imatrix.* if a matrix takes part. The caller frees. */
enum ggu_status remake_meta(const struct remake *r, const struct ggu_meta *from, uint32_t file_type,
	struct ggu_meta **to, struct ggu_error *err);
/* A writer that knows every tensor. The caller frees. */
enum ggu_status remake_writer(const struct remake *r, const struct ggu_meta *meta, struct ggu_writer **w,
	struct ggu_error *err);
/* The whole file. */
enum ggu_status remake_write(const struct remake *r, struct ggu_writer *w, const struct ggu_sink *to,
	struct ggu_pool *pool, struct ggu_error *err);

#endif
