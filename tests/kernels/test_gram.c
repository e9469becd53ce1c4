/* SPDX-License-Identifier: MIT
 * Products of inputs with each other: near the sums of what they are taken to, and those near the inputs' own; the same
 * bits for every instruction set and number of threads; and nothing written beyond the triangle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../lib/slow_gram.h"

static float by[GRAM_TOKENS];
static float *numbers(size_t n)
{
	uint32_t s = 1;
	float *v = malloc(n*sizeof *v);
	for (size_t i = 0; i < n; i++) v[i] = (float)(int32_t)(s = s*1664525u + 1013904223u)*0x1p-31f;
	for (size_t t = 0; t < GRAM_TOKENS; t++) by[t] = t % 7 ? 1 : 0.25f;
	return v;
}
static float *summed(struct gram g, int threads)
{
	const size_t floats = g.n*(g.n + 1)/2;
	struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
	struct gram_room room = { 0 };
	g.to = malloc((floats + 1)*sizeof *g.to);
	for (size_t i = 0; i <= floats; i++) g.to[i] = 0.5f;
	assert_int_equal(gram_add(&g, &room, p), GGU_OK);
	assert_true(g.to[floats] == 0.5f);
	gram_room_free(&room);
	ggu_pool_free(p);
	return g.to;
}
static void near(const struct gram *g, const float *y)
{
	double *slow = calloc(g->n*g->n, sizeof *slow);
	slow_gram(g->x, g->stride, g->n_tokens, g->n, g->by, slow);
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; j <= i; j++) {
			double sum = 0, got = (double)y[i*(i + 1)/2 + j] - 0.5;
			for (size_t t = 0; t < g->n_tokens; t++)
				sum += (double)by[t]*by[t]*g->x[t*g->stride + i]*g->x[t*g->stride + j];
			assert_true(fabs(slow[i*g->n + j] - got) < 1e-6*(double)(g->n_tokens + 10));
			/* rounding to eight bits, 1/254 at most of factors up to 1, is of either sign */
			assert_true(fabs(sum - got) < 0.004*5*sqrt((double)g->n_tokens));
		}
	free(slow);
}
static void check(size_t n, size_t n_tokens)
{
	float *x = numbers(GRAM_TOKENS*(n + 3)), *first = NULL;
	const struct gram g = { NULL, n, n_tokens, x + 2, n + 3, by };
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (int threads = 0; threads <= 3; threads += 3) {
			float *y;
			assert_int_equal(quant_select(*isa, NULL), GGU_OK);
			y = summed(g, threads);
			if (!first) {
				near(&g, y);
				first = y;
				continue;
			}
			assert_memory_equal(y, first, n*(n + 1)/2*sizeof *y);
			free(y);
		}
	free(x);
	free(first);
}
static void triangles(void **state)
{
	(void)state;
	check(1, 1);
	check(5, 256);
	check(100, 33);
	check(300, 255);
	check(530, 32);
}
static void no_tokens_and_no_columns_add_nothing(void **state)
{
	float to = 0.5f;
	struct gram g = { &to, 1, 0, NULL, 1, NULL };
	struct gram_room room = { 0 };
	(void)state;
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	g.n = 0; g.n_tokens = 1;
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	assert_true(to == 0.5f && !room.p);
}
static void room_grows_with_what_is_summed(void **state)
{
	enum { LESS = 5, MORE = 300 };
	float *x = numbers(GRAM_TOKENS*MORE), *to = calloc(MORE*(MORE + 1)/2, sizeof *to);
	struct gram g = { to, LESS, 32, x, MORE, by };
	struct gram_room room = { 0 };
	size_t bytes;
	(void)state;
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	bytes = room.bytes;
	g.n = MORE;
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	assert_true(room.bytes > bytes);
	bytes = room.bytes;
	g.n = LESS;
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	assert_true(room.bytes == bytes);
	gram_room_free(&room);
	free(x);
	free(to);
}
int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(triangles),
		cmocka_unit_test(room_grows_with_what_is_summed),
		cmocka_unit_test(no_tokens_and_no_columns_add_nothing) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
