/* SPDX-License-Identifier: MIT
 * enc_plain.h - once more the super-blocks of enc_affine.h, for weights that are plain: that have only a few values,
 * because they are ternary, or were decoded from codes of a few bits.
 *
 * Many scales represent a sub-block of such weights without error, and which of them a_start finds is chance; it may
 * find none of them. But only scales and mins in simple proportions to each other fit one d and one dmin. So here each
 * sub-block takes the largest step of which the distances of its weights are whole multiples, and its codes, if it does
 * not use all, are shifted so that as many sub-blocks as possible have the same code for zero: then the mins are in the
 * same proportions as the scales. Steps 2 to 4 of enc_affine.h follow, and the result is taken if its error is less. */
#ifndef QUANT_ENC_PLAIN_H
#define QUANT_ENC_PLAIN_H
#include "enc_affine.h"

/* What is found of each lane: whether its weights are whole multiples of a step, or nearly; the scale and min, and how
 * many codes are to spare above the last one in use; the sum of w x x. */
struct plain_lanes { _Alignas(64) float whole[LANES], s[LANES], m[LANES], spare[LANES], xx[LANES]; };

/* Finds the step of each lane: its range over the least number of codes that leaves next to nothing, or else over that
 * which leaves least. */
static inline void plain_steps(const struct affine *a, const struct tile *t, int o, const struct moments *z, rf side,
	struct plain_lanes *p)
{
	rf lo = r_floats(&t->x[0][o]), hi = lo, zero = r_dup(0), min;
	rf nothing = z->xx*a_plain_share(a), be = r_dup(INFINITY), bs = zero, codes = zero, inv;
	struct sums c;
	struct lane_fit l;
	for (int e = 1; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]);
		lo = r_min(lo, x); hi = r_max(hi, x);
	}
	min = zero - r_if(r_gt(side, zero), r_min(lo, zero), lo);
	for (float n = 1; n <= a->nmax; n++) {
		rf s = (hi + min)*(1/n), err;
		rm ok;
		a_errors(a, t, o, s, 1, &min, &err);
		ok = m_and(r_lt(err, be), r_gt(be, nothing));
		be = r_if(ok, err, be); bs = r_if(ok, s, bs); codes = r_if(ok, r_dup(n), codes);
	}
	inv = r_inverse(bs);
	a_sums(a, t, o, 1, &inv, &min, &c);
	l = a_line(a, z, &c, side);
	r_put(p->whole + o, r_if(r_gt(be, nothing), zero, r_dup(1)));
	r_put(p->s + o, l.s); r_put(p->m + o, l.m); r_put(p->xx + o, z->xx);
	r_put(p->spare + o, r_keep(r_gt(side, zero), a->nmax - codes));
}
/* How far lane l is to be shifted, in codes, so that zero has the code `code`, or the nearest that it can have. */
static inline float plain_shift(const struct plain_lanes *p, int l, float code)
{
	return p->s[l] > 0 ? clampf(code - p->m[l]/p->s[l], 0, p->spare[l]) : 0;
}
/* The codes for zero, from code[0] to code[1], that the lanes of a super-block can have with the fewest exceptions. */
static inline void plain_zero(const struct affine *a, const struct plain_lanes *p, int g, int per, float code[2])
{
	float best = INFINITY;
	code[0] = code[1] = 0;
	for (float k = 0; k <= a->nmax; k++) {
		float miss = 0;
		for (int l = g; l < g + per; l++)
			if (p->s[l] > 0) miss += fabsf(k - p->m[l]/p->s[l] - plain_shift(p, l, k));
		if (miss < best - 0.01f) { code[0] = k; best = miss; }
		if (miss < best + 0.01f) code[1] = k;
	}
}
/* First guesses for which zero has the code given for each lane. The errors of scales and mins are weighed alike, so
 * that those in the same proportions get the same integers. */
static inline void plain_first(const struct plain_lanes *p, const float *zero, struct a_first *f)
{
	for (int l = 0; l < LANES; l++) {
		f->s[l] = p->s[l];
		f->m[l] = fabsf(p->m[l] + p->s[l]*roundi(plain_shift(p, l, zero[l])));
		f->cs[l] = p->xx[l]/(f->s[l]*f->s[l] + 1e-20f);
		f->cm[l] = p->xx[l]/(f->m[l]*f->m[l] + 1e-20f);
	}
}

/* Counts the pairs of equal weights, other than zeros, among n of each lane, from element `from` on. */
SPECIAL void plain_pairs(const struct tile *t, int o, int from, int n, float *pairs)
{
	rf x[8], apart = r_dup(0);
	for (int i = 0; i < n; i++) {
		x[i] = r_floats(&t->x[from + i][o]);
		x[i] = r_if(r_ne(x[i], r_dup(0)), x[i], r_dup(NAN));
		for (int j = 0; j < i; j++) apart += r_keep(r_ne(x[i], x[j]), r_dup(1));
	}
	r_put(pairs + o, (float)(n*(n - 1)/2) - apart);
}
/* Which super-blocks have weights that repeat each other; returns whether any has. The first weights of their lanes
 * have about 12 such pairs if they have four bits, 2 if they are floats of eight, and one super-block in seven has any
 * if they are bfloats. If there are some, as many weights again decide. */
static inline bool plain_repeats(const struct tile *t, int per, bool *repeats)
{
	enum { FIRST = 3, ALL = 9 };
	_Alignas(64) float pairs[2][LANES];
	bool any = false;
	for (int o = 0; o < LANES; o += REG) {
		if (per == 16) plain_pairs(t, o, 0, 5, pairs[0]);
		else plain_pairs(t, o, 0, 7, pairs[0]);
	}
	for (int g = 0; g < LANES; g += per) any |= repeats[g] = lane_sum(pairs[0] + g, per) >= FIRST;
	if (!any) return false;
	for (int o = 0; o < LANES; o += REG) {
		if (per == 16) plain_pairs(t, o, 5, 5, pairs[1]);
		else plain_pairs(t, o, 7, 7, pairs[1]);
	}
	any = false;
	for (int g = 0; g < LANES; g += per) {
		repeats[g] &= lane_sum(pairs[0] + g, per) + lane_sum(pairs[1] + g, per) >= ALL;
		any |= repeats[g];
	}
	return any;
}
/* Guesses that map every range to the same number of codes: the largest code, and an even number. */
static __attribute__((noinline)) void plain_alike(const struct affine *a, int walks, const struct tile *t, int per,
	const struct moments *z, const float *side, struct a_lanes *v)
{
	const struct affine_effort once = { .starts = 2, .iters = 1, .walks = walks };
	for (int k = 0; k < 2; k++) {
		struct affine_start start[2];
		struct a_lanes w;
		a_alike(a->nmax - (float)k, start);
		a_search(a, start, &once, t, per, z, side, &w);
		a_better(a, t, per, true, v, &w);
	}
}
/* Searches with steps, for super-blocks that are plain and for those that repeat and have steps. */
static __attribute__((noinline)) void plain_search(const struct affine *a, int walks, const struct tile *t, int per,
	const struct moments *z, const float *side, const bool *repeats, struct a_lanes *v)
{
	struct plain_lanes p;
	float zero[4][LANES] = { { 0 } };       /* the greatest code for it, the least, one between them, any */
	bool some = false;
	for (int o = 0; o < LANES; o += REG) plain_steps(a, t, o, &z[o/REG], r_floats(side + o), &p);
	for (int g = 0; g < LANES; g += per) {
		float code[2];
		if (repeats[g] && lane_sum(p.whole + g, per) >= 0.25f*(float)per) v->excess[g] = -INFINITY;
		some |= a_is_plain(v, g, per);
		plain_zero(a, &p, g, per, code);
		for (int l = g; l < g + per; l++) {
			zero[0][l] = code[1]; zero[1][l] = code[0];
			zero[2][l] = floorf((code[0] + code[1])/2);
		}
	}
	for (int k = 0; some && k < 4; k++) {
		struct a_first f;
		struct a_lanes w;
		plain_first(&p, zero[k], &f);
		a_settle(a, walks + 1, true, t, per, z, side, &f, &w);
		a_better(a, t, per, true, v, &w);
	}
}
/* Without walks, at low efforts, only weights that the starts of a_search show to be plain are searched again. */
static void a_plain(const struct affine *a, const struct affine_effort *effort, const struct tile *t, int per,
	const struct moments *z, const float *side, struct a_lanes *v)
{
	bool repeats[LANES] = { false }, some = effort->walks && plain_repeats(t, per, repeats), plain = false;
	for (int g = 0; g < LANES; g += per) plain |= a_is_plain(v, g, per);
	if (plain) plain_alike(a, effort->walks, t, per, z, side, v);
	if (plain || some) plain_search(a, effort->walks, t, per, z, side, repeats, v);
}
#endif
