/* SPDX-License-Identifier: MIT
 * test_imatrix.c - importance matrices: sums in token order, both forms, merging, malformed files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>
#include "../lib/slow_gram.h"
#include "../../imatrix/imatrix_internal.h"
#include "../../libgguf/pool.h"
#include "../../quant/quant.h"

enum { N = 700, T = 37 };               /* columns: enough for several tasks of the pool */
static float x[T][N];

static void fill(void)
{
	uint32_t s = 12345;
	for (int t = 0; t < T; t++)
		for (int j = 0; j < N; j++) {
			s = s*1664525u + 1013904223u;
			x[t][j] = (float)((int32_t)s)*1e-7f;
		}
}

static struct imatrix *made(size_t batch, int threads)
{
	struct imatrix *im = imatrix_new();
	struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
	for (size_t t = 0; t < T; t += batch) {
		size_t n = T - t < batch ? T - t : batch;
		assert_int_equal(imatrix_add(im, "blk.0.b.weight", 1, 0, N, x[t], N, n, p, NULL), GGU_OK);
		assert_int_equal(imatrix_add(im, "blk.0.a.weight", 3, 1, N/2, x[t], N, n, p, NULL), GGU_OK);
	}
	assert_int_equal(imatrix_add_dataset(im, "/home/somebody/text"), GGU_OK);
	imatrix_set_chunks(im, 2, 20);
	ggu_pool_free(p);
	return im;
}

static void same(const struct imatrix *a, const struct imatrix *b)
{
	assert_int_equal(imatrix_count(a), imatrix_count(b));
	for (size_t i = 0; i < imatrix_count(a); i++) {
		const struct imatrix_entry *e = imatrix_at(a, i), *f = imatrix_at(b, i);
		assert_string_equal(e->name, f->name);
		assert_int_equal(e->n_in, f->n_in);
		assert_int_equal(e->n_mat, f->n_mat);
		assert_memory_equal(e->sums, f->sums, e->n_in*e->n_mat*sizeof(double));
		assert_memory_equal(e->counts, f->counts, e->n_mat*sizeof(double));
	}
}

/* Writes the bytes to a new file; returns its name. */
static char name[] = "/tmp/test_imatrix.XXXXXX";
static int temp(void)
{
	int fd;
	strcpy(name + sizeof name - 7, "XXXXXX");
	fd = mkstemp(name);
	assert_true(fd >= 0);
	return fd;
}

static void sums_do_not_depend_on_batches_or_threads(void **state)
{
	struct imatrix *a = made(T, 0), *b = made(1, 3), *c = made(5, 2);
	const struct imatrix_entry *e = imatrix_find(a, "blk.0.b.weight");
	(void)state;
	same(a, b);
	same(a, c);
	assert_string_equal(imatrix_at(a, 0)->name, "blk.0.a.weight");
	for (int j = 0; j < N; j++) {
		/* half a unit of double's last place, and what long double's own rounding may add */
		long double sum = 0;
		for (int t = 0; t < T; t++) sum += (double)x[t][j]*x[t][j];
		assert_true(fabsl((long double)e->sums[j] - sum) <= sum*0x1.02p-53L);
	}
	assert_true(e->counts[0] == T);
	imatrix_free(a); imatrix_free(b); imatrix_free(c);
}

static void importance_is_one_where_nothing_was_seen(void **state)
{
	struct imatrix *a = made(T, 0);
	const struct imatrix_entry *e = imatrix_find(a, "blk.0.a.weight");
	float w[N/2];
	(void)state;
	assert_false(imatrix_importance(e, 0, w));
	assert_true(w[0] == 1 && w[N/2 - 1] == 1);
	assert_true(imatrix_importance(e, 1, w));
	assert_true(w[3] == (float)(e->sums[N/2 + 3]/T));
	assert_null(imatrix_find(a, "blk.0.c.weight"));
	imatrix_free(a);
}

static void a_value_that_is_not_finite_keeps_nothing(void **state)
{
	struct imatrix *a = made(T, 0), *b = made(T, 0);
	struct ggu_error err;
	float bad[2][N];
	(void)state;
	memcpy(bad, x, sizeof bad);
	bad[1][N - 1] = NAN;
	assert_int_equal(imatrix_add(a, "blk.0.b.weight", 1, 0, N, bad[0], N, 2, NULL, &err), GGU_ERR_FORMAT);
	assert_string_equal(err.where, "blk.0.b.weight");
	assert_int_equal(imatrix_add(a, "blk.0.new.weight", 1, 0, N, bad[1], N, 1, NULL, &err), GGU_ERR_FORMAT);
	assert_int_equal(imatrix_add(a, "blk.0.b.weight", 1, 0, N - 1, x[0], N, 2, NULL, &err), GGU_ERR_FORMAT);
	assert_int_equal(imatrix_add(a, "blk.0.b.weight", 1, 1, N, x[0], N, 2, NULL, &err), GGU_ERR_RANGE);
	same(a, b);
	imatrix_free(a); imatrix_free(b);
}

static void a_checkpoint_is_exact(void **state)
{
	struct imatrix *a = made(T, 0), *b;
	int fd = temp();
	(void)state;
	assert_int_equal(imatrix_write_checkpoint(a, "tag 1", fd, NULL), GGU_OK);
	close(fd);
	assert_int_equal(imatrix_read(&b, name, NULL), GGU_OK);
	same(a, b);
	assert_string_equal(imatrix_tag(b), "tag 1");
	assert_int_equal(imatrix_chunks(b), 2);
	assert_int_equal(imatrix_chunk_tokens(b), 20);
	assert_string_equal(imatrix_dataset(b, 0), "text");
	unlink(name);
	imatrix_free(a); imatrix_free(b);
}

/* The matrix of tokens from..to - 1, as another process would deliver it. */
static struct imatrix *part(int from, int to)
{
	struct imatrix *im = imatrix_new();
	int fd = temp();
	assert_int_equal(imatrix_add(im, "blk.0.b.weight", 1, 0, N, x[from], N, (size_t)(to - from), NULL, NULL),
		GGU_OK);
	imatrix_set_chunks(im, (uint64_t)(to - from), 1);
	assert_int_equal(imatrix_write_checkpoint(im, "part", fd, NULL), GGU_OK);
	close(fd);
	imatrix_free(im);
	assert_int_equal(imatrix_read(&im, name, NULL), GGU_OK);
	unlink(name);
	return im;
}
/* Sums in double alone would differ: `plain` counts the columns where they do. */
static void parts_add_up_to_the_whole(void **state)
{
	struct imatrix *whole = part(0, T);
	int plain = 0;
	(void)state;
	for (int cut = 1; cut < T; cut++) {
		struct imatrix *a = part(0, cut), *b = part(cut, T), *sum = imatrix_new();
		assert_int_equal(imatrix_merge(sum, b, NULL), GGU_OK);
		assert_int_equal(imatrix_merge(sum, a, NULL), GGU_OK);
		same(sum, whole);
		assert_int_equal(imatrix_chunks(sum), T);
		for (int j = 0; j < N; j++) {
			double all = 0, first = 0, second = 0;
			for (int t = 0; t < T; t++) {
				double v = (double)x[t][j]*x[t][j];
				all += v;
				*(t < cut ? &first : &second) += v;
			}
			plain += all != second + first;
		}
		imatrix_free(a); imatrix_free(b); imatrix_free(sum);
	}
	assert_true(plain > 1000);
	imatrix_free(whole);
}

static void both_forms_keep_the_importance(void **state)
{
	struct imatrix *a = imatrix_new(), *b;
	float v[N], w[N];
	(void)state;
	assert_int_equal(imatrix_add(a, "blk.0.b.weight", 1, 0, N, x[0], N, T, NULL, NULL), GGU_OK);
	imatrix_set_chunks(a, 2, 20);
	imatrix_importance(imatrix_at(a, 0), 0, v);
	for (int dat = 0; dat < 2; dat++) {
		int fd = temp();
		assert_int_equal(dat ? imatrix_write_dat(a, fd, NULL) : imatrix_write_gguf(a, fd, NULL), GGU_OK);
		close(fd);
		assert_int_equal(imatrix_read(&b, name, NULL), GGU_OK);
		imatrix_importance(imatrix_at(b, 0), 0, w);
		for (int j = 0; j < N; j++) assert_true(fabsf(v[j] - w[j]) <= 2e-7f*v[j]);
		assert_true(imatrix_at(b, 0)->counts[0] == (dat ? 2 : T));
		assert_string_equal(imatrix_tag(b), "");
		unlink(name);
		imatrix_free(b);
	}
	imatrix_free(a);
}

static void merging_adds_sums_and_counts(void **state)
{
	struct imatrix *a = made(T, 0), *b = made(3, 0), *other = imatrix_new();
	const struct imatrix_entry *e = imatrix_find(a, "blk.0.b.weight");
	double before = e->sums[5];
	struct ggu_error err;
	(void)state;
	assert_int_equal(imatrix_merge(a, b, &err), GGU_OK);
	assert_true(e->sums[5] == 2*before && e->counts[0] == 2*T);
	assert_int_equal(imatrix_chunks(a), 4);
	assert_int_equal(imatrix_n_datasets(a), 1);
	assert_int_equal(imatrix_add(other, "blk.0.b.weight", 1, 0, 8, x[0], N, 1, NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_merge(a, other, &err), GGU_ERR_FORMAT);
	imatrix_free(a); imatrix_free(b); imatrix_free(other);
}

/* A valid file of the old form, cut at every byte, and with every count made absurd, is refused and never read past its
 * end. */
static void malformed_old_files_are_refused(void **state)
{
	struct imatrix *a = imatrix_new(), *b;
	struct ggu_error err;
	unsigned char good[256];
	int fd = temp();
	ssize_t n;
	(void)state;
	assert_int_equal(imatrix_add(a, "blk.0.b.weight", 1, 0, 8, x[0], N, T, NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_add_dataset(a, "t"), GGU_OK);
	assert_int_equal(imatrix_write_dat(a, fd, NULL), GGU_OK);
	imatrix_free(a);
	n = pread(fd, good, sizeof good, 0);
	assert_int_equal(n, 4 + 4 + 14 + 4 + 4 + 32 + 4 + 4 + 1);
	for (ssize_t cut = 0; cut < n; cut++) {
		if (cut == n - 9) continue;             /* without the trailer: the oldest files end there */
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, good, (size_t)cut, 0), cut);
		assert_int_not_equal(imatrix_read(&b, name, &err), GGU_OK);
		assert_true(err.offset <= (uint64_t)n);
	}
	static const int counts[] = { 0, 4, 22, 26, 66 };
	static const unsigned char absurd[] = { 0x7f, 0xff };
	for (size_t i = 0; i < sizeof counts/sizeof *counts; i++)
		for (int k = 0; k < 2; k++) {
			unsigned char bad[256];
			memcpy(bad, good, (size_t)n);
			bad[counts[i] + 3] = absurd[k];
			assert_int_equal(pwrite(fd, bad, (size_t)n, 0), n);
			assert_int_equal(ftruncate(fd, n), 0);
			if (i == 2 && !k) continue;     /* many numbers of calls are possible */
			assert_int_not_equal(imatrix_read(&b, name, &err), GGU_OK);
		}
	close(fd);
	unlink(name);
}

/* ---- covariances ---- */

enum { C = 300, WINDOW = 600, BLOCK = 256 };    /* columns; tokens: more than are summed at a time */
static float in[2*WINDOW][C];
static float loud[2*WINDOW];                    /* by how much a token's inputs are scaled; 0: not at all */

static double slow[C][C];
/* In one token of some hundreds the eight bits of a column may be off by one, as the numbers are rounded
 * differently. */
#define ONE_OFF 1e-4
/* The factors by which n tokens count for their inputs' size, at most ten. */
static void moderate(const float *row, size_t stride, size_t n_in, int n, float *by)
{
	double size[GRAM_TOKENS] = { 0 }, median = 0;
	for (int t = 0; t < n; t++)
		for (size_t j = 0; j < n_in; j++) size[t] += pow((double)row[(size_t)t*stride + j], 2);
	for (int t = 0; t < n; t++) {
		int less = 0;
		for (int i = 0; i < n; i++) less += size[i] < size[t];
		if (less == n/2) median = size[t];
	}
	for (int t = 0; t < n; t++)
		by[t] = (float)fmin(10, pow(median/size[t], 0.25));
}
/* Adds to `slow` what is expected of n tokens from `from` on, one of `every`, the first times `first`: stretch by
 * stretch, in double. */
static void expect(int from, int every, int n, float first)
{
	for (int t = 0; t < n; t += GRAM_TOKENS*every) {
		const int left = (n - t + every - 1)/every, taken = left < GRAM_TOKENS ? left : GRAM_TOKENS;
		const size_t stride = (size_t)every*C;
		float by[GRAM_TOKENS];
		moderate(in[from + t], stride, C, taken, by);
		if (!t) by[0] *= first;
		slow_gram(in[from + t], stride, (size_t)taken, C, by, slow[0]);
	}
}

/* Window w: q and k share an input, x has another, and of the experts, 2 of 3 is used. */
static void add_window(struct imatrix *im, int w, size_t batch, struct ggu_pool *p)
{
	for (size_t t = 0; t < WINDOW; t += batch) {
		size_t n = WINDOW - t < batch ? WINDOW - t : batch;
		const float *v = in[(size_t)w*WINDOW + t];
		for (int k = 0; k < 2; k++) {
			const char *weight = k ? "blk.0.k.weight" : "blk.0.q.weight";
			assert_int_equal(imatrix_add(im, weight, 1, 0, C, v, C, n, p, NULL), GGU_OK);
			assert_int_equal(imatrix_add_covariance(im, weight, 1, 0, C, BLOCK, v, C, n, p, NULL), GGU_OK);
		}
		assert_int_equal(imatrix_add(im, "blk.0.x.weight", 3, 2, C - 1, v + 1, C, n, p, NULL), GGU_OK);
		assert_int_equal(imatrix_add_covariance(im, "blk.0.x.weight", 3, 2, C - 1, BLOCK, v + 1, C, n, p, NULL),
			GGU_OK);
	}
	assert_int_equal(imatrix_flush(im, p, NULL), GGU_OK);
}
static struct imatrix *sampled(size_t batch, int threads, int windows, size_t every, float root, float first)
{
	struct imatrix *im = imatrix_new();
	struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
	uint32_t s = 99;
	for (int t = 0; t < 2*WINDOW; t++)
		for (int j = 0; j < C; j++) {
			in[t][j] = (float)(int32_t)(s = s*1664525u + 1013904223u)*1e-9f;
			if (loud[t] > 0) in[t][j] *= loud[t];
		}
	imatrix_sample(im, every, root, first);
	for (int w = 0; w < windows; w++) add_window(im, w, batch, p);
	ggu_pool_free(p);
	return im;
}
static struct imatrix *covariances(size_t batch, int threads, int windows)
{
	return sampled(batch, threads, windows, 1, 1, 1);
}
static void same_covariance(const struct imatrix *a, const struct imatrix *b, const char *weight, size_t mat,
	float tolerance)
{
	struct imatrix_covariance c, d;
	float *u, *v;
	assert_true(imatrix_has_covariance(a, weight, &c) && imatrix_has_covariance(b, weight, &d));
	assert_string_equal(c.name, d.name);
	assert_int_equal(c.n_floats, d.n_floats);
	assert_int_equal(c.block, d.block);
	assert_true(c.counts[mat] == d.counts[mat]);
	u = malloc(c.n_floats*sizeof *u);
	v = malloc(c.n_floats*sizeof *v);
	assert_int_equal(imatrix_covariance(a, weight, mat, u, NULL), GGU_OK);
	assert_int_equal(imatrix_covariance(b, weight, mat, v, NULL), GGU_OK);
	for (size_t i = 0; i < c.n_floats; i++) assert_true(fabsf(u[i] - v[i]) <= tolerance);
	free(u); free(v);
}
static void covariances_are_means_of_products(void **state)
{
	struct imatrix *a = covariances(WINDOW, 0, 2);
	struct imatrix_covariance c;
	float *mean;
	size_t at = 0;
	(void)state;
	assert_true(imatrix_has_covariance(a, "blk.0.k.weight", &c));
	assert_string_equal(c.name, "blk.0.q.weight");  /* whose input it shares */
	assert_int_equal(imatrix_n_covariances(a), 2);
	assert_int_equal(c.n_floats, BLOCK*(BLOCK + 1)/2 + (C - BLOCK)*(C - BLOCK + 1)/2);
	assert_true(c.counts[0] == 2*WINDOW);
	mean = malloc(c.n_floats*sizeof *mean);
	assert_int_equal(imatrix_covariance(a, "blk.0.k.weight", 0, mean, NULL), GGU_OK);
	memset(slow, 0, sizeof slow);
	for (int w = 0; w < 2; w++) expect(w*WINDOW, 1, WINDOW, 1);
	for (size_t i = 0; i < C; i++)
		for (size_t j = i/BLOCK*BLOCK; j <= i; j++, at++)
			assert_true(fabs(slow[i][j]/(2*WINDOW) - mean[at]) < ONE_OFF);
	assert_int_equal(imatrix_covariance(a, "blk.0.x.weight", 0, mean, NULL), GGU_ERR_MISSING);
	assert_int_equal(imatrix_covariance(a, "blk.0.x.weight", 2, mean, NULL), GGU_OK);
	assert_false(imatrix_has_covariance(a, "blk.0.z.weight", &c));
	free(mean);
	imatrix_free(a);
}
/* Calls of equally many tokens, of which the first and the last are the same. */
static void inputs_that_differ_in_one_token_are_not_shared(void **state)
{
	static const float a[3][8] = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, b[3][8] = { { 1, 2 }, { 3, 9 }, { 5, 6 } };
	static const struct { const char *name; const float (*x)[8]; } w[] = { { "q", a }, { "k", a }, { "v", b } };
	struct imatrix *im = imatrix_new();
	struct imatrix_covariance c;
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(imatrix_add_covariance(im, w[i].name, 1, 0, 8, BLOCK, *w[i].x, 8, 3, NULL,
			NULL), GGU_OK);
	assert_int_equal(imatrix_n_covariances(im), 2);
	assert_true(imatrix_has_covariance(im, "k", &c));
	assert_string_equal(c.name, "q");
	assert_true(imatrix_has_covariance(im, "v", &c));
	assert_string_equal(c.name, "v");
	imatrix_free(im);
}
static void covariances_do_not_depend_on_batches_or_threads(void **state)
{
	struct imatrix *a = covariances(WINDOW, 0, 2);
	static const struct { size_t batch; int threads; } other[] = { { 1, 2 }, { 7, 1 }, { 100, 3 }, { 256, 2 },
		{ 300, 0 } };
	(void)state;
	for (size_t i = 0; i < sizeof other/sizeof *other; i++) {
		struct imatrix *b = covariances(other[i].batch, other[i].threads, 2);
		same_covariance(a, b, "blk.0.q.weight", 0, 0);
		same_covariance(a, b, "blk.0.x.weight", 2, 0);
		imatrix_free(b);
	}
	imatrix_free(a);
}
/* Tokens 0, 7, 14 and so on of every window count four times each, and the first nine times as much, whatever the
 * batches. */
static void covariances_take_some_tokens_with_a_weight(void **state)
{
	enum { EVERY = 7, TAKEN = (WINDOW + EVERY - 1)/EVERY + 8 };
	struct imatrix *a = sampled(WINDOW, 0, 2, EVERY, 2, 3);
	static const size_t batch[] = { 1, 5, 7, 256 };
	struct imatrix_covariance c;
	float *mean;
	(void)state;
	assert_true(imatrix_has_covariance(a, "blk.0.q.weight", &c) && c.counts[0] == 2*TAKEN*4);
	assert_true(imatrix_find(a, "blk.0.q.weight")->counts[0] == 2*WINDOW);
	mean = malloc(c.n_floats*sizeof *mean);
	assert_int_equal(imatrix_covariance(a, "blk.0.q.weight", 0, mean, NULL), GGU_OK);
	memset(slow, 0, sizeof slow);
	for (int w = 0; w < 2; w++) expect(w*WINDOW, EVERY, WINDOW, 3);
	for (size_t i = 0, at = 0; i < BLOCK; i++)
		for (size_t j = 0; j <= i; j++, at++)
			assert_true(fabs(slow[i][j]/(2*TAKEN) - mean[at]) < ONE_OFF);
	for (size_t i = 0; i < sizeof batch/sizeof *batch; i++) {
		struct imatrix *b = sampled(batch[i], i % 2 ? 2 : 0, 2, EVERY, 2, 3);
		same_covariance(a, b, "blk.0.q.weight", 0, 0);
		same_covariance(a, b, "blk.0.x.weight", 2, 0);
		imatrix_free(b);
	}
	free(mean);
	imatrix_free(a);
}
/* A sampling that is set between two weights applies to windows that begin later, even while tokens wait for more. */
static void every_weight_has_a_root_of_its_own(void **state)
{
	struct imatrix *im = imatrix_new();
	struct imatrix_covariance c;
	float mean[36], by[16];
	(void)state;
	for (int batch = 0; batch < 2; batch++)
		for (int k = 0; k < 2; k++) {
			imatrix_sample(im, 1, k || batch ? 3 : 2, 1);
			assert_int_equal(imatrix_add_covariance(im, k ? "k" : "q", 1, 0, 8, BLOCK, in[8*batch + k], C,
				8, NULL, NULL), GGU_OK);
		}
	assert_int_equal(imatrix_flush(im, NULL, NULL), GGU_OK);
	assert_true(imatrix_has_covariance(im, "q", &c) && c.counts[0] == 16*4);
	assert_true(imatrix_has_covariance(im, "k", &c) && c.counts[0] == 16*9);
	memset(slow, 0, sizeof slow);
	moderate(in[0], C, 8, 16, by);
	slow_gram(in[0], C, 16, C, by, slow[0]);
	assert_int_equal(imatrix_covariance(im, "q", 0, mean, NULL), GGU_OK);
	for (size_t i = 0, at = 0; i < 8; i++)
		for (size_t j = 0; j <= i; j++, at++) assert_true(fabs(slow[i][j]/16 - (double)mean[at]) < ONE_OFF);
	imatrix_free(im);
}
/* This holds also for tokens that wait for others. None counts more than ten times its size; inputs that are all zero
 * count as they are. */
static void tokens_count_by_their_size_and_not_its_square(void **state)
{
	struct imatrix *a;
	struct imatrix_covariance c;
	const float none[3*C] = { 0 };
	float *mean, got[WINDOW], by[GRAM_TOKENS];
	(void)state;
	loud[3] = loud[WINDOW + 590] = 100;
	loud[7] = 1e-5f;
	a = sampled(7, 2, 2, 1, 1, 1);
	imatrix_moderate(in[0], C, C, WINDOW, got);
	assert_true(got[3] < 0.12f && got[3] > 0.08f && got[7] == 10);
	for (int first = 0; first < WINDOW; first += GRAM_TOKENS) {
		const int n = WINDOW - first < GRAM_TOKENS ? WINDOW - first : GRAM_TOKENS;
		moderate(in[first], C, C, n, by);
		for (int t = 0; t < n; t++) assert_true(fabsf(got[first + t] - by[t]) < 1e-6f*by[t]);
	}
	imatrix_moderate(none, C, C, 3, got);
	for (int t = 0; t < 3; t++) assert_true(got[t] == 1);
	assert_true(imatrix_has_covariance(a, "blk.0.q.weight", &c) && c.counts[0] == 2*WINDOW);
	mean = malloc(c.n_floats*sizeof *mean);
	assert_int_equal(imatrix_covariance(a, "blk.0.q.weight", 0, mean, NULL), GGU_OK);
	memset(slow, 0, sizeof slow);
	for (int w = 0; w < 2; w++) expect(w*WINDOW, 1, WINDOW, 1);
	for (size_t i = 0, at = 0; i < BLOCK; i++)
		for (size_t j = 0; j <= i; j++, at++)
			assert_true(fabs(slow[i][j]/(2*WINDOW) - mean[at]) < ONE_OFF);
	free(mean);
	imatrix_free(a);
	memset(loud, 0, sizeof loud);
}
static void covariances_are_written_read_and_merged(void **state)
{
	struct imatrix *a = covariances(WINDOW, 0, 1), *b, *sum = imatrix_new();
	struct imatrix_covariance c;
	(void)state;
	for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
		int fd = temp();
		assert_int_equal(checkpoint ? imatrix_write_checkpoint(a, "tag", fd, NULL)
			: imatrix_write_gguf(a, fd, NULL), GGU_OK);
		close(fd);
		assert_int_equal(imatrix_read(&b, name, NULL), GGU_OK);
		same_covariance(a, b, "blk.0.q.weight", 0, 0);
		same_covariance(a, b, "blk.0.k.weight", 0, 0);
		same_covariance(a, b, "blk.0.x.weight", 2, 0);
		assert_int_equal(imatrix_merge(sum, b, NULL), GGU_OK);
		imatrix_free(b);
		fd = open(name, O_RDWR);
		assert_int_equal(imatrix_write_gguf(sum, fd, NULL), GGU_OK);
		close(fd);
		unlink(name);
	}
	assert_int_equal(imatrix_n_covariances(sum), 2);
	assert_true(imatrix_has_covariance(sum, "blk.0.k.weight", &c) && c.counts[0] == 2*WINDOW);
	/* twice the sum of twice the tokens, so the means are the same up to a rounding */
	b = covariances(WINDOW, 0, 1);
	assert_int_equal(imatrix_merge(b, a, NULL), GGU_OK);
	same_covariance(sum, b, "blk.0.q.weight", 0, 0);
	imatrix_free(b);
	b = imatrix_new();
	assert_int_equal(imatrix_add(b, "blk.0.q.weight", 1, 0, C, in[0], C, 1, NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_add_covariance(b, "blk.0.q.weight", 1, 0, C, C, in[0], C, 1, NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_flush(b, NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_merge(sum, b, NULL), GGU_ERR_FORMAT);  /* blocks of another size */
	imatrix_free(a); imatrix_free(b); imatrix_free(sum);
}

static void covariances_go_on_from_a_checkpoint(void **state)
{
	struct imatrix *whole = covariances(WINDOW, 0, 2), *half = covariances(WINDOW, 0, 1), *rest;
	int fd = temp();
	(void)state;
	assert_int_equal(imatrix_write_checkpoint(half, "tag", fd, NULL), GGU_OK);
	close(fd);
	assert_int_equal(imatrix_read(&rest, name, NULL), GGU_OK);
	unlink(name);
	imatrix_sample(rest, 1, 1, 1);
	add_window(rest, 1, WINDOW, NULL);
	same_covariance(whole, rest, "blk.0.q.weight", 0, 0);
	same_covariance(whole, rest, "blk.0.k.weight", 0, 0);
	same_covariance(whole, rest, "blk.0.x.weight", 2, 0);
	assert_int_equal(imatrix_n_covariances(rest), 2);
	imatrix_free(whole); imatrix_free(half); imatrix_free(rest);
}

static void sizes_that_do_not_fit_are_told(void **state)
{
	const size_t most = SIZE_MAX, root = (size_t)1 << (4*sizeof root);
	(void)state;
	assert_int_equal(covariance_floats(5, 2), 3 + 3 + 1);
	assert_int_equal(covariance_floats(4, 9), 10);
	assert_int_equal(covariance_floats(root - 1, most), (root - 1)*root/2);
	assert_int_equal(covariance_floats(root, most), SIZE_MAX);
	assert_int_equal(covariance_floats(3*root, 2*root), SIZE_MAX);
	assert_int_equal(covariance_floats(most, most), SIZE_MAX);
	assert_int_equal(covariance_floats(most, 1), SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_do_not_depend_on_batches_or_threads),
		cmocka_unit_test(importance_is_one_where_nothing_was_seen),
		cmocka_unit_test(a_value_that_is_not_finite_keeps_nothing),
		cmocka_unit_test(a_checkpoint_is_exact),
		cmocka_unit_test(parts_add_up_to_the_whole),
		cmocka_unit_test(both_forms_keep_the_importance),
		cmocka_unit_test(merging_adds_sums_and_counts),
		cmocka_unit_test(malformed_old_files_are_refused),
		cmocka_unit_test(covariances_are_means_of_products),
		cmocka_unit_test(covariances_do_not_depend_on_batches_or_threads),
		cmocka_unit_test(inputs_that_differ_in_one_token_are_not_shared),
		cmocka_unit_test(covariances_take_some_tokens_with_a_weight),
		cmocka_unit_test(every_weight_has_a_root_of_its_own),
		cmocka_unit_test(tokens_count_by_their_size_and_not_its_square),
		cmocka_unit_test(covariances_are_written_read_and_merged),
		cmocka_unit_test(covariances_go_on_from_a_checkpoint),
		cmocka_unit_test(sizes_that_do_not_fit_are_told),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
