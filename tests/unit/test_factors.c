/* SPDX-License-Identifier: MIT
 * test_factors.c - factors that a thread makes ahead are those of each matrix's own covariance and damping, made once
 * where weights share an input; failures come where their factor is asked for. The same where no thread can be
 * started. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../quant/factors.h"
#include "../../quant/quant.h"
#include "../lib/between.h"

enum { WIDE = 256, MATS = 2 };
/* Tensors in order. A covariance is value times the identity, of its matrix `mat` value + mat. */
static const struct made_up { const char *name, *of; double value; size_t n_mat, n_in; uint32_t type; } model[] = {
	{ "a", "shared", 3, 1, WIDE, GGU_TYPE_Q4_K }, { "b", "shared", 3, 1, WIDE, GGU_TYPE_Q4_K },
	{ "as it was", "shared", 3, 1, WIDE, GGU_TYPE_F32 }, { "of nothing", NULL, 0, 1, WIDE, GGU_TYPE_Q4_K },
	{ "experts", "experts", 5, MATS, WIDE, GGU_TYPE_Q4_K },
	{ "experts too", "experts", 5, MATS, WIDE, GGU_TYPE_Q4_K },
	{ "narrow", "narrow", 4, 1, WIDE/2, GGU_TYPE_Q4_K }, { "other damping", "shared", 3, 1, WIDE, GGU_TYPE_TQ2_0 },
	{ "in vain", "vain", 7, 1, WIDE, GGU_TYPE_Q1_0 }, { "no covariance", "negative", -1, 1, WIDE, GGU_TYPE_Q4_K },
	{ "last", "last", 9, 1, WIDE, GGU_TYPE_Q4_K },
};
enum { N = sizeof model/sizeof *model };
static struct ggu_tensor tensor[N];
static const struct ggu_tensor *tensors[N];
static struct recipe_choice choice[N];
static const char *fails;               /* reading this tensor's covariance fails */
static atomic_int n_read;

static bool no_threads;
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	union { void *p; int (*call)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *); } real;
	real.p = dlsym(RTLD_NEXT, "pthread_create");
	return no_threads ? EAGAIN : real.call(t, a, fn, arg);
}

static const struct made_up *by_name(const char *name)
{
	size_t i = 0;
	while (strcmp(model[i].name, name)) i++;
	return model + i;
}
static bool find(void *ctx, const char *name, size_t mat, struct remake_known *known)
{
	const struct made_up *m = by_name(name);
	(void)ctx, (void)mat;
	if (!m->of) return false;
	*known = (struct remake_known){ m->of, m->n_in, m->n_in, m->n_in*(m->n_in + 1)/2, 1000 };
	return true;
}
static void fill(float *to, size_t n, double value)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++) *to++ = j == i ? (float)value : 0;
}
static enum ggu_status get(void *ctx, const char *name, size_t mat, float *mean, struct ggu_error *err)
{
	const struct made_up *m = by_name(name);
	(void)ctx;
	atomic_fetch_add(&n_read, 1);
	if (fails && strcmp(fails, name) == 0) {
		*err = (struct ggu_error){ .code = GGU_ERR_IO, .what = "cannot be read" };
		return GGU_ERR_IO;
	}
	fill(mean, m->n_in, m->value + (double)mat);
	return GGU_OK;
}
static struct remake_covariance covariance = { find, get, NULL, -1 };
static const struct remake remake = { .n = N, .t = tensors, .choice = choice, .covariance = &covariance };

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < N; i++) {
		tensor[i] = (struct ggu_tensor){ .name = model[i].name, .n_dims = 3,
			.ne = { WIDE, 8, model[i].n_mat, 1 }, .type = GGU_TYPE_F32 };
		tensors[i] = tensor + i;
		choice[i].type = model[i].type;
	}
	return 0;
}
static double error_of(const struct quant_feedback *q)
{
	float x[WIDE] = { 1, 2, [WIDE - 1] = 3 }, y[WIDE] = { 0 };
	void *work = aligned_alloc(64, (quant_feedback_work_bytes(q, 1) + 63)/64*64);
	double error = quant_feedback_error(q, x, y, 1, work);
	free(work);
	return error;
}
static bool has_feedback(size_t i)
{
	return model[i].of && model[i].n_in == WIDE && model[i].value > 0 && model[i].type != GGU_TYPE_F32
		&& (covariance.damp >= 0 || quant_feedback_pays(model[i].type));
}
/* Checks that q belongs to matrix mat of tensor i, whose factor is made here once more. */
static void expect(const struct quant_feedback *q, size_t i, size_t mat)
{
	static float sums[WIDE*(WIDE + 1)/2];
	const double damp = covariance.damp >= 0 ? covariance.damp : quant_feedback_damp(model[i].type, WIDE, 1000);
	struct quant_feedback *want;
	if (!has_feedback(i)) {
		assert_null(q);
		return;
	}
	fill(sums, WIDE, model[i].value + (double)mat);
	assert_int_equal(quant_feedback_new(&want, WIDE, WIDE, sums, damp, NULL, NULL), GGU_OK);
	assert_non_null(q);
	assert_true(error_of(q) == error_of(want));
	quant_feedback_free(want);
}
static struct factors *begin(int threads)
{
	struct factors *f;
	atomic_store(&n_read, 0);
	assert_int_equal(factors_new(&f, &remake, threads, NULL), GGU_OK);
	return f;
}

static void each_matrix_has_its_own(void **state)
{
	static const double damps[] = { -1, 0.25 };
	(void)state;
	for (int run = 0; run < 2; run++) {
		struct quant_feedback *q, *before = NULL;
		struct factors *f;
		covariance.damp = damps[run];
		f = begin(1 + run);
		for (size_t i = 0; i < N; i++)
			for (size_t mat = 0; mat < model[i].n_mat; mat++) {
				assert_int_equal(factors_get(f, i, mat, &q, NULL), GGU_OK);
				expect(q, i, mat);
				if (i == 1) assert_ptr_equal(q, before);
				quant_feedback_free(before);
				before = q;
			}
		quant_feedback_free(before);
		/* the shared one; the experts' two; the one shared with another damping, or in vain; the negative one;
		 * the last */
		assert_int_equal(n_read, 6);
		factors_free(f);
	}
	covariance.damp = -1;
}
static void some_may_be_passed_over(void **state)
{
	struct quant_feedback *q;
	(void)state;
	for (size_t i = 0; i < N; i++)
		for (int both = 0; both < 2; both++) {
			struct factors *f = begin(2);
			assert_int_equal(factors_get(f, i, model[i].n_mat - 1, &q, NULL), GGU_OK);
			expect(q, i, model[i].n_mat - 1);
			quant_feedback_free(q);
			/* the first may have been made before anything was requested */
			if (i == N - 1) assert_between(n_read, 1, 2);
			if (both && i + 1 < N) {
				assert_int_equal(factors_get(f, N - 1, 0, &q, NULL), GGU_OK);
				expect(q, N - 1, 0);
				quant_feedback_free(q);
			}
			factors_free(f);
		}
}
/* Asks for all of them; from tensor `bad` on none can be had. */
static void ask_until(size_t bad)
{
	struct factors *f = begin(1);
	struct quant_feedback *q;
	bool failed = false;
	for (size_t i = 0; i < N; i++)
		for (size_t mat = 0; mat < model[i].n_mat; mat++) {
			struct ggu_error err = { 0 };
			const enum ggu_status s = factors_get(f, i, mat, &q, &err);
			/* the second of two that share one finds it read by the first; one that is no covariance is
			 * read too */
			const bool read = (has_feedback(i) && i != 1 && i != 5) || model[i].value < 0;
			failed |= i == bad && read;
			if (failed && (read || has_feedback(i))) {
				assert_int_equal(s, GGU_ERR_IO);
				assert_string_equal(err.what, "cannot be read");
				assert_null(q);
			} else if (!failed) {
				assert_int_equal(s, GGU_OK);
				expect(q, i, mat);
			}
			quant_feedback_free(q);
		}
	factors_free(f);
}
static void failures_come_where_they_belong(void **state)
{
	(void)state;
	for (size_t bad = 0; bad < N; bad++) {
		fails = model[bad].name;
		ask_until(bad);
	}
	fails = NULL;
}
static void nobody_need_ask(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct factors *f = begin(1 + i%3);
		struct quant_feedback *q = NULL;
		if (i%2) assert_int_equal(factors_get(f, 0, 0, &q, NULL), GGU_OK);
		factors_free(f);
		if (i%2) expect(q, 0, 0);
		quant_feedback_free(q);
	}
}
static void one_is_made_ahead_of_those_asked_for(void **state)
{
	struct factors *f = begin(1);
	struct quant_feedback *q;
	(void)state;
	assert_int_equal(factors_get(f, 0, 0, &q, NULL), GGU_OK);
	quant_feedback_free(q);
	factors_free(f);
	/* that of "a" and one of the experts */
	assert_between(n_read, 1, 2);
}
static void without_threads_they_are_the_same(void **state)
{
	no_threads = true;
	each_matrix_has_its_own(state);
	some_may_be_passed_over(state);
	failures_come_where_they_belong(state);
	nobody_need_ask(state);
	no_threads = false;
}
/* Only the first shapes are what quant.h allows: whole panels of eight columns, in blocks of whole groups. */
static void other_shapes_are_named(void **state)
{
	static const struct { size_t n, block; } of[] = { { 8, 8 }, { 264, 300 }, { 264, 256 }, { 12, 12 }, { 264, 8 },
		{ 8, 0 } };
	float *sums = calloc(264*265/2, sizeof *sums);
	(void)state;
	assert_non_null(sums);
	for (size_t i = 0; i < sizeof of/sizeof *of; i++) {
		struct quant_feedback *q = NULL;
		struct ggu_error err;
		enum ggu_status s = quant_feedback_new(&q, of[i].n, of[i].block, sums, 0, NULL, &err);
		assert_int_equal(s, i < 3 ? GGU_OK : GGU_ERR_RANGE);
		if (s) assert_non_null(strstr(err.what, "columns in blocks of"));
		quant_feedback_free(q);
	}
	free(sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_matrix_has_its_own), cmocka_unit_test(some_may_be_passed_over),
		cmocka_unit_test(failures_come_where_they_belong), cmocka_unit_test(nobody_need_ask),
		cmocka_unit_test(one_is_made_ahead_of_those_asked_for),
		cmocka_unit_test(without_threads_they_are_the_same), cmocka_unit_test(other_shapes_are_named),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
