/* SPDX-License-Identifier: MIT
 * test_belt.c - order at the taking and the putting station, one thread at each, all items worked on once, few of them
 * at a time, and a stop after which nothing more is put. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <cmocka.h>
#include "../../libgguf/belt.h"
#include "../../libgguf/pool.h"
#include "../lib/between.h"

enum { SLOTS_MAX = 64 };
struct run {
	size_t items, stop_at, n_slots;
	size_t slot[SLOTS_MAX];                 /* which item is there */
	size_t taken, put;
	atomic_int taking, putting;
	atomic_size_t worked, aboard, wrong;
	uint32_t sum;
};

static bool take(void *ctx, size_t slot)
{
	struct run *r = ctx;
	bool more = r->taken < r->items;
	if (atomic_fetch_add(&r->taking, 1)) r->wrong++;
	if (more) {
		if (slot != r->taken % r->n_slots || ++r->aboard > r->n_slots) r->wrong++;
		r->slot[slot] = r->taken++;
	}
	atomic_fetch_sub(&r->taking, 1);
	return more;
}
static void work(void *ctx, size_t slot, int worker)
{
	struct run *r = ctx;
	volatile uint32_t spin = 0;
	(void)worker;
	/* some take long, so that those after them reach the putting station early */
	for (size_t i = 0; i < (r->slot[slot]*2654435761u >> 7)%5000; i++) spin = spin + 1;
	r->worked++;
}
static bool put(void *ctx, size_t slot)
{
	struct run *r = ctx;
	if (atomic_fetch_add(&r->putting, 1)) r->wrong++;
	if (r->slot[slot] != r->put++) r->wrong++;
	r->sum = r->sum*31 + (uint32_t)r->slot[slot];
	r->aboard--;
	atomic_fetch_sub(&r->putting, 1);
	return r->put != r->stop_at;
}
static void run(struct run *r, int threads, size_t n_slots, size_t items, size_t stop_at)
{
	static const struct ggu_belt at = { take, work, put };
	struct ggu_pool *pool = ggu_pool_new(threads);
	assert_non_null(pool);
	*r = (struct run){ .items = items, .stop_at = stop_at };
	r->n_slots = n_slots ? n_slots : ggu_belt_slots(pool);
	assert_between(r->n_slots, 1, SLOTS_MAX);
	assert_int_equal(ggu_belt_run(pool, r->n_slots, &at, r), GGU_OK);
	ggu_pool_free(pool);
	assert_int_equal(r->wrong, 0);
	assert_int_equal(r->worked, r->taken);
}

static void keeps_the_order(void **state)
{
	struct run one, r;
	(void)state;
	run(&one, 1, 0, 3000, 0);
	assert_int_equal(one.put, 3000);
	for (int threads = 1; threads < 10; threads++)
		for (size_t slots = 0; slots < 4; slots++) {
			run(&r, threads, slots, 3000, 0);
			assert_int_equal(r.put, 3000);
			assert_int_equal(r.sum, one.sum);
		}
}
static void stops(void **state)
{
	struct run r;
	(void)state;
	for (int threads = 1; threads < 6; threads++)
		for (size_t at = 1; at < 60; at += 7) {
			run(&r, threads, 0, 60, at);
			assert_int_equal(r.put, at);
		}
}
static void has_nothing_to_do(void **state)
{
	struct run r;
	(void)state;
	for (int threads = 1; threads < 4; threads++) {
		run(&r, threads, 0, 0, 0);
		assert_int_equal(r.put, 0);
		run(&r, threads, 0, 1, 0);
		assert_int_equal(r.put, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_order), cmocka_unit_test(stops), cmocka_unit_test(has_nothing_to_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
