/* SPDX-License-Identifier: MIT
 * enc_exact.h - finds scales and codes of weights that are already on a type's lattice, such as those of a decoded
 * file.
 *
 * A search for the least error does not find an error of zero by itself: f16 has too many scales. But on the lattice,
 * weights are whole multiples of d, and so is their greatest common divisor. So d is the divisor over a small integer,
 * and must be an f16. Weights that are on no lattice are recognized by their first few, as the divisor soon becomes too
 * small. Types with mins have more to find: enc_lattice.h. What is found is a proposal: the caller decodes the block
 * and compares. */
#ifndef QUANT_ENC_EXACT_H
#define QUANT_ENC_EXACT_H
#include "enc_affine.h"
#include "enc_grid.h"
#include "enc_lattice.h"
#include "enc_levels.h"
#include "enc_tile.h"

enum { EXACT_WEIGHTS = 256, EXACT_PARTS = 4096 };
/* A unit's weights as integers times 2^exponent. */
struct exact {
	int64_t x[EXACT_WEIGHTS];
	int exponent;
	/* set by exact_divide: the greatest common divisor; the largest magnitude; the most divisors that a magnitude
	 * on the lattice can be */
	int64_t divisor, top, most;
	int n, subs;
	struct lattice found;
};

/* The greatest common divisor of a and b; or 1, sooner, if it is less than `least`. */
static int64_t exact_gcd(int64_t a, int64_t b, int64_t least)
{
	while (b) {
		int64_t r = a % b;
		if (r && (r < 0 ? -r : r) < least) return 1;
		a = b; b = r;
	}
	return a < 0 ? -a : a;
}
/* Loads the first n weights. false: some are not finite, or their exponents are too far apart for integers. */
static bool exact_load(struct exact *e, const float *x, int n)
{
	int least = 255, most = 0;
	for (int i = 0; i < n; i++) {
		const uint32_t u = float_bits(x[i]) & 0x7fffffff;
		const int k = u >> 23 ? (int)(u >> 23) : 1;
		if (u == 0) continue;
		least = k < least ? k : least;
		most = k > most ? k : most;
	}
	if (most == 255 || most - least > 24) return false;
	e->n = n;
	e->exponent = least - 150;
	for (int i = 0; i < n; i++) {
		const uint32_t u = float_bits(x[i]), k = u >> 23 & 255;
		const int64_t m = (int64_t)((u & 0x7fffff) | (k ? 0x800000u : 0)) << (u << 1 ? (int)(k ? k :
			1) - least : 0);
		e->x[i] = u >> 31 ? -m : m;
	}
	return true;
}
/* The greatest common divisor of the loaded weights. false: it is so small that they are on no lattice. */
static bool exact_divide(const struct coder *c, struct exact *e)
{
	const struct levels *l = c->levels;
	const int64_t level = c->book ? 64 : l->uneven ? 127 : (int64_t)fmaxf(-l->lo, l->hi);
	const float multiplier = c->book ? 2*c->book->top + 1 : fmaxf(-l->slo, l->shi);
	e->most = level*(multiplier > 0 ? (int64_t)multiplier : 1);
	e->divisor = e->top = 0;
	for (int i = 0; i < e->n; i++) {
		const int64_t m = e->x[i] < 0 ? -e->x[i] : e->x[i];
		e->top = m > e->top ? m : e->top;
		if (m && (!e->divisor || m % e->divisor)) e->divisor = exact_gcd(m, e->divisor, e->top/e->most);
		if (e->top > e->most*e->divisor) return false;
	}
	return true;
}
/* Is numerator*2^exponent over k units an f16? Stores it in *d. */
static bool exact_half(const struct exact *e, int64_t numerator, int k, double unit, double *d)
{
	double v = ldexp((double)numerator, e->exponent)/unit;
	float h = f16_near((float)(v/k));
	*d = h;
	return h != 0 && (double)h*k == v;
}

/* The code of a level; -1: there is none. */
static int exact_level(const struct levels *a, int64_t level)
{
	if (!a->uneven) return level < (int64_t)a->lo || level > (int64_t)a->hi ? -1 : (int)level - (int)a->lo;
	for (int i = 0; i < 8; i++) {
		if ((int64_t)a->uneven->even[i] == level) return 2*i;
		if ((int64_t)a->uneven->odd[i] == level) return 2*i + 1;
	}
	return -1;
}
/* The digit of a level, with the bits for delta and sign that grid_tile puts beside it; -1: there is none. other: with
 * the other delta */
static int exact_digit(const struct grid *a, int64_t level, int other)
{
	int64_t shift = other ? (int64_t)a->shift : 0, m = level < 0 && !a->delta ? -level : level;
	for (int i = 0; i < a->base; i++)
		if ((int64_t)a->level[i] + shift == m) return i | other << 6 | (level < 0 && !a->delta) << 7;
	return -1;
}
/* Are the digits of n weights words of the book? */
static bool exact_words(const struct grid *a, const uint8_t *code, int n)
{
	for (int i = 0; i < n; i += a->word) if (!grid_has(a, code + i)) return false;
	return true;
}
/* Finds the codes of n weights, each a whole multiple of step/parts. The delta of a book is the same for all of
 * them. */
static bool exact_codes(const struct coder *c, const int64_t *x, int n, int64_t parts, int64_t step, uint8_t *code)
{
	for (int other = 0; other < (c->book && c->book->delta ? 2 : 1); other++) {
		int i = 0;
		for (; i < n; i++) {
			int q = x[i]*parts % step ? -1 : c->book ? exact_digit(c->book, x[i]*parts/step, other) :
				exact_level(c->levels, x[i]*parts/step);
			if (q < 0) break;
			code[i] = (uint8_t)q;
		}
		if (i == n && (!c->book || exact_words(c->book, code, n))) return true;
	}
	return false;
}
static bool exact_zeros(const int64_t *x, int n)
{
	for (int i = 0; i < n; i++) if (x[i]) return false;
	return true;
}
/* The possible factors of d in a sub-block: lo, lo + by, .. hi */
struct exact_range { int lo, hi, by; };
/* Finds the factor and the codes of each sub-block, where d is the divisor over parts. */
static bool exact_subs(const struct coder *c, struct exact *e, int parts, struct exact_range range)
{
	const int words = c->book && c->book->delta == DELTA_WORD ? 8 : c->n;
	for (int j = 0; j < e->subs; j++) {
		const int end = (j + 1)*c->n;
		int s = range.lo, at;
		for (; s <= range.hi; s += range.by) {
			at = j*c->n;
			if (s == 0 && exact_zeros(e->x + at, c->n)) {
				memset(e->found.code + at, 0, (size_t)c->n);
				at = end;
			}
			while (s && at < end && exact_codes(c, e->x + at, words, parts, e->divisor*s,
				e->found.code + at))
				at += words;
			if (at == end) break;
		}
		if (s > range.hi) return false;
		e->found.sub[j] = s;
	}
	return true;
}
/* Types without mins: weight = d*factor*level. */
static bool exact_scaled(const struct coder *c, struct exact *e)
{
	const bool alone = !c->book && !(c->levels->shi > 0);   /* one scale */
	const struct exact_range range = c->book ? (struct exact_range){ 1, 2*(int)c->book->top + 1, 2 } :
		alone ? (struct exact_range){ 1, 1, 1 } :
		(struct exact_range){ (int)c->levels->slo, (int)c->levels->shi, 1 };
	if (!e->top) return false;                      /* every search makes zeros of zeros */
	for (int parts = 1; parts <= EXACT_PARTS && e->top*parts <= e->most*e->divisor; parts++) {
		if (!exact_half(e, e->divisor, parts, c->book ? c->book->unit : 1, &e->found.d)) continue;
		if (!exact_subs(c, e, parts, range)) continue;
		for (int j = 0; c->book && j < e->subs; j++) e->found.sub[j] = (e->found.sub[j] - 1)/2;
		return true;
	}
	return false;
}

/* ---- with mins, where the weights of each sub-block are equal; the others are in enc_lattice.h ---- */

/* Those above 0 are d*ls*q, the others mins. */
static bool exact_flat(const struct coder *c, struct exact *e)
{
	const int nmax = (int)c->affine->nmax, smax = (int)fmaxf(c->affine->smax, 1);
	const int64_t most[2] = { (int64_t)fmaxf(c->affine->mmax, 1), nmax*smax };
	struct lattice *to = &e->found;
	int64_t divisor[2] = { 0, 0 };
	double *const d[2] = { &to->dmin, &to->d };
	memset(to, 0, sizeof *to);
	for (int i = 0; i < e->n; i += c->n)
		divisor[e->x[i] > 0] = exact_gcd(e->x[i], divisor[e->x[i] > 0], 0);
	for (int up = 0; up < 2; up++) {
		bool done = !divisor[up];
		for (int parts = 1; !done && parts <= most[up]; parts++) {
			done = exact_half(e, divisor[up], parts, 1, d[up]);
			for (int j = 0; done && j < e->subs; j++) {
				const int64_t x = e->x[j*c->n], k = (x < 0 ? -x : x)/divisor[up];
				if ((x > 0) != up) continue;
				done = k <= most[up]/parts;
				if (!done) break;
				to->min[j] = up ? 0 : (int)k*parts;
				to->sub[j] = up ? lat_ls((int)k*parts, smax, nmax) : 0;
				done = to->sub[j] >= 0;
				if (done && up) memset(to->code + j*c->n, (int)k*parts/to->sub[j], (size_t)c->n);
			}
		}
		if (!done) return false;
	}
	return divisor[0] || divisor[1];                /* every search makes zeros of zeros */
}
/* A block of equal weights that are a step above a min that is an f16 below them. */
static bool exact_above(const struct coder *c, float x, struct lattice *to)
{
	const float m = f16_near(f16_near(x) < x ? x : x - fabsf(x)*0x1p-11f);
	for (int q = (int)c->affine->nmax; q > 0; q--) {
		const float d = f16_near((x - m)/(float)q);
		if (!(d > 0) || d*(float)q + m != x) continue;
		to->d = d; to->dmin = -(double)m;
		to->sub[0] = to->min[0] = 1;
		memset(to->code, q, (size_t)c->n);
		return true;
	}
	return false;
}
static enum exact_result exact_affine(const struct coder *c, struct exact *e, const float *x, bool negated)
{
	bool flat;
	if (!lat_maybe(c->affine, c->per, x, &flat)) return EXACT_NO_LATTICE;
	if (!flat) return lat_find(c, x, negated, &e->found);
	if (!exact_load(e, x, c->n*c->per)) return EXACT_NO_LATTICE;
	for (int i = 0; negated && i < e->n; i++) e->x[i] = -e->x[i];
	if (exact_flat(c, e)) return EXACT_FOUND;
	return c->per == 1 && !negated && exact_above(c, x[0], &e->found) ? EXACT_FOUND : EXACT_NOT_FOUND;
}

/* Encodes a unit's weights if they are found to be on the lattice, with a negative d if `negated`. */
static enum exact_result encode_exactly(const struct coder *c, const float *x, bool negated, void *block)
{
	/* the first weights usually show that they are on none */
	const int all = c->n*c->per, stage[] = { 4, all < 32 ? all : 32, all };
	enum exact_result result = EXACT_NOT_FOUND;
	struct exact e;
	const struct lattice *l = &e.found;
	struct fitted f;
	struct tile t;
	if (!c->exact) return EXACT_NO_LATTICE;
	e.subs = c->per;
	if (c->affine) {
		result = exact_affine(c, &e, x, negated);
	} else {
		for (int i = 0; i < 3; i++)
			if (!exact_load(&e, x, stage[i]) || !exact_divide(c, &e)) return EXACT_NO_LATTICE;
		for (int i = 0; negated && i < e.n; i++) e.x[i] = -e.x[i];
		e.found.dmin = 0;
		if (exact_scaled(c, &e)) result = EXACT_FOUND;
	}
	if (result != EXACT_FOUND) return result;
	if (negated) { e.found.d = -l->d; e.found.dmin = -l->dmin; }
	f.d[0] = (float)l->d;
	f.m[0] = c->affine && !(c->affine->smax > 0) ? -(float)l->dmin*(float)l->min[0] : (float)l->dmin;
	for (int j = 0; j < e.subs; j++) {
		f.ls[j] = (float)l->sub[j]; f.lm[j] = c->affine ? (float)l->min[j] : 0;
		memcpy(t.code[j], l->code + j*c->n, (size_t)c->n);
	}
	c->pack(block, &t, &f, 0);
	return EXACT_FOUND;
}
#endif
