/* SPDX-License-Identifier: MIT
 * test_sizes.c - encoders at every size of weights that a float has: nothing finite becomes infinite, nothing is worse
 * than zeros would be, and more effort is not worse than less. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "../../libgguf/types.h"
#include "../../quant/quant.h"

enum { ROWS = 9, COLS = 512, N = ROWS*COLS };
static float x[N], back[N];
static unsigned char got[4*N];

/* Numbers without libm, so that they are the same everywhere: bell is the sum of four uniforms. */
static uint32_t seed;
static float uniform(void) { seed = seed*1664525u + 1013904223u; return (float)(seed >> 8)*0x1p-24f - 0.5f; }
static float bell(void) { return uniform() + uniform() + uniform() + uniform(); }

/* The largest float everywhere: no scale may be chosen whose levels leave the range of a float. */
static void the_greatest_stay_finite(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++) x[i] = i % 3 ? FLT_MAX : -FLT_MAX;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		if (!quant_can_encode(type) || type == GGU_TYPE_F16 || type == GGU_TYPE_BF16 || type == GGU_TYPE_Q8_0)
			continue;
		for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort += 4) {
			quant_encode(type, NULL, x, NULL, ROWS, COLS, effort, got);
			quant_decode(type, got, back, N);
			for (int i = 0; i < N; i++)
				if (!isfinite(back[i]))
					fail_msg("type %u effort %d: weight %d is %g", type, effort, i,
						(double)back[i]);
		}
	}
}

/* Rows from the least of floats to the greatest, and where f16 begins and ends, as one of five kinds of weights:
 * ordinary; with few that are not zero; on one side of zero, and in places far from it; one in a block a thousand times
 * the others; of 40 magnitudes. */
static void fill_sizes(int kind)
{
	static const int size[ROWS] = { -140, -126, -24, -20, -14, 0, 14, 16, 127 };
	seed = 1 + (uint32_t)kind;
	for (int i = 0; i < N; i++) {
		float v = bell()*0.5f, u = uniform();
		switch (kind) {
		case 1: v = u < 0.35f ? 0 : v; break;
		case 2: v = i/32 % 5 == 0 ? 0.5f + 0.01f*v : fabsf(v); break;
		case 3: v *= i % 32 == i/32 % 32 ? 1 : 1e-3f; break;
		case 4: v = ldexpf(v, -(i*7 % 40)); break;
		default: break;
		}
		x[i] = ldexpf(v*0.999f, size[i/COLS])*2;
	}
}
/* The error of n weights from x[i] on, as the search counts it, and as zeros would have it. */
static void lost(const struct quant_objective *o, const float *w, int i, int n, double *err, double *zeros)
{
	double rms = 0;
	*err = *zeros = 0;
	for (int k = i; k < i + n; k++) rms += (double)x[k]*x[k];
	rms = sqrt(rms/n);
	for (int k = i; k < i + n; k++) {
		const double d = (double)back[k] - x[k], prior = rms > 0 ? (double)o->prior*fabs(x[k])/rms : 0;
		const double g = (w ? w[k % COLS] : 1)*(1 + prior);
		*err += g*d*d;
		*zeros += g*x[k]*x[k];
	}
}
/* At every effort, of every size and kind of weights, no block loses more than zeros would, not even where few columns
 * count for all the others, or importances are far apart; and nothing finite becomes infinite. */
static void no_search_loses_more_than_zeros(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		const struct ggu_type_info *t = ggu_type_info(type);
		if (!quant_can_encode(type) || t->block_weights == 1 || type == GGU_TYPE_Q8_0) continue;
		for (int k = 0; k < 3*5*QUANT_EFFORT_MAX; k++) {
			const int effort = 1 + k/15, n = (int)t->block_weights, kind = k/3 % 5;
			const struct quant_objective o = quant_objective_default(type, k % 3);
			float one[COLS], weight[COLS];
			const float *w;
			for (int j = 0; j < COLS; j++)
				one[j] = k % 3 == 1 ? (j % 128 == 37 ? 1e7f : 1) : ldexpf(1, j*29 % 81 - 40);
			quant_weigh(&o, one, COLS, weight);
			w = k % 3 ? weight : NULL;
			fill_sizes(kind);
			quant_encode(type, NULL, x, w, ROWS, COLS, effort, got);
			quant_decode(type, got, back, N);
			for (int i = 0; i < N; i++)
				if (!isfinite(back[i])) fail_msg("%s: %a became %a", t->name, x[i], back[i]);
			for (int i = 0; i < N; i += n) {
				double err, zeros;
				lost(&o, w, i, n, &err, &zeros);
				if (err > zeros*(1 + 1e-6))
					fail_msg("%s, effort %d, kind %d, importances %d, row %d: %g of zeros' error",
						t->name, effort, kind, k % 3, i/COLS, err/zeros);
			}
		}
	}
}

/* Two super-blocks of ordinary weights lose at most 6 percent more for a higher effort, and 50 where f16 is so coarse
 * that chance decides. */
static void more_effort_loses_no_more(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < GGU_TYPE_COUNT; type++) {
		const struct quant_objective plain = { 0.22f, 0, 0 };
		double least[ROWS];
		if (!quant_can_encode(type)) continue;
		for (int r = 0; r < ROWS; r++) least[r] = INFINITY;
		fill_sizes(0);
		for (int effort = QUANT_EFFORT_MIN; effort <= QUANT_EFFORT_MAX; effort++) {
			quant_encode(type, &plain, x, NULL, ROWS, COLS, effort, got);
			quant_decode(type, got, back, N);
			for (int r = 0; r < ROWS; r++) {
				double err, zeros;
				lost(&plain, NULL, r*COLS, COLS, &err, &zeros);
				if (err > least[r]*(r < 5 ? 1.5 : 1.06))
					fail_msg("%s, row %d: effort %d loses %g, a lower one %g",
						ggu_type_info(type)->name, r, effort, err/zeros, least[r]/zeros);
				least[r] = err < least[r] ? err : least[r];
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_greatest_stay_finite),
		cmocka_unit_test(no_search_loses_more_than_zeros),
		cmocka_unit_test(more_effort_loses_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
