/* SPDX-License-Identifier: MIT
 * test_outer.c - sums of outer products: close to those in double, the same bits for factors stored either way, for
 * every instruction set and number of threads; and nothing is written beyond a matrix. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../quant/outer.h"

static float *numbers(size_t n, uint32_t s)
{
	float *v = malloc(n*sizeof *v);
	for (size_t i = 0; i < n; i++) v[i] = (float)(int32_t)(s = s*1664525u + 1013904223u)*0x1p-31f;
	return v;
}
static float *transposed(const float *x, size_t n, size_t width)
{
	float *v = malloc(n*width*sizeof *v);
	for (size_t i = 0; i < n; i++) for (size_t j = 0; j < width; j++) v[j*n + i] = x[i*width + j];
	return v;
}
static float *summed(struct outer o, int threads)
{
	const size_t floats = o.n_a*o.n_b;
	struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
	o.to = malloc((floats + 1)*sizeof *o.to);
	for (size_t i = 0; i <= floats; i++) o.to[i] = 0.5f;
	assert_int_equal(outer_add(&o, p), GGU_OK);
	assert_true(o.to[floats] == 0.5f);
	ggu_pool_free(p);
	return o.to;
}
static void check(enum outer_form form, size_t n_a, size_t n_b, size_t n)
{
	float *a = numbers(n*n_a, 1), *b = form == OUTER_WHOLE ? numbers(n*n_b, 2) : a, *first = NULL;
	float *at_rows = transposed(a, n, n_a), *b_rows = transposed(b, n, n_b);
	const struct outer columns = { NULL, form, false, n_a, n_b, n, a, b, n_a, n_b },
		rows = { NULL, form, true, n_a, n_b, n, at_rows, b_rows, n, n };
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (int k = 0; k < 2; k++) {
			float *y;
			assert_int_equal(quant_select(*isa, NULL), GGU_OK);
			y = summed(k ? rows : columns, k ? 0 : 3);
			for (size_t i = 0; i < n_a; i++)
				for (size_t j = 0; j < (form == OUTER_WHOLE ? n_b : i + 1); j++) {
					double sum = 0.5;
					if (first) {
						assert_memory_equal(y + i*n_b + j, first + i*n_b + j, 4);
						continue;
					}
					for (size_t t = 0; t < n; t++) sum += (double)a[t*n_a + i]*b[t*n_b + j];
					assert_true(fabs(sum - y[i*n_b + j]) < 1e-6*(double)(n + 10));
				}
			if (first) free(y);
			else first = y;
		}
	if (b != a) free(b);
	free(a); free(at_rows); free(b_rows); free(first);
}
static void whole(void **state)
{
	(void)state;
	check(OUTER_WHOLE, 1, 1, 1);
	check(OUTER_WHOLE, 7, 33, 5);
	check(OUTER_WHOLE, 250, 70, 100);
	check(OUTER_WHOLE, 13, 47, 2070);
}
static void triangles(void **state)
{
	(void)state;
	check(OUTER_LOWER, 5, 5, 512);
	check(OUTER_LOWER, 100, 100, 33);
	check(OUTER_LOWER, 500, 500, 40);
	check(OUTER_LOWER, 50, 50, 2050);
}
/* Without tokens or rows, nothing is read and nothing is added. */
static void nothing(void **state)
{
	float to = 0.5f;
	struct outer o = { &to, OUTER_LOWER, false, 1, 1, 0, NULL, NULL, 1, 1 };
	(void)state;
	assert_int_equal(outer_add(&o, NULL), GGU_OK);
	o.n = 1; o.n_a = o.n_b = 0;
	assert_int_equal(outer_add(&o, NULL), GGU_OK);
	assert_true(to == 0.5f);
}
int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(triangles),
		cmocka_unit_test(nothing) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
