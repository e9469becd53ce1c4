/* SPDX-License-Identifier: MIT
 * sample.c - see sample.h. */
#include <math.h>
#include <stdlib.h>
#include "../../quant/vec.h"
#include "sample.h"

static const uint64_t pcg_step = 6364136223846793005u, pcg_stream = 1;

static uint32_t random32(struct sampler *s)
{
	uint64_t old = s->state;
	uint32_t x = (uint32_t)(((old >> 18) ^ old) >> 27), turn = (uint32_t)(old >> 59);
	s->state = old*pcg_step + pcg_stream;
	return x >> turn | x << (-turn & 31);
}
void sampler_seed(struct sampler *s, uint64_t seed)
{
	s->state = pcg_stream + seed;
	s->state = s->state*pcg_step + pcg_stream;
}

static int32_t greedy(const float *logits, size_t n)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++) if (logits[i] > logits[best] || logits[best] != logits[best]) best = i;
	return (int32_t)best;
}

/* Larger first, lower id first among equals: a total order, so that any sort gives the same list. */
static _Thread_local const float *sort_by;
static float rank(int32_t i) { return sort_by[i] != sort_by[i] ? -INFINITY : sort_by[i]; }
static int by_logit(const void *a, const void *b)
{
	int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
	float x = rank(i), y = rank(j);
	return x > y ? -1 : x < y ? 1 : (i > j) - (i < j);
}

int32_t sampler_next(struct sampler *s, const float *logits, size_t n, int32_t *order)
{
	double total = 0, sum = 0, top, draw;
	size_t k = 0, keep;
	if (s->temperature <= 0) return greedy(logits, n);
	for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
	sort_by = logits;
	qsort(order, n, sizeof *order, by_logit);
	keep = s->top_k && s->top_k < n ? s->top_k : n;
	top = rank(order[0]);
	if (s->top_p < 1) {
		for (size_t i = 0; i < keep; i++) total += num_exp(rank(order[i]) - top);
		while (k < keep && sum < s->top_p*total) sum += num_exp(rank(order[k++]) - top);
		keep = k ? k : 1;
	}
	total = sum = 0;
	for (size_t i = 0; i < keep; i++) total += num_exp((rank(order[i]) - top)/s->temperature);
	draw = total*(random32(s)*0x1p-32);
	for (size_t i = 0; i < keep; i++) {
		sum += num_exp((rank(order[i]) - top)/s->temperature);
		if (draw < sum) return order[i];
	}
	return order[keep - 1];
}
