/* SPDX-License-Identifier: MIT
 * remake.h - writes a model's tensors in other types: the metadata, the table and the data of the new file.
 *
 * The source is a list of tensors, in the order of writing, and a function that reads them; recipe.h chooses the types.
 * Then call remake_check, remake_meta, remake_writer and remake_write, none of which changes the struct. */
#ifndef QUANT_REMAKE_H
#define QUANT_REMAKE_H
#include "../libgguf/pool.h"
#include "recipe.h"
#include "recode.h"

/* Covariances of the inputs of weights, in the form of imatrix.h; for error feedback. */
struct remake_known {
	const char *of;                         /* the same for all weights that share a covariance */
	size_t n_in, block, n_floats;           /* as for quant_feedback_new */
	double tokens;                          /* the number of tokens that it is the mean of */
};
struct remake_covariance {
	/* For matrix `mat` of a tensor. false: nothing is known, or too little. */
	bool (*find)(void *ctx, const char *tensor, size_t mat, struct remake_known *known);
	enum ggu_status (*get)(void *ctx, const char *tensor, size_t mat, float *mean, struct ggu_error *err);
	void *ctx;
	double damp;                            /* below 0: chosen by type and tokens */
};
struct remake {
	size_t n;
	const struct ggu_tensor *const *t;
	const uint32_t *from;                   /* [n] types that read returns; NULL: those of t */
	const struct recipe_choice *choice;     /* [n] */
	/* reads a piece; called forward, tensor after tensor, by one thread at a time, or, with read_anywhere, by
	 * several threads at once, in any order */
	enum ggu_status (*read)(void *ctx, struct recode_piece *p, struct ggu_error *err);
	enum ggu_status (*finish)(void *ctx, struct recode_piece *p, struct ggu_error *err);    /* as in recode.h */
	void *read_ctx;
	bool read_anywhere;
	const struct ggu_importance *importance;        /* or NULL */
	const struct remake_covariance *covariance;     /* or NULL: no feedback */
	int effort;
	const struct quant_objective *objective;        /* NULL: the default of each type */
	bool keep_non_finite;
	bool measure;                           /* measure the errors that done gets */
	/* Called when tensor i is written. error: the relative error of its weights, weighted by importance; below 0 if
	 * it was not measured or the bytes were copied. n_unseen: the number of its matrices that no token reached. By
	 * one thread at a time, in order; or NULL. */
	void (*done)(void *ctx, size_t i, const struct recode_result *result, double error, size_t n_unseen);
	void *done_ctx;
};
/* Does tensor i's new type weigh errors by an importance matrix, if there is one? */
bool remake_is_weighed(const struct remake *r, size_t i);
/* Checks that each tensor can become its new type, and that the matrix is this model's and has what the types need:
 * GGU_ERR_UNSUPPORTED, GGU_ERR_RANGE and GGU_ERR_MISSING with the tensor's name. lacks, NULL or [n]: set for tensors
 * whose columns are weighted equally because the matrix has nothing about them. */
enum ggu_status remake_check(const struct remake *r, bool *lacks, struct ggu_error *err);
/* Copies `from` for the new file: with general.file_type, unless that is RECIPE_KEEP, and general.quantization_version;
 * without split.*, and without quantize.imatrix.* if a matrix is used. The caller frees the copy. */
enum ggu_status remake_meta(const struct remake *r, const struct ggu_meta *from, uint32_t file_type,
	struct ggu_meta **to, struct ggu_error *err);
/* Makes a writer with every tensor added. The caller frees it. */
enum ggu_status remake_writer(const struct remake *r, const struct ggu_meta *meta, struct ggu_writer **w,
	struct ggu_error *err);
/* Writes the whole file. */
enum ggu_status remake_write(const struct remake *r, struct ggu_writer *w, const struct ggu_sink *to,
	struct ggu_pool *pool, struct ggu_error *err);

#endif
