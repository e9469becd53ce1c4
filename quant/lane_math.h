/* SPDX-License-Identifier: MIT
 * lane_math.h - exp, softplus, tanh and the normal distribution for a register of floats. An instance first includes
 * lane_c.h, lane_avx2.h, lane_avx512.h or lane_neon.h. */
#ifndef QUANT_LANE_MATH_H
#define QUANT_LANE_MATH_H
#include "inline.h"
#include "lane.h"

/* e^(z - n ln 2) by its Taylor sum to r^7/7!, the rest of which is below 0.05 ulp for |r| <= ln 2 / 2 */
static inline rf r_exp_rest(rf z, rf n)
{
	rf r = r_fma(n, r_dup(-0.693359375f), z), p;    /* ln 2 in two parts, the first of 9 bits */
	r = r_fma(n, r_dup(2.12194440e-4f), r);
	p = r_fma(r, r_dup(1.98412698e-4f), r_dup(1.38888889e-3f));
	p = r_fma(p, r, r_dup(8.33333333e-3f));
	p = r_fma(p, r, r_dup(4.16666667e-2f));
	p = r_fma(p, r, r_dup(1.66666667e-1f));
	p = r_fma(p, r, r_dup(0.5f));
	p = r_fma(p, r, r_dup(1.0f));
	return r_fma(p, r, r_dup(1.0f));
}
/* Within 1 ulp if the result is normal; 0 below -104, inf above 88.73. */
static inline rf r_exp(rf x)
{
	const rf big = r_dup(R_WHOLE);
	rf z = r_within(x, -104.5f, 89.0f), n = r_fma(z, r_dup(1.44269504f), big) - big;
	return r_sel(x == x, r_far(r_exp_rest(z, n), n), x);
}
/* The same for x up to 0, but 0 if x < -87, so that 2^k need not be split; NaN stays NaN. */
static inline rf r_exp_below(rf x)
{
	const rf big = r_dup(R_WHOLE);
	rf k = r_fma(x, r_dup(1.44269504f), big);
	return r_raise(r_exp_rest(x, k - big), k, x);
}
/* log(1 + e^x): with e = e^-|x| it is 2 artanh(s) for s = e/(2 + e), plus x if x is above 0; to s^13/13. */
static inline rf r_softplus(rf x)
{
	rf e = r_exp_below(-r_abs(x)), s = e/(2.0f + e), z = s*s, p = r_dup(1.0f/13);
	UNROLL for (int i = 11; i > 1; i -= 2) p = r_fma(p, z, r_dup(1.0f/(float)i));
	return r_sel(x > 0, x, (rf){ 0 }) + r_fma(p*z, s + s, s + s);
}
/* r_exp_below of FOUR registers, a step of each in turn, as the steps of one wait for each other. */
enum { FOUR = 4 };
#define EACH_OF_FOUR UNROLL for (int i = 0; i < FOUR; i++)
static inline void r_exps_below(rf *x)
{
	static const float taylor[] = { 1.38888889e-3f, 8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f, 1, 1 };
	const rf big = r_dup(R_WHOLE);
	rf k[FOUR], r[FOUR], p[FOUR];
	EACH_OF_FOUR k[i] = r_fma(x[i], r_dup(1.44269504f), big);
	EACH_OF_FOUR r[i] = r_fma(k[i] - big, r_dup(-0.693359375f), x[i]);
	EACH_OF_FOUR r[i] = r_fma(k[i] - big, r_dup(2.12194440e-4f), r[i]);
	EACH_OF_FOUR p[i] = r_dup(1.98412698e-4f);
	UNROLL for (int j = 0; j < 7; j++)
		EACH_OF_FOUR p[i] = r_fma(p[i], r[i], r_dup(taylor[j]));
	EACH_OF_FOUR x[i] = r_raise(p[i], k[i], x[i]);
}
/* tanh, odd: x + x^3 P(x^2) up to 0.625, P fitted for the smallest maximal relative error; then 1 - 2/(e^2x + 1). */
static inline rf r_tanh(rf x)
{
	rf t = r_abs(x), z = x*x, p, far;
	p = r_fma(z, r_dup(-5.70497848e-3f), r_dup(2.06390787e-2f));
	p = r_fma(p, z, r_dup(-5.37397116e-2f));
	p = r_fma(p, z, r_dup(0.133314416f));
	p = r_fma(p, z, r_dup(-0.333332807f));
	p = r_fma(p*z, x, x);
	far = 1.0f - 2.0f/(r_exp(t + t) + 1.0f);
	far = (rf)((ri)far | ((ri)x & INT32_MIN));
	return r_sel(t < 0.625f, p, r_sel(x == x, far, x));
}

/* e^w for w in -708..0, by the steps of r_exp in double, where a Taylor sum to r^9/9! is accurate enough for floats */
typedef int64_t rl __attribute__((vector_size(4*REG), may_alias));
static inline rd r_exp_double(rd w)
{
	const rd big = (rd){ 0 } + 0x1.8p52;
	rd t = w*1.4426950408889634 + big, k = t - big,
		r = w - k*6.93147180369123816490e-01 - k*1.90821492927058770002e-10, p = r*(1.0/362880);
	p = (p + 1.0/40320)*r;
	p = (p + 1.0/5040)*r;
	p = (p + 1.0/720)*r;
	p = (p + 1.0/120)*r;
	p = (p + 1.0/24)*r;
	p = (p + 1.0/6)*r;
	p = (p + 0.5)*r;
	p = (p + 1)*r + 1;
	return (rd)((rl)p + ((rl)t << 52));
}
/* The normal distribution function, in double because e^-square needs more digits than a float has. For z = |x|,
 * erfc(z/sqrt 2)/2 = e^-(z^2/2) P(u)/(1 + 1.5 z) with u = (z - 3)/(z + 3), P fitted for the smallest maximal relative
 * error, 5e-10, on z up to 14.5, beyond which the result is too small for a float. */
static inline rd r_normal(rd x)
{
	static const double c[] = { 3.488537088269e-05, 0.0001328776660952, -2.230600223094e-05, -0.0008331248678684,
		-0.0003508650076751, 0.005007098618481, 0.0002863175412718, -0.03716088126577,
		0.09085273750151, -0.08626075178754, -0.04158883525733, 0.6683267159987 };
	rl is_far, positive = x > 0;
	rd z = (rd)((rl)x & INT64_MAX), u, p = (rd){ 0 } + c[0], beyond;
	is_far = z > 14.5;
	z = (rd)(((rl)z & ~is_far) | ((rl)((rd){ 0 } + 14.5) & is_far));
	u = (z - 3)/(z + 3);
	for (size_t i = 1; i < sizeof c/sizeof *c; i++) p = p*u + c[i];
	beyond = (rd)((rl)(r_exp_double(-0.5*z*z)*p/(1 + 1.5*z)) & ~is_far);
	return (rd)(((rl)(1 - beyond) & positive) | ((rl)beyond & ~positive));
}
#endif
