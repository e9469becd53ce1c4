/* SPDX-License-Identifier: MIT
 * enc_step.h - finds the step of weights that were decoded from codes: that are whole multiples of it, apart from a
 * min. Starts rarely find it: a block of fifteen codes may use any nine of them. So where weights have few mantissas,
 * blocks and sub-blocks are also fitted with the largest such step, found by trying every number of codes for their
 * range. The result is taken if its error is less.
 *
 * Where a block's step leaves codes unused, it may be divided, and the codes shifted, as suits f16. Sub-blocks have
 * scales, and mins, in units of a d: only those in simple proportions to each other fit one. So the mins are shifted
 * until as many sub-blocks as possible have the same code for zero: then the mins are in the same proportions as the
 * scales. Steps 2 to 4 of enc_affine.h and enc_levels.h follow. */
#ifndef QUANT_ENC_STEP_H
#define QUANT_ENC_STEP_H
#include "enc_affine.h"
#include "enc_levels.h"

/* How many of 32 classes the mantissas of the first n weights of each lane are in, by five of their bits. Whole
 * multiples of a step, up to sixteen times it, have nine mantissas at most, as q, 2q and 4q have the same. */
INLINE ri step_mantissas(const struct tile *t, int o, int n)
{
	ru seen = (ru)ri_dup(0), one = seen + 1;
	for (int e = 0; e < n; e++) seen |= one << ((ru)r_floats(&t->x[e][o]) >> 18 & 31);
	seen -= seen >> 1 & 0x55555555;
	seen = (seen & 0x33333333) + (seen >> 2 & 0x33333333);
	return (ri)(((seen + (seen >> 4)) & 0x0f0f0f0f)*0x01010101 >> 24);
}
/* The blocks whose first n weights have at most n/2: of 16 and 20 ordinary ones, 1 in 1000. */
INLINE rm step_few(const struct tile *t, int o, int n)
{
	return ri_lt(step_mantissas(t, o, n), ri_dup(n/2 + 1));
}
/* The super-blocks the first weights of whose sub-blocks have few on average; returns whether any has. Of eight,
 * codes of four bits have 3.1, of five 4.3, of six 5.4, eight-bit floats 5.2, others 7.1. */
static inline bool step_units(const struct tile *t, int per, bool *few)
{
	enum { FIRST = 8 };
	const float few_classes = 4.75f;
	_Alignas(64) float classes[LANES];
	bool any = false;
	for (int o = 0; o < LANES; o += REG) r_put(classes + o, r_int(step_mantissas(t, o, FIRST)));
	for (int g = 0; g < LANES; g += per) any |= few[g] = lane_sum(classes + g, per) <= few_classes*(float)per;
	return any;
}

/* The codes of a type. With mins, they begin at 0. */
struct codes { float lo, hi; bool min; };
/* What is found of each lane: the error that its step leaves, INFINITY if there is none; step and min; the mean of
 * codes, the curvature of the error along the step, and how many codes it spans. */
struct step { rf left, s, m, mean, cs, span; };
/* The share of the squares (for blocks with mins less that of the mean) below which a step leaves next to nothing.
 * Weights that were rounded to bf16 can leave a quarter of it, ordinary ones hardly ever less than it. */
static const float step_nothing = 1e-4f;

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
/* Finds the largest step, the range over the fewest codes, that leaves less than `nothing`; or else, of those that
 * leave less than `most`, that which leaves least. If a number of codes fits, so does one in the upper half of them, a
 * multiple; and only if the first weights fit are the others looked at. The range begins at `low` or below it. */
static inline void step_largest(const struct tile *t, int o, int n, const struct codes *c, rf low, rf nothing, rf most,
	struct step *f)
{
	enum { FIRST = 8 };
	const float last = fmaxf(c->hi, -c->lo);
	rf hi = r_floats(&t->x[0][o]), lo = r_min(hi, low), zero = r_dup(0), range;
	rm near = r_lt(zero, zero);
	*f = (struct step){ .left = r_dup(INFINITY), .s = zero, .m = zero, .span = zero };
	for (int e = 1; e < n; e++) {
		rf x = r_floats(&t->x[e][o]);
		lo = r_min(lo, x); hi = r_max(hi, x);
	}
	range = r_if(r_gt(hi, zero - lo), hi, lo);
	if (c->min) { f->m = zero - lo; range = hi - lo; }
	for (float k = last; k > 0; k--) {
		rf s = range*(1/(k > c->hi ? -k : k)), err;
		rf limit = r_max(nothing, r_min(most, f->left*1.0001f));        /* a multiple leaves the same */
		rm ok;
		if (2*k <= c->hi && !m_bits(near)) return;
		ok = r_lt(step_error(t, o, FIRST, c, s, f->m), limit);
		if (2*k <= c->hi) ok = m_and(ok, near);
		if (!m_bits(ok)) continue;
		near = m_or(near, ok);
		err = step_error(t, o, n, c, s, f->m);
		ok = m_and(ok, r_lt(err, limit));
		f->left = r_if(ok, err, f->left);
		f->s = r_if(ok, s, f->s); f->span = r_if(ok, r_dup(k), f->span);
	}
}
/* Step and min by least squares; w, x: the sums of w and w x; side: of a_start */
static inline void step_fit(const struct tile *t, int o, int n, const struct codes *c, rf w, rf x, rf side,
	struct step *f)
{
	const float min = c->min ? 1 : 0;
	rf inv = r_inverse(f->s), q1 = r_dup(0), q2 = q1, qx = q1, iw = r_inverse(w)*min, s, m;
	rm ok = r_lt(r_abs(side), r_dup(0.5f));
	for (int e = 0; e < n; e++) {
		rf v = r_floats(&t->x[e][o]), q = r_round(r_clamp((v + f->m)*inv, c->lo, c->hi));
		rf wq = r_floats(&t->w[e][o])*q;
		q1 += wq; q2 += wq*q; qx += wq*v;
	}
	f->mean = q1*iw;
	f->cs = q2 - f->mean*q1;
	s = r_ratio(qx - f->mean*x, f->cs);
	m = s*f->mean - x*iw;
	ok = m_or(ok, r_gt(m*side, r_dup(0)));          /* otherwise the min cannot be stored */
	f->s = r_if(ok, s, r_ratio(qx, q2));
	f->m = r_keep(ok, m);
}
/* Rounds step and min to f16: of the step over k, with codes k times as large, and some of the shifts that the codes
 * then have room for, those that rounding hurts least. */
static inline void step_round(const struct codes *c, rf w, rf scale, struct step *f)
{
	enum { SHIFTS = 4 };
	rf s = f->s, at = s*f->mean - f->m, be = r_dup(INFINITY);
	const float top = -r_greatest(0 - r_if(r_lt(f->left, be), f->span, be));
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
/* Fits those of a register of blocks that are in `few`; puts the result into s and m, if its error is less. */
static __attribute__((noinline)) void step_blocks(const struct tile *t, int o, int n, const struct codes *c, rm few,
	rf *s, rf *m)
{
	rf w = r_dup(0), x = w, xx = w, tiny = r_dup(1e-9f), all, had;
	struct step f;
	rm better;
	for (int e = 0; e < n; e++) {
		rf v = r_floats(&t->x[e][o]), g = r_floats(&t->w[e][o]);
		w += g; x += g*v; xx += g*v*v;
	}
	all = r_keep(few, xx - x*x*r_inverse(w)*(c->min ? 1.0f : 0));
	step_largest(t, o, n, c, r_dup(INFINITY), all*tile_nothing(c->hi - c->lo), all*step_nothing, &f);
	if (!m_bits(r_lt(f.left, r_dup(INFINITY)))) return;
	step_fit(t, o, n, c, w, x, r_dup(0), &f);
	step_round(c, w, r_floats(t->scale + o), &f);
	had = step_error(t, o, n, c, r_if(r_lt(r_abs(*s), tiny), tiny, *s), *m);
	better = m_and(r_ne(f.s, r_dup(0)), r_lt(step_error(t, o, n, c, f.s, f.m), had));
	*s = r_if(better, f.s, *s); *m = r_if(better, f.m, *m);
}

/* ---- super-blocks: those with few mantissas, if a quarter of their sub-blocks are whole multiples of a step ---- */

static inline bool step_enough(const float *whole, int per) { return lane_sum(whole, per) >= 0.25f*(float)per; }
/* Sub-blocks without a step keep their guesses in b. */
static __attribute__((noinline)) void lv_steps(const struct levels *a, const struct levels_effort *effort,
	const struct tile *t, struct lv_first *b, struct lv_found *f)
{
	const struct codes c = { a->lo, a->hi, false };
	_Alignas(64) float whole[LANES];
	bool few[LANES];
	if (!step_units(t, LANES, few)) return;
	for (int o = 0; o < LANES; o += REG) {
		rf zero = r_dup(0), xx = zero;
		struct step s;
		rm some;
		for (int e = 0; e < a->n; e++) {
			rf x = r_floats(&t->x[e][o]);
			xx += r_floats(&t->w[e][o])*x*x;
		}
		step_largest(t, o, a->n, &c, zero, xx*tile_nothing(c.hi - c.lo), xx*step_nothing, &s);
		step_fit(t, o, a->n, &c, zero, zero, zero, &s);         /* only mins need the sums of w and w x */
		some = r_lt(s.left, r_dup(INFINITY));
		r_put(b->s + o, r_if(some, s.s, r_floats(b->s + o)));
		r_put(b->c + o, r_if(some, s.cs, r_floats(b->c + o)));
		r_put(whole + o, r_keep(some, r_dup(1)));
	}
	if (!step_enough(whole, LANES)) return;
	f->ended[0] = false;                    /* one more result may replace what was found */
	lv_settle(a, effort, true, t, LANES, b, f);
}

/* With mins. What is found of each lane: whether its weights are whole multiples of a step, or nearly; step and min,
 * and how many codes are to spare above the last one in use; the sum of w x x. */
struct step_lanes { _Alignas(64) float whole[LANES], s[LANES], m[LANES], spare[LANES], xx[LANES]; };
static inline void step_subs(const struct affine *a, const struct tile *t, int o, const struct moments *z, rf side,
	struct step_lanes *p)
{
	const struct codes c = { 0, a->nmax, true };
	rf zero = r_dup(0), far = r_dup(INFINITY);
	rm below = r_gt(side, zero);
	struct step f;
	step_largest(t, o, a->n, &c, r_if(below, zero, far), z->xx*tile_nothing(a->nmax), far, &f);
	step_fit(t, o, a->n, &c, z->w, z->x, side, &f);
	r_put(p->whole + o, r_keep(r_lt(f.left, z->xx*step_nothing), r_dup(1)));
	r_put(p->s + o, f.s); r_put(p->m + o, f.m); r_put(p->xx + o, z->xx);
	r_put(p->spare + o, r_keep(below, a->nmax - f.span));
}
/* How far lane l is to be shifted, in codes, so that zero has the code `code`, or the nearest that it can have. */
static inline float step_shift(const struct step_lanes *p, int l, float code)
{
	return p->s[l] > 0 ? clampf(code - p->m[l]/p->s[l], 0, p->spare[l]) : 0;
}
/* The codes for zero, from code[0] to code[1], that the lanes of a super-block can have with the fewest exceptions. */
static inline void step_zero(const struct affine *a, const struct step_lanes *p, int g, int per, float code[2])
{
	float best = INFINITY;
	code[0] = code[1] = 0;
	for (float k = 0; k <= a->nmax; k++) {
		float miss = 0;
		for (int l = g; l < g + per; l++)
			if (p->s[l] > 0) miss += fabsf(k - p->m[l]/p->s[l] - step_shift(p, l, k));
		if (miss < best - 0.01f) { code[0] = k; best = miss; }
		if (miss < best + 0.01f) code[1] = k;
	}
}
/* First guesses for which zero has the code given for each lane. The errors of scales and mins are weighed alike, so
 * that those in the same proportions get the same integers. */
static inline void step_first(const struct step_lanes *p, const float *zero, struct a_first *f)
{
	for (int l = 0; l < LANES; l++) {
		f->s[l] = p->s[l];
		f->m[l] = fabsf(p->m[l] + p->s[l]*roundi(step_shift(p, l, zero[l])));
		f->cs[l] = p->xx[l]/(f->s[l]*f->s[l] + 1e-20f);
		f->cm[l] = p->xx[l]/(f->m[l]*f->m[l] + 1e-20f);
	}
}
static __attribute__((noinline)) void step_search(const struct affine *a, int walks, const struct tile *t, int per,
	const struct moments *z, const float *side, const bool *few, struct a_lanes *v)
{
	struct step_lanes p;
	float zero[4][LANES] = { { 0 } };       /* the greatest code for it, the least, one between them, any */
	bool some = false;
	for (int o = 0; o < LANES; o += REG) step_subs(a, t, o, &z[o/REG], r_floats(side + o), &p);
	for (int g = 0; g < LANES; g += per) {
		float code[2];
		if (few[g] && step_enough(p.whole + g, per)) v->excess[g] = -INFINITY;
		some |= a_is_plain(v, g, per);
		step_zero(a, &p, g, per, code);
		for (int l = g; l < g + per; l++) {
			zero[0][l] = code[1]; zero[1][l] = code[0];
			zero[2][l] = floorf((code[0] + code[1])/2);
		}
	}
	for (int k = 0; some && k < 4; k++) {
		struct a_first f;
		struct a_lanes w;
		step_first(&p, zero[k], &f);
		a_settle(a, walks + 1, true, t, per, z, side, &f, &w);
		a_better(a, t, per, true, v, &w);
	}
}
/* Plain super-blocks are searched too; without walks, at low efforts, only these. */
static void a_steps(const struct affine *a, int walks, bool plain, const struct tile *t, int per,
	const struct moments *z, const float *side, struct a_lanes *v)
{
	bool few[LANES] = { false }, some = walks && step_units(t, per, few);
	if (plain || some) step_search(a, walks, t, per, z, side, few, v);
}
#endif
