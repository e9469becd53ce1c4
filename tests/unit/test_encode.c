/* SPDX-License-Identifier: MIT
 * test_encode.c - every encoder writes the same bytes at every instruction set and effort, known bytes
 * for known matrices, and something for hostile ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <xxhash.h>
#include "../../libgguf/types.h"
#include "../../quant/enc.h"

enum { ROWS = 9, COLS = 512, N = ROWS*COLS };
static float x[N], imp[COLS];
static unsigned char want[4*N + 16], got[4*N + 16];

/* Numbers without libm, so that they are the same everywhere: bell is the sum of four uniforms. */
static uint32_t seed;
static float uniform(void) { seed = seed*1664525u + 1013904223u; return (float)(seed >> 8)*0x1p-24f - 0.5f; }
static float bell(void) { return uniform() + uniform() + uniform() + uniform(); }

enum kind {
	SMOOTH, TAILS, HOLES, ONE_SIGN, TINY, HUGE_VALUES, ZERO, TIES, OUTLIER, HALF_DEAD, NOT_FINITE, CODES, KINDS
};
/* a weight decoded from a code of four bits, one step for `columns` columns, and the zero point 8 */
static float step_of(int i, int columns) { return 0.0057f*(float)(8 + i/columns*5%7)/8; }
static float of_code(float v, int i, int columns)
{
	float step = step_of(i, columns), q = rintf(v/step);
	return (q < -8 ? -8 : q > 7 ? 7 : q)*step;
}
static void fill(enum kind kind)
{
	seed = 1 + kind;
	for (int j = 0; j < COLS; j++) {
		float b = bell();
		imp[j] = kind == HOLES && j/32 % 3 == 0 ? 0 : kind == HALF_DEAD ? (float)(j % 2) :
			kind == TIES && j % 64 == 37 ? 1e5f : b*b*b*b + 0.01f;
	}
	for (int i = 0; i < N; i++) {
		float v = bell()*0.03f, u = bell();
		switch (kind) {
		case TAILS: v *= u*u*u*4; break;
		case HOLES: v = i/16 % 5 == 0 ? 0 : v; break;
		case ONE_SIGN: v = i/256 % 2 ? fabsf(v) + 0.01f : -fabsf(v); break;
		case TINY: v *= 1e-5f*(i/COLS % 3 ? 1 : 1e-35f); break;
		case HUGE_VALUES: v *= i/COLS % 2 ? 5e5f : 1e38f; break;
		case ZERO: v = i/COLS % 2 ? 0 : -0.0f; break;
		case TIES: v = rintf(v*100)/128; break;
		case OUTLIER: if (i % 97 == 0) v *= 100; break;
		case NOT_FINITE: if (i % 301 == 7) v = i % 2 ? INFINITY : NAN;
		else if (i/COLS == 3) v = -INFINITY;
		break;
		case CODES: v = of_code(v, i, 128); break;
		default: break;
		}
		x[i] = v;
	}
}
static const float *weights_of(uint32_t type, const float *importance)
{
	static float w[COLS];
	const struct quant_objective usual = quant_objective_default(type, true);
	quant_weigh(&usual, importance, COLS, w);
	return w;
}
static size_t encode(const struct enc_table *t, uint32_t type, const float *w, int effort, unsigned char *dst)
{
	const struct quant_objective usual = quant_objective_default(type, w != NULL);
	const struct how how = { effort - 1, usual.prior, usual.lift };
	uint64_t bytes = 0;
	ggu_type_bytes(type, N, &bytes);
	memset(dst, 0xa5, (size_t)bytes + 16);
	t->fn[type](dst, x, w ? weights_of(type, w) : NULL, ROWS, COLS, &how);
	for (int i = 0; i < 16; i++) assert_int_equal(dst[bytes + (size_t)i], 0xa5);
	return (size_t)bytes;
}

static void instances_agree(void **state)
{
	const struct enc_table *tables[4] = { &quant_enc_c };
	int n = 1;
	(void)state;
#if defined __x86_64__
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) tables[n++] = &quant_enc_avx2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512vl") &&
			__builtin_cpu_supports("avx512vnni")) tables[n++] = &quant_enc_avx512;
#endif
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		if (!quant_can_encode(type)) continue;
		for (int k = 0; k < 2*KINDS; k++) {
			int effort = k % 2 ? 5 : 1 + k % 9;
			const float *w = k < KINDS ? imp : NULL;
			size_t bytes;
			fill((enum kind)(k % KINDS));
			bytes = encode(tables[0], type, w, effort, want);
			for (int v = 1; v < n; v++) {
				encode(tables[v], type, w, effort, got);
				if (memcmp(want, got, bytes) != 0)
					fail_msg("%s: instance %d differs on kind %d, effort %d",
						ggu_type_info(type)->name, v, k, effort);
			}
		}
	}
}

/* A row's bytes depend on nothing but that row: neither on its neighbours in the tile nor on their number. */
static void alone(uint32_t type, const float *importance)
{
	size_t bytes = encode(quant_enc_table, type, importance, 5, want)/ROWS;
	for (size_t r = 0; r < ROWS; r++) {
		quant_encode(type, NULL, x + r*COLS, importance ? weights_of(type, importance) : NULL, 1, COLS, 5, got);
		assert_memory_equal(got, want + r*bytes, bytes);
	}
}
static void rows_stand_alone(void **state)
{
	(void)state;
	for (int plain = 0; plain < 4; plain++) {
		fill(TAILS);
		/* weights of a few values get a search of their own, and their neighbours do not, even if only their
		 * first eight are all different */
		for (int i = 0; i < N && plain; i++) {
			if (i/256 % 2) x[i] = plain == 1 ? x[i] > 0 ? 0.03f : -0.03f : of_code(x[i], i, 128);
			else if (plain == 3) x[i] = i % 16 < 8 ? (float)(i % 16 - 4)*0.006f : of_code(x[i], i, 128);
		}
		for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
			if (!quant_can_encode(type)) continue;
			alone(type, NULL);
			alone(type, imp);
		}
	}
}

/* XXH3 of the bytes at the lowest, the default and the highest effort, with and without importances, for two matrices.
 * A change here changes every file that users make: mention it in NEWS.md. */
static const struct { const char *name; uint64_t hash; } golden[] = {
#include "golden_encode.inc"
	{ NULL, 0 }
};
static void golden_bytes(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		uint64_t h = 0;
		int i = 0;
		if (!quant_can_encode(type)) continue;
		for (int k = 0; k < 12; k++) {
			static const int effort[3] = { QUANT_EFFORT_MIN, QUANT_EFFORT_DEFAULT, QUANT_EFFORT_MAX };
			fill(k/2 % 2 ? TAILS : SMOOTH);
			h = XXH3_64bits_withSeed(got, encode(quant_enc_table, type, k % 2 ? imp : NULL, effort[k/4],
				got), h);
		}
		while (golden[i].name && strcmp(golden[i].name, ggu_type_info(type)->name) != 0) i++;
		if (!golden[i].name || golden[i].hash != h) {
			print_error("{ \"%s\", 0x%016llx },\n", ggu_type_info(type)->name, (unsigned long long)h);
			if (!getenv("ENCODE_GOLDEN_PRINT")) fail_msg("bytes of %s changed", ggu_type_info(type)->name);
		}
	}
}

/* The relative squared error of the default search of each super-block type, by kind of matrix: limits far above what
 * it is, and far below what a search gone astray would leave. Huge rows that no f16 scale can reach are left out. */
static void errors_stay_small(void **state)
{
	static const enum kind kinds[] = { SMOOTH, TAILS, HOLES, ONE_SIGN, HUGE_VALUES, TIES, OUTLIER, HALF_DEAD };
	static const struct { uint32_t type; double limit; } types[] = {
		{ GGU_TYPE_Q2_K, 0.12 }, { GGU_TYPE_Q3_K, 0.04 }, { GGU_TYPE_Q4_0, 0.02 }, { GGU_TYPE_Q4_1, 0.02 },
		{ GGU_TYPE_Q4_K, 0.01 },
		{ GGU_TYPE_Q5_0, 0.006 }, { GGU_TYPE_Q5_1, 0.006 }, { GGU_TYPE_Q5_K, 0.003 },
		{ GGU_TYPE_Q6_K, 0.0008 }, { GGU_TYPE_Q8_0, 0.0002 },
		{ GGU_TYPE_IQ1_S, 0.35 }, { GGU_TYPE_IQ1_M, 0.2 }, { GGU_TYPE_IQ2_XXS, 0.55 },
		{ GGU_TYPE_IQ2_XS, 0.37 }, { GGU_TYPE_IQ2_S, 0.37 }, { GGU_TYPE_IQ3_XXS, 0.14 },
		{ GGU_TYPE_IQ3_S, 0.12 }, { GGU_TYPE_IQ4_NL, 0.0095 }, { GGU_TYPE_IQ4_XS, 0.0095 },
		{ GGU_TYPE_TQ1_0, 0.4 }, { GGU_TYPE_TQ2_0, 0.4 }, { GGU_TYPE_Q2_0, 0.15 },
		{ GGU_TYPE_MXFP4, 0.021 }, { GGU_TYPE_Q1_0, 0.99 },
	};
	static float y[N];
	(void)state;
	for (size_t k = 0; k < sizeof kinds/sizeof *kinds; k++)
		for (size_t i = 0; i < sizeof types/sizeof *types; i++) {
			double err = 0, norm = 0;
			fill(kinds[k]);
			encode(quant_enc_table, types[i].type, NULL, QUANT_EFFORT_DEFAULT, got);
			quant_decode(types[i].type, got, y, N);
			for (int j = 0; j < N; j++) {
				double d = (double)y[j] - x[j];
				if (fabsf(x[j]) > 1e30f || (kinds[k] == HUGE_VALUES && j/COLS % 2 == 0)) continue;
				err += d*d;
				norm += (double)x[j]*x[j];
			}
			if (!(err <= types[i].limit*norm))
				fail_msg("%s, kind %d: relative error %g", ggu_type_info(types[i].type)->name,
					(int)kinds[k], err/norm);
		}
}

/* What has been lost of x in `back`: the squared error, weighted if there are importances, as a share of the whole. */
static float back[N];
static double share_of(const float *importance)
{
	double err = 0, norm = 0;
	for (int i = 0; i < N; i++) {
		double d = (double)back[i] - x[i], w = importance ? importance[i % COLS] : 1;
		err += w*d*d;
		norm += w*x[i]*x[i];
	}
	return err/norm;
}
/* What a search leaves of x. */
static double share_left_by(uint32_t type, const float *importance, int effort)
{
	encode(quant_enc_table, type, importance, effort, got);
	quant_decode(type, got, back, N);
	return share_of(importance);
}
static double share_left(uint32_t type, const float *importance)
{
	return share_left_by(type, importance, QUANT_EFFORT_DEFAULT);
}

/* What searches leave at the lowest, the default and the highest effort, without and with importances, means of two
 * matrices: at most a thousandth more than errors_encode.inc says, so that a candidate which is never tried is seen,
 * also by those who mean to change bytes; and not a hundredth less, as without a lift or a prior. ENCODE_GOLDEN_PRINT=1
 * prints that file. */
enum { FIGURES = 6 };
static const struct { const char *name; double left[FIGURES]; } figures[] = {
#include "errors_encode.inc"
	{ NULL, { 0 } }
};
static void searches_leave_what_they_did(void **state)
{
	static const int effort[] = { QUANT_EFFORT_MIN, QUANT_EFFORT_DEFAULT, QUANT_EFFORT_MAX };
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		const char *name = quant_can_encode(type) ? ggu_type_info(type)->name : NULL;
		double left[FIGURES] = { 0 };
		int i = 0;
		if (!name || ggu_type_info(type)->block_weights == 1) continue;
		for (int k = 0; k < 2*FIGURES; k++) {
			fill(k % 2 ? TAILS : SMOOTH);
			left[k/2] += share_left_by(type, k/2 % 2 ? imp : NULL, effort[k/4])/2;
		}
		if (getenv("ENCODE_GOLDEN_PRINT"))
			print_error("{ \"%s\", { %.5g, %.5g, %.5g, %.5g, %.5g, %.5g } },\n", name, left[0],
				left[1], left[2], left[3], left[4], left[5]);
		while (figures[i].name && strcmp(figures[i].name, name) != 0) i++;
		for (int k = 0; k < FIGURES && !getenv("ENCODE_GOLDEN_PRINT"); k++)
			if (!(figures[i].name && left[k] <= 1.001*figures[i].left[k]
				&& left[k] >= 0.99*figures[i].left[k]))
				fail_msg("%s, effort %d%s: %g is left", name, effort[k/2],
					k % 2 ? ", with importances" : "", left[k]);
	}
}

/* Weights of models that were trained with three levels or two, or all equal: if a type's levels times a scale can be
 * these, that scale is found, up to the rounding of f16 and of integer scales. */
static void few_levels_are_kept(void **state)
{
	static const uint32_t types[] = { GGU_TYPE_Q2_K, GGU_TYPE_Q3_K, GGU_TYPE_Q4_K, GGU_TYPE_Q5_K, GGU_TYPE_Q6_K,
		GGU_TYPE_Q4_0, GGU_TYPE_Q4_1, GGU_TYPE_Q5_0, GGU_TYPE_Q5_1, GGU_TYPE_TQ1_0, GGU_TYPE_TQ2_0,
		GGU_TYPE_Q2_0 };
	/* the lowest, and how many; the last time some sub-blocks have no -1, no 1, or nothing but 1 */
	static const int levels[][2] = { { -1, 3 }, { 0, 2 }, { -1, 2 }, { 1, 1 }, { -1, 3 } };
	(void)state;
	for (size_t m = 0; m < sizeof levels/sizeof *levels; m++) {
		fill(SMOOTH);
		for (int i = 0; i < N; i++) {
			int level = levels[m][0] + (int)((uniform() + 0.5f)*(float)levels[m][1]);
			if (m == 4 && i/16 % 7 < 3 && (i/16 % 7 == 2 || level == (i/16 % 7 ? 1 : -1)))
				level = i/16 % 7 == 2;
			x[i] = (float)level*0.03f/(float)(1 + i/COLS);
		}
		for (size_t k = 0; k < 2*sizeof types/sizeof *types; k++) {
			double left = share_left(types[k/2], k % 2 ? imp : NULL);
			if (!(left <= 5e-6)) fail_msg("%s, %d levels from %d: %g is left",
				ggu_type_info(types[k/2])->name, levels[m][1], levels[m][0], left);
		}
	}
}

/* Weights that were decoded from codes of four bits, of three for Q3_K, or of five, with a step for a row, a group or
 * 32 columns, and in types with mins also with another zero point: a type with as many codes finds them again, up to
 * the rounding of f16 and of integer scales, in place of others that fit as badly as those of any weights, which would
 * leave 1e-6 in Q6_K, and 3e-4 and more in other types. */
static void codes_of_other_types_are_found(void **state)
{
	static const int columns[] = { COLS, 128, 32 };
	static const struct { uint32_t type; bool mins; float top; double limit[3]; } types[] = {
		{ GGU_TYPE_Q4_K, true, 7, { 1e-8, 2e-5, 5e-5 } }, { GGU_TYPE_Q5_K, true, 7, { 1e-8, 2e-5, 5e-5 } },
		{ GGU_TYPE_Q3_K, false, 3, { 1e-8, 1e-7, 1e-7 } }, { GGU_TYPE_Q6_K, false, 7, { 1e-8, 1e-7, 1e-7 } },
		{ GGU_TYPE_Q4_0, false, 7, { 2e-7, 2e-7, 2e-7 } }, { GGU_TYPE_Q5_0, false, 7, { 2e-7, 2e-7, 2e-7 } },
		{ GGU_TYPE_Q4_1, true, 7, { 2e-7, 2e-7, 2e-7 } }, { GGU_TYPE_Q5_1, true, 7, { 2e-7, 2e-7, 2e-7 } },
		{ GGU_TYPE_Q5_K, true, 15, { 1e-8, 2e-5, 5e-5 } }, { GGU_TYPE_Q6_K, false, 15, { 1e-8, 1e-7, 1e-7 } },
	};
	(void)state;
	for (size_t t = 0; t < sizeof types/sizeof *types; t++)
		for (int k = 0; k < 12; k++) {
			const int m = k/4;
			double left;
			if (k/2 % 2 && !types[t].mins) continue;
			fill(SMOOTH);
			for (int i = 0; i < N; i++) {
				const float top = types[t].top, step = step_of(i, columns[m])*(top > 7 ? 0.5f : 1);
				const float q = rintf(x[i]/step);
				x[i] = (q < -top - 1 ? -top - 1 : q > top ? top : q)*step + (k/2 % 2 ? 5*step : 0);
			}
			left = share_left(types[t].type, k % 2 ? imp : NULL);
			if (!(left <= types[t].limit[m])) fail_msg("%s, a step for %d columns: %g is left",
				ggu_type_info(types[t].type)->name, columns[m], left);
		}
}
/* Common factors of the integer scales, or of codes, leave a choice of d, and f16 rounds none of one value well. */
static void scales_of_ternary_weights_are_rounded_well(void **state)
{
	static const uint32_t types[] = { GGU_TYPE_Q2_K, GGU_TYPE_Q3_K, GGU_TYPE_Q4_K, GGU_TYPE_Q5_K, GGU_TYPE_Q6_K,
		GGU_TYPE_Q4_0, GGU_TYPE_Q4_1, GGU_TYPE_Q5_0, GGU_TYPE_Q5_1 };
	(void)state;
	for (size_t k = 0; k < sizeof types/sizeof *types; k++) {
		double left = 0;
		fill(SMOOTH);
		for (int i = 0; i < N; i++)
			x[i] = (float)((int)((uniform() + 0.5f)*3) - 1)*(0.03f + 0.0007f*(float)(i/COLS));
		left = share_left(types[k], NULL);
		if (!(left <= 1e-8)) fail_msg("%s: %g is left", ggu_type_info(types[k])->name, left);
	}
}

/* A weight near the end of f16 leaves hardly any codes for the others: the min must still fit f16. */
static void a_huge_weight_keeps_the_min_in_range(void **state)
{
	(void)state;
	for (int weighed = 0; weighed < 2; weighed++) {
		fill(SMOOTH);
		for (int i = 0; i < N; i += 32) x[i + i/32 % 32] = i % 64 ? 6e4f : -6e4f;
		assert_true(share_left(GGU_TYPE_Q4_1, weighed ? imp : NULL) < 1e-4);
		assert_true(share_left(GGU_TYPE_Q5_1, weighed ? imp : NULL) < 1e-4);
	}
}

/* A column that counts ten million times as much as the others decides only one equation for d and dmin of its
 * super-block; the others decide the rest. It costs none of the weights more than writing zeros would. */
static void a_column_that_counts_alone_spoils_no_other(void **state)
{
	static const uint32_t types[] = { GGU_TYPE_Q2_K, GGU_TYPE_Q4_K, GGU_TYPE_Q5_K };
	static const enum kind kinds[] = { SMOOTH, TAILS, OUTLIER };
	float one[COLS];
	(void)state;
	for (size_t k = 0; k < 9; k++)
		for (int j = 0; j < COLS; j += 4) {
			double left;
			fill(kinds[k/3]);
			for (int i = 0; i < COLS; i++) one[i] = i == j ? 1 : 1e-7f;
			left = share_left(types[k%3], one);
			if (!(left < 1)) fail_msg("%s, kind %d, column %d: %g is left",
				ggu_type_info(types[k%3])->name, (int)kinds[k/3], j, left);
		}
}

/* Blocks with a scale and a min of their own meet such a column, and fit the others as well as without it. */
static void beside_a_column_that_counts_alone_the_others_are_fitted(void **state)
{
	static const struct { uint32_t type; double limit; } types[] = {
		{ GGU_TYPE_Q4_1, 0.0055 }, { GGU_TYPE_Q5_1, 0.0013 }
	};
	float heavy[COLS], rest[COLS];
	(void)state;
	for (int k = 0; k < 2*32; k++) {
		double met, left;
		fill(SMOOTH);
		for (int j = 0; j < COLS; j++) {
			heavy[j] = j % 32 == k/2 ? 1e6f : 1;
			rest[j] = j % 32 == k/2 ? 0 : 1;
		}
		met = share_left(types[k % 2].type, heavy);
		left = share_of(rest);
		if (!(met < 1e-6 && left <= types[k % 2].limit))
			fail_msg("%s, column %d: %g and %g are left", ggu_type_info(types[k % 2].type)->name, k/2,
				met, left);
	}
}

/* Weights a hundred thousand times smaller than usual, so that the super-block's scale is among the smallest numbers of
 * f16 or below: the sub-blocks' scales make up for it. */
static void tiny_weights_keep_their_size(void **state)
{
	static const struct { uint32_t type; double limit; } types[] = {
		{ GGU_TYPE_Q2_K, 0.09 }, { GGU_TYPE_Q3_K, 0.03 }, { GGU_TYPE_Q4_K, 0.01 }, { GGU_TYPE_Q5_K, 0.004 },
		{ GGU_TYPE_Q6_K, 0.002 }, { GGU_TYPE_IQ4_XS, 0.1 },
	};
	(void)state;
	for (size_t k = 0; k < 2*sizeof types/sizeof *types; k++) {
		double left;
		fill(k % 2 ? ONE_SIGN : SMOOTH);
		for (int i = 0; i < N; i++) x[i] *= 4e-5f;
		left = share_left(types[k/2].type, NULL);
		if (!(left <= types[k/2].limit)) fail_msg("%s: %g is left", ggu_type_info(types[k/2].type)->name, left);
	}
}

/* Weights whose scales are among the smallest numbers of f16, or below the smallest, which is 6e-8: they lose what its
 * steps cost, but not everything. */
static void coarse_scales_are_chosen_by_what_they_leave(void **state)
{
	static const struct { uint32_t type; double limit[3]; } types[] = {
		{ GGU_TYPE_Q4_0, { 0.0075, 0.0089, 0.027 } }, { GGU_TYPE_Q4_1, { 0.006, 0.0072, 0.027 } },
		{ GGU_TYPE_Q5_0, { 0.0024, 0.0037, 0.027 } }, { GGU_TYPE_Q5_1, { 0.0019, 0.0031, 0.027 } },
		{ GGU_TYPE_Q2_K, { 0.077, 0.077, 0.12 } }, { GGU_TYPE_Q3_K, { 0.022, 0.024, 0.032 } },
		{ GGU_TYPE_Q4_K, { 0.0084, 0.016, 0.028 } }, { GGU_TYPE_Q5_K, { 0.0092, 0.048, 0.027 } },
		{ GGU_TYPE_Q6_K, { 0.0008, 0.001, 0.027 } }, { GGU_TYPE_IQ4_NL, { 0.032, 0.12, 1 } },
		{ GGU_TYPE_IQ4_XS, { 0.032, 0.12, 1 } }, { GGU_TYPE_IQ3_S, { 0.025, 0.055, 0.11 } },
		{ GGU_TYPE_IQ3_XXS, { 0.043, 0.067, 0.16 } }, { GGU_TYPE_IQ2_S, { 0.07, 0.077, 0.12 } },
		{ GGU_TYPE_IQ2_XS, { 0.1, 0.11, 0.15 } }, { GGU_TYPE_IQ2_XXS, { 0.13, 0.13, 0.17 } },
		{ GGU_TYPE_IQ1_S, { 0.23, 0.22, 0.31 } }, { GGU_TYPE_IQ1_M, { 0.19, 0.19, 0.22 } },
	};
	static const float size[3] = { 2e-6f, 1e-6f, 2e-7f };
	(void)state;
	for (size_t k = 0; k < sizeof types/sizeof *types; k++)
		for (int i = 0; i < 3; i++) {
			double most = 0;
			fill(SMOOTH);
			for (int j = 0; j < N; j++) x[j] *= size[i]/0.03f;
			for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort += 4)
				for (int weighed = 0; weighed < 2; weighed++) {
					double left = share_left_by(types[k].type, weighed ? imp : NULL, effort);
					most = left > most ? left : most;
				}
			if (!(most <= types[k].limit[i]))
				fail_msg("%s, weights of %g: %g is left", ggu_type_info(types[k].type)->name,
					(double)size[i], most);
		}
}

/* Steps or mins beyond f16: weights of up to 1e6, and blocks with one of -9e4. The codes suit what can be stored. */
static void scales_beyond_f16_are_fitted_too(void **state)
{
	static const struct { uint32_t type; double limit[2]; } types[] = {
		{ GGU_TYPE_Q4_0, { 0.03, 0.02 } }, { GGU_TYPE_Q4_1, { 0.4, 0.1 } },
		{ GGU_TYPE_Q5_0, { 0.002, 0.01 } }, { GGU_TYPE_Q5_1, { 0.4, 0.1 } },
	};
	(void)state;
	for (size_t k = 0; k < 2*sizeof types/sizeof *types; k++) {
		fill(SMOOTH);
		for (int i = 0; i < N; i++) x[i] = k % 2 ? (i % 32 ? x[i]*1e5f : -9e4f) : x[i]/0.06f*1e6f;
		for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort += 4) {
			double left = share_left_by(types[k/2].type, NULL, effort);
			if (!(left <= types[k/2].limit[k % 2]))
				fail_msg("%s, kind %d, effort %d: %g is left", ggu_type_info(types[k/2].type)->name,
					(int)(k % 2), effort, left);
		}
	}
}

static void refuses_what_is_no_block(void **state)
{
	static const uint32_t types[] = { 4, GGU_TYPE_I32, GGU_TYPE_F64, GGU_TYPE_COUNT, UINT32_MAX };
	float v[32] = { 1 };
	unsigned char b[128] = { 0x5a };
	(void)state;
	for (size_t i = 0; i < sizeof types/sizeof *types; i++) {
		assert_int_equal(quant_encode(types[i], NULL, v, NULL, 1, 32, 5, b), GGU_ERR_UNSUPPORTED);
		assert_int_equal(b[0], 0x5a);
		if (types[i] != GGU_TYPE_F64) assert_int_equal(quant_decode(types[i], b, v, 32), GGU_ERR_UNSUPPORTED);
		assert_true(v[0] == 1);
	}
}

/* d = 1/127*127, so each x is its own quotient: halves are rounded away from zero */
static void q8_0_rounds_as_ggml(void **state)
{
	static const float v[8] = { 127, 0.5f, -0.5f, 1.5f, -2.5f, 0.49999997f, -63.5f, 126.49999f };
	static const signed char q[8] = { 127, 1, -1, 2, -3, 0, -64, 126 };
	unsigned char b[34];
	float in[32] = { 0 };
	(void)state;
	memcpy(in, v, sizeof v);
	quant_encode(GGU_TYPE_Q8_0, NULL, in, NULL, 1, 32, 5, b);
	assert_int_equal(b[0] | b[1] << 8, 0x3c00);
	assert_memory_equal(b + 2, q, 8);
}

static void floats_round_to_even(void **state)
{
	static const struct { uint32_t f; uint16_t f16, bf16; } c[] = {
		{ 0x3f800000, 0x3c00, 0x3f80 }, { 0x3f801000, 0x3c00, 0x3f80 }, { 0x3f803000, 0x3c02, 0x3f80 },
		{ 0x3f808000, 0x3c04, 0x3f80 }, { 0x3f818000, 0x3c0c, 0x3f82 }, { 0x477fefff, 0x7bff, 0x4780 },
		{ 0x477ff000, 0x7c00, 0x4780 }, { 0x7f7fffff, 0x7c00, 0x7f80 }, { 0xff800000, 0xfc00, 0xff80 },
		{ 0x33000000, 0x0000, 0x3300 }, { 0x33000001, 0x0001, 0x3300 }, { 0xb3c00000, 0x8002, 0xb3c0 },
		{ 0x387fffff, 0x0400, 0x3880 }, { 0x80000000, 0x8000, 0x8000 }, { 0x00000001, 0x0000, 0x0000 },
		{ 0x7fc00000, 0x7e00, 0x7fc0 }, { 0x7f800001, 0x7e00, 0x7fc0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof c/sizeof *c; i++) {
		uint16_t h = 0;
		float f;
		memcpy(&f, &c[i].f, 4);
		quant_encode(GGU_TYPE_F16, NULL, &f, NULL, 1, 1, 5, &h);
		assert_int_equal(h, c[i].f16);
		quant_encode(GGU_TYPE_BF16, NULL, &f, NULL, 1, 1, 5, &h);
		assert_int_equal(h, c[i].bf16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instances_agree),
		cmocka_unit_test(rows_stand_alone),
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(errors_stay_small),
		cmocka_unit_test(searches_leave_what_they_did),
		cmocka_unit_test(few_levels_are_kept),
		cmocka_unit_test(codes_of_other_types_are_found),
		cmocka_unit_test(scales_of_ternary_weights_are_rounded_well),
		cmocka_unit_test(a_huge_weight_keeps_the_min_in_range),
		cmocka_unit_test(a_column_that_counts_alone_spoils_no_other),
		cmocka_unit_test(beside_a_column_that_counts_alone_the_others_are_fitted),
		cmocka_unit_test(tiny_weights_keep_their_size),
		cmocka_unit_test(coarse_scales_are_chosen_by_what_they_leave),
		cmocka_unit_test(scales_beyond_f16_are_fitted_too),
		cmocka_unit_test(refuses_what_is_no_block),
		cmocka_unit_test(q8_0_rounds_as_ggml),
		cmocka_unit_test(floats_round_to_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
