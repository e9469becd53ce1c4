/* SPDX-License-Identifier: MIT
 * test_sample.c - the sampler: what it may choose, how often, and that a seed means the same everywhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../../model/eval/sample.h"

static int32_t order[64];

static void greedy(void **state)
{
	const float x[] = { 1, 5, -2, 5, NAN }, nan_first[] = { NAN, -3, -4 };
	struct sampler s = { 0, 1, 0, 0 };
	(void)state;
	sampler_seed(&s, 1);
	for (int i = 0; i < 5; i++) assert_int_equal(sampler_next(&s, x, 5, order), 1);
	assert_int_equal(sampler_next(&s, nan_first, 3, order), 1);
}

static void top_k_and_top_p(void **state)
{
	const float x[] = { 0, 3, 1, 2, -9, -INFINITY, NAN };
	struct sampler s = { 1, 1, 2, 0 };
	(void)state;
	sampler_seed(&s, 7);
	for (int i = 0; i < 300; i++) {
		int32_t id = sampler_next(&s, x, 7, order);
		assert_true(id == 1 || id == 3);
	}
	s = (struct sampler){ 1, 0.5, 0, 0 };   /* the likeliest has 0.64 */
	sampler_seed(&s, 7);
	for (int i = 0; i < 300; i++) assert_int_equal(sampler_next(&s, x, 7, order), 1);
	s = (struct sampler){ 1, 0, 0, 0 };     /* at least one is left */
	sampler_seed(&s, 7);
	assert_int_equal(sampler_next(&s, x, 7, order), 1);
	s = (struct sampler){ 1, 1, 1000, 0 };  /* more than there are */
	sampler_seed(&s, 7);
	for (int i = 0; i < 300; i++) assert_in_range(sampler_next(&s, x, 7, order), 0, 6);
}

static void frequencies(void **state)
{
	const float x[] = { 0, 0.6931471806f, 1.0986122887f };  /* 1 : 2 : 3 */
	struct sampler s = { 1, 1, 0, 0 };
	int count[3] = { 0 }, n = 60000;
	(void)state;
	sampler_seed(&s, 3);
	for (int i = 0; i < n; i++) count[sampler_next(&s, x, 3, order)]++;
	for (int i = 0; i < 3; i++) assert_true(fabs(count[i] - n*(i + 1)/6.0) < 600);  /* five standard deviations */
}

static void seeds(void **state)
{
	float x[40];
	struct sampler a = { 1, 1, 0, 0 }, b = a, c = a;
	int differs = 0;
	(void)state;
	for (int i = 0; i < 40; i++) x[i] = 0;
	sampler_seed(&a, 5);
	sampler_seed(&b, 5);
	sampler_seed(&c, 6);
	for (int i = 0; i < 100; i++) {
		int32_t id = sampler_next(&a, x, 40, order);
		assert_int_equal(id, sampler_next(&b, x, 40, order));
		differs += id != sampler_next(&c, x, 40, order);
	}
	assert_true(differs > 50);
}

static void only_bad_logits(void **state)
{
	const float nan[] = { NAN, NAN }, inf[] = { -INFINITY, -INFINITY }, up[] = { 0, INFINITY };
	struct sampler s = { 0.8, 0.95, 40, 0 };
	(void)state;
	sampler_seed(&s, 0);
	assert_in_range(sampler_next(&s, nan, 2, order), 0, 1);
	assert_in_range(sampler_next(&s, inf, 2, order), 0, 1);
	assert_in_range(sampler_next(&s, up, 2, order), 0, 1);
	s.temperature = 1e-300;
	assert_int_equal(sampler_next(&s, (const float[]){ 1, 2 }, 2, order), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy), cmocka_unit_test(top_k_and_top_p), cmocka_unit_test(frequencies),
		cmocka_unit_test(seeds), cmocka_unit_test(only_bad_logits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
