/* SPDX-License-Identifier: MIT
 * enc_exact.h - finds scales and codes of weights that are already on a type's lattice, such as those of a decoded
 * file.
 *
 * A search for the least error does not find an error of zero by itself: f16 has too many scales. But on the lattice,
 * the weights, or their differences within a sub-block, are whole multiples of d, and so is their greatest common
 * divisor. So d is the divisor over a small integer, and must be an f16. Weights that are on no lattice are recognized
 * by their first few, as the divisor soon becomes too small. What is found here is a proposal: the caller decodes the
 * block and compares. */
#ifndef QUANT_ENC_EXACT_H
#define QUANT_ENC_EXACT_H
#include "enc_affine.h"
#include "enc_grid.h"
#include "enc_levels.h"
#include "enc_tile.h"

enum { EXACT_WEIGHTS = 256, EXACT_SUBS = 16, EXACT_PARTS = 4096 };
/* A unit's weights as integers times 2^exponent. */
struct exact {
	int64_t x[EXACT_WEIGHTS];
	int exponent;
	/* set by exact_divide: the greatest common divisor; the largest magnitude, of the weights or of their
	 * differences; the most divisors that a magnitude on the lattice can be */
	int64_t divisor, top, most;
	int n, subs;
	int sub[EXACT_SUBS];            /* the factor of d in each, as in fitted.ls */
	int min[EXACT_SUBS];
	double d, dmin;
	uint8_t code[EXACT_WEIGHTS];
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
/* The greatest common divisor of the loaded weights, or, with mins, of their differences within sub-blocks. false: it
 * is so small that they are on no lattice. */
static bool exact_divide(const struct coder *c, struct exact *e)
{
	const struct affine *a = c->affine;
	const struct levels *l = c->levels;
	const int64_t level = a ? (int64_t)a->nmax : c->book ? 64 : l->uneven ? 127 : (int64_t)fmaxf(-l->lo, l->hi);
	const float multiplier = a ? a->smax : c->book ? 2*c->book->top + 1 : fmaxf(-l->slo, l->shi);
	e->most = level*(multiplier > 0 ? (int64_t)multiplier : 1);
	e->divisor = e->top = 0;
	for (int i = 0; i < e->n; i++) {
		int64_t m = a ? e->x[i] - e->x[i/c->n*c->n] : e->x[i];
		m = m < 0 ? -m : m;
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
				memset(e->code + at, 0, (size_t)c->n);
				at = end;
			}
			while (s && at < end && exact_codes(c, e->x + at, words, parts, e->divisor*s, e->code + at))
				at += words;
			if (at == end) break;
		}
		if (s > range.hi) return false;
		e->sub[j] = s;
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
		if (!exact_half(e, e->divisor, parts, c->book ? c->book->unit : 1, &e->d)) continue;
		if (!exact_subs(c, e, parts, range)) continue;
		for (int j = 0; c->book && j < e->subs; j++) e->sub[j] = (e->sub[j] - 1)/2;
		return true;
	}
	return false;
}

/* ---- with mins: weight = d*ls*q - dmin*lm ---- */

/* A possible dmin*lm of a sub-block: the one for which its smallest weight has the code q at the scale ls. A sub-block
 * of equal weights may have any d*ls*q, which is represented by a min with an ls of 0; see exact_alike. */
struct exact_min { int64_t min; int ls; };
enum { EXACT_MINS = 256 };
/* Lists the possible mins of sub-block j; returns their number. */
static int exact_mins(const struct coder *c, const struct exact *e, int j, int parts, struct exact_min *to)
{
	const struct affine *a = c->affine;
	const int smax = a->smax > 0 ? (int)a->smax : 1;
	const int64_t *x = e->x + j*c->n;
	int64_t least = x[0], most = x[0], apart = 0;
	int n = 0;
	for (int i = 1; i < c->n; i++) {
		apart = exact_gcd(x[i] - x[0], apart, 0);
		least = x[i] < least ? x[i] : least;
		most = x[i] > most ? x[i] : most;
	}
	if (!apart) to[n++] = (struct exact_min){ -least*parts, 0 };
	for (int ls = 1; apart && ls <= smax; ls++) {
		const int64_t step = e->divisor*ls;
		int top = (int)a->nmax;
		if (apart*parts % step) continue;
		top -= (int)((most - least)*parts/step < 64 ? (most - least)*parts/step : 64);
		for (int q = 0; q <= top && n < EXACT_MINS; q++)
			to[n++] = (struct exact_min){ step*q - least*parts, ls };
	}
	return n;
}
/* The lm of min, where dmin is pivot/lm; -1: none. A min of 2^61 times lm may be beyond an int64. */
static int exact_lm(int64_t min, int64_t pivot, int lm, int mmax)
{
	int64_t all;
	if (min == 0) return 0;
	if (!pivot || __builtin_mul_overflow(min, (int64_t)lm, &all)) return -1;
	return all % pivot || all/pivot < 0 || all/pivot > mmax ? -1 : (int)(all/pivot);
}
/* An ls with ls*q = product for some code q; -1: none. */
static int exact_ls(const struct affine *a, int64_t product)
{
	int ls = a->smax > 0 ? (int)a->smax : 1;
	if (product <= 0) return product ? -1 : 0;
	while (ls > 0 && (product % ls || product/ls > (int64_t)a->nmax)) ls--;
	return ls ? ls : -1;
}
/* Finds scale and min of a sub-block of equal weights, each -min parts, where dmin is pivot/lm. */
static bool exact_alike(const struct coder *c, struct exact *e, int j, int64_t min, int64_t pivot, int lm)
{
	const int mmax = !pivot ? 0 : c->affine->mmax > 0 ? (int)c->affine->mmax : 1;
	int64_t level;
	if (__builtin_mul_overflow(-min, (int64_t)lm, &level)) return false;
	for (int k = 0; k <= mmax; k++) {
		if (k && (__builtin_add_overflow(level, pivot, &level))) return false;
		if (level % (e->divisor*lm)) continue;
		e->sub[j] = exact_ls(c->affine, level/(e->divisor*lm));
		e->min[j] = k;
		if (e->sub[j] >= 0) return true;
	}
	return false;
}
/* The possible mins of all sub-blocks */
struct exact_choice { struct exact_min v[EXACT_SUBS][EXACT_MINS]; int n[EXACT_SUBS]; };
/* Finds scales and mins of all sub-blocks that have one dmin in common, pivot/lm. */
static bool exact_agree(const struct coder *c, struct exact *e, const struct exact_choice *all, int64_t pivot, int lm)
{
	const int mmax = c->affine->mmax > 0 ? (int)c->affine->mmax : 1;
	for (int j = 0; j < e->subs; j++) {
		int i = 0, got = -1;
		if (all->v[j]->ls == 0) {
			if (!exact_alike(c, e, j, all->v[j]->min, pivot, lm)) return false;
			continue;
		}
		for (; i < all->n[j] && got < 0; i++) got = exact_lm(all->v[j][i].min, pivot, lm, mmax);
		if (got < 0) return false;
		e->sub[j] = all->v[j][i - 1].ls;
		e->min[j] = got;
	}
	return true;
}
/* Finds dmin: 0, or a possible min of one sub-block, that with the fewest of them, over some lm. */
static bool exact_dmin(const struct coder *c, struct exact *e, const struct exact_choice *all, int parts)
{
	const int mmax = c->affine->mmax > 0 ? (int)c->affine->mmax : 1;
	int few = -1;
	e->dmin = 0;
	if (exact_agree(c, e, all, 0, 1)) return true;
	for (int j = 0; j < e->subs; j++) {
		const bool alike = all->v[j]->ls == 0;
		bool zero = alike && exact_alike(c, e, j, all->v[j]->min, 0, 1);
		for (int i = 0; i < all->n[j]; i++) zero |= all->v[j][i].min == 0;
		/* equal weights may have this min, but need not */
		if (!zero && (few < 0 || all->v[few]->ls == 0 || (!alike && all->n[j] < all->n[few]))) few = j;
	}
	for (int i = 0; few >= 0 && i < all->n[few]; i++)
		for (int lm = 1; lm <= mmax; lm++)
			if (exact_half(e, all->v[few][i].min, parts*lm, 1, &e->dmin)
				&& exact_agree(c, e, all, all->v[few][i].min, lm))
				return true;
	return false;
}
/* A unit in which the weights of each sub-block are equal: those above 0 are d*ls*q, the others mins. */
static bool exact_flat(const struct coder *c, struct exact *e)
{
	const int64_t most[2] = { c->affine->mmax > 0 ? (int64_t)c->affine->mmax : 1, e->most };
	int64_t divisor[2] = { 0, 0 };
	double *const d[2] = { &e->dmin, &e->d };
	memset(e->sub, 0, sizeof e->sub);
	memset(e->min, 0, sizeof e->min);
	for (int i = 0; i < e->n; i += c->n)
		divisor[e->x[i] > 0] = exact_gcd(e->x[i], divisor[e->x[i] > 0], 0);
	e->d = e->dmin = 0;
	for (int up = 0; up < 2; up++) {
		bool done = !divisor[up];
		for (int parts = 1; !done && parts <= most[up]; parts++) {
			done = exact_half(e, divisor[up], parts, 1, d[up]);
			for (int j = 0; done && j < e->subs; j++) {
				const int64_t x = e->x[j*c->n], k = (x < 0 ? -x : x)/divisor[up];
				if ((x > 0) != up) continue;
				done = k <= most[up]/parts;
				if (!done) break;
				e->min[j] = up ? 0 : (int)k*parts;
				e->sub[j] = up ? exact_ls(c->affine, k*parts) : 0;
				done = e->sub[j] >= 0;
			}
		}
		if (!done) return false;
	}
	return divisor[0] || divisor[1];                /* every search makes zeros of zeros */
}
/* The codes, once scales and mins are known */
static void exact_nearest(const struct coder *c, struct exact *e)
{
	for (int i = 0; i < e->n; i++) {
		const double s = e->d*e->sub[i/c->n], m = e->dmin*e->min[i/c->n];
		e->code[i] = s != 0 ? (uint8_t)((ldexp((double)e->x[i], e->exponent) + m)/s + 0.5) : 0;
	}
}
static bool exact_affine(const struct coder *c, struct exact *e)
{
	struct exact_choice all;
	if (!e->divisor) {
		if (!exact_flat(c, e)) return false;
		exact_nearest(c, e);
		return true;
	}
	for (int parts = 1; parts <= EXACT_PARTS && e->top*parts <= e->most*e->divisor; parts++) {
		bool some = exact_half(e, e->divisor, parts, 1, &e->d);
		for (int j = 0; some && j < e->subs; j++) some = (all.n[j] = exact_mins(c, e, j, parts, all.v[j])) > 0;
		if (!some || !exact_dmin(c, e, &all, parts)) continue;
		exact_nearest(c, e);
		return true;
	}
	return false;
}

/* Are two of the first sixteen weights below zero? exact_rounded needs all but the min to be at least zero, so this
 * recognizes ordinary blocks quickly. */
static bool exact_two_below(const float *x)
{
	uint32_t below = 0, more;
	for (int o = 0; o < 16; o += REG) below |= m_bits(r_lt(r_floats(x + o), r_dup(0))) << o;
	more = below & (below - 1);
	return more && x[__builtin_ctz(below)] != x[__builtin_ctz(more)];
}
/* A block with one scale and one min, where the min is so small beside the steps that a float cannot hold all sums. The
 * min is the smallest weight, and d is the distance from it to the largest, over a code; if all weights are equal, the
 * min is an f16 below them. */
static bool exact_rounded(const struct coder *c, const float *x, struct exact *e)
{
	float m = x[0], top = x[0], d = 0;
	int i = 0;
	if (exact_two_below(x)) return false;
	for (int k = 1; k < c->n; k++) { m = x[k] < m ? x[k] : m; top = x[k] > top ? x[k] : top; }
	if (m == top) m = f16_near(f16_near(m) < m ? m : m - fabsf(m)*0x1p-11f);
	else if (m == 0 || !(fabsf(m) < (top - m)*0x1p-8f) || f16_near(m) != m) return false;
	for (int q = (int)c->affine->nmax; q > 0 && i < c->n; q--) {
		d = f16_near((top - m)/(float)q);
		if (!(d > 0) || d*(float)q + m != top) continue;
		for (i = 0; i < c->n; i++) {
			const float code = (x[i] - m)/d + 0.5f;
			if (!(code < 256)) break;               /* NaN */
			e->code[i] = (uint8_t)code;
			if (d*(float)e->code[i] + m != x[i]) break;
		}
	}
	e->d = d;
	e->dmin = -(double)m;
	e->sub[0] = e->min[0] = 1;
	return i == c->n;
}

/* Encodes a unit's weights if they are found to be on the lattice, with a negative d if `negated`. */
static enum exact_result encode_exactly(const struct coder *c, const float *x, bool negated, void *block)
{
	/* the first weights usually show that they are on none */
	const int all = c->n*c->per, stage[] = { 4, all < 32 ? all : 32, all };
	struct exact e;
	struct fitted f;
	struct tile t;
	bool lattice = true, found;
	if (!c->exact) return EXACT_NO_LATTICE;
	e.subs = c->per;
	for (int i = 0; i < 3 && lattice; i++) lattice = exact_load(&e, x, stage[i]) && exact_divide(c, &e);
	for (int i = 0; lattice && negated && i < e.n; i++) e.x[i] = -e.x[i];
	found = lattice && (c->affine ? exact_affine(c, &e) : exact_scaled(c, &e));
	if (!found && !negated && c->affine && !(c->affine->smax > 0)) found = exact_rounded(c, x, &e);
	if (!found) return lattice ? EXACT_NOT_FOUND : EXACT_NO_LATTICE;
	if (negated) { e.d = -e.d; e.dmin = -e.dmin; }
	f.d[0] = (float)e.d;
	f.m[0] = c->affine && !(c->affine->smax > 0) ? -(float)e.dmin*(float)e.min[0] : (float)e.dmin;
	for (int j = 0; j < e.subs; j++) {
		f.ls[j] = (float)e.sub[j]; f.lm[j] = (float)e.min[j];
		memcpy(t.code[j], e.code + j*c->n, (size_t)c->n);
	}
	c->pack(block, &t, &f, 0);
	return EXACT_FOUND;
}
#endif
