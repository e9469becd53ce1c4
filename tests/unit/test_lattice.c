/* SPDX-License-Identifier: MIT
 * test_lattice.c - weights of a decoded file are encoded without any error: in types with mins also where a float has
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

static float x[BLOCK], back[BLOCK];
static unsigned char got[BLOCK];

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
	float w[BLOCK];
	quant_decode(type, block, x, n);
	for (size_t i = 0; i < n; i++) w[i] = any() % 4 ? expf(6*bell()) : 1e-6f;
	for (int k = 0; k < 6; k++) {
		quant_encode(type, NULL, x, k % 2 ? w : NULL, 1, n, efforts[k/2], again);
		quant_decode(type, again, back, n);
		for (size_t i = 0; i < n; i++)
			if (x[i] != back[i])
				fail_msg("%s, effort %d: weight %zu is %a, not %a", ggu_type_info(type)->name,
					efforts[k/2], i, back[i], x[i]);
	}
}
/* Encodes x, and expects that the weights which this stands for are kept. */
static void stays(uint32_t type)
{
	unsigned char block[BLOCK];
	quant_encode(type, NULL, x, NULL, 1, ggu_type_info(type)->block_weights, 1 + (int)(any() % 9), block);
	is_kept(type, block);
}

static void weights_far_from_zero_are_kept(void **state)
{
	static const float means[] = { 0, 1, 10, 75, 300, 1000 };
	(void)state;
	seed = 1;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 240; k++) {
			const float unit = ldexpf(any() % 2 ? 1 : -1, -(int)(any() % 10));
			for (int i = 0; i < BLOCK; i++) x[i] = (bell() + means[k % 6])*unit;
			stays(types[t].type);
		}
}
static void weights_beside_an_outlier_are_kept(void **state)
{
	(void)state;
	seed = 2;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 200; k++) {
			const int n = (int)ggu_type_info(types[t].type)->block_weights;
			for (int i = 0; i < n; i++) x[i] = k % 2 ? bell() : 0;
			for (int i = 0; i <= k/2 % 3; i++) x[(int)any() % n] = ldexpf(bell(), 10 + (int)(any() % 8));
			stays(types[t].type);
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
	(void)state;
	seed = 4;
	for (int k = 0; k < 100; k++) {
		const float far = (float)(k % 4*150);
		for (int i = 0; i < BLOCK; i++) x[i] = ((float)(i % 32)/7 + far)*(1 + (float)(i/32)/9);
		stays(GGU_TYPE_Q5_K);
	}
}
/* Not a number, in sub-blocks that would be on the lattice: -fsanitize=float-cast-overflow sees whether it is
 * converted. */
static void what_is_no_number_has_no_code(void **state)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY };
	unsigned char blocks[2*BLOCK];
	(void)state;
	for (int t = 0; t < TYPES; t++)
		for (int k = 0; k < 3*BLOCK; k++) {
			for (int i = 0; i < BLOCK; i++) x[i] = i/32 % 2 ? 1 : 100 + (float)(i % 4);
			x[k/3] = odd[k % 3];
			quant_encode(types[t].type, NULL, x, NULL, 1, BLOCK, 1, blocks);
		}
}

/* Sub-blocks whose mins are 2^24 times as far from zero as the others', with scales for which the largest number of
 * parts is tried: UndefinedBehaviorSanitizer sees whether the products fit. */
static void far_mins_are_not_multiplied_past_their_range(void **state)
{
	float v[256];
	unsigned char b[144];
	(void)state;
	for (int i = 0; i < 256; i++) v[i] = (i < 32 ? 61.0f : 61*0x1p-24f) + (i % 2 ? 945*0x1p-18f : 0);
	quant_encode(GGU_TYPE_Q4_K, NULL, v, NULL, 1, 256, QUANT_EFFORT_MIN, b);
	quant_decode(GGU_TYPE_Q4_K, b, back, 256);
	for (int i = 0; i < 256; i++) assert_true(fabsf(back[i] - v[i]) < 0.01f);
}

/* A weight that is not a number has no code: -fsanitize=float-cast-overflow sees whether it is converted to one. */
static void no_code_is_made_of_what_is_no_number(void **state)
{
	(void)state;
	for (int k = 0; k < 32; k++) x[k] = k < 31 ? (float)(k % 16) - 0x1p-15f : NAN;
	for (uint32_t type = GGU_TYPE_Q4_1; type <= GGU_TYPE_Q5_1; type += GGU_TYPE_Q5_1 - GGU_TYPE_Q4_1) {
		quant_encode(type, NULL, x, NULL, 1, 32, QUANT_EFFORT_DEFAULT, got);
		quant_decode(type, got, back, 32);
		for (int k = 0; k < 32; k++) assert_true(isfinite(back[k]));
	}
}

/* Sparse weights of a decoded file: added to a min far below, a weight is rounded to a float; and a single weight may
 * be 3 times a four-bit scale, but not 2 or 4 times one. */
static void sparse_lattices_are_kept(void **state)
{
	static const float one[] = { 21/128.0f, -21/128.0f, 45/512.0f, 39/512.0f };
	static const float min[] = { 0x1.548p-15f, -0x1.7f4p-14f, 0x1.6p-21f, -0x1.cp-22f };
	uint8_t block[256];
	float *y = back;
	(void)state;
	for (int i = 0; i < 64; i++) {
		memset(x, 0, sizeof x);
		for (int k = 0; k < 4; k++) x[16*k + (i + 3*k) % 16] = one[(i + k) % 4];
		quant_encode(GGU_TYPE_NVFP4, NULL, x, NULL, 1, 64, 5, block);
		quant_decode(GGU_TYPE_NVFP4, block, y, 64);
		for (int k = 0; k < 64; k++) assert_true(y[k] == x[k]);
		for (uint32_t type = GGU_TYPE_Q4_1; type <= GGU_TYPE_Q5_1; type += GGU_TYPE_Q5_1 - GGU_TYPE_Q4_1) {
			for (int k = 0; k < 32; k++)
				x[k] = (k % 10 ? 0 : 0x1.2dcp-4f*(float)(k % 3 ? 15 : i % 15)) + min[i % 4];
			quant_encode(type, NULL, x, NULL, 1, 32, 5, block);
			quant_decode(type, block, y, 32);
			assert_memory_equal(x, y, 32*sizeof *x);
		}
	}
}

/* Encodes x, one block, and expects no error. */
static void lattice_is_kept(uint32_t type, size_t n)
{
	quant_encode(type, NULL, x, NULL, 1, n, 5, got);
	quant_decode(type, got, back, n);
	for (size_t i = 0; i < n; i++) assert_true(back[i] == x[i]);
}
/* Up to the last finite one, which is 1.5 times 2^127, also where none is larger than 2^126. */
static void the_greatest_of_mxfp4_are_kept(void **state)
{
	static const float level[8] = { 0, 1, 2, 3, 4, 6, 8, 12 };
	unsigned char block[17];
	(void)state;
	for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort++)
		for (int top = 1; top < 8; top++) {
			for (int i = 0; i < 32; i++) x[i] = ldexpf(level[i*5 % (top + 1)], 124)*(i % 2 ? 1 : -1);
			quant_encode(GGU_TYPE_MXFP4, NULL, x, NULL, 1, 32, effort, block);
			quant_decode(GGU_TYPE_MXFP4, block, back, 32);
			for (int i = 0; i < 32; i++) assert_true(back[i] == x[i]);
		}
}
/* Weights of a single magnitude are multiples of many scales, and for most of these the digits are not a word of the
 * book. */
static void words_of_a_book_are_kept(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		/* d; the numbers of 64 words, all but one the word of the smallest digits; scales */
		unsigned char block[110] = { 0xc3, 7, [106] = 0xe7, 0x84, (unsigned char)(0x47 + i), 0xe5 };
		block[2 + i] = 0xea;
		quant_decode(GGU_TYPE_IQ3_S, block, x, 256);
		lattice_is_kept(GGU_TYPE_IQ3_S, 256);
	}
}
/* Sub-blocks of equal weights, without differences: only mins, steps besides them, both together. */
static void equal_weights_of_a_lattice_are_kept(void **state)
{
	static const uint32_t supers[] = { GGU_TYPE_Q2_K, GGU_TYPE_Q4_K, GGU_TYPE_Q5_K };
	const float d = 0x1.23p-9f, dmin = 0x1.57p-8f;
	(void)state;
	for (size_t k = 0; k < sizeof supers/sizeof *supers; k++) {
		const int n = supers[k] == GGU_TYPE_Q2_K ? 16 : 32;
		for (int kind = 0; kind < 3; kind++) {
			for (int i = 0; i < 256; i++) {
				const int j = i/n, q = j % 2 ? 3 : i % 4, ls = 1 + j % 7;
				x[i] = kind == 2 ? (float)(ls*q)*d - (float)(j % 5)*dmin :
					kind == 1 && j % 2 ? (float)(3*ls)*d : (float)-j*dmin;
			}
			lattice_is_kept(supers[k], 256);
		}
	}
	for (int i = 1; i < 200; i++) {
		for (int k = 0; k < 32; k++) x[k] = (0x1p-4f + (float)i*0x1p-14f)*(i % 2 ? 1 : -1) + 15*0x1p-24f;
		lattice_is_kept(GGU_TYPE_Q4_1, 32);
		lattice_is_kept(GGU_TYPE_Q5_1, 32);
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
		cmocka_unit_test(far_mins_are_not_multiplied_past_their_range),
		cmocka_unit_test(no_code_is_made_of_what_is_no_number),
		cmocka_unit_test(sparse_lattices_are_kept),
		cmocka_unit_test(words_of_a_book_are_kept),
		cmocka_unit_test(the_greatest_of_mxfp4_are_kept),
		cmocka_unit_test(equal_weights_of_a_lattice_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
