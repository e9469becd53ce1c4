/* SPDX-License-Identifier: MIT
 * enc_step.h - finds the step of weights that were decoded from codes: that are whole multiples of it, apart from a
 * min. Starts rarely find it: a block of fifteen codes may use any nine of them. So blocks whose weights have few
 * mantissas (tile_few) are also fitted with the largest such step, found by trying every number of codes for their
 * range. Where that leaves codes unused, the step may be divided, and the codes shifted, as suits f16. */
#ifndef QUANT_ENC_STEP_H
#define QUANT_ENC_STEP_H
#include "enc_tile.h"

/* The share of the squares (less that of the mean, with mins) below which a step leaves next to nothing. Weights that
 * were rounded to bf16 can leave a quarter of it, ordinary ones hardly ever less than it. */
static const float step_nothing = 1e-4f;
/* The codes of a type. With mins, they begin at 0. */
struct codes { float lo, hi; bool min; };
/* What is found of each lane: whether there is a step; step and min; the mean of codes, the curvature of the error
 * along the step, and how many codes it spans. */
struct step { rm whole; rf s, m, mean, cs, span; };

/* The error that scale s and min m leave in the first n weights. */
static inline rf step_error(const struct tile *t, int o, int n, const struct codes *c, rf s, rf m)
{
	rf inv = r_inverse(s), err = r_dup(0);
	for (int e = 0; e < n; e++) {
		rf u = (r_floats(&t->x[e][o]) + m)*inv, r = r_round(r_clamp(u, c->lo, c->hi)) - u;
		err += r_floats(&t->w[e][o])*r*r;
	}
	return err*s*s;
}
/* Finds the largest step that leaves less than `nothing`: the range over the fewest codes. If a number of codes fits,
 * so does one in the upper half of them, a multiple; and only if the first weights fit are the others looked at. */
static inline void step_largest(const struct tile *t, int o, int n, const struct codes *c, rf nothing, rm few,
	struct step *f)
{
	enum { FIRST = 8 };
	const float most = fmaxf(c->hi, -c->lo);
	rf lo = r_floats(&t->x[0][o]), hi = lo, zero = r_dup(0), range;
	rm near = r_lt(zero, zero);
	*f = (struct step){ .whole = near, .s = zero, .m = zero, .span = zero };
	for (int e = 1; e < n; e++) {
		rf x = r_floats(&t->x[e][o]);
		lo = r_min(lo, x); hi = r_max(hi, x);
	}
	range = r_if(r_gt(hi, zero - lo), hi, lo);
	if (c->min) { f->m = zero - lo; range = hi - lo; }
	for (float k = most; k > 0; k--) {
		rf s = range*(1/(k > c->hi ? -k : k));
		rm ok;
		if (2*k <= c->hi && !m_bits(near)) return;
		ok = m_and(2*k <= c->hi ? near : few, r_lt(step_error(t, o, FIRST, c, s, f->m), nothing));
		if (!m_bits(ok)) continue;
		near = m_or(near, ok);
		ok = m_and(ok, r_lt(step_error(t, o, n, c, s, f->m), nothing));
		f->whole = m_or(f->whole, ok);
		f->s = r_if(ok, s, f->s); f->span = r_if(ok, r_dup(k), f->span);
	}
}
/* Step and min by least squares; w, x: the sums of w and w x */
static inline void step_fit(const struct tile *t, int o, int n, const struct codes *c, rf w, rf x, struct step *f)
{
	const float min = c->min ? 1 : 0;
	rf inv = r_inverse(f->s), q1 = r_dup(0), q2 = q1, qx = q1, iw = r_inverse(w);
	for (int e = 0; e < n; e++) {
		rf v = r_floats(&t->x[e][o]), q = r_round(r_clamp((v + f->m)*inv, c->lo, c->hi));
		rf wq = r_floats(&t->w[e][o])*q;
		q1 += wq; q2 += wq*q; qx += wq*v;
	}
	f->mean = q1*iw*min;
	f->cs = q2 - f->mean*q1;
	f->s = r_ratio(qx - f->mean*x, f->cs);
	f->m = f->s*f->mean - x*iw*min;
}
/* Rounds step and min to f16: of the step over k, with codes k times as large, and some of the shifts that the codes
 * then have room for, those that rounding hurts least. */
static inline void step_round(const struct codes *c, rf w, rf scale, struct step *f)
{
	enum { SHIFTS = 4 };
	rf s = f->s, at = s*f->mean - f->m, be = r_dup(INFINITY);
	const float top = -r_greatest(0 - r_if(f->whole, f->span, be));
	for (float k = 1; k*top <= fmaxf(c->hi, -c->lo); k++) {
		rf d = r_f16_near(s*(1/k), scale), miss = d*k - s;
		for (int j = 0; j < (c->min ? SHIFTS : 1); j++) {
			rf want = d*(k*f->mean + (float)j) - at, m = r_f16_near(want, scale);
			rf e = f->cs*miss*miss + w*(m - want)*(m - want);
			rm ok = r_lt(e, be);
			if (k > 1 || j) ok = m_and(ok, r_lt(k*f->span + (float)j, r_dup(c->hi + 0.5f)));
			be = r_if(ok, e, be); f->s = r_if(ok, d, f->s); f->m = r_if(ok, m, f->m);
		}
	}
}
/* Fits lanes that tile_few shows, of n weights each, with steps; puts the result into s and m, if its error is less. */
static __attribute__((noinline)) void step_blocks(const struct tile *t, int o, int n, const struct codes *c, rm few,
	rf *s, rf *m)
{
	rf w = r_dup(0), x = w, xx = w, tiny = r_dup(1e-9f), had;
	struct step f;
	rm better;
	for (int e = 0; e < n; e++) {
		rf v = r_floats(&t->x[e][o]), g = r_floats(&t->w[e][o]);
		w += g; x += g*v; xx += g*v*v;
	}
	step_largest(t, o, n, c, (xx - x*x*r_inverse(w)*(c->min ? 1.0f : 0))*step_nothing, few, &f);
	if (!m_bits(f.whole)) return;
	step_fit(t, o, n, c, w, x, &f);
	step_round(c, w, r_floats(t->scale + o), &f);
	had = step_error(t, o, n, c, r_if(r_lt(r_abs(*s), tiny), tiny, *s), *m);
	better = m_and(f.whole, m_and(r_ne(f.s, r_dup(0)), r_lt(step_error(t, o, n, c, f.s, f.m), had)));
	*s = r_if(better, f.s, *s); *m = r_if(better, f.m, *m);
}
#endif
