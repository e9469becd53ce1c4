/* SPDX-License-Identifier: MIT
 * enc_lattice.h - finds scales, mins and codes of weights that are already on the lattice of a type with mins:
 * weight = d*ls*q - dmin*lm, rounded to a float.
 *
 * A sum is off by at most half the distance of two floats. So where a sub-block's range spans k codes, its step d*ls is
 * known to be in a short interval, and the intervals that its other weights allow rule out most k. Few f16 are in such
 * an interval over a whole number, and hardly any are in one of every sub-block: that is d. For each sub-block, the
 * mins with which all its sums are rounded to its weights are then in an interval too, one for each code that its
 * smallest weight may have, and dmin is found as d was. Products and sums are exact in double: they are whole multiples
 * of 2^-24 below 2^27. */
#ifndef QUANT_ENC_LATTICE_H
#define QUANT_ENC_LATTICE_H
#include "enc_affine.h"
#include "enc_tile.h"

enum { LATTICE_SUBS = 16, LATTICE_WEIGHTS = 256, LATTICE_CODES = 31, LATTICE_MINS = 64 };
/* What is found of a unit, as in struct fitted. */
struct lattice {
	double d, dmin;
	int sub[LATTICE_SUBS], min[LATTICE_SUBS];       /* ls and lm; of other types the factor of d */
	uint8_t code[LATTICE_WEIGHTS];
};
struct lat_span { double lo, hi; };
/* A sub-block: its weights, whose largest is `range` more than the smallest; the steps that it may have, each with the
 * number of codes that it spans, none if all weights are equal. */
struct lat_sub {
	double least, range;
	const float *x;
	int steps, codes[LATTICE_CODES];
	struct lat_span step[LATTICE_CODES];
};
/* The mins of a sub-block with the scale ls if its smallest weight has the code 0; with q, up to `spare`, they are q
 * steps more. If all weights are equal, ls is 0, and q may be any product of a scale and a code. */
struct lat_min { struct lat_span m; double step; int ls, spare; };
struct lat_search {
	int n, subs, nmax, smax, mmax;
	double sign;                                    /* of d */
	struct lat_sub sub[LATTICE_SUBS];
	struct lat_min min[LATTICE_SUBS][LATTICE_MINS];
	int mins[LATTICE_SUBS];
};

/* The f16 in an interval, if there is one. */
static bool lat_half(double lo, double hi, double *half)
{
	*half = f16_near((float)((lo + hi)/2));
	return *half >= lo && *half <= hi;
}
/* The ls of a product ls*q, for the smallest q; -1: it is none. */
static int lat_ls(int product, int smax, int nmax)
{
	int ls = product < smax ? product : smax;
	while (ls > 0 && (product % ls || product/ls > nmax)) ls--;
	return product < 0 || (product && !ls) ? -1 : ls;
}

static const float lat_number[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
	24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
	52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64 };
/* The numbers of codes, k as bit k - 1, for which the first weights of a sub-block, from lo to hi, are whole multiples
 * of the range over k, as far as floats can tell. */
static inline uint32_t lat_whole(const struct affine *a, const float *x, int first, float lo, float hi)
{
	const float unit = 1/(hi - lo), most = hi > -lo ? hi : -lo;
	const float off = most*0x1p-22f*unit + 0x1p-21f;        /* four sums, each rounded; and what is done here */
	uint32_t all = 0;
	for (int o = 0; (float)o < a->nmax; o += REG) {
		rf k = r_floats(lat_number + o), inv = k*unit, most_off = k*off;
		uint32_t whole = (uint32_t)m_bits(r_lt(k, r_dup(a->nmax + 0.5f)));
		for (int i = 0; i < first && whole; i++) {
			rf u = (x[i] - lo)*inv;
			whole &= (uint32_t)m_bits(r_lt(r_abs(u - r_round(u)), most_off));
		}
		all |= whole << o;
	}
	return all;
}
/* The whole numbers, ls as bit ls - 1, over which a step may be an f16. */
static inline uint64_t lat_halves(struct lat_span step, int smax)
{
	const float mid = (float)((step.lo + step.hi)/2), off = (float)(step.hi - step.lo) + mid*0x1p-21f;
	uint64_t all = 0;
	for (int o = 0; o < smax; o += REG) {
		rf ls = r_floats(lat_number + o), d = r_f16_near(mid/ls, r_dup(1));
		all |= (uint64_t)m_bits(r_lt(r_abs(d*ls - mid), r_dup(off))) << o;
	}
	return all & UINT64_MAX >> (64 - smax);
}
static inline void lat_range(const float *x, int n, float *lo, float *hi)
{
	rf l = r_floats(x), h = l;
	for (int i = REG; i < n; i += REG) { l = r_min(l, r_floats(x + i)); h = r_max(h, r_floats(x + i)); }
	*lo = -r_greatest(0 - l); *hi = r_greatest(h);
}
/* Might the weights be on the lattice? The first ones of the first sub-block whose weights differ tell. flat: if none
 * do. */
static inline bool lat_maybe(const struct affine *a, int per, const float *x, bool *flat)
{
	float lo = x[0], hi = x[0];
	*flat = true;
	for (int j = 0; j < per && *flat; j++, x += a->n) {
		lat_range(x, a->n, &lo, &hi);
		*flat = lo == hi;
	}
	return *flat || (hi - lo < INFINITY && lat_whole(a, x - a->n, 8, lo, hi));
}

/* How far a float may be from the sum that was rounded to it; no sum but zero is rounded to zero. */
static inline double lat_off(float x)
{
	const uint64_t e = float_bits(x) >> 23 & 255, bits = ((e ? e : 1) + 1023 - 151) << 52;
	double off;
	memcpy(&off, &bits, sizeof off);
	return x != 0 ? off : 0;
}
/* Finds the steps of a sub-block. false: its weights differ, but have none. */
static bool lat_load(const struct lat_search *f, struct lat_sub *s, const struct affine *a, const float *x)
{
	float lo, hi;
	double off;
	uint32_t whole;
	lat_range(x, f->n, &lo, &hi);
	s->x = x;
	s->least = f->sign > 0 ? lo : -hi;
	s->range = (double)hi - lo;
	s->steps = 0;
	for (int i = 0; i < f->n && lo == hi; i++) if (x[i] != lo) return false;        /* NaN */
	if (lo == hi) return true;
	off = lat_off(lo) + lat_off(hi);
	whole = lat_whole(a, x, f->n, lo, hi);
	for (int k = f->nmax; k > 0; k--) {
		if (!(whole >> (k - 1) & 1)) continue;
		s->codes[s->steps] = k;
		s->step[s->steps++] = (struct lat_span){ (s->range - off)/k, (s->range + off)/k };
	}
	return s->steps > 0;
}

/* The possible mins of a sub-block, with d; returns their number. */
static int lat_mins(const struct lat_search *f, const struct lat_sub *s, double d, struct lat_min *to)
{
	int n = 0;
	if (!s->steps) {
		const double off = lat_off(s->x[0]);
		*to = (struct lat_min){ { -s->least - off, -s->least + off }, d, 0, f->nmax*f->smax };
		return 1;
	}
	for (int k = 0; k < s->steps; k++) {
		const double last = fmin(floor(s->step[k].hi/d), f->smax);
		for (int ls = (int)fmax(ceil(s->step[k].lo/d), 1); ls <= last && n < LATTICE_MINS; ls++) {
			const double step = d*ls, inv = 1/step;
			struct lat_span m = { -INFINITY, INFINITY };
			if (s->range*inv > f->nmax + 1) continue;
			for (int i = 0; i < f->n; i++) {
				const double x = f->sign*s->x[i], off = lat_off(s->x[i]);
				const double v = step*(int)((x - s->least)*inv + 0.5) - x;
				if (v - off > m.lo) m.lo = v - off;
				if (v + off < m.hi) m.hi = v + off;
			}
			if (m.lo <= m.hi) to[n++] = (struct lat_min){ m, step, ls, f->nmax - s->codes[k] };
		}
	}
	return n;
}
/* Does d allow each sub-block some scale? */
static bool lat_scales(const struct lat_search *f, double d)
{
	for (int j = 0; j < f->subs; j++) {
		const struct lat_sub *s = &f->sub[j];
		bool some = !s->steps;
		for (int k = 0; k < s->steps && !some; k++) {
			const int ls = (int)fmin(s->step[k].hi/d, f->smax);
			some = ls > 0 && d*ls >= s->step[k].lo;
		}
		if (!some) return false;
	}
	return true;
}
/* Are all sums of sub-block j rounded to its weights, with the scale ls and the min lm? */
static bool lat_sums(const struct lat_search *f, int j, int ls, int lm, struct lattice *to)
{
	const struct lat_sub *s = &f->sub[j];
	const double step = to->d*ls, min = to->dmin*lm, inv = ls ? 1/step : 0;
	for (int i = 0; i < f->n; i++) {
		const double x = f->sign*s->x[i];
		const int q = (int)((x + min)*inv + 0.5);
		if ((float)(step*q - min) != (float)x) return false;
		to->code[j*f->n + i] = (uint8_t)q;
	}
	to->sub[j] = ls; to->min[j] = lm;
	return true;
}
/* Finds scale and min of sub-block j, whose weights are equal. */
static bool lat_equal(const struct lat_search *f, int j, struct lattice *to)
{
	for (int lm = 0; lm <= (to->dmin != 0 ? f->mmax : 0); lm++) {
		const double product = floor((f->sub[j].least + to->dmin*lm)/to->d + 0.5);
		const int ls = fabs(product) <= f->nmax*f->smax ? lat_ls((int)product, f->smax, f->nmax) : -1;
		if (ls >= 0 && lat_sums(f, j, ls, lm, to)) return true;
	}
	return false;
}
/* Are all sums of sub-block j rounded to its weights, with a min in the interval? In the middle of it all are, but at
 * its ends some are half way between two floats. */
static bool lat_within(const struct lat_search *f, int j, int ls, struct lat_span m, struct lattice *to)
{
	const double a = to->dmin != 0 ? m.lo/to->dmin : 0, b = to->dmin != 0 ? m.hi/to->dmin : 0;
	const double lm = floor((fmax(fmin(a, b), 0) + fmin(fmax(a, b), f->mmax))/2 + 0.5);
	for (int i = -1; i <= 1; i++) {
		const double k = lm + i;
		if (!(k >= 0 && k <= f->mmax && k*to->dmin >= m.lo && k*to->dmin <= m.hi)) continue;
		if (lat_sums(f, j, ls, (int)k, to)) return true;
	}
	return false;
}
static struct lat_span lat_shifted(const struct lat_min *m, int q)
{
	return (struct lat_span){ m->m.lo + m->step*q, m->m.hi + m->step*q };
}
/* Finds scale and min of each sub-block, with d and dmin. */
static bool lat_agree(const struct lat_search *f, struct lattice *to)
{
	for (int j = 0; j < f->subs; j++) {
		bool some = !f->sub[j].steps && lat_equal(f, j, to);
		for (int i = 0; f->sub[j].steps && i < f->mins[j] && !some; i++) {
			const struct lat_min *m = &f->min[j][i];
			for (int q = 0; q <= m->spare && !some; q++)
				some = lat_within(f, j, m->ls, lat_shifted(m, q), to);
		}
		if (!some) return false;
	}
	return true;
}
/* Can it be 0? And about how many f16 serve as dmin, over one lm: those with which it is nearest to 0 are many. */
static bool lat_no_min(const struct lat_search *f, const struct lat_min *m, double *choices)
{
	const double q = fmax(fmin(floor(-(m->m.lo + m->m.hi)/2/m->step + 0.5), m->spare), 0);
	const struct lat_span t = lat_shifted(m, (int)q);
	*choices += m->spare + 1 + (t.hi - t.lo)*0x1p11/(fabs(t.hi + t.lo) + 0x1p-24);
	return t.lo <= 0 && t.hi >= 0 && (m->ls || lat_ls((int)q, f->smax, f->nmax) >= 0);
}
/* Finds the f16 in an interval that serves as dmin. As in lat_within, those at its ends may. */
static bool lat_try(const struct lat_search *f, struct lat_span m, struct lattice *to)
{
	const double at[3] = { (m.lo + m.hi)/2, m.lo, m.hi };
	for (int i = 0; i < 3; i++) {
		to->dmin = f16_near((float)at[i]);
		if (!(to->dmin >= m.lo && to->dmin <= m.hi)) return false;
		if (lat_agree(f, to)) return true;
	}
	return false;
}
/* Finds dmin: 0, or a possible min of one sub-block, that with the fewest of them, over some lm. */
static bool lat_dmin(struct lat_search *f, struct lattice *to)
{
	double least = INFINITY;
	bool zero = true;
	int few = -1;
	to->dmin = 0;
	for (int j = 0; j < f->subs; j++) {
		double mins = 0;
		bool none = false;
		f->mins[j] = lat_mins(f, &f->sub[j], to->d, f->min[j]);
		if (!f->mins[j]) return false;
		for (int i = 0; i < f->mins[j]; i++) none |= lat_no_min(f, &f->min[j][i], &mins);
		if (none == zero ? mins >= least : none) continue;
		zero = none; few = j; least = mins;
	}
	if (zero && lat_agree(f, to)) return true;
	for (int i = 0; i < f->mins[few]; i++) {
		const struct lat_min *m = &f->min[few][i];
		for (int q = 0; q <= m->spare; q++) {
			const struct lat_span t = lat_shifted(m, q);
			if (!m->ls && lat_ls(q, f->smax, f->nmax) < 0) continue;
			for (int lm = 1; lm <= f->mmax; lm++)
				if (lat_try(f, (struct lat_span){ t.lo/lm, t.hi/lm }, to)) return true;
		}
	}
	return false;
}
/* The sub-block that says most about d: whose intervals are the shortest for their steps. -1: none does */
static int lat_narrowest(const struct lat_search *f)
{
	double narrow = 0x1p-11;                        /* a longer one may contain two f16 */
	int best = -1;
	for (int j = 0; j < f->subs; j++) {
		double width = 0;
		for (int k = 0; k < f->sub[j].steps; k++) {
			const struct lat_span t = f->sub[j].step[k];
			width = fmax(width, t.lo > 0 ? (t.hi - t.lo)/t.lo : 1);
		}
		if (f->sub[j].steps && width < narrow) { narrow = width; best = j; }
	}
	return best;
}
/* Finds the lattice of a unit some of whose weights differ within a sub-block, with a negative d if `negated`. */
static __attribute__((noinline)) enum exact_result lat_find(const struct coder *c, const float *x, bool negated,
	struct lattice *to)
{
	const struct affine *a = c->affine;
	enum exact_result result = EXACT_NO_LATTICE;
	struct lat_search f;
	int at;
	f.n = c->n; f.subs = c->per;
	f.nmax = (int)a->nmax; f.smax = (int)fmaxf(a->smax, 1); f.mmax = (int)fmaxf(a->mmax, 1);
	f.sign = negated ? -1 : 1;
	for (int j = 0; j < f.subs; j++)
		if (!lat_load(&f, &f.sub[j], a, x + j*f.n)) return result;
	at = lat_narrowest(&f);
	for (int k = 0; at >= 0 && k < f.sub[at].steps; k++) {
		const struct lat_span t = f.sub[at].step[k];
		for (uint64_t halves = lat_halves(t, f.smax); halves; ) {
			const int ls = 64 - __builtin_clzll(halves);
			halves ^= (uint64_t)1 << (ls - 1);
			if (!lat_half(t.lo/ls, t.hi/ls, &to->d) || !lat_scales(&f, to->d)) continue;
			result = EXACT_NOT_FOUND;
			if (lat_dmin(&f, to)) return EXACT_FOUND;
		}
	}
	return result;
}
#endif
