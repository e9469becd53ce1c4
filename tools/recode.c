/* SPDX-License-Identifier: MIT
 * recode.c - see recode.h. Importance may differ by matrix (expert), so that no chunk crosses from one to the
 * next. Sums of errors are made in double for each chunk and added in the order of chunks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../quant/quant.h"
#include "msg.h"
#include "recode.h"

enum {
	CHUNK = 65536,          /* weights: 256 KiB of floats, half of a small second-level cache */
	CHUNKS_PER_THREAD = 4,
	COPY_BYTES = 1 << 20,
};
struct chunk {
	size_t row, rows, mat;  /* rows counted within the batch */
	uint64_t n_bad, n_lost;
	size_t bad_at;          /* of the first, from the start of the chunk */
	double error, norm;
};
struct recode {
	struct ggu_pool *pool;
	size_t n_chunks, work_bytes;
	struct chunk *chunks;
	float **work;           /* [threads]: a chunk decoded */
	unsigned char *in, *out;
	size_t in_bytes, out_bytes;
	/* the batch in hand */
	const struct recode_job *job;
	size_t in_row, out_row; /* bytes of a row */
};

static void *need(void *p)
{
	if (!p) msg_die("out of memory");
	return p;
}
static void grow(void *buffer, size_t *have, size_t want)
{
	void **p = buffer;
	if (*have >= want) return;
	free(*p);
	*p = need(malloc(want));
	*have = want;
}

struct recode *recode_new(struct ggu_pool *pool)
{
	struct recode *r = need(calloc(1, sizeof *r));
	r->pool = pool;
	r->n_chunks = (size_t)ggu_pool_size(pool)*CHUNKS_PER_THREAD;
	r->chunks = need(calloc(r->n_chunks, sizeof *r->chunks));
	r->work = need(calloc((size_t)ggu_pool_size(pool), sizeof *r->work));
	return r;
}
void recode_free(struct recode *r)
{
	if (!r) return;
	for (int i = 0; i < ggu_pool_size(r->pool); i++) free(r->work[i]);
	free(r->work); free(r->chunks); free(r->in); free(r->out);
	free(r);
}

/* Counts the weights that are not finite, and those that f16 could not hold if `half`. */
static void inspect(struct chunk *c, const float *x, size_t n, bool half)
{
	const uint32_t limit = half ? 0x477ff000 : 0x7f800000;  /* 65520 becomes infinite */
	for (size_t i = 0; i < n; i += 64) {
		size_t k = n - i < 64 ? n - i : 64;
		uint32_t above = 0, u;
		for (size_t j = 0; j < k; j++) {
			memcpy(&u, x + i + j, 4);
			above |= (u & 0x7fffffff) >= limit;
		}
		if (!above) continue;
		for (size_t j = i; j < i + k; j++) {
			memcpy(&u, x + j, 4);
			u &= 0x7fffffff;
			if (u >= limit && u < 0x7f800000) c->n_lost++;
			if (u >= 0x7f800000 && c->n_bad++ == 0) c->bad_at = j;
		}
	}
}
static void measure(struct chunk *c, const struct recode_job *job, const float *importance, const float *x, const float *y)
{
	size_t cols = (size_t)job->ne[0];
	for (size_t r = 0; r < c->rows; r++)
		for (size_t j = 0; j < cols; j++) {
			double a = x[r*cols + j], d = y[r*cols + j] - a, w = importance ? importance[j] : 1;
			if (!isfinite(a) || !isfinite(d)) continue;
			c->error += w*d*d;
			c->norm += w*a*a;
		}
}
static void do_chunk(void *ctx, size_t task, int worker)
{
	struct recode *r = ctx;
	const struct recode_job *job = r->job;
	struct chunk *c = &r->chunks[task];
	size_t cols = (size_t)job->ne[0], n = c->rows*cols;
	const float *imp = job->importance ? job->importance + (job->n_mat > 1 ? c->mat : 0)*cols : NULL;
	float *x = r->work[worker];
	unsigned char *out = r->out + c->row*r->out_row;
	bool floats = ggu_type_info(job->to)->kind == GGU_KIND_FLOAT;
	c->n_bad = c->n_lost = 0;
	c->error = c->norm = 0;
	quant_decode(job->from, r->in + c->row*r->in_row, x, n);
	inspect(c, x, n, job->to == GGU_TYPE_F16);
	if (c->n_bad && !floats && !job->keep_non_finite) return;
	quant_encode(job->to, x, imp, c->rows, cols, job->effort, out);
	if (job->measure) {
		quant_decode(job->to, out, x + n, n);
		measure(c, job, imp, x, x + n);
	}
}

/* The next chunks from row `row` on; returns the rows they cover. */
static size_t cut(struct recode *r, uint64_t row, uint64_t rows, size_t per_chunk, size_t *n)
{
	size_t covered = 0;
	for (*n = 0; *n < r->n_chunks && row < rows; (*n)++) {
		uint64_t in_mat = r->job->ne[1] - row % r->job->ne[1];
		size_t k = per_chunk < in_mat ? per_chunk : (size_t)in_mat;
		r->chunks[*n] = (struct chunk){ .row = covered, .rows = k, .mat = (size_t)(row / r->job->ne[1]) };
		covered += k;
		row += k;
	}
	return covered;
}
static enum ggu_status copy(struct recode *r, const struct recode_job *job, uint64_t bytes, struct ggu_error *err)
{
	enum ggu_status s = GGU_OK;
	grow(&r->in, &r->in_bytes, COPY_BYTES);
	for (uint64_t at = 0; at < bytes && s == GGU_OK;) {
		size_t n = bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES;
		s = job->read(job->read_ctx, at, r->in, n, err);
		if (s == GGU_OK) s = job->write(job->write_ctx, r->in, n, err);
		at += n;
	}
	return s;
}
static enum ggu_status refuse(const struct recode_job *job, uint64_t row, const struct chunk *c, struct ggu_error *err)
{
	uint64_t cols = job->ne[0];
	return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, job->name,
		"the weight in row %llu, column %llu is not finite", (unsigned long long)(row + c->row + c->bad_at/cols),
		(unsigned long long)(c->bad_at % cols));
}

enum ggu_status recode(struct recode *r, const struct recode_job *job, struct recode_result *result, struct ggu_error *err)
{
	uint64_t cols = job->ne[0], rows = job->ne[1]*job->ne[2]*job->ne[3], in_row, out_row;
	size_t per_chunk, work_bytes;
	enum ggu_status s;
	*result = (struct recode_result){ 0 };
	if (!cols || !rows) return GGU_OK;
	if (!ggu_type_bytes(job->from, cols, &in_row) || !ggu_type_bytes(job->to, cols, &out_row) || cols > SIZE_MAX/64)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, job->name, "rows of %llu weights", (unsigned long long)cols);
	if (job->from == job->to) return copy(r, job, in_row*rows, err);
	per_chunk = cols < CHUNK ? (size_t)(CHUNK/cols) : 1;
	r->job = job;
	r->in_row = (size_t)in_row; r->out_row = (size_t)out_row;
	grow(&r->in, &r->in_bytes, r->n_chunks*per_chunk*r->in_row);
	grow(&r->out, &r->out_bytes, r->n_chunks*per_chunk*r->out_row);
	work_bytes = per_chunk*(size_t)cols*sizeof(float)*2;
	for (int i = 0; i < ggu_pool_size(r->pool); i++) {
		size_t have = r->work_bytes;
		grow(&r->work[i], &have, work_bytes);
	}
	if (r->work_bytes < work_bytes) r->work_bytes = work_bytes;
	for (uint64_t row = 0; row < rows;) {
		size_t n, k = cut(r, row, rows, per_chunk, &n);
		s = job->read(job->read_ctx, row*in_row, r->in, k*r->in_row, err);
		if (s != GGU_OK) return s;
		ggu_pool_run(r->pool, n, do_chunk, r);
		for (size_t i = 0; i < n; i++) {
			const struct chunk *c = &r->chunks[i];
			if (c->n_bad && ggu_type_info(job->to)->kind != GGU_KIND_FLOAT && !job->keep_non_finite) return refuse(job, row, c, err);
			result->n_bad += c->n_bad; result->n_lost += c->n_lost;
			result->error += c->error; result->norm += c->norm;
		}
		s = job->write(job->write_ctx, r->out, k*r->out_row, err);
		if (s != GGU_OK) return s;
		row += k;
	}
	return GGU_OK;
}
