/* SPDX-License-Identifier: MIT
 * enc_blocks.h - fits blocks that have an f16 scale, or a scale and a min, of their own: weight = d*v, or
 * weight = d*q + m. The starts are those of enc_levels.h and enc_affine.h, and enc_step.h finds the steps of weights
 * that were codes; what follows here is about f16. */
#ifndef QUANT_ENC_BLOCKS_H
#define QUANT_ENC_BLOCKS_H
#include "enc_affine.h"
#include "enc_levels.h"
#include "enc_step.h"

/* Where f16 is coarse, takes for each scale in s, which is an f16, the best of itself and its two neighbours; 0 only if
 * nothing is better. */
static inline void lv_coarse(const struct levels *a, const struct tile *t, int o, float *s)
{
	rf scale = r_floats(t->scale + o), step = r_f16_step(scale), d = r_floats(s + o), best = d, least = r_dup(0);
	rf c[3] = { d - step, d, d + step }, err[3];
	rm coarse = r_lt(r_abs(d*scale), r_dup(f16_coarse));
	if (!m_bits(coarse)) return;
	for (int e = 0; e < a->n; e++) { rf x = r_floats(&t->x[e][o]); least += r_floats(&t->w[e][o])*x*x; }
	best = r_if(coarse, r_dup(0), best);
	lv_errors(a, t, o, c, err);
	for (int k = 0; k < 3; k++) {
		rm ok = m_and(m_and(coarse, r_ne(c[k], r_dup(0))), r_lt(err[k], least));
		best = r_if(ok, c[k], best); least = r_if(ok, err[k], least);
	}
	r_put(s + o, best);
}
/* Searches blocks that have a chief once more; returns which these are. */
static inline rm a_chiefs(const struct affine *a, const struct affine_effort *f, const struct tile *t, int o,
	const struct moments *z, struct lane_fit *b)
{
	struct chief p = { r_dup(0), r_dup(0) };
	struct moments beside;
	struct lane_fit l;
	struct tile u;
	rm some;
	for (int e = 0; e < a->n; e++) p.w = r_max(p.w, r_floats(&t->w[e][o]));
	some = r_gt(p.w, z->w*0.999f);
	if (!m_bits(some)) return some;
	u = *t;
	for (int e = 0; e < a->n; e++) {
		rf w = r_floats(&t->w[e][o]);
		rm other = r_lt(w, p.w);
		p.x = r_if(other, p.x, r_floats(&t->x[e][o]));
		r_put(&u.w[e][o], r_keep(other, w));
	}
	for (int e = 0; e < a->n; e++) r_put(&u.x[e][o], r_floats(&t->x[e][o]) - p.x);
	beside = a_moments(a, &u, o);
	l = a_start(a, a->start, f, &u, o, &beside, r_dup(0), &p);
	b->s = r_if(some, l.s, b->s); b->m = r_if(some, l.m - p.x, b->m); b->cs = r_if(some, l.cs, b->cs);
	return some;
}

/* Rounds a lane's scale and min, b, to f16. Of three scales near the best, each with its own min, it takes the pair
 * that rounding hurts least: beside one huge weight, the others depend on that; and of 25 if there is a chief. */
static inline void a_f16(struct lane_fit *b, const struct moments *z, rf scale, rm chief)
{
	rf mean = (b->m + z->x*z->iw)*r_inverse(b->s);          /* of the codes */
	rf bs = b->s, bm = b->m, be = r_dup(INFINITY);
	for (int k = 0; k < (m_bits(chief) ? 25 : 3); k++) {
		rf s = r_f16_near(b->s*(1 + 0.0006f*(float)(k%2 ? (k + 1)/2 : -k/2)), scale), ds = s - b->s;
		rf want = b->m + ds*mean;
		rf m = r_f16_near(want, scale), e = b->cs*ds*ds + z->w*(m - want)*(m - want);
		rm ok = r_lt(e, be);
		if (k > 2) ok = m_and(ok, chief);
		bs = r_if(ok, s, bs); bm = r_if(ok, m, bm); be = r_if(ok, e, be);
	}
	b->s = bs; b->m = bm;
}

/* A min may be beyond `most`, the largest that can be stored, if one huge weight leaves the others only two codes, and
 * neither is the first. Then the min is the end of the range instead, if that can be stored. */
static inline void a_in_range(const struct affine *a, const struct tile *t, int o, const struct moments *z, rf most,
	struct lane_fit *b)
{
	const struct affine_effort once = { .starts = 2, .iters = 1 };
	struct affine_start start[2];
	struct lane_fit c;
	rm far = r_gt(r_abs(b->m), most);
	if (!m_bits(far)) return;
	a_alike(a->nmax, start);
	c = a_start(a, start, &once, t, o, z, r_dup(0), NULL);
	far = m_and(far, r_lt(r_abs(c.m), most));
	b->s = r_if(far, c.s, b->s); b->m = r_if(far, c.m, b->m); b->cs = r_if(far, c.cs, b->cs);
}
/* Where f16 is coarse, improves k, to which b has been rounded: of three scales near k's, each with three mins near its
 * own, it takes the pair with the least error. With a scale of 0 only the min counts. */
static inline void a_coarse(const struct affine *a, const struct tile *t, int o, const struct moments *z,
	const struct lane_fit *b, struct lane_fit *k)
{
	rf scale = r_floats(t->scale + o), step = r_f16_step(scale), be = r_dup(INFINITY), near = k->s;
	rf mean = (b->m + z->x*z->iw)*r_inverse(b->s);          /* of the codes */
	rm coarse = r_lt(r_abs(near*scale), r_dup(f16_coarse));
	if (!m_bits(coarse)) return;
	for (int i = -1; i <= 1; i++) {
		rf s = near + (float)i*step, m, min[3], err[3];
		rm none = r_lt(s, step*0.5f);
		s = r_if(none, r_dup(0), s);
		m = r_f16_near(b->m + (s - b->s)*mean, scale);
		for (int j = 0; j < 3; j++) min[j] = m + (float)(j - 1)*step;
		a_errors(a, t, o, s, 3, min, err);
		for (int j = 0; j < 3; j++) {
			rf e = r_if(none, z->xx + min[j]*(2*z->x + min[j]*z->w), err[j]);
			rm ok = m_and(coarse, r_lt(e, be));
			k->s = r_if(ok, s, k->s); k->m = r_if(ok, min[j], k->m); be = r_if(ok, e, be);
		}
	}
}

/* Makes b zero where zeros lose less: beside a weight that counts for nearly everything, or where f16 is too small. A
 * min at the end of f16 may leave weights out of range, so that a_most does not hold. */
static inline void a_no_worse(const struct affine *a, const struct tile *t, int o, const struct moments *z,
	struct lane_fit *b)
{
	rf err, end = 65504/r_floats(t->scale + o);
	rm none = m_or(r_lt(z->xx, a_most(a, z, b->s, b->m)), r_lt(end*0.999f, r_abs(b->m)));
	if (!m_bits(none)) return;
	a_errors(a, t, o, r_max(b->s, r_dup(1e-9f)), 1, &b->m, &err);
	none = m_and(none, r_lt(z->xx, err));
	b->s = r_if(none, r_dup(0), b->s); b->m = r_if(none, r_dup(0), b->m);
}

/* Fits blocks whose scale is an f16 of their own: weight = d*v. */
static inline void levels_blocks(const struct levels *a, const struct levels_effort *effort, struct tile *t,
	struct fitted *f)
{
	_Alignas(64) float s[LANES];
	for (int o = 0; o < LANES; o += REG) r_put(s + o, lv_start(a, a->start, effort, t, o).s);
	for (int l = 0; l < LANES; l++) s[l] = f16_unit(s[l], t->scale[l]);
	for (int o = 0; o < LANES; o += REG) {
		const struct codes c = { a->lo, a->hi, false };
		rf d, none = r_dup(0);
		rm few;
		lv_coarse(a, t, o, s);
		if (!effort->steps) continue;
		few = step_few(t, o, 16);
		if (!m_bits(few)) continue;
		d = r_floats(s + o);
		step_blocks(t, o, a->n, &c, few, &d, &none);
		r_put(s + o, d);
	}
	for (int l = 0; l < LANES; l++) f->d[l] = s[l]*t->scale[l];
	lv_codes(a, t, s);
}

/* Fits blocks whose scale and min are f16 of their own, weight = d*q + m: the starts, then one more alternation with
 * scales and mins that f16 can hold. */
static inline void affine_blocks(const struct affine *a, const struct affine_effort *effort, struct tile *t,
	struct fitted *f)
{
	_Alignas(64) float s[LANES], m[LANES];
	for (int o = 0; o < LANES; o += REG) {
		rf scale = r_floats(t->scale + o);
		struct moments z = a_moments(a, t, o);
		struct lane_fit b = a_start(a, a->start, effort, t, o, &z, r_dup(0), NULL);
		struct lane_fit kept;
		rm chief = a_chiefs(a, effort, t, o, &z, &b);
		const struct codes c = { 0, a->nmax, true };
		a_in_range(a, t, o, &z, 65504/scale, &b);
		kept = b;
		a_f16(&kept, &z, scale, chief);
		a_coarse(a, t, o, &z, &b, &kept);
		if (effort->steps) {
			rm few = step_few(t, o, a->nmax > 15 ? 20 : 16);
			if (m_bits(few)) step_blocks(t, o, a->n, &c, few, &kept.s, &kept.m);
		}
		a_no_worse(a, t, o, &z, &kept);
		r_put(s + o, kept.s); r_put(m + o, kept.m);
	}
	for (int l = 0; l < LANES; l++) { f->d[l] = s[l]*t->scale[l]; f->m[l] = -m[l]*t->scale[l]; }
	for (int o = 0; o < LANES; o += REG) {
		rf inv = r_inverse(r_floats(s + o)), min = r_floats(m + o);
		for (int e = 0; e < a->n; e++) put_codes(&t->q[e][o], a_code(a, r_floats(&t->x[e][o]), inv, min));
	}
	tile_codes(t, a->n);
}
#endif
