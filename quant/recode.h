/* SPDX-License-Identifier: MIT
 * recode.h - tensors' rows from one type to another: read, decode, encode, write.
 *
 * Rows are taken in chunks over a belt (libgguf/belt.h), across tensors: reading, work and writing overlap, small
 * tensors wait for nobody, memory is bounded whatever the tensors' sizes, and bytes, messages and the error that is
 * reported do not depend on the number of threads. */
#ifndef QUANT_RECODE_H
#define QUANT_RECODE_H
#include "../libgguf/pool.h"
#include "quant.h"

struct recode_tensor {
	const char *name;
	/* types; from: quant_can_decode, to: quant_can_encode, unless they are the same */
	uint32_t from, to;
	const uint64_t *ne;             /* [4]; rows are whole blocks of both types */
	/* [n_mat][ne[0]] or NULL; matrix m is for rows m*ne[1].. up to the next, of one: all */
	const float *importance;
	size_t n_mat;
	void *user;                     /* the caller's */
};
struct recode_result {
	uint64_t n_bad;                 /* weights that are not finite */
	uint64_t n_lost;                /* finite ones at or over recode_range(to), F64 beyond float's range too */
	uint64_t bad_at, lost_at;       /* the first of either: its number in the tensor */
	double error, norm;             /* sum of importance*(decoded - x)^2, sum of importance*x^2 */
	double without, with;           /* of rows with feedback: the error it lowers, without it and with it */
};
/* The magnitude from which on a type may not hold a weight: where F16 and BF16 round to infinity, and Q8_0's scale
 * does, which makes its block useless; where the scales of the other types cannot follow (most are F16, so that 65504
 * is held whatever its block). Infinity: there is none. */
float recode_range(uint32_t type);
struct recode_job {
	size_t n;                       /* tensors */
	int effort;
	const struct quant_objective *objective;        /* NULL: the default of each type */
	bool measure;                   /* fill error, norm, without and with */
	bool keep_non_finite;           /* else weights that are not finite are refused when `to` is a block type */
	bool read_anywhere;             /* read may be called by several threads at once, in any order */
	void *ctx;                      /* of the following; each but read is called by one thread at a time */
	/* fills *t, which read and end then see; tensors in order */
	enum ggu_status (*begin)(void *ctx, size_t i, struct recode_tensor *t, struct ggu_error *err);
	/* The factor of matrix `mat` of tensor i, which recode frees, or NULL: its rows have no feedback. May be
	 * NULL. */
	enum ggu_status (*factor)(void *ctx, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err);
	/* n bytes of tensor i from byte `at` on; forward and without gaps, unless read_anywhere */
	enum ggu_status (*read)(void *ctx, size_t i, uint64_t at, void *to, size_t n, struct ggu_error *err);
	/* the next n bytes of the output */
	enum ggu_status (*write)(void *ctx, const void *p, size_t n, struct ggu_error *err);
	/* all of tensor i is written; tensors in order. Called after an error too, result then NULL, for every tensor
	 * that was begun. */
	void (*end)(void *ctx, size_t i, const struct recode_tensor *t, const struct recode_result *result);
};
/* The first error in the order of the data: GGU_ERR_RANGE with the tensor's name, row and column for a weight that is
 * not finite or that no float can hold, or what a function of the job returned. */
enum ggu_status recode(struct ggu_pool *pool, const struct recode_job *job, struct ggu_error *err);

#endif
