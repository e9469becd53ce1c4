/* SPDX-License-Identifier: MIT
 * test_teams.c - windows shared out among teams: each once, in whole groups; what is left goes to the team of all
 * threads after the others; the error is that of the first group that fails. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "../../tools/teams.h"

enum { THREADS = 4, MOST = 100 };
static struct {
	struct teams t;
	_Atomic uint64_t done, apart;   /* windows; of those, by teams of one thread */
	atomic_int seen[MOST], calls;
	bool fails[MOST];               /* the windows that do */
	struct teams_error why[MOST];   /* by first window */
	uint64_t last;                  /* where the team of all threads began; UINT64_MAX: it did not */
	uint64_t apart_then;            /* what was done by then */
} all;

static const struct teams_error *evaluate(void *ctx, size_t team, uint64_t first, size_t n)
{
	const struct teams_error *why = NULL;
	(void)ctx;
	atomic_fetch_add(&all.calls, 1);
	for (uint64_t k = 0; k < first*7%5; k++) sched_yield();
	for (uint64_t w = first; w < first + n; w++) {
		atomic_fetch_add(&all.seen[w], 1);
		if (all.fails[w]) why = all.why + first;
	}
	if (team == all.t.n && all.last == UINT64_MAX) {
		all.last = first;
		all.apart_then = all.apart;
	}
	if (team < all.t.n) atomic_fetch_add(&all.apart, n);
	return why;
}
static const struct teams_error *run(struct ggu_pool *pool, size_t n, size_t side, uint64_t first, uint64_t end)
{
	all.t = (struct teams){ pool, n, side, evaluate, NULL, &all.done };
	all.done = all.apart = 0;
	all.calls = 0;
	for (size_t i = 0; i < MOST; i++) all.seen[i] = 0;
	all.last = UINT64_MAX;
	return teams_run(&all.t, first, end);
}

static void every_window_is_evaluated_once(void **state)
{
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	(void)state;
	for (size_t side = 1; side <= 5; side++)
		for (uint64_t first = 0; first < 3; first++)
			for (uint64_t end = first; end <= MOST; end += 9) {
				assert_null(run(pool, THREADS, side, first, end));
				for (uint64_t w = 0; w < MOST; w++)
					assert_int_equal(all.seen[w], w >= first && w < end);
				assert_int_equal(all.done, end - first);
			}
	ggu_pool_free(pool);
}

/* 45 windows are 15 groups of three: three for each of four threads, and nine windows are left. */
static void what_is_left_goes_to_all_threads_afterwards(void **state)
{
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	(void)state;
	assert_null(run(pool, THREADS, 3, 1, 46));
	assert_int_equal(teams_groups(&all.t, 45), 12);
	assert_int_equal(all.apart, 36);
	assert_int_equal(all.last, 37);
	assert_int_equal(all.apart_then, 36);
	assert_int_equal(all.calls, 15);
	ggu_pool_free(pool);
}

static void without_teams_of_one_thread_all_go_to_the_other(void **state)
{
	(void)state;
	assert_null(run(NULL, 0, 4, 0, 10));
	assert_int_equal(all.last, 0);
	assert_int_equal(all.calls, 3);
	assert_int_equal(all.apart, 0);
}

static void the_error_is_that_of_the_first_group_that_fails(void **state)
{
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	(void)state;
	for (uint64_t w = 10; w < MOST; w += 3) all.fails[w] = true;
	for (int round = 0; round < 50; round++) {
		assert_ptr_equal(run(pool, THREADS, 2, 0, MOST), all.why + 10);
		assert_int_equal(all.last, UINT64_MAX);
		/* each team stops with its first failure */
		assert_in_range((uint64_t)all.calls - all.done/2, 1, THREADS);
	}
	/* and if only the last team fails, it is its own; the last windows are not tried */
	memset(all.fails, 0, sizeof all.fails);
	all.fails[97] = true;
	assert_ptr_equal(run(pool, THREADS, 1, 1, 100), all.why + 97);
	assert_int_equal(all.last, 97);
	assert_int_equal(all.seen[98], 0);
	memset(all.fails, 0, sizeof all.fails);
	ggu_pool_free(pool);
}

static void threads_are_apart_with_enough_groups_and_memory(void **state)
{
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	(void)state;
	assert_int_equal(teams_apart(pool, THREADS, 1), THREADS);
	assert_int_equal(teams_apart(pool, THREADS - 1, 1), 0);
	assert_int_equal(teams_apart(pool, 100, (double)(1 << 28)), THREADS);
	assert_int_equal(teams_apart(pool, 100, (double)(1 << 28) + 1), 0);
	assert_int_equal(teams_apart(NULL, 100, 1), 0);
	ggu_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_window_is_evaluated_once),
		cmocka_unit_test(what_is_left_goes_to_all_threads_afterwards),
		cmocka_unit_test(without_teams_of_one_thread_all_go_to_the_other),
		cmocka_unit_test(the_error_is_that_of_the_first_group_that_fails),
		cmocka_unit_test(threads_are_apart_with_enough_groups_and_memory) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
