/* SPDX-License-Identifier: MIT
 * enc_levels.h - searches scales and codes of the types without mins, whose codes stand for a fixed set of levels v:
 * weight = d*ls*v (Q3_K, Q6_K, with levels -n..n-1, and others), and weight = d*v (Q4_0, Q5_0, Q2_0, the TQ types and
 * others). The steps are those of enc_affine.h with one unknown less. As few sets of levels are symmetric, starts have
 * either sign.
 *
 * A set of uneven levels (IQ4_NL, IQ4_XS, MXFP4, NVFP4) is a table of sixteen and of the midpoints between them. */
#ifndef QUANT_ENC_LEVELS_H
#define QUANT_ENC_LEVELS_H
#include "enc_tile.h"

struct uneven;
struct levels {
	int n;                          /* elements of a sub-block */
	const struct uneven *uneven;    /* NULL: whole numbers lo..hi */
	float lo, hi;                   /* least and greatest level */
	float slo, shi;                 /* least and greatest ls */
	/* First guesses of the scale: each maps the largest |x| to this level. The lists were made as those of
	 * enc_affine.h were. */
	const float *start;
	/* of MANY starts, the last but one maps the largest |x| to this level where the mean |x| is more than 0.4 of
	 * it; 0: none does */
	float dense;
};
/* With fewer starts, none can be spared for lanes whose magnitudes are near each other. */
enum { MANY = 8 };
struct levels_effort {
	int starts, iters;      /* first guesses (even), alternations of the best even and the best odd one */
	int walks, reach;       /* refits; ls may move by 3*reach + 1 in the first, by 1 in the others */
	bool steps;             /* whether steps are looked for (enc_step.h) */
};

/* The nearest of sixteen levels is found by binary search: midpoints to compare with are looked up by a permutation.
 * The last step may look up the level itself, which saves computing its number. */
struct uneven { float half, quarter[8], eighth[8], mid[8], even[8], odd[8]; };
static inline ri lv_pair(const struct uneven *u, rf t)
{
	ri i = ri_one(r_gt(t, r_dup(u->half)));
	i = i + i + ri_one(r_gt(t, r_lut8(u->quarter, i)));
	return i + i + ri_one(r_gt(t, r_lut8(u->eighth, i)));
}
static inline rf lv_value(const struct levels *a, rf t)
{
	ri i;
	if (!a->uneven) return r_round(r_clamp(t, a->lo, a->hi));
	i = lv_pair(a->uneven, t);
	return r_if(r_gt(t, r_lut8(a->uneven->mid, i)), r_lut8(a->uneven->odd, i), r_lut8(a->uneven->even, i));
}
static inline rf lv_code(const struct levels *a, rf t)
{
	ri i;
	if (!a->uneven) return lv_value(a, t) - a->lo;
	i = lv_pair(a->uneven, t);
	return r_int(i + i + ri_one(r_gt(t, r_lut8(a->uneven->mid, i))));
}

/* At which ends of the levels a sweep must clamp. A start s puts every weight within s of 0: one below hi + 1/2 needs
 * no clamp, and as -lo = hi + 1, one below that stays above lo by itself. */
enum ends { NO_END, UPPER_END, BOTH_ENDS };
static inline enum ends lv_ends(const struct levels *a, float s)
{
	float room = fabsf(s) - a->hi;
	if (a->uneven || a->lo + a->hi != -1) return BOTH_ENDS;
	return room < 0.49f ? NO_END : room < 1.49f ? UPPER_END : BOTH_ENDS;
}
/* The sums of w v v and of w v x for nk scales in one sweep: two at once keep the adders busy. */
INLINE void lv_sums_ends(const struct levels *a, const struct tile *t, int o, int nk, const rf *inv, rf *q2, rf *qx,
	enum ends ends)
{
	for (int k = 0; k < nk; k++) q2[k] = qx[k] = r_dup(0);
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]);
		for (int k = 0; k < nk; k++) {
			rf u = x*inv[k], v, wv;
			if (ends == BOTH_ENDS) v = lv_value(a, u);
			else v = r_round(ends == NO_END ? u : r_min(u, r_dup(a->hi)));
			wv = w*v;
			q2[k] += wv*v; qx[k] += wv*x;
		}
	}
}
INLINE void lv_sums(const struct levels *a, const struct tile *t, int o, int nk, const rf *inv, rf *q2, rf *qx)
{
	lv_sums_ends(a, t, o, nk, inv, q2, qx, BOTH_ENDS);
}
/* The errors that three scales leave */
INLINE void lv_errors(const struct levels *a, const struct tile *t, int o, const rf s[3], rf err[3])
{
	rf inv[3];
	for (int k = 0; k < 3; k++) { inv[k] = r_inverse(s[k]); err[k] = r_dup(0); }
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]);
		for (int k = 0; k < 3; k++) {
			rf u = x*inv[k], r = lv_value(a, u) - u;
			err[k] += w*r*r;
		}
	}
	for (int k = 0; k < 3; k++) err[k] = err[k]*s[k]*s[k];
}

/* The result of a lane's starts: its best scale, the curvature of the error along it, and how much of the sum of w x x
 * (all) it explains. The last start maps the weight that counts most to level 1, if that weight is so far below the
 * largest that the other starts would make it zero. */
struct lv_fit { rf s, c, gain, all; };
INLINE struct lv_fit lv_start(const struct levels *a, const float *start, const struct levels_effort *f,
	const struct tile *t, int o)
{
	rf zero = r_dup(0), top = zero, mean = zero, most = zero, chief = zero, c2[2], cx[2], inv[2];
	struct lv_fit b = { zero, zero, r_dup(-1), zero };
	/* the best of the even starts and of the odd ones, and their gains */
	rf ps[2] = { zero, zero }, pg[2] = { b.gain, b.gain };
	for (int e = 0; e < a->n; e++) {
		rf x = r_floats(&t->x[e][o]), g = r_floats(&t->w[e][o])*x*x;
		chief = r_if(r_gt(g, most), x, chief);
		most = r_max(g, most);
		b.all += g;
		top = r_max(top, r_abs(x));
		if (a->dense > 0) mean += r_abs(x)*(1/(float)a->n);
	}
	chief = r_inverse(chief);
	for (int k = 0; k < f->starts + 2*f->iters; k += 2) {
		enum ends ends = k >= f->starts ? BOTH_ENDS :
			lv_ends(a, fmaxf(fabsf(start[k]), fabsf(start[k + 1])));
		for (int h = 0; h < 2; h++) {
			if (k < f->starts) inv[h] = r_ratio(r_dup(start[k + h]), top);
			else inv[h] = r_inverse(ps[h]);
		}
		if (k + 2 == f->starts) {
			if (a->dense > 0 && f->starts >= MANY)
				inv[0] = r_if(r_lt(top*0.4f, mean), r_ratio(r_dup(a->dense), top), inv[0]);
			inv[1] = r_if(r_lt(r_abs(inv[1]), r_abs(chief)), chief, inv[1]);
			ends = BOTH_ENDS;
		}
		if (ends == NO_END) lv_sums_ends(a, t, o, 2, inv, c2, cx, NO_END);
		else if (ends == UPPER_END) lv_sums_ends(a, t, o, 2, inv, c2, cx, UPPER_END);
		else lv_sums(a, t, o, 2, inv, c2, cx);
		for (int h = 0; h < 2; h++) {
			rf r = r_ratio(cx[h], c2[h]), g = r*cx[h];
			rm ok = r_gt(g, pg[h]);
			if (k >= f->starts) ps[h] = r;
			else { pg[h] = r_if(ok, g, pg[h]); ps[h] = r_if(ok, r, ps[h]); }
			ok = r_gt(g, b.gain);
			b.gain = r_if(ok, g, b.gain); b.s = r_if(ok, r, b.s); b.c = r_if(ok, c2[h], b.c);
		}
	}
	return b;
}

/* First guesses of a tile's lanes: scales, and the curvatures of the errors along them. */
struct lv_first { _Alignas(64) float s[LANES], c[LANES]; };
/* The d, of either sign, for which integers slo..shi best represent v[j]/d, with errors weighted by c[j]; one candidate
 * for each lane, as in enc_affine.h. whole: the largest |v| is a whole number of d. */
INLINE float lv_ladder(const struct levels *a, bool whole, const float *v, const float *c, int n, float scale)
{
	enum { RUNGS = 64 };
	_Alignas(64) float rung[RUNGS], err[RUNGS];
	float hi = 0;
	for (int j = 0; j < n; j++) hi = fabsf(v[j]) > hi ? fabsf(v[j]) : hi;
	if (!(hi > 1e-30f)) return 0;
	for (int k = 0; k < RUNGS; k++)
		rung[k] = whole ? fmaxf(a->shi - (float)k, 1) :
			(k & 1 ? a->slo : -a->slo)*(1.04f - 0.45f/RUNGS*(float)k);
	for (int k = 0; k < RUNGS; k += REG) {
		rf r = r_floats(rung + k), inv = r*(1/hi), s = r_dup(0);
		for (int j = 0; j < n; j++) {
			rf u = v[j]*inv, miss = r_round(r_clamp(u, a->slo, a->shi)) - u;
			s += c[j]*miss*miss;
		}
		r_put(err + k, s/(r*r));
	}
	return f16_reach(hi, rung[least_error(err, RUNGS)], scale);
}

/* Moves each lane's ls to the neighbour with the least error, with codes rounded again. Leaves that error, and the sums
 * for the refit. */
struct lv_lanes { _Alignas(64) float d[LANES], ls[LANES], q2[LANES], qx[LANES], err[LANES]; };
static inline void lv_walk(const struct levels *a, const struct tile *t, int o, int reach, struct lv_lanes *g)
{
	rf D = r_floats(g->d + o), L = r_floats(g->ls + o), bl = L, be = r_dup(INFINITY), inv, c2, cx;
	for (int i = -reach; i <= reach; i++) {
		rf l[3], sc[3], e[3];
		for (int k = 0; k < 3; k++) {
			l[k] = r_clamp(L + (float)(3*i + k - 1), a->slo, a->shi);
			sc[k] = D*l[k];
		}
		lv_errors(a, t, o, sc, e);
		for (int k = 0; k < 3; k++) {
			rm ok = m_and(r_lt(e[k], be), r_ne(sc[k], r_dup(0)));
			bl = r_if(ok, l[k], bl); be = r_if(ok, e[k], be);
		}
	}
	be = r_keep(r_lt(be, r_dup(INFINITY)), be);    /* only zeros: no scale, no error */
	inv = r_inverse(D*bl);
	lv_sums(a, t, o, 1, &inv, &c2, &cx);
	r_put(g->ls + o, bl); r_put(g->err + o, be);
	r_put(g->q2 + o, c2); r_put(g->qx + o, cx);
}
static inline void lv_codes(const struct levels *a, struct tile *t, const float *scale)
{
	for (int o = 0; o < LANES; o += REG) {
		rf inv = r_inverse(r_floats(scale + o));
		for (int e = 0; e < a->n; e++) put_codes(&t->q[e][o], lv_code(a, r_floats(&t->x[e][o])*inv));
	}
	tile_codes(t, a->n);
}

/* The best that searches have found: ls of each lane; of each super-block d, its error, how much of the sum of w x x it
 * explains, and whether its search has ended. */
struct lv_found { float ls[LANES], d[LANES], err[LANES], explained[LANES]; bool ended[LANES]; };
/* Finds scales for first guesses, and changes *f for the super-blocks whose search has not ended, where the result is
 * better. whole: of lv_ladder; then the scales may change by a common factor, as suits f16. */
INLINE void lv_settle(const struct levels *a, const struct levels_effort *effort, bool whole,
	const struct tile *t, int per, const struct lv_first *b, struct lv_found *f)
{
	struct lv_lanes v;
	for (int g = 0; g < LANES; g += per) {
		float dd = lv_ladder(a, whole, b->s + g, b->c + g, per, t->scale[g/per]);
		for (int j = g; j < g + per; j++) {
			v.d[j] = dd;
			v.ls[j] = dd != 0 ? roundi(clampf(b->s[j]/dd, a->slo, a->shi)) : 0;
		}
	}
	for (int it = 0; it < effort->walks; it++) {
		for (int o = 0; o < LANES; o += REG) lv_walk(a, t, o, it ? 0 : effort->reach, &v);
		for (int g = 0; g < LANES; g += per) {
			float A = 0, P = 0, E = 0;
			for (int j = g; j < g + per; j++) {
				A += v.ls[j]*v.ls[j]*v.q2[j];
				P += v.ls[j]*v.qx[j];
				E += v.err[j];
			}
			if (A > 0) {                    /* the error after the refit: it is quadratic in d */
				float k = whole ? f16_factor(P/A, v.ls + g, per, a->shi, t->scale[g/per]) : 1;
				float d = f16_unit(P/A/k, t->scale[g/per]), was = v.d[g], now = d*k;
				E += (now - was)*((now + was)*A - 2*P);
				for (int j = g; j < g + per; j++) { v.d[j] = d; v.ls[j] = roundi(v.ls[j]*k); }
			}
			if (f->ended[g/per] || !(E < f->err[g/per])) continue;
			f->err[g/per] = E; f->explained[g/per] = A > 0 ? P*P/A : 0; f->d[g/per] = v.d[g];
			for (int j = g; j < g + per; j++) f->ls[j] = v.ls[j];
		}
	}
}
/* Searches with starts. This ends the search of super-blocks, except for those of plain weights (see a_plain); returns
 * whether there are such. Leaves its guesses in *b. */
static inline bool lv_search(const struct levels *a, const float *start, const struct levels_effort *effort,
	const struct tile *t, int per, struct lv_first *b, struct lv_found *f)
{
	_Alignas(64) float excess[LANES];
	bool plain = false;
	for (int o = 0; o < LANES; o += REG) {
		struct lv_fit l = lv_start(a, start, effort, t, o);
		r_put(b->s + o, l.s); r_put(b->c + o, l.c);
		r_put(excess + o, (1 - tile_plain)*l.all - l.gain);
	}
	lv_settle(a, effort, false, t, per, b, f);
	for (int g = 0; g < LANES; g += per) {
		f->ended[g/per] = !(lane_sum(excess + g, per) < 0);
		plain |= !f->ended[g/per];
	}
	return plain;
}
/* Searches once more, with steps, a super-block that fills the tile: enc_step.h. b: the guesses of lv_search */
static void lv_steps(const struct levels *a, const struct levels_effort *effort, const struct tile *t,
	struct lv_first *b, struct lv_found *f);

/* Fits the tile: puts codes into t->q, and finds ls of each lane and d of each super-block of `per` lanes. lift: see
 * tile_lift. */
static inline void levels_tile(const struct levels *a, const struct levels_effort *effort, float lift, struct tile *t,
	int per, struct fitted *f)
{
	struct lv_found b = { 0 };
	struct lv_first first, again;
	_Alignas(64) float s[LANES], squares[LANES];
	for (int g = 0; g < LANES; g += per) b.err[g/per] = INFINITY;
	if (lv_search(a, a->start, effort, t, per, &first, &b) && !a->uneven) {
		const float start[2] = { a->hi, a->hi };
		const struct levels_effort once = { .starts = 2, .walks = effort->walks };
		lv_search(a, start, &once, t, per, &again, &b);
	}
	if (effort->steps && per == LANES) lv_steps(a, effort, t, &first, &b);
	for (int j = 0; j < LANES; j++) {
		f->ls[j] = b.ls[j];
		s[j] = b.d[j/per]*b.ls[j];
	}
	lv_codes(a, t, s);
	if (lift > 0) tile_squares(t, a->n, squares);
	for (int g = 0; g < LANES; g += per) {
		f->d[g/per] = b.d[g/per]*t->scale[g/per];
		if (lift > 0) f->lift[g/per] = tile_lift(squares + g, per, b.explained[g/per], lift);
		if (lift > 0) f->d[g/per] *= f->lift[g/per];
	}
}
/* For coder.again: the starts again, and then the neighbours of what they find. */
static inline void levels_again(const struct levels *a, const struct levels_effort *effort, const struct tile *t,
	struct again *v)
{
	struct lv_lanes g;
	for (int o = 0; o < LANES; o += REG) {
		rf d = r_floats(v->d + o), s = lv_start(a, a->start, effort, t, o).s;
		r_put(g.d + o, d);
		r_put(g.ls + o, r_clamp(r_round(s*r_inverse(d)), a->slo, a->shi));
		lv_walk(a, t, o, 0, &g);
		r_put(v->ls + o, r_floats(g.ls + o));
	}
}

/* If the starts explain next to nothing of the unit at lane g, the weight that counts most is so far below the largest
 * that they make it zero. This maps it to level 1, and changes *s and *gain if that explains more. */
static __attribute__((noinline)) void lv_chief(const struct levels *a, const struct tile *t, int g, int per, float *s,
	float *gain)
{
	float chief = 1, most = 0, A = 0, P = 0;
	for (int e = 0; e < a->n; e++)
		for (int l = g; l < g + per; l++) {
			const float x = t->x[e][l], c = t->w[e][l]*x*x;
			if (c > most) { most = c; chief = x; }
		}
	for (int e = 0; e < a->n; e++)
		for (int l = g; l < g + per; l++) {
			const float x = t->x[e][l], v = roundi(clampf(x/chief, a->lo, a->hi));
			A += t->w[e][l]*v*v; P += t->w[e][l]*v*x;
		}
	if (A > 0 && P*P/A > *gain) { *s = P/A; *gain = P*P/A; }
}
/* Do the tile's codes with scale s lose more of a unit than zeros would? */
static __attribute__((noinline)) bool lv_harms(const struct levels *a, const struct tile *t, int g, int per, float s)
{
	float more = 0;
	for (int e = 0; e < a->n; e++)
		for (int l = g; l < g + per; l++) {
			const float v = s*((float)t->q[e][l] + a->lo);
			more += t->w[e][l]*v*(v - 2*t->x[e][l]);
		}
	return more > 0;
}
/* Fits units of `per` lanes that have one scale, an f16: the steps of lv_start, with each sum taken over the lanes of a
 * unit in order. */
static inline void levels_units(const struct levels *a, const struct levels_effort *effort, float lift, struct tile *t,
	int per, struct fitted *f)
{
	_Alignas(64) float inv[LANES], top[LANES], q2[LANES], qx[LANES], s[LANES], squares[LANES];
	float gain[LANES], half[2][LANES], half_gain[2][LANES];
	for (int o = 0; o < LANES; o += REG) {
		rf m = r_dup(0);
		for (int e = 0; e < a->n; e++) m = r_max(m, r_abs(r_floats(&t->x[e][o])));
		r_put(top + o, m);
	}
	for (int g = 0; g < LANES; g += per) {
		for (int l = g + 1; l < g + per; l++) top[g] = top[l] > top[g] ? top[l] : top[g];
		gain[g] = half_gain[0][g] = half_gain[1][g] = -1;
		s[g] = half[0][g] = half[1][g] = 0;
	}
	for (int k = 0; k < effort->starts + 2*effort->iters; k++) {
		for (int l = 0; l < LANES; l++) {
			float d = k < effort->starts ? top[l/per*per]/a->start[k] : half[k%2][l/per*per];
			inv[l] = fabsf(d) > 1e-30f ? 1/d : 0;
		}
		for (int o = 0; o < LANES; o += REG) {
			rf i = r_floats(inv + o), c2, cx;
			lv_sums(a, t, o, 1, &i, &c2, &cx);
			r_put(q2 + o, c2); r_put(qx + o, cx);
		}
		for (int g = 0; g < LANES; g += per) {
			float A = 0, P = 0, r;
			for (int l = g; l < g + per; l++) { A += q2[l]; P += qx[l]; }
			r = A > 0 ? P/A : 0;
			if (k >= effort->starts) half[k%2][g] = r;
			else if (r*P > half_gain[k%2][g]) { half_gain[k%2][g] = r*P; half[k%2][g] = r; }
			if (r*P > gain[g]) { gain[g] = r*P; s[g] = r; }
		}
	}
	tile_squares(t, a->n, squares);
	for (int g = 0; g < LANES; g += per)
		if (gain[g] < 0.1f*lane_sum(squares + g, per)) lv_chief(a, t, g, per, &s[g], &gain[g]);
	for (int l = 0; l < LANES; l++) s[l] = l%per ? s[l - 1] : f16_unit(s[l], t->scale[l/per]);
	lv_codes(a, t, s);
	for (int g = 0; g < LANES; g += per) {
		const float much = tile_lift(squares + g, per, gain[g], lift);
		const bool harms = gain[g] < 0.5f*lane_sum(squares + g, per) && lv_harms(a, t, g, per, s[g]*much);
		f->d[g/per] = s[g]*t->scale[g/per]*(harms ? 1 : much);
	}
}
#endif
