/* SPDX-License-Identifier: MIT
 * test_lattice.c - weights of a decoded file are encoded without any error, in types with mins: also where a float has
 * rounded the sums of steps and mins, which it does far from zero. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "../../libgguf/types.h"
#include "../../quant/blocks.h"
#include "../../quant/quant.h"

static const struct { uint32_t type; size_t d, min; } types[] = {
	{ GGU_TYPE_Q2_K, offsetof(struct q2_k, d), offsetof(struct q2_k, dmin) },
	{ GGU_TYPE_Q4_K, offsetof(struct q4_k, d), offsetof(struct q4_k, dmin) },
	{ GGU_TYPE_Q5_K, offsetof(struct q5_k, d), offsetof(struct q5_k, dmin) },
	{ GGU_TYPE_Q4_1, offsetof(struct q4_1, d), offsetof(struct q4_1, m) },
	{ GGU_TYPE_Q5_1, offsetof(struct q5_1, d), offsetof(struct q5_1, m) },
};
enum { TYPES = sizeof types/sizeof *types, BLOCK = 256 };

static uint32_t seed;
static uint32_t any(void) { seed = seed*1664525u + 1013904223u; return seed >> 8; }
static float uniform(void) { return (float)any()*0x1p-24f - 0.5f; }
static float bell(void) { return (uniform() + uniform() + uniform() + uniform())*1.7f; }      /* a deviation near 1 */

/* Decodes a block, encodes its weights at several efforts, with importances and without, and expects them back. */
static void is_kept(uint32_t type, const void *block)
{
	static const int efforts[] = { 1, 5, 9 };
	const size_t n = ggu_type_info(type)->block_weights;
	unsigned char again[BLOCK];
	float x[BLOCK], y[BLOCK], w[BLOCK];
	quant_decode(type, block, x, n);
	for (size_t i = 0; i < n; i++) w[i] = any() % 4 ? expf(6*bell()) : 1e-6f;
	for (int k = 0; k < 6; k++) {
		quant_encode(type, NULL, x, k % 2 ? w : NULL, 1, n, efforts[k/2], again);
		quant_decode(type, again, y, n);
		for (size_t i = 0; i < n; i++)
			if (x[i] != y[i])
				fail_msg("%s, effort %d: weight %zu is %a, not %a", ggu_type_info(type)->name,
					efforts[k/2], i, y[i], x[i]);
	}
}
/* Encodes x and expects that the weights that this stands for are kept. */
static void stays(uint32_t type, const float *x)
{
	unsigned char block[BLOCK];
	quant_encode(type, NULL, x, NULL, 1, ggu_type_info(type)->block_weights, 1 + (int)(any() % 9), block);
	is_kept(type, block);
}

static void weights_far_from_zero_are_kept(void **state)
{
	static const float means[] = { 0, 1, 10, 75, 300, 1000 };
	float x[BLOCK];
	(void)state;
	seed = 1;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 240; k++) {
			const float unit = ldexpf(any() % 2 ? 1 : -1, -(int)(any() % 10));
			for (int i = 0; i < BLOCK; i++) x[i] = (bell() + means[k % 6])*unit;
			stays(types[t].type, x);
		}
}
static void weights_beside_an_outlier_are_kept(void **state)
{
	float x[BLOCK];
	(void)state;
	seed = 2;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 200; k++) {
			const int n = (int)ggu_type_info(types[t].type)->block_weights;
			for (int i = 0; i < n; i++) x[i] = k % 2 ? bell() : 0;
			for (int i = 0; i <= k/2 % 3; i++) x[(int)any() % n] = ldexpf(bell(), 10 + (int)(any() % 8));
			stays(types[t].type, x);
		}
}
/* Of any bits, with scales between 2^-8 and 2 and mins from far below to far above them, of either sign */
static void any_scales_and_mins_are_kept(void **state)
{
	(void)state;
	seed = 3;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 300; k++) {
			const float d = ldexpf(1 + fabsf(uniform()), -(int)(any() % 9))*(any() % 4 ? 1 : -1);
			const float min = d*ldexpf(1 + fabsf(uniform()), k % 34 - 20)*(any() % 4 ? 1 : -1);
			const uint16_t half[2] = { quant_f32_to_f16(d), quant_f32_to_f16(min) };
			unsigned char block[BLOCK];
			for (int i = 0; i < BLOCK; i++) block[i] = (unsigned char)any();
			memcpy(block + types[t].d, &half[0], sizeof *half);
			memcpy(block + types[t].min, &half[1], sizeof *half);
			is_kept(types[t].type, block);
		}
}
/* Q5_K's sub-blocks have as many codes as weights: a ramp uses each of them once. */
static void weights_that_are_all_different_are_kept(void **state)
{
	float x[BLOCK];
	(void)state;
	seed = 4;
	for (int k = 0; k < 100; k++) {
		const float far = (float)(k % 4*150);
		for (int i = 0; i < BLOCK; i++) x[i] = ((float)(i % 32)/7 + far)*(1 + (float)(i/32)/9);
		stays(GGU_TYPE_Q5_K, x);
	}
}
/* Not a number, in sub-blocks that would be on the lattice: -fsanitize=float-cast-overflow sees whether it is
 * converted. */
static void what_is_no_number_has_no_code(void **state)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY };
	unsigned char blocks[2*BLOCK];
	float x[BLOCK];
	(void)state;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 3*BLOCK; k++) {
			for (int i = 0; i < BLOCK; i++) x[i] = i/32 % 2 ? 1 : 100 + (float)(i % 4);
			x[k/3] = odd[k % 3];
			quant_encode(types[t].type, NULL, x, NULL, 1, BLOCK, 1, blocks);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_far_from_zero_are_kept),
		cmocka_unit_test(weights_beside_an_outlier_are_kept),
		cmocka_unit_test(any_scales_and_mins_are_kept),
		cmocka_unit_test(weights_that_are_all_different_are_kept),
		cmocka_unit_test(what_is_no_number_has_no_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
