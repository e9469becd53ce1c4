/* SPDX-License-Identifier: MIT
 * recode.c - see recode.h. A chunk is some whole rows of one tensor, and of one matrix (expert), as importances may
 * differ between them. For types that are rounded, a chunk goes through L1 in groups of rows. An encoder that searches
 * gets the chunk at once, since it transposes importances once for all its rows. With error feedback (quant_feedback) a
 * chunk has so many rows that the factor is seldom read. Sums of errors are computed in double for each chunk and added
 * in the order of chunks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/belt.h"
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "recode.h"
#include "vec.h"

enum {
	CHUNK = 65536,          /* weights: 256 KiB of floats, half of a small L2 */
	GROUP = 4096,           /* weights: 16 KiB of floats */
	COPY_BYTES = 1 << 18,   /* of a tensor that stays as it is */
	FACTOR_ROWS = 128,      /* with feedback, at least: more would not save time (quant.h) */
};
struct buffer { unsigned char *p; size_t bytes; };
struct chunk {
	struct passing *of;
	uint64_t at, in_bytes, out_bytes;       /* at: byte of the tensor */
	uint64_t row;                           /* of the tensor */
	size_t rows;                            /* 0: bytes are copied */
	bool last;                              /* of its tensor */
	struct buffer in, out;
	void *later;                            /* what is left of reading */
	struct quant_feedback *feedback;        /* or NULL */
	struct recode_result result;            /* bad_at, lost_at: from the start of the chunk */
	size_t n_none, none_at;                 /* weights that are not finite as floats, the first of them */
	enum ggu_status status;
	struct ggu_error err;
};
/* A tensor on the belt. */
struct passing {
	size_t i;
	struct recode_tensor t;
	struct recode_result sum;
	uint64_t rows, in_row, out_row;
	bool refuses;                           /* weights that are not finite as floats */
	float *weights;                         /* of quant_weigh, as t.importance, or NULL */
};
struct recode {
	const struct recode_job *job;
	struct chunk *chunks;                   /* by slot */
	/* [n_slots + 1], tensor i at i % (n_slots + 1): every tensor begun and not ended has a chunk on the belt,
	 * except one that is between two chunks */
	struct passing *passing;
	size_t n_slots;
	struct buffer *work;                    /* by worker: decoded weights, twice the room if errors are measured */
	/* by worker: work of feedback, then blocks without it if errors are measured */
	struct buffer *more;
	/* at the taking station */
	size_t begun;                           /* tensors */
	struct passing *now;                    /* the tensor that is being cut; NULL: the next one must begin */
	uint64_t at;                            /* its next byte */
	struct quant_feedback *factor;          /* of its current matrix, or NULL */
	bool failed;
	/* at the putting station */
	size_t ended;                           /* tensors */
	enum ggu_status status;
	struct ggu_error *err;
};

static void *room(struct buffer *b, size_t bytes)
{
	if (b->bytes < bytes) {
		free(b->p);
		b->bytes = 0;
		b->p = malloc(bytes);
		if (!b->p) return NULL;
		b->bytes = bytes;
	}
	return b->p;
}

/* ---- work ---- */

float recode_range(uint32_t type)
{
	switch (type) {
	case GGU_TYPE_F32: case GGU_TYPE_F64: case GGU_TYPE_MXFP4: return INFINITY;
	case GGU_TYPE_BF16: return 0x1.ffp127f;
	case GGU_TYPE_Q8_0: return 65520.0f*127;
	case GGU_TYPE_NVFP4: return 6*448;      /* e2m1 times e4m3 */
	default: return 65520;                  /* what f16 rounds to infinity */
	}
}
/* Is weight i of the chunk a finite F64? */
static bool finite_double(const struct chunk *c, size_t i)
{
	double d;
	if (c->of->t.from != GGU_TYPE_F64) return false;
	memcpy(&d, c->in.p + i*sizeof d, sizeof d);
	return isfinite(d);
}
/* Counts the weights that are not finite, and those that may be too large for the type. base: the place of x in the
 * chunk. */
static void inspect(struct chunk *c, const float *x, size_t n, size_t base, float limit)
{
	struct recode_result *r = &c->result;
	for (size_t i = 0; (i += vec_beyond(x + i, n - i, limit)) < n; i++) {
		const bool none = !isfinite(x[i]), lost = !none || finite_double(c, base + i);
		if (none && c->n_none++ == 0) c->none_at = base + i;
		if (none && lost) r->error = INFINITY;
		if (lost && r->n_lost++ == 0) r->lost_at = base + i;
		if (!lost && r->n_bad++ == 0) r->bad_at = base + i;
	}
}
/* Fails: a chunk that must become blocks has a weight that is not finite as a float. */
static enum ggu_status refuse(const struct chunk *c, struct ggu_error *err)
{
	const struct recode_tensor *t = &c->of->t;
	return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "the weight in row %llu, column %llu is %s",
		(unsigned long long)(c->row + c->none_at/t->ne[0]), (unsigned long long)(c->none_at % t->ne[0]),
		finite_double(c, c->none_at) ? "beyond the range of f32" : "not finite");
}
/* Weights that are not finite do not count. If a finite one became infinite or NaN, the error is infinite, unless its
 * importance is 0. */
static void measure(struct recode_result *r, const float *importance, size_t rows, size_t cols, const float *x,
	const float *y)
{
	for (size_t i = 0; i < rows; i++, x += cols, y += cols) {
		double error = 0, norm = 0;
		vec_loss(x, y, importance, cols, &error, &norm);
		if (!isfinite(error) || !isfinite(norm)) {
			error = norm = 0;
			for (size_t j = 0; j < cols; j++) {
				if (!isfinite(x[j]) || (importance && !(importance[j] > 0))) continue;
				vec_loss(x + j, isfinite(y[j]) ? y + j : x + j, importance ? importance + j : NULL, 1,
					&error, &norm);
				if (!isfinite(y[j])) error = INFINITY;
			}
		}
		r->error += error;
		r->norm += norm;
	}
}
/* Encodes k rows with feedback; y: room for as many decoded rows, if errors are measured. */
static enum ggu_status feed_back(struct recode *r, struct chunk *c, int worker, const float *weights, const float *x,
	float *y, size_t k, unsigned char *out)
{
	const uint32_t to = c->of->t.to;
	const size_t cols = (size_t)c->of->t.ne[0], bytes = size_up(quant_feedback_work_bytes(c->feedback, k), 64);
	unsigned char *work = room(&r->more[worker], bytes + 64 + (r->job->measure ? k*(size_t)c->of->out_row : 0));
	double with = 0;
	enum ggu_status s;
	if (!work) return GGU_ERR_NOMEM;
	work += 63 - ((uintptr_t)work + 63) % 64;
	if (r->job->measure) {
		quant_encode(to, r->job->objective, x, weights, k, cols, r->job->effort, work + bytes);
		quant_decode(to, work + bytes, y, k*cols);
		c->result.without += quant_feedback_error(c->feedback, x, y, k, work);
	}
	s = quant_feedback_encode(c->feedback, to, r->job->objective, x, k, r->job->effort, out, work,
		r->job->measure ? &with : NULL);
	c->result.with += with;
	return s;
}
static enum ggu_status convert_chunk(struct recode *r, struct chunk *c, int worker, struct ggu_error *err)
{
	const struct recode_tensor *t = &c->of->t;
	const bool searched = c->feedback || (ggu_type_info(t->to)->kind == GGU_KIND_BLOCK && t->to != GGU_TYPE_Q8_0);
	const size_t cols = (size_t)t->ne[0], group = searched ? c->rows : cols < GROUP ? GROUP/cols : 1;
	const size_t mat = t->n_mat > 1 ? (size_t)(c->row/t->ne[1])*cols : 0;
	const float *imp = t->importance ? t->importance + mat : NULL;
	const float *weights = c->of->weights ? c->of->weights + mat : NULL;
	float *x = room(&r->work[worker], group*cols*sizeof *x*(r->job->measure ? 2 : 1));
	if (!x || !room(&c->out, (size_t)c->out_bytes))
		return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, t->name, "out of memory");
	for (size_t row = 0; row < c->rows; row += group) {
		size_t k = size_least(c->rows - row, group);
		unsigned char *out = c->out.p + row*(size_t)c->of->out_row;
		quant_decode(t->from, c->in.p + row*(size_t)c->of->in_row, x, k*cols);
		inspect(c, x, k*cols, row*cols, recode_range(t->to));
		if (c->n_none && c->of->refuses) return refuse(c, err);
		if (!c->feedback) quant_encode(t->to, r->job->objective, x, weights, k, cols, r->job->effort, out);
		else if (feed_back(r, c, worker, weights, x, x + group*cols, k, out))
			return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, t->name, "out of memory");
		if (!r->job->measure) continue;
		quant_decode(t->to, out, x + group*cols, k*cols);
		measure(&c->result, imp, k, cols, x, x + group*cols);
	}
	return GGU_OK;
}
static struct recode_piece piece_of(const struct chunk *c)
{
	return (struct recode_piece){ c->of->i, c->at, c->in.p, (size_t)c->in_bytes, c->later };
}
static enum ggu_status read_chunk(const struct recode *r, struct chunk *c)
{
	struct recode_piece p;
	enum ggu_status s;
	if (!room(&c->in, (size_t)c->in_bytes))
		return ggu_fail(&c->err, GGU_ERR_NOMEM, GGU_NO_OFFSET, c->of->t.name, "out of memory");
	p = piece_of(c);
	s = r->job->read(r->job->ctx, &p, &c->err);
	if (s == GGU_OK) c->later = p.later;
	return s;
}
static enum ggu_status finish_chunk(const struct recode *r, struct chunk *c)
{
	struct recode_piece p = piece_of(c);
	c->later = NULL;
	return r->job->finish(r->job->ctx, &p, &c->err);
}
static void work(void *ctx, size_t slot, int worker)
{
	struct recode *r = ctx;
	struct chunk *c = &r->chunks[slot];
	if (c->status == GGU_OK && c->in_bytes && r->job->read_anywhere) c->status = read_chunk(r, c);
	if (c->status == GGU_OK && c->later) c->status = finish_chunk(r, c);
	if (c->status == GGU_OK && c->rows) c->status = convert_chunk(r, c, worker, &c->err);
}

/* ---- take ---- */

static enum ggu_status weigh(const struct recode *r, struct passing *p, struct ggu_error *err)
{
	const struct recode_tensor *t = &p->t;
	const struct quant_objective usual = quant_objective_default(t->to, true);
	const struct quant_objective *o = r->job->objective ? r->job->objective : &usual;
	const size_t cols = (size_t)t->ne[0];
	p->weights = calloc(t->n_mat, cols*sizeof *p->weights);
	if (!p->weights) return ggu_fail(err, GGU_ERR_NOMEM, GGU_NO_OFFSET, t->name, "out of memory");
	for (size_t k = 0; k < t->n_mat; k++) quant_weigh(o, t->importance + k*cols, cols, p->weights + k*cols);
	return GGU_OK;
}
static enum ggu_status begin(struct recode *r, struct passing *p, struct ggu_error *err)
{
	struct recode_tensor *t = &p->t;
	enum ggu_status s;
	*p = (struct passing){ .i = r->begun };
	s = r->job->begin(r->job->ctx, p->i, t, err);
	if (s != GGU_OK) return s;
	r->begun++;
	p->rows = t->ne[1]*t->ne[2]*t->ne[3];
	if (!t->ne[0]) p->rows = 0;
	if (!p->rows) return GGU_OK;
	if (!ggu_type_bytes(t->from, t->ne[0], &p->in_row) || !ggu_type_bytes(t->to, t->ne[0], &p->out_row) ||
		t->ne[0] > SIZE_MAX/64)
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, t->name, "rows of %llu weights are too long",
			(unsigned long long)t->ne[0]);
	p->refuses = ggu_type_info(t->to)->kind != GGU_KIND_FLOAT && !r->job->keep_non_finite;
	return t->importance ? weigh(r, p, err) : GGU_OK;
}
/* Gets the factor of the matrix that begins at `row`. */
static enum ggu_status next_factor(struct recode *r, uint64_t row, struct ggu_error *err)
{
	const struct passing *p = r->now;
	quant_feedback_free(r->factor);
	r->factor = NULL;
	return r->job->factor ? r->job->factor(r->job->ctx, p->i, (size_t)(row/p->t.ne[1]), &r->factor, err) : GGU_OK;
}
/* The next chunk of the tensor at the taking station. */
static enum ggu_status cut(struct recode *r, struct chunk *c)
{
	const struct passing *p = r->now;
	const struct recode_tensor *t = &p->t;
	uint64_t bytes = p->rows*p->in_row;
	c->at = r->at;
	if (t->from == t->to) {
		c->in_bytes = bytes - r->at < COPY_BYTES ? bytes - r->at : COPY_BYTES;
	} else if (p->rows) {
		uint64_t in_mat, k = t->ne[0] < CHUNK ? CHUNK/t->ne[0] : 1;
		c->row = r->at/p->in_row;
		in_mat = t->ne[1] - c->row % t->ne[1];
		if (in_mat == t->ne[1]) {
			enum ggu_status s = next_factor(r, c->row, &c->err);
			if (s != GGU_OK) return s;
		}
		c->feedback = quant_feedback_share(r->factor);
		if (c->feedback && k < FACTOR_ROWS) k = FACTOR_ROWS;
		c->rows = (size_t)(k < in_mat ? k : in_mat);
		c->in_bytes = c->rows*p->in_row;
		c->out_bytes = c->rows*p->out_row;
	}
	r->at += c->in_bytes;
	c->last = r->at == bytes;
	return GGU_OK;
}
static bool take(void *ctx, size_t slot)
{
	struct recode *r = ctx;
	struct chunk *c = &r->chunks[slot];
	if (r->failed || (!r->now && r->begun == r->job->n)) return false;
	quant_feedback_free(c->feedback);
	*c = (struct chunk){ .in = c->in, .out = c->out };
	if (!r->now) {
		r->now = &r->passing[r->begun % (r->n_slots + 1)];
		r->at = 0;
		c->status = begin(r, r->now, &c->err);
	}
	c->of = r->now;
	if (c->status == GGU_OK) c->status = cut(r, c);
	if (c->status == GGU_OK && c->in_bytes && !r->job->read_anywhere) c->status = read_chunk(r, c);
	r->failed = c->status != GGU_OK;
	if (c->last) r->now = NULL;
	return true;
}

/* ---- put ---- */

static void end(struct recode *r, struct passing *p, const struct recode_result *result)
{
	free(p->weights);
	p->weights = NULL;
	r->job->end(r->job->ctx, p->i, &p->t, result);
	r->ended++;
}

/* first: the number of the part's first weight. */
static void add(struct recode_result *sum, const struct recode_result *part, uint64_t first)
{
	if (!sum->n_bad) sum->bad_at = first + part->bad_at;
	if (!sum->n_lost) sum->lost_at = first + part->lost_at;
	sum->n_bad += part->n_bad;
	sum->n_lost += part->n_lost;
	sum->error += part->error;
	sum->norm += part->norm;
	sum->without += part->without;
	sum->with += part->with;
}
static bool put(void *ctx, size_t slot)
{
	struct recode *r = ctx;
	struct chunk *c = &r->chunks[slot];
	struct passing *p = c->of;
	quant_feedback_free(c->feedback);
	c->feedback = NULL;
	if (c->status == GGU_OK && c->in_bytes)
		c->status = c->rows ? r->job->write(r->job->ctx, c->out.p, (size_t)c->out_bytes, &c->err)
			: r->job->write(r->job->ctx, c->in.p, (size_t)c->in_bytes, &c->err);
	if (c->status != GGU_OK) {
		r->status = c->status;
		if (r->err) *r->err = c->err;
		return false;
	}
	add(&p->sum, &c->result, c->row*p->t.ne[0]);
	if (c->last) end(r, p, &p->sum);
	return true;
}

enum ggu_status recode(struct ggu_pool *pool, const struct recode_job *job, struct ggu_error *err)
{
	static const struct ggu_belt stations = { take, work, put };
	size_t n = ggu_belt_slots(pool), threads = (size_t)ggu_pool_size(pool);
	struct recode r = { .job = job, .n_slots = n, .err = err };
	r.chunks = calloc(n, sizeof *r.chunks);
	r.passing = calloc(n + 1, sizeof *r.passing);
	r.work = calloc(threads, sizeof *r.work);
	r.more = calloc(threads, sizeof *r.more);
	if (!r.chunks || !r.passing || !r.work || !r.more || ggu_belt_run(pool, n, &stations, &r) != GGU_OK)
		r.status = ggu_no_memory(err);
	while (r.ended < r.begun) end(&r, &r.passing[r.ended % (n + 1)], NULL);
	for (size_t i = 0; r.chunks && i < n; i++) {
		free(r.chunks[i].in.p);
		free(r.chunks[i].out.p);
		quant_feedback_free(r.chunks[i].feedback);
	}
	for (size_t i = 0; r.work && r.more && i < threads; i++) { free(r.work[i].p); free(r.more[i].p); }
	quant_feedback_free(r.factor);
	free(r.chunks); free(r.passing); free(r.work); free(r.more);
	return r.status;
}
