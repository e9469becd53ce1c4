/* SPDX-License-Identifier: MIT
 * fused.h - a*b + c rounded once, the contract's fma, also where a CPU lacks it: x86-64 before 2013, virtual machines
 * that hide it. The C library's function takes thirty times as long there.
 *
 * In double the product is exact and the error of the sum is known (Knuth's two-sum). If there is one, the sum is
 * rounded to odd: of the two doubles around the exact value, the one whose last bit is set. Rounding that to float is
 * rounding the exact value, as double has more than two bits more than float, and a wider range of exponents (S. Boldo
 * and G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008). */
#ifndef QUANT_FUSED_H
#define QUANT_FUSED_H
#include <math.h>
#include <stdint.h>
#include <string.h>

/* whether fmaf is an instruction; clang does not define FP_FAST_FMAF */
#if defined FP_FAST_FMAF || defined __FMA__ || defined __ARM_FEATURE_FMA
enum { FUSED_IS_FAST = 1 };
#else
enum { FUSED_IS_FAST = 0 };
#endif

/* The sum s of doubles that leaves the error e, rounded to odd. */
static inline double fused_odd(double s, double e)
{
	uint64_t u, v;
	memcpy(&u, &s, sizeof u);
	memcpy(&v, &e, sizeof v);
	/* one step away from zero, or towards it if the signs differ; an infinity's e is NaN */
	if ((e < 0 || e > 0) && !(u & 1)) u += (u ^ v) >> 63 ? -UINT64_C(1) : 1;
	memcpy(&s, &u, sizeof s);
	return s;
}
static inline float fused(float a, float b, float c)
{
	if (FUSED_IS_FAST) return fmaf(a, b, c);
	double p = (double)a*b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
	return (float)fused_odd(s, e);
}
#endif
