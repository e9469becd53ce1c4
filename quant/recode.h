/* SPDX-License-Identifier: MIT
 * recode.h - converts tensors' rows from one type to another: read, decode, encode, write.
 *
 * Chunks of rows pass over a belt (libgguf/belt.h), across tensors. So reading, work and writing overlap, small tensors
 * do not wait, and memory is bounded whatever the sizes of tensors. Bytes, messages and the reported error do not
 * depend on the number of threads. */
#ifndef QUANT_RECODE_H
#define QUANT_RECODE_H
#include "../libgguf/pool.h"
#include "quant.h"

struct recode_tensor {
	const char *name;
	/* types: quant_can_decode(from) and quant_can_encode(to), unless they are the same */
	uint32_t from, to;
	const uint64_t *ne;             /* [4]; rows are whole blocks of both types */
	/* [n_mat][ne[0]] or NULL; matrix m applies to rows m*ne[1].. to (m + 1)*ne[1] - 1, a single one to all */
	const float *importance;
	size_t n_mat;
	void *user;                     /* the caller's */
};
struct recode_result {
	uint64_t n_bad;                 /* weights that are not finite */
	uint64_t n_lost;                /* finite ones at or above recode_range(to), and F64 beyond a float's range */
	uint64_t bad_at, lost_at;       /* the first of each: its number in the tensor */
	double error, norm;             /* sum of importance*(decoded - x)^2, sum of importance*x^2 */
	double without, with;           /* of rows with feedback: the error that it lowers, without and with it */
};
/* The magnitude from which on a type may be unable to hold a weight: where F16 and BF16 round to infinity; where Q8_0's
 * scale does, which makes its block useless; where the scales of other types cannot follow (most are F16, so that 65504
 * is held in any block). Infinity: there is none. */
float recode_range(uint32_t type);
/* n bytes of tensor i from byte `at` on, to be put into `to` */
struct recode_piece {
	size_t i;
	uint64_t at;
	void *to;
	size_t n;
	void *later;                    /* what read leaves to finish; NULL: nothing */
};
struct recode_job {
	size_t n;                       /* tensors */
	int effort;
	const struct quant_objective *objective;        /* NULL: the default of each type */
	bool measure;                   /* fill error, norm, without and with */
	bool keep_non_finite;           /* otherwise weights that are not finite are refused if `to` is a block type */
	bool read_anywhere;             /* read may be called by several threads at once, in any order */
	/* of the following; all but read and finish are called by one thread at a time */
	void *ctx;
	/* fills *t, which read and end can use; tensors in order */
	enum ggu_status (*begin)(void *ctx, size_t i, struct recode_tensor *t, struct ggu_error *err);
	/* The factor of matrix `mat` of tensor i, which recode frees, or NULL: its rows have no feedback. May itself be
	 * NULL. */
	enum ggu_status (*factor)(void *ctx, size_t i, size_t mat, struct quant_feedback **q, struct ggu_error *err);
	/* reads a piece; forward and without gaps, unless read_anywhere */
	enum ggu_status (*read)(void *ctx, struct recode_piece *p, struct ggu_error *err);
	/* Computes what read, if it succeeded, has left in p->later, and frees that: once, from any thread, in any
	 * order. NULL if read leaves nothing. */
	enum ggu_status (*finish)(void *ctx, struct recode_piece *p, struct ggu_error *err);
	/* writes the next n bytes of the output */
	enum ggu_status (*write)(void *ctx, const void *p, size_t n, struct ggu_error *err);
	/* all of tensor i is written; tensors in order. After an error it is called too, with result NULL, for every
	 * tensor that was begun */
	void (*end)(void *ctx, size_t i, const struct recode_tensor *t, const struct recode_result *result);
};
/* Returns the first error in the order of the data: GGU_ERR_RANGE with the tensor's name, row and column for a weight
 * that is not finite or that no float can hold, or what a function of the job returned. */
enum ggu_status recode(struct ggu_pool *pool, const struct recode_job *job, struct ggu_error *err);

#endif
