/* SPDX-License-Identifier: MIT
 * test_imatrix.c - importance matrices: sums in token order, both forms, merging, malformed files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "../lib/temp_file.h"
#include "../../imatrix/imatrix_internal.h"
#include "../../libgguf/pool.h"
#include "../../quant/quant.h"

#define INPUT(...) (&(struct quant_input){ __VA_ARGS__ })

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
		assert_int_equal(imatrix_add(im, INPUT("blk.0.b.weight", 1, 0, N, x[t], N, n), p, NULL), GGU_OK);
		assert_int_equal(imatrix_add(im, INPUT("blk.0.a.weight", 3, 1, N/2, x[t], N, n), p, NULL), GGU_OK);
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
	assert_int_equal(imatrix_add(a, INPUT("blk.0.b.weight", 1, 0, N, bad[0], N, 2), NULL, &err), GGU_ERR_FORMAT);
	assert_string_equal(err.where, "blk.0.b.weight");
	assert_int_equal(imatrix_add(a, INPUT("blk.0.new.weight", 1, 0, N, bad[1], N, 1), NULL, &err), GGU_ERR_FORMAT);
	assert_int_equal(imatrix_add(a, INPUT("blk.0.b.weight", 1, 0, N - 1, x[0], N, 2), NULL, &err), GGU_ERR_FORMAT);
	assert_int_equal(imatrix_add(a, INPUT("blk.0.b.weight", 1, 1, N, x[0], N, 2), NULL, &err), GGU_ERR_RANGE);
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
	assert_int_equal(imatrix_add(im, INPUT("blk.0.b.weight", 1, 0, N, x[from], N, (size_t)(to - from)), NULL, NULL),
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
	assert_int_equal(imatrix_add(a, INPUT("blk.0.b.weight", 1, 0, N, x[0], N, T), NULL, NULL), GGU_OK);
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
	assert_int_equal(imatrix_add(other, INPUT("blk.0.b.weight", 1, 0, 8, x[0], N, 1), NULL, NULL), GGU_OK);
	assert_int_equal(imatrix_merge(a, other, &err), GGU_ERR_FORMAT);
	imatrix_free(a); imatrix_free(b); imatrix_free(other);
}

/* Two matrices of three columns, one of which saw 10 tokens, or one of six in the old form's way, which saw 4. */
static struct imatrix *stacked(bool whole)
{
	struct imatrix *im = imatrix_new();
	float v[10][6];
	for (int t = 0; t < 10; t++) for (int j = 0; j < 6; j++) v[t][j] = (float)(j + 1);
	assert_int_equal(whole ? imatrix_add(im, INPUT("a", 1, 0, 6, v[0], 6, 4), NULL, NULL) :
		imatrix_add(im, INPUT("a", 2, 0, 3, v[0], 6, 10), NULL, NULL), GGU_OK);
	return im;
}
static void one_matrix_of_as_many_columns_is_added_to_each_of_several(void **state)
{
	static const double want[6] = { 14, 56, 126, 64, 100, 144 };    /* 10 j*j + 4 j*j, then 4 j*j */
	(void)state;
	for (int order = 0; order < 2; order++) {
		struct imatrix *a = stacked(order), *b = stacked(!order), *other = imatrix_new();
		struct ggu_error err;
		const struct imatrix_entry *e;
		assert_int_equal(imatrix_merge(a, b, NULL), GGU_OK);
		e = imatrix_find(a, "a");
		assert_int_equal(e->n_in, 3);
		assert_int_equal(e->n_mat, 2);
		for (int j = 0; j < 6; j++) assert_true(e->sums[j] == want[j]);
		assert_true(e->counts[0] == 14 && e->counts[1] == 4);
		assert_int_equal(imatrix_add(other, INPUT("a", 1, 0, 7, x[0], N, 1), NULL, NULL), GGU_OK);
		assert_int_equal(imatrix_merge(a, other, &err), GGU_ERR_FORMAT);
		imatrix_free(a);
		imatrix_free(b);
		imatrix_free(other);
	}
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
	assert_int_equal(imatrix_add(a, INPUT("blk.0.b.weight", 1, 0, 8, x[0], N, T), NULL, NULL), GGU_OK);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_do_not_depend_on_batches_or_threads),
		cmocka_unit_test(one_matrix_of_as_many_columns_is_added_to_each_of_several),
		cmocka_unit_test(importance_is_one_where_nothing_was_seen),
		cmocka_unit_test(a_value_that_is_not_finite_keeps_nothing),
		cmocka_unit_test(a_checkpoint_is_exact),
		cmocka_unit_test(parts_add_up_to_the_whole),
		cmocka_unit_test(both_forms_keep_the_importance),
		cmocka_unit_test(merging_adds_sums_and_counts),
		cmocka_unit_test(malformed_old_files_are_refused),
	};
	if (quant_select(NULL, NULL)) return 1;         /* otherwise it would be portable C */
	fill();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
