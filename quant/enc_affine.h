/* SPDX-License-Identifier: MIT
 * enc_affine.h - searches scales, mins and codes of the types with mins: weight = d*ls*q - dmin*lm (Q4_K, Q5_K, Q2_K,
 * where ls and lm are the integer scale and min of a sub-block), and weight = d*q + m (Q4_1, Q5_1).
 *
 *   1 start   Each lane on its own takes several first guesses of its scale and min. Alternations improve each of them:
 *             round the codes, then find scale and min by least squares. The best is kept.
 *   2 ladder  For each super-block, d is chosen from a ladder of candidates, one to a lane, by the curvature of the
 *             error of each sub-block. dmin is chosen in the same way.
 *   3 walk    Each lane on its own tries the neighbouring (ls, lm), with codes rounded again, so that the errors
 *             compared are those that would be stored.
 *   4 refit   d and dmin by least squares over the super-block, with codes fixed. Then step 3 again.
 *
 * ls and lm have no sign, d and dmin have one. Usually d, dmin > 0. A super-block whose values are all on one side of
 * zero gets a dmin of the other sign; one with negative values is first reflected, which is a negative scale of the
 * unit (enc_tile.h) and so gives a negative d. */
#ifndef QUANT_ENC_AFFINE_H
#define QUANT_ENC_AFFINE_H
#include "enc_tile.h"
#include "quant.h"

/* A first guess maps the range of the sub-block to `codes` codes. If these are more or fewer than the type has, the
 * share `at` of the difference is below the type's codes: with 0 the smallest weight gets code 0, with 1 the largest
 * gets the last code. */
struct affine_start { float codes, at; };
struct affine {
	int n;                  /* elements of a sub-block */
	float nmax, smax, mmax; /* largest code, scale, min */
	/* Of starts with similar errors, the one with the smaller scale s is better, since it allows the other
	 * sub-blocks a finer d: thrift*w*s*s is added to a start's error, with the sum of its w. */
	float thrift;
	const struct affine_start *start;       /* AFFINE_STARTS of them, the most useful first */
};
struct affine_effort {
	int starts, iters;      /* first guesses (even), alternations of each */
	int walks;
	bool steps;             /* of blocks: whether steps are looked for (enc_step.h) */
};
/* The lists were made greedily: each next start is the one that, after three alternations, most lowers the error of the
 * best so far, over real and synthetic sub-blocks with and without importances (scripts/fit-starts). */
enum { AFFINE_STARTS = 32 };
static const struct affine_start affine_starts_15[AFFINE_STARTS] = {
	{ 15.5f, .5f }, { 15.8f, 0 }, { 15.5f, 1 }, { 14, 0 }, { 14.6f, .75f }, { 13.4f, .5f }, { 15.8f, .25f },
	{ 15.8f, 1 }, { 14.3f, .25f }, { 17.3f, .25f }, { 12.8f, .25f }, { 14.3f, 1 }, { 17.3f, 1 }, { 15.5f, .75f },
	{ 17.6f, 0 }, { 17.9f, .5f }, { 17.3f, .75f }, { 11.9f, .5f }, { 14.6f, 0 }, { 14.6f, 1 }, { 14.3f, 0 },
	{ 16.4f, .5f }, { 13.7f, .75f }, { 19.1f, 1 }, { 15.5f, 0 }, { 16.4f, 0 }, { 12.5f, 0 }, { 16.4f, 1 },
	{ 14.9f, .25f }, { 12.8f, 1 }, { 16.1f, .75f }, { 17, 0 },
};
static const struct affine_start affine_starts_31[AFFINE_STARTS] = {
	{ 31.2f, .75f }, { 30, 1 }, { 29.2f, .5f }, { 31.6f, 0 }, { 28, 0 }, { 31.6f, 1 }, { 26.8f, .5f },
	{ 30.4f, .75f }, { 30, .25f }, { 26, 1 }, { 29.6f, 0 }, { 32.8f, .75f }, { 31.6f, .25f }, { 28.4f, .5f },
	{ 33.2f, .25f }, { 24.4f, .75f }, { 30.4f, .25f }, { 28, .25f }, { 25.2f, 0 }, { 28.4f, 0 }, { 34.8f, .75f },
	{ 32.8f, 0 }, { 32, .5f }, { 30.4f, 1 }, { 34, 1 }, { 27.6f, .75f }, { 30.4f, 0 }, { 29.2f, 1 }, { 29.2f, 0 },
	{ 30.4f, .5f }, { 32, 0 }, { 29.6f, .25f },
};
struct moments { rf w, x, xx, iw; };            /* of a sub-block: sums of w, w x, w x x; 1 over the first */
struct sums { rf q1, q2, qx; };                 /* of a sub-block: sums of w q, w q q, w q x */
struct lane_fit { rf s, m, cs, err; };          /* scale, min, curvature along s, error */
/* A block's chief: a weight that counts a thousand times as much as all others together. A float that holds a sum with
 * it has few digits left for the others, so it is left out of sums, and subtracted from the other weights. */
struct chief { rf x, w; };

static inline rf a_code(const struct affine *a, rf x, rf inv, rf m)
{
	return r_round(r_clamp((x + m)*inv, 0, a->nmax));
}
static inline struct moments a_moments(const struct affine *a, const struct tile *t, int o)
{
	struct moments z = { r_dup(0), r_dup(0), r_dup(0), r_dup(0) };
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]);
		z.w += w; z.x += w*x; z.xx += w*x*x;
	}
	z.iw = r_inverse(z.w);
	return z;
}
/* The sums of nk candidates in one sweep, as a single chain of dependent additions would leave the adders idle most of
 * the time. */
INLINE void a_sums(const struct affine *a, const struct tile *t, int o, int nk, const rf *inv, const rf *m,
	struct sums *r)
{
	for (int k = 0; k < nk; k++) r[k].q1 = r[k].q2 = r[k].qx = r_dup(0);
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]);
		for (int k = 0; k < nk; k++) {
			rf q = a_code(a, x, inv[k], m[k]), wq = w*q;
			r[k].q1 += wq; r[k].q2 += wq*q; r[k].qx += wq*x;
		}
	}
}
/* The errors that scale s leaves with each of nk mins. They are counted in units of s until the end, which saves three
 * operations for each element. */
INLINE void a_errors(const struct affine *a, const struct tile *t, int o, rf s, int nk, const rf *m, rf *err)
{
	rf inv = r_inverse(s), min[3];
	for (int k = 0; k < nk; k++) { err[k] = r_dup(0); min[k] = m[k]*inv; }
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o])*inv, w = r_floats(&t->w[e][o]);
		for (int k = 0; k < nk; k++) {
			rf u = x + min[k], r = r_round(r_clamp(u, 0, a->nmax)) - u;
			err[k] += w*r*r;
		}
	}
	for (int k = 0; k < nk; k++) err[k] = err[k]*s*s;
}

/* Scale and min by least squares, where codes have the sums c. side: see a_start */
static inline struct lane_fit a_line(const struct affine *a, const struct moments *z, const struct sums *c, rf side)
{
	rf q1 = c->q1*z->iw, cs = c->q2 - q1*c->q1, zero = r_dup(0), s, m;
	rm ok, free = r_lt(r_abs(side), r_dup(0.5f));
	s = r_ratio(c->qx - q1*z->x, cs);
	m = s*q1 - z->x*z->iw;
	ok = r_gt(r_if(free, r_dup(1), m*side), zero);          /* otherwise the min cannot be stored */
	s = r_if(ok, s, r_ratio(c->qx, c->q2));
	m = r_keep(ok, m);
	return (struct lane_fit){ s, m, cs, z->xx - s*c->qx + m*z->x + a->thrift*z->w*s*s };
}
/* The same for blocks with a chief, whose code is given. */
static inline struct lane_fit a_beside(const struct moments *z, const struct sums *c, const struct chief *p, rf code)
{
	/* sums over the distances of codes from the chief's */
	rf q1 = c->q1 - code*z->w, q2 = c->q2 - code*(c->q1 + q1), qx = c->qx - code*z->x;
	rf iw = r_inverse(z->w + p->w), cs = q2 - q1*q1*iw, s = r_ratio(qx - q1*iw*z->x, cs);
	rf miss = (z->x - s*q1)*iw;                             /* of the chief */
	return (struct lane_fit){ s, s*code - miss, cs, z->xx + s*(s*q2 - 2*qx) - miss*miss*(z->w + p->w) };
}

/* Step 1. Every start goes through all its alternations: there are many shallow minima, and dropping the worse starts
 * after one sweep, with more of them for the same time, loses 2 % on Q2_K. side: the sign that every min must have, 1
 * or -1; 0: either. chief: of the blocks, or NULL */
INLINE struct lane_fit a_start(const struct affine *a, const struct affine_start *start,
	const struct affine_effort *f, const struct tile *t, int o, const struct moments *z, rf side,
	const struct chief *chief)
{
	rf lo = r_floats(&t->x[0][o]), hi = lo, zero = r_dup(0), s[2], m[2], inv[2];
	struct lane_fit b = { zero, zero, zero, r_dup(INFINITY) };
	struct sums c[2];
	rm free = r_lt(r_abs(side), r_dup(0.5f));
	for (int e = 1; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]);
		lo = r_min(lo, x); hi = r_max(hi, x);
	}
	lo = r_if(r_gt(side, zero), r_min(lo, zero), lo);
	for (int k = 0; k < f->starts; k += 2) {
		for (int h = 0; h < 2; h++) {
			const struct affine_start *g = &start[k + h];
			s[h] = (hi - lo)*(1/g->codes);
			m[h] = s[h]*(a->nmax*g->at) - (lo + (hi - lo)*g->at);
			m[h] = r_keep(m_or(free, r_gt(m[h]*side, zero)), m[h]);
		}
		for (int i = 0; i < f->iters; i++) {
			for (int h = 0; h < 2; h++) inv[h] = r_inverse(s[h]);
			a_sums(a, t, o, 2, inv, m, c);
			for (int h = 0; h < 2; h++) {
				struct lane_fit l = chief ?
					a_beside(z, &c[h], chief, a_code(a, zero, inv[h], m[h])) :
					a_line(a, z, &c[h], side);
				rm ok = r_lt(l.err, b.err);
				s[h] = l.s; m[h] = l.m;
				b.s = r_if(ok, l.s, b.s); b.m = r_if(ok, l.m, b.m);
				b.cs = r_if(ok, l.cs, b.cs); b.err = r_if(ok, l.err, b.err);
			}
		}
	}
	return b;
}

/* Step 2: the d for which integers 0..top best represent v[j]/d, with errors weighted by c[j] and counted in units of
 * d. Each lane tries a rung of its own and takes the sub-blocks in order, so that no sum crosses lanes. */
static inline float a_ladder(const float *v, const float *c, int n, float top, float scale)
{
	enum { RUNGS = 64 };
	_Alignas(64) float rung[RUNGS], err[RUNGS];
	float hi = 0;
	for (int j = 0; j < n; j++) hi = v[j] > hi ? v[j] : hi;
	if (!(hi > 1e-30f)) return 0;
	for (int k = 0; k < RUNGS; k++) rung[k] = top*(1.01f - 0.41f/RUNGS*(float)k);
	for (int k = 0; k < RUNGS; k += REG) {
		rf r = r_floats(rung + k), inv = r*(1/hi), s = r_dup(0);
		for (int j = 0; j < n; j++) {
			rf u = v[j]*inv, miss = r_round(r_min(u, r_dup(top))) - u;
			s += c[j]*miss*miss;
		}
		r_put(err + k, s/(r*r));
	}
	return f16_reach(hi, rung[least_error(err, RUNGS)], scale);
}

/* excess: how far the error of a_start exceeds the bound below which weights are plain (a_plain) */
struct a_lanes {
	_Alignas(64) float d[LANES], dm[LANES], ls[LANES], lm[LANES], q1[LANES], q2[LANES], qx[LANES], excess[LANES];
};
/* Step 3: moves each lane to the best of seven (ls, lm), itself and its neighbours except the two that move ls and lm
 * in opposite directions. Leaves the sums for the refit. */
INLINE void a_walk(const struct affine *a, const struct tile *t, int o, struct a_lanes *g)
{
	rf D = r_floats(g->d + o), M = r_floats(g->dm + o), L = r_floats(g->ls + o), K = r_floats(g->lm + o);
	rf bl = L, bk = K, be = r_dup(INFINITY), inv, min;
	struct sums c;
	for (int i = -1; i <= 1; i++) {
		rf l = r_clamp(L + (float)i, 0, a->smax), k[3], m[3], e[3];
		int nk = i ? 2 : 3, low = i > 0 ? 0 : -1;
		for (int j = 0; j < nk; j++) {
			k[j] = r_clamp(K + (float)(low + j), 0, a->mmax);
			m[j] = M*k[j];
		}
		a_errors(a, t, o, D*l, nk, m, e);
		for (int j = 0; j < nk; j++) {
			rm ok = m_and(r_lt(e[j], be), r_gt(D*l, r_dup(0)));
			bl = r_if(ok, l, bl); bk = r_if(ok, k[j], bk); be = r_if(ok, e[j], be);
		}
	}
	inv = r_inverse(D*bl);
	min = M*bk;
	a_sums(a, t, o, 1, &inv, &min, &c);
	r_put(g->ls + o, bl); r_put(g->lm + o, bk);
	r_put(g->q1 + o, c.q1); r_put(g->q2 + o, c.q2); r_put(g->qx + o, c.qx);
}
/* Step 4: d and dmin of the super-block at lane g by least squares, if they keep their signs. If the sums do not
 * decide both, as when a single weight counts, only d changes. With `factors`, ls and lm may change by a factor each,
 * as suits f16: that of ls is chosen first, then dmin for the d that it gives, and the factor of lm. */
static inline void a_refit(const struct affine *a, bool factors, struct a_lanes *v, const float *sw, const float *sx,
	int g, int per, float side, float scale)
{
	float A = 0, B = 0, C = 0, P = 0, Q = 0, det, dd, dn, kd = 1, kn = 1;
	for (int l = g; l < g + per; l++) {
		float s = v->ls[l], k = v->lm[l];
		A += s*s*v->q2[l]; B += s*k*v->q1[l]; C += k*k*sw[l];
		P += s*v->qx[l]; Q -= k*sx[l];
	}
	det = A*C - B*B;
	dd = v->d[g]; dn = v->dm[g];
	if (det > 1e-6f*A*C) { dd = (C*P + B*Q)/det; dn = (B*P + A*Q)/det; }
	else if (A > 0) dd = (P + B*dn)/A;
	else if (C > 0) dn = Q/C;
	if (factors) {
		kd = f16_factor(dd, v->ls + g, per, a->smax, scale);
		dd = f16_unit(dd/kd, scale);
		if (C > 0) dn = (Q + B*kd*dd)/C;
		kn = f16_factor(dn, v->lm + g, per, a->mmax, scale);
		dn /= kn;
	}
	dd = f16_unit(dd, scale); dn = f16_unit(dn, scale);
	if (!(dd > 0 && dn*side >= 0)) return;
	for (int l = g; l < g + per; l++) {
		v->d[l] = dd; v->dm[l] = dn;
		if (factors) { v->ls[l] = roundi(v->ls[l]*kd); v->lm[l] = roundi(v->lm[l]*kn); }
	}
}
/* The orientation of the super-blocks, for each lane: 1 if their mins are subtracted, as usual; -1 if all their values
 * are above zero, maybe after the reflection that this makes. */
static inline void a_side(const struct affine *a, struct tile *t, int per, float *side)
{
	_Alignas(64) float lo[LANES], hi[LANES];
	for (int o = 0; o < LANES; o += REG) {
		rf least = r_dup(INFINITY), most = r_dup(-INFINITY);
		for (int e = 0; e < a->n; e++) {
			rf x = r_floats(&t->x[e][o]);
			least = r_min(x, least); most = r_max(x, most);
		}
		r_put(lo + o, least); r_put(hi + o, most);
	}
	for (int g = 0; g < LANES; g += per) {
		bool above = true, below = true;
		for (int l = g; l < g + per; l++) { above &= lo[l] > 0; below &= hi[l] < 0; }
		for (int l = g; l < g + per; l++) side[l] = above || below ? -1 : 1;
		if (!below || above) continue;
		t->scale[g/per] = -t->scale[g/per];
		for (int e = 0; e < a->n; e++)
			for (int l = g; l < g + per; l++) t->x[e][l] = -t->x[e][l];
	}
}

/* First guesses of a tile's lanes: scales, mins without their signs, and the curvatures of the errors along them. */
struct a_first { _Alignas(64) float s[LANES], m[LANES], cs[LANES], cm[LANES]; };
/* Steps 2 to 4, which leave the scales and mins in v. z: a_moments of each register of lanes; side: what a_side found;
 * factors: of a_refit. Everything that takes time is inlined here, as for the search of plain weights: calls, which
 * compilers make where there are two users, cost 5 percent of a search. */
INLINE void a_settle(const struct affine *a, int walks, bool factors, const struct tile *t, int per,
	const struct moments *z, const float *side, const struct a_first *f, struct a_lanes *v)
{
	_Alignas(64) float sw[LANES], sx[LANES];
	for (int o = 0; o < LANES; o += REG) { r_put(sw + o, z[o/REG].w); r_put(sx + o, z[o/REG].x); }
	for (int g = 0; g < LANES; g += per) {
		/* sub-blocks of equal weights have only a min; d must not be zero */
		float scale = t->scale[g/per];
		float dd = a_ladder(f->s + g, f->cs + g, per, a->smax, scale);
		float dn = a_ladder(f->m + g, f->cm + g, per, a->mmax, scale);
		bool few = !walks && dd*fabsf(scale) < 0x1p-20f;
		if (!(dd > 0)) dd = f16_unit(dn*(1/a->smax), scale);
		for (int l = g; l < g + per; l++) {
			v->d[l] = dd; v->dm[l] = dn*side[l];
			/* the scale 0 makes all weights of a sub-block the smallest one, and no walk corrects that */
			v->ls[l] = dd > 0 ? roundi(clampf(f->s[l]/dd, few && f->s[l] > 0, a->smax)) : 0;
			v->lm[l] = dn > 0 ? roundi(clampf(f->m[l]/dn, 0, a->mmax)) : 0;
		}
	}
	for (int it = 0; it < walks; it++) {
		for (int o = 0; o < LANES; o += REG) a_walk(a, t, o, v);
		for (int g = 0; g < LANES; g += per) a_refit(a, factors, v, sw, sx, g, per, side[g], t->scale[g/per]);
	}
}
/* Steps 1 to 4 */
static inline void a_search(const struct affine *a, const struct affine_start *start,
	const struct affine_effort *effort, const struct tile *t, int per, const struct moments *z, const float *side,
	struct a_lanes *v)
{
	struct a_first f;
	for (int o = 0; o < LANES; o += REG) {
		struct lane_fit b = a_start(a, start, effort, t, o, &z[o/REG], r_floats(side + o), NULL);
		r_put(v->excess + o, b.err - a->thrift*z[o/REG].w*b.s*b.s - tile_nothing(a->nmax)*z[o/REG].xx);
		r_put(f.s + o, b.s); r_put(f.m + o, r_abs(b.m)); r_put(f.cs + o, b.cs); r_put(f.cm + o, z[o/REG].w);
	}
	a_settle(a, effort->walks, false, t, per, z, side, &f, v);
}
/* The error that each lane of v leaves. A scale that f16 made zero is taken as a tiny one, since a_errors counts in
 * units of it. */
static inline void a_left(const struct affine *a, const struct tile *t, const struct a_lanes *v, float *err)
{
	for (int o = 0; o < LANES; o += REG) {
		rf e, m = r_floats(v->dm + o)*r_floats(v->lm + o);
		a_errors(a, t, o, r_max(r_floats(v->d + o)*r_floats(v->ls + o), r_dup(1e-9f)), 1, &m, &e);
		r_put(err + o, e);
	}
}
static inline bool a_is_plain(const struct a_lanes *v, int g, int per) { return lane_sum(v->excess + g, per) < 0; }
/* Two guesses that map every range to the same number of codes */
static inline void a_alike(float codes, struct affine_start start[2])
{
	for (int i = 0; i < 2; i++) start[i] = (struct affine_start){ codes, 0 };
}
/* Puts the better of v and w into v, for each super-block. With plain_only it leaves the others as they are: w was
 * searched because of some plain super-block, and the bytes of a super-block must not depend on its neighbours in the
 * tile. */
static inline void a_better(const struct affine *a, const struct tile *t, int per, bool plain_only, struct a_lanes *v,
	const struct a_lanes *w)
{
	_Alignas(64) float ev[LANES], ew[LANES];
	a_left(a, t, v, ev); a_left(a, t, w, ew);
	for (int g = 0; g < LANES; g += per) {
		if (plain_only && !a_is_plain(v, g, per)) continue;
		if (!(lane_sum(ew + g, per) < lane_sum(ev + g, per))) continue;
		for (int l = g; l < g + per; l++) {
			v->d[l] = w->d[l]; v->dm[l] = w->dm[l];
			v->ls[l] = w->ls[l]; v->lm[l] = w->lm[l];
		}
	}
}

/* Searches plain super-blocks with guesses that map every range to the same number of codes: the largest code, and an
 * even number. */
static __attribute__((noinline)) void a_plain(const struct affine *a, int walks, const struct tile *t, int per,
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
/* What codes with scale s and min m lose at most, beside what zeros would lose too: rounding loses up to w s s/4, and
 * weights out of range lose less than zeros would, if zero is in range. */
static inline rf a_most(const struct affine *a, const struct moments *z, rf s, rf m)
{
	rm without_zero = m_or(r_lt(m, r_dup(0)), r_lt(s*a->nmax, m));
	return r_if(without_zero, r_dup(INFINITY), z->w*s*s*0.25f);
}
/* If zeros would lose less of a super-block, as they may beside a weight that counts for nearly everything, makes zeros
 * of the sub-blocks of which they lose less. */
static inline void a_zeros(const struct affine *a, const struct tile *t, int per, const struct moments *z,
	struct a_lanes *v)
{
	_Alignas(64) float all[LANES], err[LANES];
	bool some = false;
	for (int o = 0; o < LANES; o += REG) {
		rf s = r_floats(v->d + o)*r_floats(v->ls + o), m = r_floats(v->dm + o)*r_floats(v->lm + o);
		r_put(all + o, z[o/REG].xx); r_put(err + o, a_most(a, &z[o/REG], s, m));
	}
	for (int g = 0; g < LANES; g += per) some |= lane_sum(all + g, per) < lane_sum(err + g, per);
	if (!some) return;
	a_left(a, t, v, err);
	for (int g = 0; g < LANES; g += per) {
		if (!(lane_sum(all + g, per) < lane_sum(err + g, per))) continue;
		for (int l = g; l < g + per; l++) if (all[l] < err[l]) v->ls[l] = v->lm[l] = 0;
	}
}
/* Searches once more, with steps, the super-blocks that are plain or whose weights have few mantissas: enc_step.h */
static void a_steps(const struct affine *a, int walks, bool plain, const struct tile *t, int per,
	const struct moments *z, const float *side, struct a_lanes *v);

/* Fits the tile: puts codes into t->q, and finds ls and lm of each lane, d and dmin (f->m) of each super-block of `per`
 * lanes. More starts fit the sub-blocks better, but may suit the common scales less; so above the default effort the
 * default search is done too. */
static inline void affine_tile(const struct affine *a, const struct affine_effort *efforts, int row, struct tile *t,
	int per, struct fitted *f)
{
	_Alignas(64) float side[LANES];
	struct moments z[LANES/REG];
	struct a_lanes v, usual;
	bool plain = false;
	a_side(a, t, per, side);
	for (int o = 0; o < LANES; o += REG) z[o/REG] = a_moments(a, t, o);
	a_search(a, a->start, &efforts[row], t, per, z, side, &v);
	if (row >= QUANT_EFFORT_DEFAULT) {
		a_search(a, a->start, &efforts[QUANT_EFFORT_DEFAULT - 1], t, per, z, side, &usual);
		a_better(a, t, per, false, &v, &usual);
	}
	for (int g = 0; g < LANES; g += per) plain |= a_is_plain(&v, g, per);
	if (plain) a_plain(a, efforts[row].walks, t, per, z, side, &v);
	a_steps(a, efforts[row].walks, plain, t, per, z, side, &v);
	a_zeros(a, t, per, z, &v);
	for (int o = 0; o < LANES; o += REG) {
		rf inv = r_inverse(r_floats(v.d + o)*r_floats(v.ls + o)), min = r_floats(v.dm + o)*r_floats(v.lm + o);
		for (int e = 0; e < a->n; e++) put_codes(&t->q[e][o], a_code(a, r_floats(&t->x[e][o]), inv, min));
	}
	tile_codes(t, a->n);
	for (int l = 0; l < LANES; l++) { f->ls[l] = v.ls[l]; f->lm[l] = v.lm[l]; }
	for (int g = 0; g < LANES; g += per) {
		f->d[g/per] = v.d[g]*t->scale[g/per];
		f->m[g/per] = v.dm[g]*t->scale[g/per];
	}
}

/* For coder.again: the starts again, and then the neighbours of what they find. */
static inline void affine_again(const struct affine *a, const struct affine_effort *effort, const struct tile *t,
	struct again *v)
{
	struct a_lanes g;
	for (int o = 0; o < LANES; o += REG) {
		rf d = r_floats(v->d + o), m = r_floats(v->m + o), one = r_dup(1);
		struct moments z = a_moments(a, t, o);
		struct lane_fit b = a_start(a, a->start, effort, t, o, &z, r_if(r_lt(m, r_dup(0)), 0 - one, one), NULL);
		r_put(g.d + o, d); r_put(g.dm + o, m);
		r_put(g.ls + o, r_clamp(r_round(b.s*r_inverse(d)), 0, a->smax));
		r_put(g.lm + o, r_clamp(r_round(b.m*r_inverse(m)), 0, a->mmax));
		a_walk(a, t, o, &g);
		r_put(v->ls + o, r_floats(g.ls + o)); r_put(v->lm + o, r_floats(g.lm + o));
	}
}
#endif
