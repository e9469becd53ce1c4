/* SPDX-License-Identifier: MIT
 * test_plan_choose.c - the types for a size against all combinations of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../tools/plan_choose.h"

enum { TENSORS = 4, OPTIONS = 6 };
struct model { struct plan_option option[TENSORS][OPTIONS]; struct plan_tensor list[TENSORS]; };

static uint64_t next(uint64_t *random) { return (*random = *random*UINT64_C(6364136223846793005) + 1) >> 33; }

/* One tensor is much larger than the others; all sizes are multiples of unit. */
static void make(struct model *m, uint64_t *random, uint64_t unit)
{
	for (size_t i = 0; i < TENSORS; i++) {
		size_t weights = 1 + next(random)%40 + (i ? 0 : 200);
		m->list[i] = (struct plan_tensor){ .option = m->option[i], .n = OPTIONS,
			.weight = 0.1*(double)(1 + next(random)%20) };
		for (size_t k = 0; k < OPTIONS; k++)
			m->option[i][k] = (struct plan_option){ .bytes = unit*weights*(16 - 2*k - next(random)%2),
				.error = k ? pow(4, (double)k) + (double)(next(random)%4) : 0 };
	}
}
static double error_of(const struct model *m, const size_t *k, uint64_t *bytes)
{
	double sum = 0;
	*bytes = 0;
	for (size_t i = 0; i < TENSORS; i++) {
		sum += m->list[i].weight*m->option[i][k[i]].error;
		*bytes += m->option[i][k[i]].bytes;
	}
	return sum;
}
static double least_error(const struct model *m, uint64_t budget)
{
	double least = INFINITY;
	size_t k[TENSORS] = { 0 }, i = 0;
	while (i < TENSORS) {
		uint64_t bytes;
		double error = error_of(m, k, &bytes);
		if (bytes <= budget && error < least) least = error;
		for (i = 0; i < TENSORS && ++k[i] == OPTIONS; i++) k[i] = 0;
	}
	return least;
}
static double chosen_error(struct model *m, uint64_t budget)
{
	size_t k[TENSORS];
	uint64_t bytes;
	double error;
	for (size_t i = 0; i < TENSORS; i++) m->list[i].chosen = 0;
	plan_choose(m->list, TENSORS, budget);
	for (size_t i = 0; i < TENSORS; i++) k[i] = m->list[i].chosen;
	error = error_of(m, k, &bytes);
	assert_true(bytes <= budget);
	return error;
}

static void no_combination_is_better(void **state)
{
	uint64_t random = 1;
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct model m;
		uint64_t unit = i % 2 ? 1 : 131072, least, most;
		make(&m, &random, unit);
		least = plan_least(m.list, TENSORS);
		most = 16*unit*400;
		for (uint64_t budget = least; budget < most; budget += (most - least)/16 + 1) {
			double got = chosen_error(&m, budget), want = least_error(&m, budget);
			if (got > want*(1 + 1e-12)) fail_msg("%g instead of %g", got, want);
		}
	}
}

/* Sizes without a common divisor, more than the table has room for: it loses less than a hundred thousandth. */
static void sizes_that_must_be_rounded_cost_little(void **state)
{
	uint64_t random = 2, least;
	struct model m;
	(void)state;
	make(&m, &random, 1000000007);
	for (size_t k = 0; k < OPTIONS; k++) m.option[1][k].bytes += k;
	least = plan_least(m.list, TENSORS);
	for (uint64_t budget = least + least/3; budget < 2*least; budget += least/3)
		assert_true(chosen_error(&m, budget) <= least_error(&m, budget - budget/100000));
}

/* An output matrix whose type is fixed, so that there is nothing to choose for it, is one all the same. */
static void an_embedding_counts_as_output_only_without_an_output_matrix(void **state)
{
	const struct ggu_tensor t[2] = { { .name = "token_embd.weight" }, { .name = "output.weight" } };
	struct plan_tensor list[2] = { { .t = t, .n = 2 }, { .t = t + 1, .n = 2 } };
	double beside, alone;
	(void)state;
	plan_weigh(list, 2, false);
	beside = list[0].weight;
	list[1].n = 1;
	plan_weigh(list, 2, false);
	assert_true(list[0].weight == beside);
	plan_weigh(list, 1, false);
	alone = list[0].weight;
	assert_true(alone > beside);
}

/* A matrix weighs in proportion to the energy of the last one of its part of the layer, 3 times the other's here for
 * attention and 5 times for the feed-forward. A role weighs what its factor says, however many layers there are: 1 for
 * ffn_down, half of that for attn_v. */
static void energy_divides_the_weight_of_a_role_among_layers(void **state)
{
	static const char *const name[] = { "attn_v", "attn_output", "ffn_up", "ffn_down" };
	struct plan_option option[8][2] = { { { 0 } } };
	struct ggu_tensor t[8] = { { 0 } };
	struct plan_tensor list[8];
	char full[8][32];
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		snprintf(full[i], sizeof *full, "blk.%zu.%s.weight", 1 + i/4*9, name[i % 4]);
		t[i].name = full[i];
		option[i][1].energy = i % 4 == 1 ? (i < 4 ? 20 : 60) : i % 4 == 3 ? (i < 4 ? 50 : 10) : 1000;
		list[i] = (struct plan_tensor){ .t = t + i, .option = option[i], .n = 2 };
	}
	plan_weigh(list, 8, true);
	for (size_t i = 0; i < 4; i++) {
		double first = list[i].weight, second = list[i + 4].weight;
		double ratio = i < 2 ? 1./3 : 5;
		assert_true(fabs(first/second/ratio - 1) < 1e-12);
	}
	assert_true(fabs(list[3].weight + list[7].weight - 1) < 1e-12);
	assert_true(fabs(list[0].weight + list[4].weight - 0.5) < 1e-12);
	plan_weigh(list, 8, false);
	for (size_t i = 0; i < 4; i++) assert_true(list[i].weight == list[i + 4].weight);
	assert_true(list[3].weight + list[7].weight == 1);
	list[3].n = list[7].n = 1;      /* of a fixed type: there is no energy to divide by */
	plan_weigh(list, 8, true);
	assert_true(list[2].weight == list[6].weight);
}

/* Experts and what is beside them add to the residual stream together, whichever comes first: 60 and 20 in a layer, 40
 * in one that is dense. The mean of the three matrices is 200/3. */
static void all_last_matrices_of_a_layer_count(void **state)
{
	struct ggu_tensor t[4] = { { .name = "blk.1.ffn_up_exps.weight" }, { .name = "blk.1.ffn_down_exps.weight" },
		{ .name = "blk.1.ffn_down_shexp.weight" }, { .name = "blk.0.ffn_down.weight" } };
	struct plan_option option[4][2] = { { { 0 } }, { { 0 }, { .energy = 60 } }, { { 0 }, { .energy = 20 } },
		{ { 0 }, { .energy = 40 } } };
	static const double want[4] = { 0.6*80*3/200, 80*3/200./3, 80*3/200./3, 40*3/200./3 };
	(void)state;
	for (size_t turn = 0; turn < 4; turn++) {
		struct plan_tensor list[4];
		for (size_t i = 0; i < 4; i++)
			list[(i + turn) % 4] = (struct plan_tensor){ .t = t + i, .option = option[i], .n = 2 };
		plan_weigh(list, 4, true);
		for (size_t i = 0; i < 4; i++)
			assert_true(fabs(list[(i + turn) % 4].weight - want[i]) < 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_combination_is_better), cmocka_unit_test(sizes_that_must_be_rounded_cost_little),
		cmocka_unit_test(an_embedding_counts_as_output_only_without_an_output_matrix),
		cmocka_unit_test(energy_divides_the_weight_of_a_role_among_layers),
		cmocka_unit_test(all_last_matrices_of_a_layer_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
