/* SPDX-License-Identifier: MIT
 * sample.c - see sample.h. Tokens are sorted only as far as drawing looks at them. */
#include <math.h>
#include <stdbool.h>
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

static float rank(const float *x, int32_t i) { return x[i] != x[i] ? -INFINITY : x[i]; }
static int32_t greedy(const float *logits, size_t n)
{
	float most = rank(logits, 0);
	int32_t best = 0;
	for (size_t i = 1; i < n; i++)
		if (logits[i] > most) {
			best = (int32_t)i;
			most = logits[i];
		}
	return best;
}

/* ---- the largest, in order ---- */

/* Larger first, equal ones by id: a total order, so that the result is unique. */
static bool before(const float *x, int32_t a, int32_t b)
{
	float p = rank(x, a), q = rank(x, b);
	return p > q || (p == q && a < b);
}

/* Moves entry i of a heap down. Each entry must come behind its two children in the order; entry i may not yet. */
static void sink(const float *x, int32_t *heap, size_t n, size_t i)
{
	int32_t id = heap[i];
	for (size_t c; (c = 2*i + 1) < n; i = c) {
		if (c + 1 < n && before(x, heap[c], heap[c + 1])) c++;
		if (!before(x, id, heap[c])) break;
		heap[i] = heap[c];
	}
	heap[i] = id;
}

/* Puts the first k of n in order. A heap holds the best k so far, and few of the n ever enter it, so this costs little
 * more than looking at each of the n. */
static void select_best(const float *x, size_t n, size_t k, int32_t *order)
{
	float least;
	for (size_t i = 0; i < k; i++) order[i] = (int32_t)i;
	for (size_t i = k/2; i--;) sink(x, order, k, i);
	least = rank(x, order[0]);
	for (size_t i = k; i < n; i++) {
		if (!(x[i] > least)) continue;  /* an equal one has a higher id */
		order[0] = (int32_t)i;
		sink(x, order, k, 0);
		least = rank(x, order[0]);
	}
	for (size_t i = k; --i > 0;) {
		int32_t last = order[0];
		order[0] = order[i];
		order[i] = last;
		sink(x, order, i, 0);
	}
}

/* ---- drawing ---- */

/* The tokens to draw from: the first `keep` of the order, of which the first n_sorted are in place. */
struct draw { const float *x; size_t n, keep, n_sorted; int32_t *order; double top; };

/* Those that equal the largest weigh 1, even if it is infinite. */
static double weight(const struct draw *d, int32_t id, double temperature)
{
	double behind = rank(d->x, id) - d->top;
	return behind < 0 ? num_exp(behind/temperature) : 1;
}
/* The i-th of the order, which is extended as needed: usually a few tokens have nearly all of the probability, and the
 * others are never sorted. */
static int32_t nth(struct draw *d, size_t i)
{
	enum { FIRST = 256, MORE = 16 };
	if (i >= d->n_sorted) {
		d->n_sorted = d->n_sorted ? MORE*d->n_sorted : d->keep < d->n ? d->keep : FIRST;
		if (d->n_sorted > d->keep) d->n_sorted = d->keep;
		select_best(d->x, d->n, d->n_sorted, d->order);
	}
	return d->order[i];
}
/* Adds up all tokens in order of their ids, or the best ones in order of rank. */
static double total_weight(struct draw *d, double temperature)
{
	double total = 0;
	for (size_t i = 0; i < d->keep; i++) total += weight(d, d->keep == d->n ? (int32_t)i : nth(d, i), temperature);
	return total;
}

int32_t sampler_next(struct sampler *s, const float *logits, size_t n, int32_t *order)
{
	struct draw d = { logits, n, s->top_k && s->top_k < n ? s->top_k : n, 0, order, 0 };
	double total, sum = 0, draw;
	size_t k = 0;
	if (s->temperature <= 0) return greedy(logits, n);
	d.top = rank(logits, nth(&d, 0));
	if (s->top_p < 1) {
		total = total_weight(&d, 1);
		while (k < d.keep && sum < s->top_p*total) sum += weight(&d, nth(&d, k++), 1);
		d.keep = k ? k : 1;
	}
	total = total_weight(&d, s->temperature);
	draw = total*(random32(s)*0x1p-32);
	sum = 0;
	for (size_t i = 0; i < d.keep; i++) {
		sum += weight(&d, nth(&d, i), s->temperature);
		if (draw < sum) return nth(&d, i);
	}
	return nth(&d, d.keep - 1);
}
