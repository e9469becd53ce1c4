/* SPDX-License-Identifier: MIT
 * test_sample.c - the sampler: what it may choose, how often, and that a seed means the same everywhere. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "../../model/eval/sample.h"
#include "../lib/between.h"

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
	for (int i = 0; i < 300; i++) assert_between(sampler_next(&s, x, 7, order), 0, 6);
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
	const float nan[] = { NAN, NAN }, inf[] = { -INFINITY, -INFINITY };
	struct sampler s = { 0.8, 0.95, 40, 0 };
	(void)state;
	sampler_seed(&s, 0);
	assert_between(sampler_next(&s, nan, 2, order), 0, 1);
	assert_between(sampler_next(&s, inf, 2, order), 0, 1);
	s.temperature = 0;
	assert_int_equal(sampler_next(&s, nan, 2, order), 0);
	s.temperature = 1e-300;
	assert_int_equal(sampler_next(&s, (const float[]){ 1, 2 }, 2, order), 1);
}

static void equally_likely_if_all_are_bad(void **state)
{
	const float x[] = { NAN, -INFINITY, NAN, -INFINITY };
	struct sampler s = { 0.8, 1, 0, 0 };
	int count[4] = { 0 };
	(void)state;
	sampler_seed(&s, 2);
	for (int i = 0; i < 4000; i++) count[sampler_next(&s, x, 4, order)]++;
	for (int i = 0; i < 4; i++) assert_between(count[i], 863, 1137);       /* five standard deviations */
}

static void infinite_logits_take_all(void **state)
{
	const float x[] = { 3, INFINITY, NAN, INFINITY, -INFINITY, 9 };
	static const struct sampler kinds[] = { { 1, 1, 0, 0 }, { 0.8, 0.95, 40, 0 }, { 100, 1, 4, 0 },
		{ 1e-300, 1, 0, 0 } };
	(void)state;
	for (size_t k = 0; k < sizeof kinds/sizeof *kinds; k++) {
		struct sampler s = kinds[k];
		int count[6] = { 0 };
		sampler_seed(&s, 4);
		for (int i = 0; i < 1000; i++) count[sampler_next(&s, x, 6, order)]++;
		assert_int_equal(count[1] + count[3], 1000);
		assert_between(count[1], 420, 580);
	}
}

/* The definition, regardless of cost: sorts every token. PCG32 as in its paper. */
static const float *sort_by;
static double value(int32_t i) { return isnan(sort_by[i]) ? -INFINITY : (double)sort_by[i]; }
static int by_logit(const void *a, const void *b)
{
	int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
	return value(i) > value(j) ? -1 : value(i) < value(j) ? 1 : i - j;
}
static int32_t sorted_next(const struct sampler *s, const float *x, size_t n, int32_t *list)
{
	uint32_t mixed = (uint32_t)((s->state >> 18 ^ s->state) >> 27), turn = (uint32_t)(s->state >> 59);
	double total = 0, sum = 0, draw = (mixed >> turn | mixed << (32 - turn)%32)*0x1p-32;
	size_t keep = s->top_k && s->top_k < n ? s->top_k : n, k = 0;
	for (size_t i = 0; i < n; i++) list[i] = (int32_t)i;
	sort_by = x;
	qsort(list, n, sizeof *list, by_logit);
	if (s->top_p < 1) {
		for (size_t i = 0; i < keep; i++) total += exp(value(list[i]) - value(list[0]));
		while (k < keep && sum < s->top_p*total) sum += exp(value(list[k++]) - value(list[0]));
		keep = k ? k : 1;
	}
	total = sum = 0;
	for (size_t i = 0; i < keep; i++) total += exp((value(list[i]) - value(list[0]))/s->temperature);
	for (k = 0; k < keep - 1; k++) {
		sum += exp((value(list[k]) - value(list[0]))/s->temperature);
		if (draw*total < sum) break;
	}
	return list[k];
}
static void as_if_all_were_sorted(void **state)
{
	enum { MOST = 3000 };
	static float x[MOST];
	static int32_t list[MOST];
	static const struct { double temperature, top_p; size_t top_k; float spread; } kinds[] = {
		{ 0.8, 0.95, 40, 6 }, { 1, 1, 0, 0.01f }, { 1, 0.9, 0, 0.01f }, { 3, 1, 0, 3 }, { 0.3, 1, 1, 3 },
		{ 1, 1, 2999, 1 }, { 1, 0.999, 2000, 0.5f }, { 2, 0.5, 3000, 9 }, { 0.7, 0.1, 0, 20 }, { 1, 1, 300, 0 },
	};
	(void)state;
	srand(5);
	for (size_t k = 0; k < sizeof kinds/sizeof *kinds; k++)
		for (int run = 0; run < 60; run++) {
			size_t n = run%3 ? MOST : 1 + (size_t)rand()%700;
			struct sampler s = { kinds[k].temperature, kinds[k].top_p, kinds[k].top_k, 0 };
			/* steps of 1/64, so that some are equal; ascending in some runs, which is the worst case */
			for (size_t i = 0; i < n; i++) x[i] = kinds[k].spread*(float)(run%4 ? rand()%1024 : (int)i)/64;
			for (size_t i = 0; i < n/50; i++) x[(size_t)rand()%n] = i%2 ? NAN : -INFINITY;
			x[n - 1] = 1;
			sampler_seed(&s, (uint64_t)rand());
			int32_t expect = sorted_next(&s, x, n, list);
			assert_int_equal(sampler_next(&s, x, n, list), expect);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greedy), cmocka_unit_test(top_k_and_top_p), cmocka_unit_test(frequencies),
		cmocka_unit_test(seeds), cmocka_unit_test(only_bad_logits),
		cmocka_unit_test(equally_likely_if_all_are_bad), cmocka_unit_test(infinite_logits_take_all),
		cmocka_unit_test(as_if_all_were_sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
