/* SPDX-License-Identifier: MIT
 * test_turns.c - turns of windows that several threads evaluate: in order for each input, but not more than that; a
 * window that fails ends those after it, and none before. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../../libgguf/pool.h"
#include "../../tools/turns.h"

enum { WINDOWS = 60, INPUTS = 25, THREADS = 4 };
static struct {
	struct turns *turns;
	size_t fails, at;               /* the window that fails at an input; SIZE_MAX: none */
	size_t order[INPUTS][WINDOWS], n[INPUTS];       /* the windows that had their turn with an input */
	atomic_size_t denied;
} all;

static void window(void *ctx, size_t w, int worker)
{
	(void)ctx;
	(void)worker;
	for (size_t i = 0; i < INPUTS; i++) {
		for (size_t k = 0; k < (w*7 + i*13)%5; k++) sched_yield();
		if (!turns_wait(all.turns, w)) {
			atomic_fetch_add(&all.denied, 1);
			turns_fail(all.turns, w);
			return;
		}
		if (w == all.fails && i == all.at) {
			turns_fail(all.turns, w);
			return;
		}
		all.order[i][all.n[i]++] = w;
		turns_next(all.turns, w);
	}
	turns_end(all.turns, w);
}
static void run(size_t fails, size_t at)
{
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	all.turns = turns_new(WINDOWS);
	assert_non_null(all.turns);
	all.fails = fails;
	all.at = at;
	atomic_store(&all.denied, 0);
	for (size_t i = 0; i < INPUTS; i++) all.n[i] = 0;
	ggu_pool_run(pool, WINDOWS, window, NULL);
	turns_free(all.turns);
	ggu_pool_free(pool);
	for (size_t i = 0; i < INPUTS; i++) for (size_t k = 0; k < all.n[i]; k++) assert_int_equal(all.order[i][k], k);
}

static void inputs_are_in_the_order_of_windows(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		run(SIZE_MAX, 0);
		for (size_t i = 0; i < INPUTS; i++) assert_int_equal(all.n[i], WINDOWS);
		assert_int_equal(all.denied, 0);
	}
}

static void a_failing_window_ends_those_after_it(void **state)
{
	(void)state;
	for (size_t at = 0; at < INPUTS; at += 8) {
		run(31, at);
		for (size_t i = 0; i < INPUTS; i++) {
			assert_true(all.n[i] >= 31);
			if (i == at) assert_int_equal(all.n[i], 31);
		}
		assert_int_equal(all.denied, WINDOWS - 32);
	}
}

/* A window with fewer inputs than the next one holds nobody up. */
static void a_window_that_ends_early_lets_others_go_on(void **state)
{
	struct turns *t = turns_new(2);
	(void)state;
	assert_true(turns_wait(t, 0));
	turns_next(t, 0);
	turns_end(t, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(turns_wait(t, 1));
		turns_next(t, 1);
	}
	turns_free(t);
	assert_null(turns_new(SIZE_MAX/2));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(inputs_are_in_the_order_of_windows),
		cmocka_unit_test(a_failing_window_ends_those_after_it),
		cmocka_unit_test(a_window_that_ends_early_lets_others_go_on) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
