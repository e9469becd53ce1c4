/* SPDX-License-Identifier: MIT
 * test_covariance.c - covariances in importance matrices: means of products, whatever the batches and threads; which
 * tokens count, and how much; sharing, files, checkpoints, merging. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>
#include "../lib/slow_gram.h"
#include "../lib/temp_file.h"
#include "../../imatrix/imatrix_internal.h"
#include "../../libgguf/pool.h"
#include "../../quant/quant.h"

#define INPUT(...) (&(struct quant_input){ __VA_ARGS__ })

enum { C = 300, WINDOW = 600, BLOCK = 256 };    /* columns; tokens: more than are summed at a time */
static float in[2*WINDOW][C];
static float loud[2*WINDOW];                    /* by how much a token's inputs are scaled; 0: not at all */

static double slow[C][C];
/* For one token in some hundreds, a column's integer of eight bits may be off by one, as numbers are rounded
 * differently here. */
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

/* Adds window w: q and k share an input; x has another, and three experts, of which the last is used. */
static void add_window(struct imatrix *im, int w, size_t batch, struct ggu_pool *p)
{
	for (size_t t = 0; t < WINDOW; t += batch) {
		size_t n = WINDOW - t < batch ? WINDOW - t : batch;
		const float *v = in[(size_t)w*WINDOW + t];
		const struct quant_input of[] = { { "blk.0.q.weight", 1, 0, C, v, C, n },
			{ "blk.0.k.weight", 1, 0, C, v, C, n }, { "blk.0.x.weight", 3, 2, C - 1, v + 1, C, n } };
		for (int k = 0; k < 3; k++) {
			assert_int_equal(imatrix_add(im, of + k, p, NULL), GGU_OK);
			assert_int_equal(imatrix_add_covariance(im, of + k, BLOCK, p, NULL), GGU_OK);
		}
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
		assert_int_equal(imatrix_add_covariance(im, INPUT(w[i].name, 1, 0, 8, *w[i].x, 8, 3), BLOCK,
			NULL, NULL), GGU_OK);
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
			assert_int_equal(imatrix_add_covariance(im, INPUT(k ? "k" : "q", 1, 0, 8, in[8*batch + k],
				C, 8), BLOCK, NULL, NULL), GGU_OK);
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
	assert_int_equal(imatrix_add(b, INPUT("blk.0.q.weight", 1, 0, C, in[0], C, 1), NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_add_covariance(b, INPUT("blk.0.q.weight", 1, 0, C, in[0], C, 1), C, NULL,
		NULL), GGU_OK);
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
	return cmocka_run_group_tests(tests, NULL, NULL);
}
