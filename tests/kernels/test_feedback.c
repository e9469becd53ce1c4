/* SPDX-License-Identifier: MIT
 * test_feedback.c - encoding with error feedback: for every type it leaves less error in the metric of the covariance
 * than encoding without, and reports the error that it leaves; the bytes are those of portable C a row at a time,
 * whatever the rows at once, the threads and the instruction set; between guard pages. And they are those of
 * golden_feedback.inc on every machine: FEEDBACK_GOLDEN_PRINT=1 prints that file. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/pool.h"
#include "../../libgguf/types.h"
#include "../../quant/quant.h"
#include "../lib/kerntest.h"

enum { MAX_COLS = 768, ROWS = 37, TOKENS = 2048 };
static const double damp = 0.05;

/* The covariance of inputs that share a few causes, as blocks on the diagonal; full: [cols][cols] */
static void covariance(size_t cols, size_t block, double *full, float *packed)
{
	enum { CAUSES = 24 };
	static float mix[MAX_COLS][CAUSES], size[MAX_COLS];
	double *x = kt_buffer(cols*sizeof *x);
	for (size_t j = 0; j < cols; j++) {
		size[j] = 0.05f + fabsf(kt_bell());
		for (int c = 0; c < CAUSES; c++) mix[j][c] = kt_bell();
	}
	memset(full, 0, cols*cols*sizeof *full);
	for (int t = 0; t < TOKENS; t++) {
		float cause[CAUSES];
		for (int c = 0; c < CAUSES; c++) cause[c] = kt_bell();
		for (size_t j = 0; j < cols; j++) {
			x[j] = 0.3*kt_bell();
			for (int c = 0; c < CAUSES; c++) x[j] += mix[j][c]*cause[c];
			x[j] *= size[j];
		}
		for (size_t i = 0; i < cols; i++)
			for (size_t j = i/block*block; j <= i; j++) full[i*cols + j] += x[i]*x[j]/TOKENS;
	}
	for (size_t i = 0; i < cols; i++)
		for (size_t j = i/block*block; j <= i; j++) {
			*packed++ = (float)full[i*cols + j];
			full[j*cols + i] = full[i*cols + j] = (float)full[i*cols + j];
		}
	kt_free(x, cols*sizeof *x);
}
/* What is added to column i of the diagonal: a share of itself, and a little of the mean. */
static double damping(const double *full, size_t cols, size_t i)
{
	double mean = 0;
	for (size_t k = 0; k < cols; k++) mean += full[k*cols + k]/(double)cols;
	return damp*full[i*cols + i] + 0.01*mean;
}
/* The sum of e (H + damping) eT over rows, the slow way. */
static double error_of(const double *full, size_t cols, const float *x, const float *y, size_t rows)
{
	double e[MAX_COLS], he[MAX_COLS], added[MAX_COLS], sum = 0;
	for (size_t i = 0; i < cols; i++) added[i] = damping(full, cols, i);
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < cols; i++) {
			e[i] = (double)x[r*cols + i] - y[r*cols + i];
			he[i] = added[i]*e[i];
		}
		for (size_t j = 0; j < cols; j++)
			for (size_t i = 0; i < cols; i++) he[i] += full[j*cols + i]*e[j];
		for (size_t i = 0; i < cols; i++) sum += e[i]*he[i];
	}
	return sum;
}

/* alone: portable C's factor, made by one thread; with: each instance's, made by three, used for all types */
enum { MAX_INSTANCES = 16 };
struct problem {
	size_t cols, block;
	double *full;
	float *packed, *x, *y;
	struct quant_feedback *alone, *with[MAX_INSTANCES];
};
static struct quant_feedback *factor(const struct problem *p, struct ggu_pool *pool)
{
	struct quant_feedback *q = NULL;
	if (quant_feedback_new(&q, p->cols, p->block, p->packed, damp, pool, NULL)) kt_fail("no factor");
	return q;
}
static void encode(const struct quant_feedback *q, const struct ggu_type_info *t, const struct problem *p, size_t rows,
	size_t at_once,
	uint8_t *dst, double *error)
{
	size_t bytes = quant_feedback_work_bytes(q, at_once), row = p->cols/t->block_weights*t->block_bytes;
	void *work = aligned_alloc(64, (bytes + 63)/64*64);
	*error = 0;
	for (size_t r = 0; r < rows; r += at_once) {
		double e = 0;
		if (quant_feedback_encode(q, t->id, NULL, p->x + r*p->cols, rows - r < at_once ? rows - r : at_once,
			QUANT_EFFORT_DEFAULT,
			dst + r*row, work, &e)) kt_fail("refused");
		*error += e;
	}
	free(work);
}
static double error_without(const struct ggu_type_info *t, const struct problem *p, uint8_t *dst)
{
	const struct quant_objective usual = quant_objective_default(t->id, true);
	float w[MAX_COLS];
	for (size_t j = 0; j < p->cols; j++) w[j] = (float)p->full[j*p->cols + j];
	quant_weigh(&usual, w, p->cols, w);
	quant_encode(t->id, NULL, p->x, w, ROWS, p->cols, QUANT_EFFORT_DEFAULT, dst);
	quant_decode(t->id, dst, p->y, ROWS*p->cols);
	return error_of(p->full, p->cols, p->x, p->y, ROWS);
}
/* quant_feedback_solve: its result times H + damping is what it was given. */
static void check_solve(const struct problem *p)
{
	enum { SOLVED = 11 };
	struct quant_feedback *q = factor(p, NULL);
	const size_t bytes = quant_feedback_work_bytes(q, SOLVED);
	void *work = aligned_alloc(64, (bytes + 63)/64*64);
	double added[MAX_COLS], worst = 0;
	kt_name("solved for, %zu columns, blocks of %zu", p->cols, p->block);
	for (size_t i = 0; i < p->cols; i++) added[i] = damping(p->full, p->cols, i);
	for (size_t i = 0; i < SOLVED*p->cols; i++) p->y[i] = p->x[i] = kt_bell();
	quant_feedback_solve(q, p->y, SOLVED, work);
	for (size_t r = 0; r < SOLVED; r++)
		for (size_t i = 0; i < p->cols; i++) {
			double s = added[i]*p->y[r*p->cols + i] - p->x[r*p->cols + i];
			for (size_t j = 0; j < p->cols; j++) s += p->full[i*p->cols + j]*p->y[r*p->cols + j];
			if (fabs(s) > worst) worst = fabs(s);
		}
	if (!(worst < 1e-3)) kt_fail("off by %g", worst);
	free(work);
	quant_feedback_free(q);
	kt_result();
}
static void check_type(const struct ggu_type_info *t, const struct problem *p)
{
	size_t bytes = p->cols/t->block_weights*t->block_bytes*ROWS;
	uint8_t *want = kt_buffer(bytes), *got = kt_buffer(bytes);
	const char *const *isa = quant_available();
	double told, again, left, without;
	kt_name("%s with feedback, %zu columns, blocks of %zu", t->name, p->cols, p->block);
	kt_fill_floats(p->x, ROWS*p->cols, KT_MIXED);
	for (size_t i = 0; i < ROWS*p->cols; i++) p->x[i] = 0.05f*kt_bell();
	quant_select("c", NULL);
	without = error_without(t, p, want);
	encode(p->alone, t, p, ROWS, 1, want, &told);
	quant_decode(t->id, want, p->y, ROWS*p->cols);
	left = error_of(p->full, p->cols, p->x, p->y, ROWS);
	if (!(fabs(told - left) <= 1e-4*left)) kt_fail("it tells of an error of %g, and leaves %g", told, left);
	if (!(left < without*0.98)) kt_fail("an error of %g, without feedback %g", left, without);
	for (size_t i = 0; isa[i]; i++) {
		quant_select(isa[i], NULL);
		encode(p->with[i], t, p, ROWS, ROWS, got, &again);
		if (memcmp(want, got, bytes) != 0) kt_fail("%s writes other bytes", isa[i]);
		if (!(fabs(again - told) <= 1e-9*told))
			kt_fail("%s tells of another error, %g and not %g", isa[i], again, told);
	}
	kt_free(want, bytes); kt_free(got, bytes);
	kt_result();
}
/* Rows of a decoded file stay as they are, even if some of their blocks are zeros. */
static void check_lattice(const struct ggu_type_info *t, const struct problem *p)
{
	const size_t n = ROWS*p->cols, bytes = n/t->block_weights*t->block_bytes;
	uint8_t *dst = kt_buffer(bytes);
	double e;
	kt_name("%s with feedback encodes rows that it decoded without error, zeros among them", t->name);
	for (size_t i = 0; i < n; i++) p->x[i] = i/t->block_weights % 3 == 1 ? 0 : 0.05f*kt_bell();
	quant_select(NULL, NULL);
	quant_encode(t->id, NULL, p->x, NULL, ROWS, p->cols, QUANT_EFFORT_DEFAULT, dst);
	quant_decode(t->id, dst, p->x, n);
	encode(p->alone, t, p, ROWS, ROWS, dst, &e);
	quant_decode(t->id, dst, p->y, n);
	for (size_t i = 0; i < n && !kt_failed(); i++)
		if (p->x[i] != p->y[i]) kt_fail("weight %zu: %a became %a", i, p->x[i], p->y[i]);
	if (e != 0) kt_fail("it tells of an error of %g", e);
	kt_free(dst, bytes);
	kt_result();
}
static const struct { const char *type; uint64_t hash; } golden[] = {
#include "golden_feedback.inc"
};
/* FNV-1a */
static uint64_t hash_of(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;
	for (size_t i = 0; i < n; i++) h = (h ^ p[i])*0x100000001b3;
	return h;
}
/* One problem, the same on every machine. */
static void check_golden(const struct ggu_type_info *t, const struct problem *p)
{
	size_t bytes = p->cols/t->block_weights*t->block_bytes*ROWS, i = 0;
	uint8_t *got = kt_buffer(bytes);
	const size_t n = sizeof golden/sizeof *golden;
	double error;
	kt_name("%s with feedback: the bytes of golden_feedback.inc", t->name);
	quant_select(NULL, NULL);
	encode(p->alone, t, p, ROWS, ROWS, got, &error);
	if (getenv("FEEDBACK_GOLDEN_PRINT")) printf("\t{ \"%s\", 0x%016" PRIx64 " },\n", t->name, hash_of(got, bytes));
	while (i < n && strcmp(golden[i].type, t->name)) i++;
	if (i == n) kt_fail("the type is not there");
	else if (golden[i].hash != hash_of(got, bytes)) kt_fail("%016" PRIx64, hash_of(got, bytes));
	kt_free(got, bytes);
	kt_result();
}
/* Whatever the weights and the covariance, the outcome is a result or an error. */
static void check_hostile(const struct ggu_type_info *t, const struct problem *p)
{
	size_t bytes = p->cols/t->block_weights*t->block_bytes*ROWS, floats = p->cols*(p->cols + 1)/2;
	uint8_t *dst = kt_buffer(bytes);
	struct ggu_pool *pool = ggu_pool_new(1);
	struct quant_feedback *q;
	struct problem zero = *p;
	double e;
	kt_name("%s with feedback: strange weights", t->name);
	zero.packed = kt_buffer(floats*sizeof(float));
	memset(zero.packed, 0, floats*sizeof(float));
	for (int kind = 0; kind < KT_FLOATS; kind++) {
		kt_fill_floats(p->x, ROWS*p->cols, kind);
		q = factor(kind % 2 ? p : &zero, pool);
		encode(q, t, p, ROWS, ROWS, dst, &e);
		quant_decode(t->id, dst, p->y, ROWS*p->cols);
		for (size_t i = 0; i < ROWS*p->cols && kind != KT_STRANGE && t->id != GGU_TYPE_Q8_0; i++)
			if (!isfinite(p->y[i]))
				kt_fail("%a became %a, weights: %s", p->x[i], p->y[i], kt_floats_name[kind]);
		quant_feedback_free(q);
	}
	memset(p->x, 0, ROWS*p->cols*sizeof *p->x);
	q = factor(p, pool);
	encode(q, t, p, ROWS, ROWS, dst, &e);
	quant_decode(t->id, dst, p->y, ROWS*p->cols);
	for (size_t i = 0; i < ROWS*p->cols; i++)
		if (p->y[i] != 0) kt_fail("0 became %a", p->y[i]);
	quant_feedback_free(q);
	kt_fill_floats(zero.packed, floats, KT_STRANGE);
	q = NULL;
	if (quant_feedback_new(&q, p->cols, p->block, zero.packed, damp, pool, NULL) == GGU_OK) quant_feedback_free(q);
	kt_free(zero.packed, floats*sizeof(float));
	ggu_pool_free(pool);
	kt_free(dst, bytes);
	kt_result();
}

static struct problem problem_new(size_t cols, size_t block)
{
	struct problem p = { .cols = cols, .block = block };
	struct ggu_pool *one = ggu_pool_new(1), *three = ggu_pool_new(3);
	const char *const *isa = quant_available();
	p.full = malloc(cols*cols*sizeof *p.full);
	p.packed = malloc(cols*cols*sizeof *p.packed);
	p.x = malloc(ROWS*cols*sizeof *p.x);
	p.y = malloc(ROWS*cols*sizeof *p.y);
	if (!p.full || !p.packed || !p.x || !p.y) abort();
	covariance(cols, block, p.full, p.packed);
	quant_select("c", NULL);
	p.alone = factor(&p, one);
	for (size_t i = 0; isa[i]; i++) {
		if (i == MAX_INSTANCES) abort();
		quant_select(isa[i], NULL);
		p.with[i] = factor(&p, three);
	}
	ggu_pool_free(one); ggu_pool_free(three);
	return p;
}
static void problem_free(struct problem *p)
{
	quant_feedback_free(p->alone);
	for (size_t i = 0; i < MAX_INSTANCES; i++) quant_feedback_free(p->with[i]);
	free(p->full); free(p->packed); free(p->x); free(p->y);
}

int main(int argc, char **argv)
{
	static const size_t shape[][2] = { { 256, 256 }, { 768, 768 }, { 768, 512 } };
	struct problem p;
	kt_begin(argc, argv);
	for (size_t i = getenv("FEEDBACK_GOLDEN_PRINT") ? 3 : 0; i < 3; i++) {
		p = problem_new(shape[i][0], shape[i][1]);
		check_solve(&p);
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++) {
			if (!ggu_type_info(id) || !quant_can_feed_back(id)) continue;
			check_type(ggu_type_info(id), &p);
			check_lattice(ggu_type_info(id), &p);
			if (!i) check_hostile(ggu_type_info(id), &p);
		}
		problem_free(&p);
	}
	kt_reseed(1);
	p = problem_new(768, 512);
	for (size_t i = 0; i < ROWS*p.cols; i++) p.x[i] = 0.05f*kt_bell();
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
		if (ggu_type_info(id) && quant_can_feed_back(id)) check_golden(ggu_type_info(id), &p);
	problem_free(&p);
	return kt_end();
}
