/* SPDX-License-Identifier: MIT
 * test_route.c - routing to experts: in groups and without, compared with a slow choice by sorting; each worker keeps
 * to the scratch that cpu_route_bytes asks for, even with as many experts as there may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../model/eval/cpu_internal.h"

enum { ROWS = 19, THREADS = 3, SPARE = 64 };

/* ---- the slow way ---- */

struct ranked { float score; size_t i; };
static int better(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->score != y->score) return x->score > y->score ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}
/* Ranks score[n], the first of which is number `from`. */
static void rank(struct ranked *r, const float *score, size_t n, size_t from)
{
	for (size_t i = 0; i < n; i++) r[i] = (struct ranked){ score[i], from + i };
	qsort(r, n, sizeof *r, better);
}
static void choose(const struct router *o, const float *score, uint32_t *expert)
{
	const size_t n = o->n_experts, per = n/o->n_groups;
	struct ranked *r = malloc(n*sizeof *r), *g = malloc(o->n_groups*sizeof *g);
	assert_non_null(r);
	assert_non_null(g);
	for (size_t i = 0; i < o->n_groups; i++) {
		rank(r, score + i*per, per, i*per);
		g[i] = (struct ranked){ 0, i };
		for (size_t k = 0; k < o->group_best; k++) g[i].score += r[k].score;
	}
	qsort(g, o->n_groups, sizeof *g, better);
	for (size_t i = 0; i < o->n_groups_used; i++)
		rank(r + i*per, score + g[i].i*per, per, g[i].i*per);
	qsort(r, o->n_groups_used*per, sizeof *r, better);
	for (size_t k = 0; k < o->n_used; k++) expert[k] = (uint32_t)r[k].i;
	free(r);
	free(g);
}

/* ---- comparing ---- */

static uint32_t any(void)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 32);
}

/* Scores are small whole numbers, so that many are equal and sums are exact. */
static void compare(const struct router *o)
{
	const size_t n = o->n_experts, pairs = ROWS*o->n_used, room = cpu_route_bytes(n);
	struct ggu_pool *pool = ggu_pool_new(THREADS);
	struct work w = { .pool = pool, .local_bytes = size_up(room + SPARE, 64) };
	struct run r = { .w = &w, .n = ROWS };
	struct routes to = { malloc(pairs*sizeof *to.expert), malloc(pairs*sizeof *to.weight),
		malloc(pairs*sizeof *to.pick), malloc(pairs*sizeof *to.place), malloc((n + 1)*sizeof *to.first) };
	float *score = malloc(ROWS*n*sizeof *score);
	uint32_t *want = malloc(o->n_used*sizeof *want);
	assert_non_null(score);
	assert_non_null(want);
	for (size_t i = 0; i < ROWS*n; i++) score[i] = (float)(any()%9);
	w.base = (char *)malloc(ROWS*n*sizeof *score);
	w.local = aligned_alloc(64, THREADS*w.local_bytes);
	assert_non_null(w.base);
	assert_non_null(w.local);
	memcpy(w.base, score, ROWS*n*sizeof *score);
	memset(w.local, 0x5a, THREADS*w.local_bytes);
	cpu_route(&r, o, 0, &to);
	for (size_t t = 0; t < ROWS; t++) {
		choose(o, score + t*n, want);
		assert_memory_equal(to.expert + t*o->n_used, want, o->n_used*sizeof *want);
	}
	for (size_t i = 0; i < THREADS; i++)
		for (const char *p = w.local + i*w.local_bytes + room; p < w.local + (i + 1)*w.local_bytes; p++)
			assert_int_equal(*p, 0x5a);
	free(to.expert); free(to.weight); free(to.pick); free(to.place); free(to.first);
	free(score); free(want); free(w.base); free(w.local);
	ggu_pool_free(pool);
}

static void the_best_experts_of_the_best_groups_are_chosen(void **state)
{
	static const struct router o[] = {
		{ 8, 2, 1, 1, 2, ROUTE_SOFTMAX_CHOSEN, .scale = 1 },
		{ 8, 3, 4, 2, 2, ROUTE_SOFTMAX_CHOSEN, .scale = 1 },
		{ 60, 6, 6, 3, 1, ROUTE_SOFTMAX_CHOSEN, .scale = 1 },
		{ 64, 8, 8, 4, 3, ROUTE_SOFTMAX_CHOSEN, .scale = 1 },
		{ 7, 5, 7, 6, 1, ROUTE_SOFTMAX_CHOSEN, .scale = 1 } };
	(void)state;
	for (size_t i = 0; i < sizeof o/sizeof *o; i++) compare(o + i);
}

static void there_is_scratch_for_the_most_experts(void **state)
{
	const size_t n = ROUTE_MAX_EXPERTS;
	(void)state;
	compare(&(struct router){ n, 6, 64, 3, 2, ROUTE_SOFTMAX_CHOSEN, .scale = 1 });
	compare(&(struct router){ n, 6, n, n - 1, 1, ROUTE_SOFTMAX_CHOSEN, .scale = 1 });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_best_experts_of_the_best_groups_are_chosen),
		cmocka_unit_test(there_is_scratch_for_the_most_experts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
