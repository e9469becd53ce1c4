/* SPDX-License-Identifier: MIT
 * test_size.c - arithmetic on sizes, at the end of what a size can be: of size.h, and in what the evaluator plans by
 * it. A batch that needs more than there can be is one of millions of tokens where sizes have 32 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../../libgguf/size.h"
#include "../../model/eval/backend.h"
#include "../../quant/quant.h"

/* so much that an allocation fails */
enum { SPARE = 64 };
static bool is_impossible(size_t bytes) { return bytes > SIZE_MAX - SPARE; }

static void sums_and_products_that_fit_are_exact(void **state)
{
	(void)state;
	assert_true(size_plus(3, 4) == 7);
	assert_true(size_plus(SIZE_MAX - 1, 1) == SIZE_MAX);
	assert_true(size_times(3, 4) == 12);
	assert_true(size_times(SIZE_MAX/2, 2) == SIZE_MAX - 1);
	assert_true(size_times(0, SIZE_MAX) == 0 && size_times(SIZE_MAX, 0) == 0);
}

static void others_are_more_than_there_can_be(void **state)
{
	(void)state;
	assert_true(size_plus(SIZE_MAX, 1) == SIZE_MAX);
	assert_true(size_plus(SIZE_MAX/2 + 1, SIZE_MAX/2 + 1) == SIZE_MAX);
	assert_true(size_times(SIZE_MAX/2 + 1, 2) == SIZE_MAX);
	assert_true(size_times(SIZE_MAX, SIZE_MAX) == SIZE_MAX);
	assert_true(size_times(size_times(SIZE_MAX, 3), 4) == SIZE_MAX);
}

static void rounding_up_never_wraps_around(void **state)
{
	(void)state;
	assert_true(size_room(0, 64) == 0 && size_room(1, 64) == 64);
	assert_true(size_room(64, 64) == 64 && size_room(65, 64) == 128);
	assert_true(size_room(7, 3) == 9);
	assert_true(size_room(SIZE_MAX - 63, 64) == SIZE_MAX - 63);
	assert_true(size_room(SIZE_MAX - 62, 64) == SIZE_MAX - 63);
	assert_true(size_room(SIZE_MAX, 64) == SIZE_MAX - 63);
}

static void a_plan_for_too_many_rows_never_wraps_around(void **state)
{
	struct plan p = { .used = 0 };
	(void)state;
	plan_floats(&p, SIZE_MAX/64, 4);
	assert_true(p.peak < SIZE_MAX/2);
	p = (struct plan){ .used = 0 };
	plan_floats(&p, SIZE_MAX/16 + 2, 4);    /* 16 bytes if it wrapped around */
	plan_take(&p, 4096);
	assert_true(is_impossible(p.peak));
	p = (struct plan){ .used = 0 };
	plan_host(&p, SIZE_MAX/2 + 1);
	plan_host(&p, SIZE_MAX/2 + 1);
	assert_true(is_impossible(p.host_peak));
}

static void packed_rows_never_wrap_around(void **state)
{
	(void)state;
	for (int form = QUANT_ACT_FLOAT; form <= QUANT_ACT_256; form++) {
		size_t some = quant_act_bytes((enum quant_act)form, 64, 256);
		assert_true(some >= 64*256 && some < 64*256*64);
		assert_true(is_impossible(quant_act_most_bytes((enum quant_act)form, SIZE_MAX/256 + 1, 256)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_products_that_fit_are_exact),
		cmocka_unit_test(others_are_more_than_there_can_be),
		cmocka_unit_test(rounding_up_never_wraps_around),
		cmocka_unit_test(a_plan_for_too_many_rows_never_wraps_around),
		cmocka_unit_test(packed_rows_never_wrap_around),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
