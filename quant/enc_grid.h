/* SPDX-License-Identifier: MIT
 * enc_grid.h - searches scales and words of the IQ types with code books: weight = D*(2*l + 1)*g, where g is an element
 * of a word of the code book, with a sign.
 *
 * Signs come first (IQ2, IQ3). They are free unless the number of minuses must be even: then an odd group of 8 has one
 * element with the wrong sign. That is the one with the smallest w|x|, the victim, which becomes a negative magnitude,
 * so the search need not know about signs. When the words are known, the victim is chosen once more.
 *
 * The word is searched exactly, by trying all of them, cheaply. The squared error is a sum over the two halves of a
 * word (81 of four digits of base 3, 64 of two of base 8), each the sum of a lower and an upper part. Costs are
 * integers that carry their digits in the low bits, so that sums and minimums need no bookkeeping. For each first half,
 * the best second half among those that it is paired with is a chain of minimums; those that several chains need are
 * computed once (a third to a fifth of the work is left, by the greedy sharing of scripts/gen-grids). There is no index
 * and no list of neighbours.
 *
 * Scales are found as in enc_levels.h: starts (some without the book), a ladder for D, a walk along l with the search's
 * own errors, least squares. As its delta, IQ1 takes the one that digits without the book prefer, or tries both. */
#ifndef QUANT_ENC_GRID_H
#define QUANT_ENC_GRID_H
#include "enc_tile.h"
#include "grid_runs.h"
#include "grids.h"

enum grid_delta { DELTA_NONE, DELTA_LANE, DELTA_WORD };         /* IQ1: what shares the sign of delta */
struct grid_word { rf cost; ri digits; };               /* the error, in units of scale^2, less that of zeros */
struct grid {
	int n, word, base;              /* elements of a sub-block, of a word; digits */
	float level[8];                 /* of a digit; of base 3 the same again from level[4]: see grid_sums */
	int line;                       /* digits 0 to this have evenly spaced levels */
	float shift;                    /* IQ1: what the other delta adds to every level */
	enum grid_delta delta;
	int even;                       /* the signs of 8 weights must have an even number of minuses */
	float top, unit;                /* greatest l; D = d*unit */
	ri (*best)(const ri (*a)[9], const ri (*b)[9]); /* GRID_SEARCH of the book */
	const struct grid_rank *rank;
	float bias;                     /* the best scale with the book over that with free digits */
	/* the level to which a start maps the mean magnitude, if that gives the larger scale, which means that
	 * magnitudes differ little; equal ones are mapped to the lowest level. 0: no such start */
	float flat;
	/* a start with the book maps the greatest magnitude to level dense_top if the mean is more than `dense` of it:
	 * then a smaller level than the last may do for it. 0: no such start */
	float dense, dense_top;
};
struct grid_effort {
	int starts, iters;      /* first scales, alternations of each */
	bool free;              /* the starts choose each digit freely instead of searching the book */
	float first, step;      /* start k maps the largest |x| to level first + step*k */
	int walks, reach, again;        /* refits, and how far l may move in the first and in each of the others */
	bool both;              /* IQ1: search with both deltas, not only the likely one */
};
enum { GRID_WORDS = 8 };
/* What a lane's words give: the error less that of storing zeros; the sums of w g g and of w g x; for each word, its
 * digits and whether it has the other delta. */
struct grid_lane { rf err, q2, qx; ri digits[GRID_WORDS], other[GRID_WORDS]; };

/* The best pair of a first half and a second half in the book, from the costs of their lower and upper parts (a half is
 * two parts, see grid_runs.h). Each sum and minimum has a name: straight-line code that the compiler keeps in registers
 * or stores once. Loops over the book take twice as long. */
#define GRID_SEARCH(name, RUNS) \
static __attribute__((noinline)) ri grid_best_##name(const ri (*restrict a)[9], const ri (*restrict b)[9]) \
{ \
	ri best = ri_dup(INT32_MAX); \
	RUNS(GRID_SUM, GRID_NODE, GRID_GROUP, GRID_RUN, GRID_SECOND) \
	return best; \
}
#define GRID_SUM(n, i, j) const ri h##n = b[0][i] + b[1][j];
#define GRID_NODE(n, x, y) const ri h##n = ri_min(h##x, h##y);
#define GRID_SECOND(n) m = ri_min(m, h##n);
#define GRID_RUN(i, n, seconds) { ri m = h##n; seconds r = ri_min(r, a[0][i] + m); }
#define GRID_GROUP(j, runs) { ri r = ri_dup(INT32_MAX/2); runs best = ri_min(best, a[1][j] + r); }
GRID_SEARCH(iq1, RUNS_IQ1)
GRID_SEARCH(iq2_xxs, RUNS_IQ2_XXS)
GRID_SEARCH(iq2_xs, RUNS_IQ2_XS)
GRID_SEARCH(iq2_s, RUNS_IQ2_S)
GRID_SEARCH(iq3_xxs, RUNS_IQ3_XXS)
GRID_SEARCH(iq3_s, RUNS_IQ3_S)

/* For each word, the sums of w, of w |x| and of w x */
struct grid_words { _Alignas(64) float w[GRID_WORDS][LANES], abs[GRID_WORDS][LANES], x[GRID_WORDS][LANES]; };
/* Weights that are not finite become 0, so that nothing later exceeds a float's range. */
static inline void grid_words(const struct grid *a, struct tile *t, struct grid_words *m)
{
	for (int o = 0; o < LANES; o += REG)
		for (int g = 0; g < a->n/a->word; g++) {
			rf sw = r_dup(0), sa = sw, sx = sw;
			for (int e = a->word*g; e < a->word*(g + 1); e++) {
				rf x = r_floats(&t->x[e][o]), w = r_floats(&t->w[e][o]), wx;
				x = r_keep(r_lt(r_abs(x), r_dup(4)), x);
				r_put(&t->x[e][o], x);
				wx = w*x;
				sw += w; sa += r_abs(wx); sx += wx;
			}
			r_put(&m->w[g][o], sw); r_put(&m->abs[g][o], sa); r_put(&m->x[g][o], sx);
		}
}
static inline rf grid_inverse(rf s) { return r_min(r_inverse(s), r_dup(1e18f)); }
/* The costs of the digits of element e, each less that of digit 0: the cost in the upper half of 32 bits, digits in the
 * lower. unit: what a cost of 1 is, in 2^-16. Second differences of evenly spaced levels are constant. */
INLINE void grid_digits(const struct grid *a, rf shift, const struct tile *t, int o, int e, int i, rf inv, rf unit,
	ri *c)
{
	const int bits = a->base == 8 ? 3 : 2;
	const float step = a->level[1] - a->level[0];
	rf u = r_floats(&t->x[e][o])*inv - shift, w = r_floats(&t->w[e][o])*unit;
	ri cost[8], bend = ri_trunc(w*(2*step*step)), rise = bend;
	u += u;
	c[0] = cost[0] = ri_dup(0);
	for (int k = 1; k < a->base; k++) {
		float far = a->level[k] - a->level[0];
		if (k == 1 || k > a->line) cost[k] = ri_trunc(w*far*(a->level[k] + a->level[0] - u));
		else cost[k] = cost[k - 1] + rise;
		if (k < a->line) rise = k == 1 ? cost[1] + bend : rise + bend;  /* otherwise it may be beyond 32 bits */
		c[k] = ri_low(cost[k], k << bits*i);
	}
}
/* The costs of the parts of half a word from the costs of its elements' digits: lower and upper. */
INLINE void grid_parts(const struct grid *a, const ri (*c)[8], ri (*cost)[9])
{
	if (a->base == 8) {
		for (int k = 0; k < 8; k++) cost[0][k] = c[0][k], cost[1][k] = c[1][k];
		return;
	}
	for (int h = 0; h < 2; h++)
		for (int i = 0; i < 9; i++) cost[h][i] = c[2*h][i%3] + c[2*h + 1][i/3];
}
/* The best word number g, where inv is 1/scale. Costs of words are integers in the upper half of 32 bits, all below
 * 2^14; the lower half has the digits, so that sums of costs carry them along and minimums find them. */
INLINE void grid_word(const struct grid *a, rm other, const struct tile *t, const struct grid_words *m, int o, int g,
	rf inv, struct grid_word *r)
{
	const float *l = a->level, far = l[a->base - 1] - l[0], both = fabsf(l[a->base - 1] + l[0]) + 2*fabsf(a->shift);
	rf W = r_floats(&m->w[g][o]), X = r_floats(&m->x[g][o])*inv, shift = r_dup(0), most, unit, zero;
	ri c[8][8], first[2][9], second[2][9], got;
	if (a->delta) shift = r_keep(other, r_dup(a->shift));
	most = far*(both*W + 2*(r_floats(&m->abs[g][o])*inv));   /* no sum of |costs| exceeds this */
	unit = r_inverse(most)*(16000*65536.0f);
	for (int i = 0; i < a->word; i++) grid_digits(a, shift, t, o, a->word*g + i, i, inv, unit, c[i]);
	grid_parts(a, (const ri (*)[8])c, first);
	grid_parts(a, (const ri (*)[8])c + a->word/2, second);
	got = a->best((const ri (*)[9])first, (const ri (*)[9])second);
	zero = l[0] + shift;
	r->digits = got & 0xffff;
	r->cost = r_int(got >> 16)*(most*(1.0f/16000)) + zero*(zero*W - (X + X));
}
/* The digit of element i of a word. */
static inline ri grid_digit(const struct grid *a, ri digits, int i)
{
	return a->base == 8 ? (digits >> i*3) & 7 : (digits >> i*2) & 3;
}
/* Finds the sums, and the better delta, without the book: each digit is chosen freely, and levels are taken to be
 * evenly spaced. */
static inline void grid_free(const struct grid *a, const struct tile *t, int o, rf s, struct grid_lane *r)
{
	const int deltas = a->delta ? 2 : 1;
	const float step = (a->level[a->base - 2] - a->level[0])/(float)(a->base - 2);
	rf inv = grid_inverse(s)*(1/step), zero = r_dup(0), q2[2][GRID_WORDS], qx[2][GRID_WORDS], gain = zero;
	int words = a->n/a->word;
	for (int g = 0; g < words; g++) {
		for (int d = 0; d < deltas; d++) q2[d][g] = qx[d][g] = zero;
		for (int i = 0; i < a->word; i++) {
			rf x = r_floats(&t->x[a->word*g + i][o]), w = r_floats(&t->w[a->word*g + i][o]), u = x*inv;
			for (int d = 0; d < deltas; d++) {
				float low = a->level[0] + (d ? a->shift : 0);
				rf v = r_round(r_clamp(u - low/step, 0, (float)(a->base - 1)))*step + low, wv = w*v;
				q2[d][g] += wv*v; qx[d][g] += wv*x;
			}
		}
		r->other[g] = ri_dup(0);
		if (a->delta == DELTA_NONE) continue;
		if (a->delta == DELTA_WORD) gain = zero;
		gain += (s*(q2[0][g] - q2[1][g]) - 2*(qx[0][g] - qx[1][g]))*s;
		r->other[g] = ri_one(r_gt(gain, zero));
	}
	r->q2 = r->qx = zero;
	for (int g = 0; g < words; g++) {
		rm ok = ri_lt(ri_dup(0), r->other[a->delta == DELTA_LANE ? words - 1 : g]);
		if (a->delta == DELTA_LANE) r->other[g] = r->other[words - 1];
		if (a->delta) { q2[0][g] = r_if(ok, q2[1][g], q2[0][g]); qx[0][g] = r_if(ok, qx[1][g], qx[0][g]); }
		r->q2 += q2[0][g]; r->qx += qx[0][g];
	}
}
/* Finds the best words for a scale, the sum of their errors and, if `both`, the better delta. */
INLINE void grid_try(const struct grid *a, bool both, const struct tile *t, const struct grid_words *m, int o, rf s,
	struct grid_lane *r)
{
	rf inv = grid_inverse(s), err = r_dup(0), total = err;
	struct grid_word w[2][GRID_WORDS];
	rm all = ri_lt(ri_dup(0), ri_dup(1));
	int words = a->n/a->word;
	for (int g = 0; g < words; g++) r->other[g] = ri_dup(0);
	if (a->delta && !both) grid_free(a, t, o, s, r);
	for (int g = 0; g < words; g++) {
		grid_word(a, ri_lt(ri_dup(0), r->other[g]), t, m, o, g, inv, &w[0][g]);
		if (!a->delta || !both) continue;
		grid_word(a, all, t, m, o, g, inv, &w[1][g]);
		if (a->delta == DELTA_WORD) total = r_dup(0);
		total += w[1][g].cost - w[0][g].cost;
		r->other[g] = ri_one(r_lt(total, r_dup(0)));
	}
	for (int g = 0; g < words; g++) {
		rf cost = w[0][g].cost;
		r->digits[g] = w[0][g].digits;
		if (a->delta && both) {
			rm ok;
			if (a->delta == DELTA_LANE) r->other[g] = r->other[words - 1];
			ok = ri_lt(ri_dup(0), r->other[g]);
			r->digits[g] = ri_if(ok, w[1][g].digits, r->digits[g]);
			cost = r_if(ok, w[1][g].cost, cost);
		}
		err += cost;
	}
	r->err = err*s*s;
}
/* grid_try for one type. It is not inlined, so that starts and walks share one copy, which stays in the cache of
 * decoded instructions; what it calls is INLINE, so that the numbers of the type are constants there. */
typedef void grid_tries(bool both, const struct tile *t, const struct grid_words *m, int o, rf s, struct grid_lane *r);
/* The sums for the words that were found. The digits above an element's own need no mask: r_lut8 uses three bits, and a
 * table of two bits repeats itself. */
static inline void grid_sums(const struct grid *a, const struct tile *t, int o, struct grid_lane *r)
{
	rf q2 = r_dup(0), qx = q2, shift = q2;
	for (int e = 0; e < a->n; e++) {
		int g = e/a->word, i = e%a->word;
		rf v = r_lut8(a->level, r->digits[g] >> i*(a->base == 8 ? 3 : 2)), wv;
		if (a->delta && !i) shift = r_keep(ri_lt(ri_dup(0), r->other[g]), r_dup(a->shift));
		if (a->delta) v += shift;
		wv = r_floats(&t->w[e][o])*v;
		q2 += wv*v; qx += wv*r_floats(&t->x[e][o]);
	}
	r->q2 = q2; r->qx = qx;
}

/* Replaces x by |x|, and leaves the signs in `sign`, a byte for each element. If the number of minuses must be even,
 * the victim of an odd group becomes negative. */
static inline void grid_signs(const struct grid *a, struct tile *t, uint8_t sign[32][LANES])
{
	for (int o = 0; o < LANES; o += REG)
		for (int g = 0; g < a->n; g += 8) {
			ri odd = ri_dup(0), at = odd;
			rf least = r_dup(INFINITY), zero = r_dup(0);
			for (int e = g; a->even && e < g + 8; e++) {
				rf x = r_floats(&t->x[e][o]), c = r_abs(x)*r_floats(&t->w[e][o]);
				rm ok = r_lt(c, least);
				odd ^= ri_one(r_lt(x, zero));
				least = r_min(c, least);
				at = ri_if(ok, ri_dup(e), at);
			}
			for (int e = g; e < g + 8; e++) {
				rf x = r_floats(&t->x[e][o]), m = r_abs(x);
				ri flip = odd & (ri)(at == ri_dup(e));
				r_put(&t->x[e][o], a->even ? r_if(ri_lt(ri_dup(0), flip), zero - m, m) : m);
				put_bytes(&sign[e][o], ri_one(r_lt(x, zero)) ^ flip);
			}
		}
}
/* With the words known, chooses in each odd group the element whose wrong sign costs least. */
static inline void grid_victims(const struct grid *a, const struct tile *t, uint8_t sign[32][LANES])
{
	for (int o = 0; o < LANES; o += REG)
		for (int g = 0; g < a->n; g += 8) {
			ri odd = ri_dup(0), at = odd, was[8];
			rf least = r_dup(INFINITY);
			for (int i = 0; i < 8; i++) {
				rf x = r_floats(&t->x[g + i][o]), c = r_abs(x)*r_floats(&t->w[g + i][o]);
				rm ok;
				c = c*r_lut8(a->level, get_bytes(&t->q[g + i][o]));
				ok = r_lt(c, least);
				was[i] = ri_one(r_lt(x, r_dup(0)));
				odd |= was[i];
				least = r_min(c, least);
				at = ri_if(ok, ri_dup(i), at);
			}
			for (int i = 0; i < 8; i++)
				put_bytes(&sign[g + i][o], get_bytes(&sign[g + i][o]) ^ was[i] ^
					(odd & (ri)(at == ri_dup(i))));
		}
}

/* Finds D by a ladder, for scales D*(2l + 1), as a_ladder does; where f16 has few digits left, the rungs are the
 * smallest f16 instead. */
static inline float grid_ladder(const struct grid *a, const float *v, const float *c, int n, float scale)
{
	enum { RUNGS = 32 };
	_Alignas(64) float rung[RUNGS], err[RUNGS];
	const float step = 0x1p-24f/scale;
	float hi = 0;
	for (int j = 0; j < n; j++) hi = v[j] > hi ? v[j] : hi;
	for (int k = 0; k < RUNGS; k++) rung[k] = hi/((2*a->top + 1)*(1.1f - 0.7f/RUNGS*(float)k));
	if (hi > 0 && rung[0] < 8*step) for (int k = 0; k < RUNGS; k++) rung[k] = step*(float)(k + 1);
	for (int k = 0; k < RUNGS; k += REG) {
		rf d = r_f16_near(r_floats(rung + k), r_dup(scale)), inv = r_inverse(d)*0.5f, s = r_dup(0);
		for (int j = 0; j < n; j++) {
			rf l = v[j]*inv - 0.5f, r = r_round(r_clamp(l, 0, a->top)) - l;
			s += c[j]*r*r;
		}
		r_put(rung + k, d); r_put(err + k, r_if(r_gt(d, r_dup(0)), s*d*d, r_dup(INFINITY)));
	}
	return rung[least_error(err, RUNGS)];
}

struct grid_lanes { _Alignas(64) float d[LANES], l[LANES], q2[LANES], qx[LANES], err[LANES]; uint8_t q[32][LANES]; };
/* Moves each lane to the best of the l within reach, and puts its digits (and delta, in bit 6) into g->q. */
static inline void grid_walk(const struct grid *a, const struct grid_effort *f, grid_tries *try, int reach,
	const struct tile *t, const struct grid_words *m, int o, struct grid_lanes *g)
{
	rf D = r_floats(g->d + o), L = r_floats(g->l + o), bl = L, s;
	struct grid_lane r, b;
	int words = a->n/a->word;
	memset(&b, 0, sizeof b);
	b.err = r_dup(INFINITY);
	for (int i = -reach; i <= reach; i++) {
		rf k = r_clamp(L + (float)i, 0, a->top);
		rm ok;
		try(f->both, t, m, o, D*(k + k + 1), &r);
		ok = r_lt(r.err, b.err);
		b.err = r_if(ok, r.err, b.err); bl = r_if(ok, k, bl);
		for (int w = 0; w < words; w++) {
			b.digits[w] = ri_if(ok, r.digits[w], b.digits[w]);
			b.other[w] = ri_if(ok, r.other[w], b.other[w]);
		}
	}
	grid_sums(a, t, o, &b);
	s = D*(bl + bl + 1);
	r_put(g->l + o, bl); r_put(g->err + o, s*(s*b.q2 - b.qx - b.qx));
	r_put(g->q2 + o, b.q2); r_put(g->qx + o, b.qx);
	for (int e = 0; e < a->n; e++)
		put_bytes(&g->q[e][o], grid_digit(a, b.digits[e/a->word], e%a->word) | b.other[e/a->word] << 6);
}
/* Finds the first scale of each lane, s, and the curvature of the error along it, c. */
static inline void grid_start(const struct grid *a, const struct grid_effort *f, grid_tries *try, const struct tile *t,
	const struct grid_words *m, int o, float *s, float *c)
{
	rf top = r_dup(0), mean = top, flat = top, bs = top, bc = top, bg = r_dup(-1);
	rm dense;
	struct grid_lane r;
	for (int e = 0; e < a->n; e++) {
		rf x = r_abs(r_floats(&t->x[e][o]));
		top = r_max(top, x);
		mean += x;
	}
	if (a->flat > 0)
		flat = mean*(1/(float)a->n)/r_if(r_lt(mean, top*(0.95f*(float)a->n)), r_dup(a->flat),
			r_dup(a->level[0]));
	dense = r_lt(top*(a->dense*(float)a->n), mean);
	for (int k = 0; k < f->starts; k++) {
		rf v = top*(1/(f->first + f->step*(float)k));
		if (a->dense > 0 && !f->free && k + 1 == f->starts) v = r_if(dense, top*(1/a->dense_top), v);
		if (f->free || k + 1 == f->starts) v = r_max(v, flat);
		for (int i = 0; i < f->iters; i++) {
			rf g;
			rm ok;
			if (f->free) grid_free(a, t, o, v, &r);
			else {
				try(f->both, t, m, o, v, &r);
				grid_sums(a, t, o, &r);
			}
			v = r_ratio(r_max(r.qx, r_dup(0)), r.q2);
			g = v*r.qx;
			ok = r_gt(g, bg);
			bg = r_if(ok, g, bg); bs = r_if(ok, v, bs); bc = r_if(ok, r.q2, bc);
		}
	}
	r_put(s + o, bs*(f->free ? a->bias : 1)); r_put(c + o, bc);
}

/* Fits the tile: puts the digit of each weight into t->q, with the delta as bit 6 and the sign as bit 7, and finds l of
 * each lane and d of each super-block. lift: see tile_lift. */
static inline void grid_tile(const struct grid *a, const struct grid_effort *f, grid_tries *try, float lift,
	struct tile *t, int per, struct fitted *out)
{
	_Alignas(64) float s[LANES], cs[LANES], squares[LANES];
	float best[LANES];
	uint8_t sign[32][LANES];
	struct grid_lanes v;
	struct grid_words m;
	memset(sign, 0, sizeof sign);
	memset(t->q, 0, sizeof t->q);
	if (!a->delta) grid_signs(a, t, sign);
	grid_words(a, t, &m);
	for (int o = 0; o < LANES; o += REG) grid_start(a, f, try, t, &m, o, s, cs);
	for (int g = 0; g < LANES; g += per) {
		float d = grid_ladder(a, s + g, cs + g, per, t->scale[g/per]/a->unit);
		best[g/per] = INFINITY;
		out->d[g/per] = 0;
		for (int j = g; j < g + per; j++) {
			v.d[j] = d; out->ls[j] = 0;
			v.l[j] = d > 0 ? roundi(clampf(0.5f*s[j]/d - 0.5f, 0, a->top)) : 0;
		}
	}
	for (int it = 0; it < f->walks; it++) {
		for (int o = 0; o < LANES; o += REG) grid_walk(a, f, try, it ? f->again : f->reach, t, &m, o, &v);
		for (int g = 0; g < LANES; g += per) {
			float A = 0, P = 0, E = 0, scale = t->scale[g/per];
			for (int j = g; j < g + per; j++) {
				float k = 2*v.l[j] + 1;
				A += k*k*v.q2[j]; P += k*v.qx[j]; E += v.err[j];
			}
			if (A > 0 && P > 0) {           /* the error after the refit: it is quadratic in D */
				float was = v.d[g], now = f16_unit(P/A, scale/a->unit);
				E += (now - was)*((now + was)*A - 2*P);
				for (int j = g; j < g + per; j++) v.d[j] = now;
			}
			if (!(E < best[g/per])) continue;
			best[g/per] = E; out->d[g/per] = v.d[g]*scale/a->unit;
			for (int j = g; j < g + per; j++) out->ls[j] = v.l[j];
			for (int e = 0; e < a->n; e++) memcpy(&t->q[e][g], &v.q[e][g], (size_t)per);
		}
	}
	tile_squares(t, a->n, squares);
	for (int g = 0; g < LANES; g += per) {
		if (best[g/per] > 0) out->d[g/per] = 0;         /* the smallest f16 is too large */
		out->lift[g/per] = tile_lift(squares + g, per, -best[g/per], lift);
		out->d[g/per] *= out->lift[g/per];
	}
	if (a->even) grid_victims(a, t, sign);
	for (int e = 0; e < a->n; e++)
		for (int l = 0; l < LANES; l++) t->q[e][l] |= (uint8_t)(sign[e][l] << 7);
	tile_codes(t, a->n);
}

/* For coder.again, of types without deltas: takes the l nearest to the best start's scale, and tries its neighbours if
 * walks do so. */
static inline void grid_again(const struct grid *a, const struct grid_effort *f, grid_tries *try, struct tile *t,
	struct again *v)
{
	_Alignas(64) float s[LANES], cs[LANES];
	uint8_t sign[32][LANES];
	struct grid_lanes g;
	struct grid_words m;
	grid_signs(a, t, sign);
	grid_words(a, t, &m);
	for (int o = 0; o < LANES; o += REG) {
		rf d = r_floats(v->d + o)*a->unit;
		grid_start(a, f, try, t, &m, o, s, cs);
		r_put(g.d + o, d);
		r_put(g.l + o, r_clamp(r_round(r_floats(s + o)*r_inverse(d + d) - 0.5f), 0, a->top));
		if (f->reach > 0) grid_walk(a, f, try, 1, t, &m, o, &g);
		r_put(v->ls + o, r_floats(g.l + o));
	}
}

/* The halves of the word whose digits start at p: the number of the first, and the rank of the second. One byte of the
 * product below is the sum of a half's digits times the powers of the base, which is its number. */
static inline const struct grid_rank *grid_halves(const struct grid *a, const uint8_t *p, unsigned *first)
{
	uint32_t u[2] = { 0, 0 };
	memcpy(u, p, (size_t)a->word);
	if (a->base == 8) {
		u[0] = (u[0] & 0x07070707)*0x0108;
		*first = u[0] >> 8 & 255;
		return a->rank + (u[0] >> 24);
	}
	*first = (u[0] & 0x03030303)*0x0103091b >> 24;
	return a->rank + ((u[1] & 0x03030303)*0x0103091b >> 24);
}
static inline bool grid_has(const struct grid *a, const uint8_t *digits)
{
	unsigned first;
	const struct grid_rank *r = grid_halves(a, digits, &first);
	return r->has[first/64] >> first%64 & 1;
}
/* For packing: the number of the word whose digits start at element e of lane l. */
static inline unsigned grid_number(const struct grid *a, const struct tile *t, int e, int l)
{
	unsigned first, n;
	const struct grid_rank *r = grid_halves(a, t->code[l] + e, &first);
	uint64_t below = first < 64 ? ((uint64_t)1 << first) - 1 : UINT64_MAX;
	n = r->base + (unsigned)__builtin_popcountll(r->has[0] & below);
	if (first <= 64) return n;
	below = ((uint64_t)1 << (first - 64)) - 1;
	return n + (unsigned)__builtin_popcountll(r->has[1] & below);
}
/* For packing: the signs of n weights, at most 8, that start at element e of lane l, the first as the lowest bit. */
static inline uint32_t grid_sign_bits(const struct tile *t, int e, int l, int n)
{
	uint64_t u;
	memcpy(&u, t->code[l] + e, sizeof u);
	return (uint32_t)((u >> 7 & 0x0101010101010101)*0x0102040810204080 >> 56) & ((1u << n) - 1);
}
/* As ENCODER (enc_tile.h), for a book with the effort table EFFORT. */
#define ENCODER_GRID(name, N, PER, EFFORT) \
static __attribute__((noinline)) void name##_try(bool both, const struct tile *t, const struct grid_words *m, int o, \
	rf s, struct grid_lane *r) \
{ \
	grid_try(&book_##name, both, t, m, o, s, r); \
} \
static __attribute__((noinline)) void name##_word(rm other, const struct tile *t, const struct grid_words *m, int o, \
	int g, rf inv, struct grid_word *r) \
{ \
	grid_word(&book_##name, other, t, m, o, g, inv, r); \
} \
AGAIN(name, grid_again(&book_##name, &EFFORT[how->row], name##_try, t, v)) \
ENCODER(name, N, PER, grid_tile(&book_##name, &EFFORT[how->row], name##_try, how->lift, t, PER, f), \
	.exact = true, .book = &book_##name, .scales = scales_book, .again = again_##name, \
	.word = name##_word)
#endif
