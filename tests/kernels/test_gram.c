/* SPDX-License-Identifier: MIT
 * test_gram.c - products of inputs with each other: to the bit what gram.h says, computed column by column, for every
 * instruction set and number of threads; close to the products of the inputs themselves; and nothing is read or written
 * beside them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../lib/guard.h"
#include "../lib/slow_gram.h"

/* The contents of columns: numbers from -1 to 1; 1 or -1; numbers one of which in a hundred is far from the others;
 * some columns of zeros, of the smallest and the largest numbers, and with an infinity or NaN. */
enum kind { PLAIN, SIGNS, OUTLIERS, STRANGE, KINDS };
enum { GAP = 3 };                       /* floats from one token to the next */

static uint32_t seed = 1;
static float uniform(void) { return (float)(int32_t)(seed = seed*1664525u + 1013904223u)*0x1p-31f; }
static float strange(size_t t, size_t j)
{
	static const float few[] = { 0, 0x1p-96f, 0x1.8p-95f, 1e-42f, 3e38f, INFINITY, -INFINITY, NAN };
	const float v = few[j % (sizeof few/sizeof *few)];
	if (j % 3) return uniform();
	return isfinite(v) ? uniform()*v : t == j % 5 ? v : uniform();
}
static float number(enum kind kind, size_t t, size_t j)
{
	switch (kind) {
	case SIGNS: return uniform() < 0 ? -1 : 1;
	case OUTLIERS: return uniform()*(uniform() > 0.98f ? 40.0f : 1.0f);
	case STRANGE: return strange(t, j);
	default: return uniform();
	}
}
/* Are a and b the same, or both NaN? */
static bool same(const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i]))) return false;
	return true;
}

static void summed(struct gram g, int threads, enum guard_side side, const float *expected)
{
	const size_t floats = g.n*(g.n + 1)/2;
	struct ggu_pool *p = threads ? ggu_pool_new(threads) : NULL;
	struct gram_room room = { 0 };
	g.to = guard_new(floats*sizeof *g.to, side);
	for (size_t i = 0; i < floats; i++) g.to[i] = 0.5f;
	assert_int_equal(gram_add(&g, &room, p), GGU_OK);
	assert_true(same(g.to, expected, floats));
	assert_int_equal(guard_free(g.to, floats*sizeof *g.to), 0);
	gram_room_free(&room);
	ggu_pool_free(p);
}
static float *worked_out(const struct gram *g)
{
	struct slow_column *c = malloc(g->n*sizeof *c);
	float *y = malloc(g->n*(g->n + 1)/2*sizeof *y), *to = y;
	for (size_t i = 0; i < g->n; i++) {
		c[i] = slow_gram_column(g->x, g->stride, g->n_tokens, i, g->by);
		for (size_t j = 0; j <= i; j++)
			*to++ = fmaf((float)slow_gram_sum(c + i, c + j)*c[j].scale, c[i].scale, 0.5f);
	}
	free(c);
	return y;
}
static void check(size_t n, size_t n_tokens, enum kind kind, enum guard_side side)
{
	const size_t stride = n + GAP, numbers = (n_tokens - 1)*stride + n;
	float *x = guard_new(numbers*sizeof *x, side), *by = guard_new(n_tokens*sizeof *by, side), *y;
	const struct gram g = { NULL, n, n_tokens, x, stride, by };
	for (size_t t = 0; t < n_tokens; t++) by[t] = t % 7 ? 1 : 0.3f;
	for (size_t t = 0; t < n_tokens; t++) for (size_t j = 0; j < n; j++) x[t*stride + j] = number(kind, t, j);
	y = worked_out(&g);
	for (const char *const *isa = quant_available(); *isa; isa++) {
		assert_int_equal(quant_select(*isa, NULL), GGU_OK);
		summed(g, 0, side, y);
		summed(g, 3, side, y);
	}
	assert_int_equal(guard_free(x, numbers*sizeof *x) + guard_free(by, n_tokens*sizeof *by), 0);
	free(y);
}
static void sums_are_those_of_codes_to_the_bit(void **state)
{
	(void)state;
	for (enum kind kind = PLAIN; kind < KINDS; kind++)
		for (enum guard_side side = 0; side < GUARD_SIDES; side++) {
			check(1, 1, kind, side);
			check(5, 256, kind, side);
			check(31, 3, kind, side);
			check(32, 4, kind, side);
			check(47, 6, kind, side);
			check(100, 33, kind, side);
		}
	check(300, 255, PLAIN, GUARD_END);
	check(300, 256, SIGNS, GUARD_END);
	check(530, 32, PLAIN, GUARD_END);
}

/* How far sums are from those of the inputs, relative to the root of the product of both diagonals. */
static double error_of(enum kind kind)
{
	enum { N = 64 };
	static float x[GRAM_TOKENS][N], by[GRAM_TOKENS], to[N*(N + 1)/2];
	static double exact[N][N];
	const struct gram g = { to, N, GRAM_TOKENS, x[0], N, by };
	struct gram_room room = { 0 };
	double most = 0;
	memset(to, 0, sizeof to);
	memset(exact, 0, sizeof exact);
	for (size_t t = 0; t < GRAM_TOKENS; t++) {
		by[t] = 1;
		for (size_t j = 0; j < N; j++) x[t][j] = number(kind, t, j);
		for (size_t i = 0; i < N; i++) for (size_t j = 0; j <= i; j++) exact[i][j] += (double)x[t][i]*x[t][j];
	}
	assert_int_equal(gram_add(&g, &room, NULL), GGU_OK);
	for (size_t i = 0; i < N; i++)
		for (size_t j = 0; j <= i; j++)
			most = fmax(most, fabs(to[i*(i + 1)/2 + j] - exact[i][j])/sqrt(exact[i][i]*exact[j][j]));
	gram_room_free(&room);
	return most;
}
static void sums_are_near_those_of_inputs(void **state)
{
	(void)state;
	assert_int_equal(quant_select(NULL, NULL), GGU_OK);
	assert_true(error_of(PLAIN) < 0.002);
	assert_true(error_of(OUTLIERS) < 0.01);
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
	static float x[GRAM_TOKENS][MORE], by[GRAM_TOKENS], to[MORE*(MORE + 1)/2];
	struct gram g = { to, LESS, 32, x[0], MORE, by };
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
}
int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sums_are_those_of_codes_to_the_bit),
		cmocka_unit_test(sums_are_near_those_of_inputs), cmocka_unit_test(room_grows_with_what_is_summed),
		cmocka_unit_test(no_tokens_and_no_columns_add_nothing) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
