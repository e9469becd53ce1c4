/* SPDX-License-Identifier: MIT
 * recode.h - a tensor's rows from one type to another: read, decode, encode, write. Programs only.
 *
 * Rows are taken in chunks that fit a core's cache; a batch of chunks is read at once, spread over the threads,
 * and written in order. So memory is bounded, whatever the tensor's size, and the bytes do not depend on the
 * number of threads. */
#ifndef TOOLS_RECODE_H
#define TOOLS_RECODE_H
#include "../libgguf/ggu.h"

struct recode;
/* pool must outlive it. Exits 2 out of memory. */
struct recode *recode_new(struct ggu_pool *pool);
void recode_free(struct recode *r);

struct recode_job {
	const char *name;
	uint32_t from, to;              /* types; from: quant_can_decode, to: quant_can_encode, unless they are the same */
	const uint64_t *ne;             /* [4]; rows are whole blocks of both types */
	int effort;
	const float *importance;        /* [n_mat][ne[0]] or NULL; matrix m is for rows m*ne[1].. up to the next, of one: all */
	size_t n_mat;
	bool measure;                   /* fill error and norm */
	bool keep_non_finite;           /* else weights that are not finite are refused when `to` is a block type */
	/* n bytes from byte `at` of the tensor on; called forward, without gaps */
	enum ggu_status (*read)(void *ctx, uint64_t at, void *to, size_t n, struct ggu_error *err);
	void *read_ctx;
	enum ggu_status (*write)(void *ctx, const void *p, size_t n, struct ggu_error *err);
	void *write_ctx;
};
struct recode_result {
	uint64_t n_bad;                 /* weights that are not finite */
	uint64_t n_lost;                /* finite ones that became infinite: out of the range of F16 */
	double error, norm;             /* sum of importance*(decoded - x)^2, sum of importance*x^2 */
};
/* GGU_ERR_RANGE with the tensor's name, row and column for a weight that is not finite. */
enum ggu_status recode(struct recode *r, const struct recode_job *job, struct recode_result *result, struct ggu_error *err);

#endif
