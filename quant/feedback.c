/* SPDX-License-Identifier: MIT
 * feedback.c - encoding with error feedback: the columns after a column make up for its rounding error.
 *
 * With H the mean of x xT over a weight's inputs x, a row w stored as v adds (w - v) H (w - v)T to the squared error of
 * the output. H + damping = A D AT, where A has ones on its diagonal and zeros below it, and D is diagonal; so the
 * error is the sum over columns k of
 *
 *   D[k] * (target[k] - v[k])^2,  target[k] = w[k] + sum of (w[j] - v[j])*A[j][k], j < k
 *
 * and the best value for each column, given those before it, is the one nearest to its target. (The method is known as
 * GPTQ, Frantar et al. 2022, and LDLQ, Chee et al. 2023.) Scales are searched block by block on the targets at that
 * moment, with column k weighted by D[k].
 *
 * Columns are processed in groups of 256. What a group gets from the columns before it is a product with the factor as
 * Q8_0 (quant_mul); enc_feedback.h does what happens within a group. In the factor, each sum is one chain in the order
 * of columns: the bytes are the same for every number of threads and instruction set.
 *
 * Damping is a share of H's own diagonal: the more of it, the closer the result is to that of importances, which are
 * only the diagonal. Where the diagonal is nearly zero, a little of its mean is added.
 *
 * H may be given as blocks on its diagonal, which are then independent of each other. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/pool.h"
#include "../libgguf/size.h"
#include "../libgguf/types.h"
#include "../libgguf/zeros.h"
#include "enc.h"

enum { GROUP = FEEDBACK_GROUP, PANEL = FEEDBACK_PANEL, N_PANELS = GROUP/PANEL, ALIGN = 64 };

struct quant_feedback {
	atomic_int holders;
	size_t n, block;
	float *factor;                  /* [n][block]: A[j][k] at [k][j - first column of k's block], 0 for j >= k */
	uint8_t *codes;                 /* [n][code_bytes]: the part of the factor before the group of k, as CODES */
	size_t code_bytes;
	float *diagonal;                /* [n]: D */
	float *panels;                  /* for each group, enc_feedback.h's copy of the factor within it */
};
/* Floats of a group's panels: panel p has 8(p + 1) rows of 8. */
enum { PANELS_FLOATS = PANEL*PANEL*N_PANELS*(N_PANELS + 1)/2 };
static size_t panel_at(size_t p) { return (size_t)PANEL*PANEL*(p*(p + 1)/2); }

/* The type of the factor in products with groups. They take half as long as with floats, and the rounding adds less
 * than a thousandth to the error that is left. */
#define CODES GGU_TYPE_Q8_0
static size_t n_groups(size_t n) { return size_parts(n, GROUP); }
static size_t aligned(size_t bytes) { return size_up(bytes, ALIGN); }

/* ---- the factor ---- */

/* The lower triangle of a matrix with its columns and rows in reverse order: its Cholesky factor is A sqrt(D) reversed.
 * Floats are sufficient: damping keeps D at a share of the diagonal, and the sums' errors are a millionth of that. */
struct factor {
	float *a;                       /* [n][stride]: whole panels, and some padding for the cache */
	size_t n, stride, at;           /* at: first column of the current panel */
	float *panel;                   /* [at][FACTOR_PANEL]: the rows of the panel, transposed */
	struct factor_corner corner;
	struct ggu_pool *pool;
	/* the packed lower triangle to read, and what is added to its diagonal */
	const float *covariance;
	double damp, least;
	/* written column by column */
	struct quant_feedback *q;
	size_t first;
};
enum { SIDE = 64 };                     /* columns, and rows of them, that are transposed at a time */

static void run(struct factor *f, size_t n, size_t step, void (*fn)(void *, size_t, int))
{
	ggu_pool_run(f->pool, size_parts(n, step), fn, f);
}
static void fill_task(void *ctx, size_t task, int worker)
{
	const struct factor *f = ctx;
	const size_t from = task*SIDE, to = size_least(from + SIDE, f->n);
	float transposed[SIDE][SIDE] = { { 0 } };
	(void)worker;
	for (size_t j = 0; j < to; j += SIDE) {
		const size_t some = size_least(to - j, SIDE);
		for (size_t i = from; i < to; i++) {
			const float *row = f->covariance + i*(i + 1)/2 + j;
			for (size_t k = 0; k < some; k++) transposed[k][to - 1 - i] = j + k <= i ? row[k] : 0;
		}
		for (size_t k = 0; k < some; k++)
			memcpy(f->a + (f->n - 1 - j - k)*f->stride + f->n - to, transposed[k],
				(to - from)*sizeof **transposed);
	}
	for (size_t i = from; i < to; i++) {
		float *d = f->a + (f->n - 1 - i)*(f->stride + 1);
		*d = (float)(*d + f->damp*(double)*d + f->least);
	}
}
/* Columns of A, then their codes. */
static void empty_task(void *ctx, size_t task, int worker)
{
	const struct factor *f = ctx;
	struct quant_feedback *q = f->q;
	const size_t from = task*SIDE, n = size_least(f->n - from, SIDE), to = from + n;
	float d[SIDE] = { 0 }, transposed[SIDE][SIDE], *column = q->factor + (f->first + from)*q->block;
	(void)worker;
	for (size_t k = 0; k < n; k++) {
		d[k] = f->a[(f->n - 1 - from - k)*(f->stride + 1)];
		q->diagonal[f->first + from + k] = d[k]*d[k];
	}
	for (size_t j = 0; j < to; j += SIDE) {
		const size_t some = size_least(to - j, SIDE);
		for (size_t i = 0; i < some; i++) {
			const float *row = f->a + (f->n - 1 - j - i)*f->stride + f->n - 1 - from;
			for (size_t k = 0; k < n; k++) transposed[k][i] = row[0 - k];
		}
		for (size_t k = 0; k < n; k++)
			for (size_t i = 0; i < some; i++)
				column[k*q->block + j + i] = j + i < from + k ? transposed[k][i]/d[k] : 0;
	}
	for (size_t k = 0; k < n; k++)
		quant_encode(CODES, NULL, column + k*q->block, NULL, 1, from/GROUP*GROUP, QUANT_EFFORT_DEFAULT,
			q->codes + (f->first + from + k)*q->code_bytes);
}
static void under_task(void *ctx, size_t task, int worker)
{
	struct factor *f = ctx;
	const size_t from = f->at + (task + 1)*FACTOR_PANEL, rows = size_least(f->n - from, FACTOR_PANEL);
	(void)worker;
	quant_enc_table->factor.take(f->a + from*f->stride, f->stride, rows, f->at, f->panel);
	quant_enc_table->factor.solve(f->a + from*f->stride, f->stride, rows, f->at, &f->corner);
}
/* Copies so many columns of the panel's rows to f->panel. */
enum { PACKED = 256, CORNER_ROWS = 16 };
static void pack_task(void *ctx, size_t task, int worker)
{
	enum { STRIP = 16 };
	struct factor *f = ctx;
	const float *rows = f->a + f->at*f->stride;
	const size_t width = size_least(f->n - f->at, FACTOR_PANEL), end = size_least(f->at, (task + 1)*PACKED);
	(void)worker;
	for (size_t p = task*PACKED; p < end; p += STRIP)
		for (size_t c = 0; c < FACTOR_PANEL; c++)
			for (size_t i = p; i < p + STRIP; i++)
				f->panel[i*FACTOR_PANEL + c] = c < width ? rows[c*f->stride + i] : 0;
}
static void corner_task(void *ctx, size_t task, int worker)
{
	struct factor *f = ctx;
	const size_t from = f->at + task*CORNER_ROWS;
	(void)worker;
	quant_enc_table->factor.take(f->a + from*f->stride, f->stride, size_least(f->n - from, CORNER_ROWS), f->at,
		f->panel);
}
static bool factorise(struct factor *f)
{
	for (f->at = 0; f->at < f->n; f->at += FACTOR_PANEL) {
		const size_t width = size_least(f->n - f->at, FACTOR_PANEL);
		run(f, f->at, PACKED, pack_task);
		run(f, width, CORNER_ROWS, corner_task);
		if (!quant_enc_table->factor.corner(f->a + f->at*f->stride, f->stride, width, f->at, &f->corner))
			return false;
		run(f, f->n - f->at - width, FACTOR_PANEL, under_task);
	}
	return true;
}

#define DAMP_LEAST 0.01
/* Factors the block of n columns from `first` on; its covariance is a packed lower triangle. */
static enum ggu_status factor_block(struct quant_feedback *q, size_t first, size_t n, const float *covariance,
	double damp, double least_of, struct ggu_pool *pool)
{
	struct factor f = { .n = n, .stride = size_up(n, FACTOR_PANEL) + 16, .pool = pool,
		.covariance = covariance, .damp = damp, .least = least_of, .q = q, .first = first };
	bool ok;
	f.a = ggu_zeros(n, f.stride*sizeof *f.a);
	f.panel = malloc(n*FACTOR_PANEL*sizeof *f.panel);
	if (!f.a || !f.panel) {
		free(f.a); free(f.panel);
		return GGU_ERR_NOMEM;
	}
	run(&f, n, SIDE, fill_task);
	ok = factorise(&f);
	if (ok) run(&f, n, SIDE, empty_task);
	free(f.a); free(f.panel);
	return ok ? GGU_OK : GGU_ERR_RANGE;
}
/* The mean of the diagonal, or 1 if that is unusable. */
static double mean_diagonal(size_t n, size_t block, const float *covariance)
{
	double sum = 0;
	for (size_t k = 0; k < n; k++) {
		covariance += k%block;
		sum += *covariance++;
	}
	return sum > 0 && sum < INFINITY ? sum/(double)n : 1;
}
static void copy_panels(struct quant_feedback *q)
{
	for (size_t k = 0; k < q->n; k++) {
		const size_t group = k/GROUP, p = k%GROUP/PANEL, start = group*GROUP % q->block;
		float *panel = q->panels + group*PANELS_FLOATS + panel_at(p);
		for (size_t j = 0; j < PANEL*(p + 1); j++) panel[PANEL*j + k%PANEL] = q->factor[k*q->block + start + j];
	}
}

enum ggu_status quant_feedback_new(struct quant_feedback **out, size_t n, size_t block, const float *covariance,
	double damp, struct ggu_pool *pool, struct ggu_error *err)
{
	struct quant_feedback *q;
	enum ggu_status s = GGU_OK;
	double least;
	if (!block || n % PANEL || (block < n && block % GROUP))
		return ggu_fail(err, GGU_ERR_RANGE, GGU_NO_OFFSET, "",
			"%zu columns in blocks of %zu: not multiples of %d and %d", n, block, PANEL, GROUP);
	q = calloc(1, sizeof *q);
	if (q) {
		q->n = n;
		q->block = size_least(block, n);
		atomic_init(&q->holders, 1);
		q->factor = ggu_zeros(n, q->block*sizeof *q->factor);
		q->code_bytes = size_parts(q->block, 32)*ggu_type_info(CODES)->block_bytes;
		q->codes = ggu_zeros(n, q->code_bytes);
		q->diagonal = malloc(n*sizeof *q->diagonal);
		q->panels = calloc(n_groups(n), PANELS_FLOATS*sizeof *q->panels);
	}
	if (!q || !q->factor || !q->codes || !q->diagonal || !q->panels) {
		quant_feedback_free(q);
		return ggu_no_memory(err);
	}
	least = DAMP_LEAST*mean_diagonal(n, q->block, covariance);
	for (size_t first = 0; first < n && !s; first += q->block) {
		size_t width = size_least(n - first, q->block);
		s = factor_block(q, first, width, covariance, damp, least, pool);
		covariance += width*(width + 1)/2;
	}
	if (s) {
		quant_feedback_free(q);
		return ggu_fail(err, s, GGU_NO_OFFSET, "", s == GGU_ERR_NOMEM ? "out of memory" :
			"the covariance is not positive: more damping is needed");
	}
	copy_panels(q);
	*out = q;
	return GGU_OK;
}
struct quant_feedback *quant_feedback_share(struct quant_feedback *q)
{
	if (q) atomic_fetch_add(&q->holders, 1);
	return q;
}
void quant_feedback_free(struct quant_feedback *q)
{
	if (!q || atomic_fetch_sub(&q->holders, 1) > 1) return;
	free(q->factor); free(q->codes); free(q->diagonal); free(q->panels);
	free(q);
}

/* ---- rows ---- */

/* The fewer bits a type has, the larger the errors that are passed on, and the less the covariance, an estimate from
 * some text, should be trusted in detail. If a block's scale is lifted, damping is larger (TRIALS.md has the figures).
 * Other types: 0.3.
 *
 * once: the lift for a single pass. Feedback takes most of a lift back, so there is more of it, except where targets
 * are corrected, which restores sizes too.
 *
 * in_vain: signs alone, or IQ1_S, leave such an error that a layer gets inputs its covariance does not know. A pass
 * with feedback makes a model worse, or not reliably better, unless layers are fitted to what the layers before them
 * have lost. */
static const struct usual { uint32_t type; double damp; float lift, once; bool in_vain; } usual_for[] = {
	{ GGU_TYPE_IQ1_S, 1, 1.3f, 1, true }, { GGU_TYPE_IQ1_M, 1, 1.7f, 1, false },
	{ GGU_TYPE_TQ1_0, 1, 1.3f, 1, false }, { GGU_TYPE_TQ2_0, 1, 1.3f, 1, false },
	{ GGU_TYPE_Q1_0, 1, 1, 1, true }, { GGU_TYPE_Q2_0, 1, 1, 1, false },
	{ GGU_TYPE_Q3_K, 0.3, 1, 5, false }, { GGU_TYPE_IQ3_XXS, 0.3, 1, 3, false },
};
/* The fewer tokens a covariance has, the less it should be trusted: the error on other texts of the same kind is
 * smallest if damping grows with columns/tokens like this (ENCODERS.md). */
#define FEW_TOKENS 2.0
static const struct usual *usual_of(uint32_t type)
{
	static const struct usual others = { .damp = 0.3, .lift = 1, .once = 1 };
	for (size_t i = 0; i < sizeof usual_for/sizeof *usual_for; i++)
		if (usual_for[i].type == type) return &usual_for[i];
	return &others;
}
double quant_feedback_damp(uint32_t type, size_t n, double tokens)
{
	return usual_of(type)->damp + FEW_TOKENS*(double)n/tokens;
}

struct quant_objective quant_corrected_objective(uint32_t type)
{
	struct quant_objective o = quant_objective_default(type, true);
	o.lift *= usual_of(type)->lift;
	return o;
}

bool quant_feedback_pays(uint32_t type)
{
	return !usual_of(type)->in_vain;
}

bool quant_can_feed_back(uint32_t type)
{
	return type < GGU_TYPE_COUNT && quant_enc_table->coder[type];
}

/* Parts of the caller's memory. */
struct work { float *rest, *target, *weight; double *error; void *act, *mul, *group; };
static size_t work_bytes(const struct quant_feedback *q, size_t rows, struct work *w, char *base)
{
	const size_t exact = quant_act_bytes(quant_act_of(GGU_TYPE_F32), rows, q->block),
		codes = quant_act_most_bytes(quant_act_of(CODES), rows, size_up(q->block, 32));
	const size_t part[] = { rows*q->n*sizeof(float), rows*GROUP*sizeof(float), q->n*sizeof(float),
		rows*sizeof(double),
		size_most(exact, codes), quant_mul_work_bytes(q->block), FEEDBACK_WORK };
	size_t at[sizeof part/sizeof *part], sum = 0;
	for (size_t i = 0; i < sizeof part/sizeof *part; i++) {
		at[i] = sum;
		sum += aligned(part[i]);
	}
	if (w) *w = (struct work){ (void *)(base + at[0]), (void *)(base + at[1]), (void *)(base + at[2]),
		(void *)(base + at[3]), base + at[4], base + at[5], base + at[6] };
	return sum;
}
size_t quant_feedback_work_bytes(const struct quant_feedback *q, size_t rows)
{
	const size_t bytes = work_bytes(q, rows, NULL, NULL), solve = q->n*SOLVE_LANES*sizeof(double);
	return size_most(bytes, solve);
}

/* w->target = what the columns of the block before `first` add to those of the group of `cols` at `first`. exact:
 * computed with the factor itself, and including what its own columns add, as the factor is 0 from the diagonal on */
static void from_before(const struct quant_feedback *q, const struct work *w, size_t rows, size_t first, size_t cols,
	bool exact)
{
	const size_t before = first % q->block + (exact ? cols : 0);
	const uint32_t type = exact ? GGU_TYPE_F32 : CODES;
	const struct quant_mul m = { .type = type, .n_tokens = rows, .n_out = cols, .n_in = before,
		.w = exact ? (void *)(q->factor + first*q->block) : (void *)(q->codes + first*q->code_bytes),
		.w_stride = exact ? q->block*sizeof *q->factor : q->code_bytes, .act = w->act, .y = w->target,
		.y_stride = GROUP };
	memset(w->target, 0, rows*GROUP*sizeof *w->target);
	if (!before) return;
	quant_act_pack(quant_act_of(type), w->rest + first - first % q->block, q->n, rows, before, 0, rows, w->act);
	quant_mul(&m, 0, rows, 0, cols, w->mul);
}
/* w->error[row] = w->rest (H + damping) w->restT for each of `rows` */
static void errors_of(const struct quant_feedback *q, const struct work *w, size_t rows)
{
	memset(w->error, 0, rows*sizeof *w->error);
	for (size_t first = 0; first < q->n; first += GROUP) {
		const size_t cols = size_least(q->n - first, GROUP);
		from_before(q, w, rows, first, cols, true);
		for (size_t row = 0; row < rows; row++)
			for (size_t k = 0; k < cols; k++) {
				double e = (double)w->target[row*GROUP + k] + w->rest[row*q->n + first + k];
				w->error[row] += q->diagonal[first + k]*e*e;
			}
	}
}

/* Encodes a row that is entirely on the type's lattice. Zeros are on every lattice, and searches keep them. */
static bool exact_row(uint32_t type, const float *x, size_t n_blocks, void *dst)
{
	const struct ggu_type_info *t = ggu_type_info(type);
	const size_t n = t->block_weights;
	size_t found = 0;
	for (size_t b = 0; b < n_blocks; b++) {
		size_t zeros = 0;
		if (enc_exact_blocks(type, x + b*n, 1, NULL)) { found++; continue; }
		while (zeros < n && x[b*n + zeros] == 0) zeros++;
		if (zeros < n) return false;
	}
	if (!found) return false;
	quant_encode(type, NULL, x, NULL, 1, n_blocks*n, QUANT_EFFORT_MIN, dst);
	return true;
}
enum ggu_status quant_feedback_encode(const struct quant_feedback *q, uint32_t type, const struct quant_objective *o,
	const float *x, size_t rows, int effort, void *dst, void *work, double *error)
{
	struct quant_objective usual = quant_corrected_objective(type);
	const struct ggu_type_info *t = ggu_type_info(type);
	struct how how;
	struct work w;
	size_t n_blocks, row_bytes;
	double sum = 0;
	if (!quant_can_feed_back(type)) return GGU_ERR_UNSUPPORTED;
	if (q->n % t->block_weights) return GGU_ERR_RANGE;
	n_blocks = q->n/t->block_weights;
	row_bytes = n_blocks*t->block_bytes;
	usual.lift *= usual_of(type)->once;
	if (!o) o = &usual;
	how = (struct how){ effort < QUANT_EFFORT_MIN ? 0 : effort > QUANT_EFFORT_MAX ? QUANT_EFFORT_MAX - 1 :
		effort - 1, o->prior, o->lift };
	work_bytes(q, rows, &w, work);
	quant_weigh(o, q->diagonal, q->n, w.weight);
	for (size_t first = 0; first < q->n; first += GROUP) {
		const size_t cols = size_least(q->n - first, GROUP);
		struct feedback_group g = { .cols = (int)cols, .stride = q->n, .weight = w.weight + first,
			.dst_stride = row_bytes, .work = w.group };
		for (size_t p = 0; p < cols/PANEL; p++)
			g.panels[p] = q->panels + first/GROUP*PANELS_FLOATS + panel_at(p);
		from_before(q, &w, rows, first, cols, false);
		for (size_t row = 0; row < rows; row += FEEDBACK_ROWS) {
			g.rows = (int)size_least(rows - row, FEEDBACK_ROWS);
			g.x = x + row*q->n + first;
			g.target = w.target + row*GROUP;
			g.rest = w.rest + row*q->n + first;
			g.dst = (char *)dst + row*row_bytes + first/t->block_weights*t->block_bytes;
			quant_enc_table->feedback(quant_enc_table->coder[type], &how, &g);
		}
	}
	if (error) errors_of(q, &w, rows);
	for (size_t row = 0; row < rows; row++) {
		/* what is on the lattice already has no error to make up for */
		if (!exact_row(type, x + row*q->n, n_blocks, (char *)dst + row*row_bytes) && error) sum += w.error[row];
	}
	if (error) *error = sum;
	return GGU_OK;
}

void quant_feedback_solve(const struct quant_feedback *q, float *b, size_t rows, void *work)
{
	double *v = work;
	for (size_t row = 0; row < rows; row += SOLVE_LANES) {
		const size_t n = size_least(rows - row, SOLVE_LANES);
		memset(v, 0, q->n*SOLVE_LANES*sizeof *v);
		for (size_t l = 0; l < n; l++)
			for (size_t k = 0; k < q->n; k++) v[k*SOLVE_LANES + l] = (double)b[(row + l)*q->n + k];
		quant_enc_table->solve(q->factor, q->diagonal, q->n, q->block, v);
		for (size_t l = 0; l < n; l++)
			for (size_t k = 0; k < q->n; k++) b[(row + l)*q->n + k] = (float)v[k*SOLVE_LANES + l];
	}
}

double quant_feedback_error(const struct quant_feedback *q, const float *x, const float *y, size_t rows, void *work)
{
	struct work w;
	double sum = 0;
	work_bytes(q, rows, &w, work);
	for (size_t i = 0; i < rows*q->n; i++) w.rest[i] = x[i] - y[i];
	errors_of(q, &w, rows);
	for (size_t row = 0; row < rows; row++) sum += w.error[row];
	return sum;
}
