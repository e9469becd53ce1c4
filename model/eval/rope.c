/* SPDX-License-Identifier: MIT
 * rope.c - see rope.h. Frequencies and angles are rounded to float32 where the reference implementation
 * (transformers) does. */
#include <math.h>
#include <string.h>
#include "../../quant/vec.h"
#include "rope.h"

static bool same_factors(const float *a, const float *b, size_t n)
{
	return a == b || (a && b && !memcmp(a, b, n*sizeof *a));
}

bool rope_same(const struct rope *a, const struct rope *b)
{
	return a->interleaved == b->interleaved && a->dims == b->dims && a->base == b->base && a->linear == b->linear
		&& a->original == b->original && a->magnitude == b->magnitude && a->yarn == b->yarn
		&& a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow && a->truncate == b->truncate
		&& same_factors(a->divisor, b->divisor, a->dims/2)
		&& same_factors(a->long_divisor, b->long_divisor, a->dims/2);
}

/* Yarn's share of the scaled angle for pair j, 0 to 1: pairs that turn fast are left alone. The bounds of the
 * ramp are rounded outwards to whole pairs where `truncate` says so (Peng et al. 2023, as transformers computes it). */
static double yarn_ramp(const struct rope *r, size_t j)
{
	double per = (double)r->dims/(2*num_log(r->base)), original = (double)r->original, two_pi = 6.283185307179586;
	double low = per*num_log(original/(r->beta_fast*two_pi)), high = per*num_log(original/(r->beta_slow*two_pi)), x;
	if (r->truncate) {
		low = floor(low);
		high = ceil(high);
	}
	if (low < 0) low = 0;
	if (high > (double)(r->dims - 1)) high = (double)(r->dims - 1);
	if (low == high) high += 0.001;
	x = ((double)j - low)/(high - low);
	return x < 0 ? 0 : x > 1 ? 1 : x;
}

void rope_frequencies(const struct rope *r, bool is_long, float *freq)
{
	const float *divisor = is_long && r->long_divisor ? r->long_divisor : r->divisor;
	for (size_t j = 0; j < r->dims/2; j++) {
		float power = (float)num_pow(r->base, (double)((float)(2*j)/(float)r->dims)), f, keep;
		if (divisor) power *= divisor[j];
		f = 1.0f/power;
		if (r->linear != 1) f /= (float)r->linear;
		if (r->yarn > 0) {
			keep = 1 - (float)yarn_ramp(r, j);
			f = f/(float)r->yarn*(1 - keep) + f*keep;
		}
		freq[j] = f;
	}
}

void rope_turn(const struct rope *r, const float *freq, size_t position, float *turn)
{
	size_t half = r->dims/2;
	double magnitude = r->magnitude > 0 ? r->magnitude : r->yarn > 1 ? 0.1*num_log(r->yarn) + 1 : 1;
	for (size_t j = 0; j < half; j++) {
		float angle = (float)position*freq[j];
		turn[j] = (float)num_cos(angle)*(float)magnitude;
		turn[half + j] = (float)num_sin(angle)*(float)magnitude;
	}
}

void rope_apply(const struct rope *r, const float *turn, float *x)
{
	size_t half = r->dims/2;
	if (r->interleaved) vec_turn_pairs(x, turn, turn + half, half);
	else vec_turn(x, x + half, turn, turn + half, half);
}
