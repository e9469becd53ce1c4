/* SPDX-License-Identifier: MIT
 * test_vec.c - the vector functions of quant/vec.h on every instruction set, and the scalar ones.
 *
 * Sums and products have one right answer, that of the order that vec.h states: they must have its bits. Functions
 * like exp are held to the bound that vec.h states, against the C library in twice the precision, and on every
 * instruction set to the bits of portable C: for every length up to 67, which covers all remainders, for floats
 * of every exponent, and for infinities and NaN. All buffers lie between guard pages. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../../quant/vec.h"
#include "../lib/kerntest.h"
#include "../lib/slow.h"

enum { LONGEST = 67 };

static float *floats(size_t n, enum kt_floats kind)
{
	float *p = kt_buffer(4*n);
	kt_fill_floats(p, n, kind);
	return p;
}
static void expect(const char *what, const float *got, const float *want, size_t n)
{
	size_t at;
	if (!kt_same(got, want, n, &at))
		kt_fail("%s of %zu: element %zu is %a, not %a", what, n, at, got[at], want[at]);
}

/* ---- sums and products ---- */

static float slow_sum(const float *a, size_t n)
{
	float lane[16] = { 0 };
	for (size_t i = 0; i < n; i++) lane[i%16] += a[i];
	return slow_tree(lane);
}
static float slow_max(const float *a, size_t n)
{
	float m = -INFINITY;
	for (size_t i = 0; i < n; i++) m = a[i] != a[i] ? NAN : a[i] > m ? a[i] : m;
	return m + 0.0f;
}
static size_t slow_top(const float *a, size_t n)
{
	size_t top = 0;
	float m = -INFINITY;
	for (size_t i = 0; i < n; i++)
		if (a[i] > m) {
			m = a[i];
			top = i;
		}
	return top;
}
/* Some numbers are equal. */
static void check_top(size_t n, enum kt_floats kind)
{
	float *a = floats(n, kind);
	for (size_t i = 0; i < n/3; i++) a[kt_below(n)] = a[kt_below(n)];
	if (vec_top(a, n) != slow_top(a, n))
		kt_fail("top of %zu: place %zu, not %zu", n, vec_top(a, n), slow_top(a, n));
	kt_free(a, 4*n);
}
static void check_sum_exp(size_t n, enum kt_floats kind)
{
	float *a = floats(n, kind), *e = floats(n, kind), m = vec_max(a, n), got = vec_sum_exp(a, n, m), want;
	for (size_t i = 0; i < n; i++) e[i] = a[i] - m;
	vec_exp(e, n);
	want = vec_sum(e, n);
	expect("sum of exp", &got, &want, 1);
	kt_free(a, 4*n);
	kt_free(e, 4*n);
}
static void check_turns(size_t n, enum kt_floats kind)
{
	float *a = floats(n, kind), *b = floats(n, kind), *c = floats(n, kind), *s = floats(n, kind),
		*x = floats(2*n, kind), want[2*LONGEST];
	for (size_t i = 0; i < n; i++) {
		x[2*i] = a[i];
		x[2*i + 1] = b[i];
		want[2*i] = a[i]*c[i] - b[i]*s[i];
		want[2*i + 1] = b[i]*c[i] + a[i]*s[i];
	}
	vec_turn_pairs(x, c, s, n);
	expect("turned pairs", x, want, 2*n);
	vec_turn(a, b, c, s, n);
	for (size_t i = 0; i < n; i++) {
		expect("turned, the first", a + i, want + 2*i, 1);
		expect("turned, the second", b + i, want + 2*i + 1, 1);
	}
	kt_free(a, 4*n); kt_free(b, 4*n); kt_free(c, 4*n); kt_free(s, 4*n); kt_free(x, 8*n);
}
static void check_sums(size_t n, enum kt_floats kind)
{
	float *a = floats(n, kind), *w = floats(n, kind), *y = floats(n, kind), *by = floats(1, kind);
	float want[1024], got, b;
	got = vec_dot(a, w, n);
	b = slow_float_product(a, w, n);
	expect("dot", &got, &b, 1);
	got = vec_sum(a, n);
	b = slow_sum(a, n);
	expect("sum", &got, &b, 1);
	got = vec_max(a, n);
	b = slow_max(a, n);
	expect("max", &got, &b, 1);
	for (size_t j = 0; j < n; j++) want[j] = fmaf(*by, a[j], y[j]);
	vec_axpy(y, *by, a, n);
	expect("axpy", y, want, n);
	for (size_t j = 0; j < n; j++) want[j] = y[j]*0.37f;
	vec_scale(y, 0.37f, n);
	expect("scale", y, want, n);
	for (size_t j = 0; j < n; j++) {
		want[j] = a[j]*0.37f;
		want[j] *= w[j];
	}
	vec_scale_mul(y, a, 0.37f, w, n);
	expect("scale_mul", y, want, n);
	for (size_t j = 0; j < n; j++) want[j] = want[j]*-1.7f*a[j];
	vec_scale_mul(y, y, -1.7f, a, n);
	expect("scale_mul in place", y, want, n);
	for (size_t j = 0; j < n; j++) want[j] = y[j] + a[j];
	vec_add(y, a, n);
	expect("add", y, want, n);
	for (size_t j = 0; j < n; j++) want[j] = y[j]*a[j];
	vec_mul(y, a, n);
	expect("mul", y, want, n);
	kt_free(a, 4*n); kt_free(w, 4*n); kt_free(y, 4*n); kt_free(by, 4);
}

/* ---- exp and its kin ---- */

/* The distance in units of the last place of a float at `want`; subnormals share theirs. */
static double ulps(float got, double want)
{
	int e = want == 0 ? -126 : ilogb(want);
	return fabs(got - want)/ldexp(1, (e < -126 ? -126 : e) - 23);
}
static double exact_silu(double x) { return x/(1 + exp(-x)); }
static double exact_gelu(double x) { return x*0.5*erfc(-x*0.70710678118654752440); }
static double tanh_argument(double x) { return 1.5957691216057308*(x + 0.044715*x*x*x); }
static double exact_gelu_tanh(double x) { return x/(1 + exp(-tanh_argument(x))); }
static double exact_softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double one(double x) { (void)x; return 1; }
static double four(double x) { (void)x; return 4; }
/* t = tanh_argument(x) has seven roundings of half an ulp, including the constants; e^-t multiplies them by t */
static double for_gelu_tanh(double x) { return x > -1 ? 4 : 4 - 7*tanh_argument(x); }

typedef void vec_gate(float *, const float *, const float *, size_t);
static vec_gate *const gates[] = { vec_silu, vec_gelu, vec_gelu_tanh };
static void silu(float *x, size_t n) { vec_silu(x, x, NULL, n); }
static void gelu(float *x, size_t n) { vec_gelu(x, x, NULL, n); }
static void gelu_tanh(float *x, size_t n) { vec_gelu_tanh(x, x, NULL, n); }

static const struct function { const char *name; void (*run)(float *, size_t); double (*exact)(double),
	(*ulps)(double); } functions[] = {
	{ "exp", vec_exp, exp, one }, { "silu", silu, exact_silu, four }, { "gelu", gelu, exact_gelu, four },
	{ "gelu_tanh", gelu_tanh, exact_gelu_tanh, for_gelu_tanh }, { "tanh", vec_tanh, tanh, four },
	{ "softplus", vec_softplus, exact_softplus, four },
};
enum { FUNCTIONS = sizeof functions/sizeof *functions, SWEEP = 4096 };

/* Floats of every exponent and both signs, SWEEP at a time, with those between -110 and 110 three times as often */
static void sweep(float *x, uint32_t *at)
{
	for (int i = 0; i < SWEEP; i++, *at += 65521) {
		if (i % 4) x[i] = 110*kt_uniform()*kt_uniform();
		else memcpy(x + i, at, 4);
	}
}
static void check_bounds(const struct function *f)
{
	static float x[SWEEP], y[SWEEP];
	uint32_t at = kt_random();
	for (int round = 0; round < 16; round++) {
		sweep(x, &at);
		memcpy(y, x, sizeof x);
		f->run(y, SWEEP);
		for (int i = 0; i < SWEEP; i++) {
			double want = f->exact(x[i]), bound = f->ulps(x[i]);
			if (isnan(want) || isinf(x[i])) continue;
			if (fabs(want) > FLT_MAX && (isinf(y[i]) || fabsf(y[i]) == FLT_MAX)) continue;
			if (f->exact != exp && fabs(want) < 0x1p-120 && fabsf(y[i]) <= 0x1p-119f) continue;
			if (!(ulps(y[i], want) <= bound)) { kt_fail("%s(%a) is %a, not %a: %.1f ulp, bound %.1f",
				f->name, x[i], y[i], want, ulps(y[i], want), bound); return; }
		}
	}
}
static void check_specials(void)
{
	static const struct { int f; float x, y; } c[] = {
		{ 0, 0, 1 }, { 0, -0.0f, 1 }, { 0, INFINITY, INFINITY }, { 0, -INFINITY, 0 }, { 0, 88.8f, INFINITY },
		{ 0, -104.1f, 0 }, { 0, NAN, NAN },
		{ 0, 0x1p-140f, 1 }, { 1, 0, 0 }, { 1, -0.0f, -0.0f }, { 1, 100, 100 }, { 1, -200, -0.0f },
		{ 1, INFINITY, INFINITY }, { 1, NAN, NAN },
		{ 2, 0, 0 }, { 2, 100, 100 }, { 2, INFINITY, INFINITY }, { 2, NAN, NAN }, { 3, 0, 0 },
		{ 3, -0.0f, -0.0f }, { 3, 100, 100 }, { 3, -100, -0.0f },
		{ 3, INFINITY, INFINITY }, { 3, NAN, NAN },
		{ 5, INFINITY, INFINITY }, { 5, -INFINITY, 0 }, { 5, 100, 100 }, { 5, NAN, NAN },
	};
	for (size_t i = 0; i < sizeof c/sizeof *c; i++) {
		float y = c[i].x;
		functions[c[i].f].run(&y, 1);
		if (!kt_same(&y, &c[i].y, 1, NULL))
			kt_fail("%s(%a) is %a, not %a", functions[c[i].f].name, c[i].x, y, c[i].y);
	}
}
static void check_lengths(const struct function *f, const char *isa)
{
	for (int kind = 0; kind < KT_FLOATS; kind++)
		for (size_t n = 0; n <= LONGEST; n++) {
			float *x = floats(n, kind), *c = kt_buffer(4*n), each[LONGEST];
			for (size_t j = 0; j < n; j++) x[j] *= kind == KT_HAIR ? 0x1p102f : 1;
			memcpy(c, x, 4*n);
			memcpy(each, x, 4*n);
			quant_select("c", NULL);
			f->run(c, n);
			quant_select(isa, NULL);
			f->run(x, n);
			for (size_t j = 0; j < n; j++) f->run(each + j, 1);
			expect(f->name, x, c, n);
			expect(f->name, x, each, n);
			kt_free(x, 4*n); kt_free(c, 4*n);
		}
}
/* Their products are those of the function and a multiplication, wherever they go. */
static void check_gates(size_t n, enum kt_floats kind)
{
	for (size_t g = 0; g < sizeof gates/sizeof *gates; g++) {
		float *x = floats(n, kind), *by = floats(n, KT_MIXED), *y = kt_buffer(4*n), *want = kt_buffer(4*n);
		gates[g](want, x, NULL, n);
		gates[g](y, x, by, n);
		vec_mul(want, by, n);
		expect("times", y, want, n);
		memcpy(y, by, 4*n);
		gates[g](x, x, by, n);
		expect("times in place", x, want, n);
		expect("the other factor", by, y, n);
		kt_free(x, 4*n); kt_free(by, 4*n); kt_free(y, 4*n); kt_free(want, 4*n);
	}
}
static void check_same_everywhere(const struct function *f, const char *isa)
{
	static float x[SWEEP], c[SWEEP];
	uint32_t at = kt_random();
	for (int round = 0; round < 16; round++) {
		sweep(x, &at);
		memcpy(c, x, sizeof x);
		quant_select("c", NULL);
		f->run(c, SWEEP);
		quant_select(isa, NULL);
		f->run(x, SWEEP);
		expect(f->name, x, c, SWEEP);
	}
}

/* Relative error of exp(x - m)/sum: the rounding of x - m times x - m, 2 ulp for exp and quotient, and a rounding for
 * each 16 terms and each step of the tree; doubled, because the terms of the sum have the same errors. */
static void check_softmax(size_t n, float width, const char *isa)
{
	float *x = kt_buffer(4*n), *y = kt_buffer(4*n), *c = kt_buffer(4*n), m = -INFINITY;
	double sum = 0;
	for (size_t i = 0; i < n; i++) { x[i] = y[i] = c[i] = width*kt_uniform(); m = fmaxf(m, x[i]); }
	quant_select("c", NULL);
	vec_softmax(c, n);
	quant_select(isa, NULL);
	vec_softmax(y, n);
	expect("softmax", y, c, n);
	for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - m);
	for (size_t i = 0; i < n; i++) {
		double want = exp((double)x[i] - m)
			/sum, bound = (2*fabs((double)x[i] - m) + 12 + (double)n/8)*0x1p-24*want + 0x1p-148;
		if (!(fabs(y[i] - want) <= bound)) kt_fail("softmax of %zu: %a, not %a", n, y[i], want);
	}
	kt_free(x, 4*n); kt_free(y, 4*n); kt_free(c, 4*n);
}
static void check_softmax_specials(void)
{
	float a[3] = { 1, -INFINITY, 1 }, b[20];
	vec_softmax(a, 3);
	if (a[0] != 0.5f || a[1] != 0 || a[2] != 0.5f) kt_fail("softmax with -infinity");
	kt_fill_floats(b, 20, KT_MIXED);
	b[18] = NAN;
	vec_softmax(b, 20);
	for (int i = 0; i < 20; i++) if (!isnan(b[i])) kt_fail("softmax with NaN: element %d is %a", i, b[i]);
}

/* ---- scalars ---- */

/* The reference has at least 64 bits of mantissa where there is a long double; where it is a double, the bound is one
 * higher. */
static void near_double(const char *what, double x, double got, long double want, double bound)
{
	long double unit = ldexpl(1, (want == 0 ? -1022 : ilogbl(want) < -1022 ? -1022 : ilogbl(want)) - 52);
	if (isnan((double)want) ? !isnan(got) : isinf((double)want) || isinf(got) ? got != (double)want :
		!(fabsl(got - want) <= (bound + (LDBL_MANT_DIG <= 53))*unit))
		kt_fail("%s(%a) is %a, not %La", what, x, got, want);
}
static void check_scalars(void)
{
	static const double special[] = { 0, -0.0, 1, -1, 0x1p-1074, 0x1p-1022, 709.78, 709.8, -708.5, -745.1, -746,
		1e300, -1e300, INFINITY, -INFINITY, NAN };
	for (size_t i = 0; i < sizeof special/sizeof *special; i++) {
		near_double("exp", special[i], num_exp(special[i]), expl(special[i]), 4);
		near_double("log", special[i], num_log(special[i]), logl(special[i]), 4);
	}
	/* what cannot be an angle gives NaN, even if its quarter turns would not fit an integer */
	for (const double *x = (double[]){ 0x1p50, -0x1p50, 1e300, INFINITY, -INFINITY, NAN, 0 }; *x != 0; x++) {
		near_double("sin", *x, num_sin(*x), NAN, 0);
		near_double("cos", *x, num_cos(*x), NAN, 0);
	}
	/* the largest powers of bases on both sides of 1, where a logarithm's error counts most */
	for (int i = 0; i < 20000; i++) {
		double x = 0.5 + 1.5*fabs((double)kt_uniform()), y = 700*(double)kt_uniform()/fmax(fabs(log(x)), 1e-3);
		near_double("pow", x, num_pow(x, y), powl(x, y), 4 + fabs(y*log(x))/8);
	}
	for (int i = 0; i < 20000; i++) {
		double x = (double)
			kt_uniform()*ldexp(1, (int)kt_below(60) - 30), y = (double)kt_uniform()*8, s = x*0.999999;
		near_double("exp", 745*y/8, num_exp(745*y/8), expl(745*y/8), 4);
		near_double("exp", x, num_exp(x), expl(x), 4);
		near_double("log", fabs(x), num_log(fabs(x)), logl(fabs(x)), 4);
		near_double("log", 1 + x*0x1p-40, num_log(1 + x*0x1p-40), logl(1 + x*0x1p-40), 4);
		near_double("pow", fabs(x), num_pow(fabs(x), y), powl(fabs(x), y),
			4 + fabs(y*log(fabs(x) + 0x1p-1000))/8);
		near_double("sin", s, num_sin(s), sinl(s), 4);
		near_double("cos", s, num_cos(s), cosl(s), 4);
		/* next to multiples of a quarter turn, where one of the two is close to 0 */
		s = rint(s)*1.57079632679489661923;
		if (fabs(s) >= 0x1p30) continue;
		near_double("sin", s, num_sin(s), sinl(s), 4);
		near_double("cos", s, num_cos(s), cosl(s), 4);
	}
}

static void check_exp_from(const char *isa)
{
	enum { N = 1003 };
	static const double from[] = { 0, 0.1, 30.7 };
	float x[N];
	static double portable[3][N];
	double y[N];
	kt_name("%s: e^(x - from) has the bits of portable C and is as near as it says, also where it ends", isa);
	for (size_t k = 0; k < sizeof from/sizeof *from; k++) {
		for (size_t i = 0; i < N; i++) x[i] = (float)from[k] + 0.9f - (float)i*0.72f;
		x[7] = NAN; x[8] = -INFINITY; x[9] = 640; x[10] = 740; x[11] = INFINITY;
		vec_exp_from(y, x, from[k], N);
		for (size_t i = 0; i < N; i++) {
			const long double w = (long double)(x[i] - from[k]);
			if (i == 7 ? !isnan(y[i]) : w < -700 ? y[i] != 0 : w > 700 ? y[i] != INFINITY :
				!(fabsl(y[i]/expl(w) - 1) < 1e-11L))
				kt_fail("e^%La is %a", w, y[i]);
		}
		y[7] = 0;
		if (!strcmp(isa, "c")) memcpy(portable[k], y, sizeof y);
		if (memcmp(portable[k], y, sizeof y)) kt_fail("other bits from %a", from[k]);
	}
	kt_result();
}

static void check_isa(const char *isa)
{
	kt_name("%s: sums and products have the bits of their order", isa);
	quant_select(isa, NULL);
	for (int kind = 0; kind < KT_FLOATS; kind++) {
		for (size_t n = 0; n <= LONGEST; n++) check_sums(n, kind);
		for (int k = 0; k < 10; k++) check_sums(LONGEST + kt_below(900), kind);
	}
	kt_result();
	kt_name("%s: the greatest, sums of exp and turned pairs are those of their parts", isa);
	for (int kind = 0; kind < KT_FLOATS; kind++)
		for (size_t n = 0; n <= LONGEST; n++) {
			check_top(n, kind);
			check_sum_exp(n, kind);
			check_turns(n, kind);
			check_gates(n, kind);
		}
	kt_result();
	for (int i = 0; i < FUNCTIONS; i++) {
		kt_name("%s: %s has the bits of portable C at every length and exponent, and keeps its bound", isa,
			functions[i].name);
		check_lengths(functions + i, isa);
		check_same_everywhere(functions + i, isa);
		check_bounds(functions + i);
		kt_result();
	}
	kt_name("%s: infinities, zeros and NaN", isa);
	check_specials();
	check_softmax_specials();
	kt_result();
	check_exp_from(isa);
	kt_name("%s: softmax", isa);
	for (size_t n = 0; n <= LONGEST; n++) check_softmax(n, n % 2 ? 3 : 40, isa);
	for (int k = 0; k < 20; k++) check_softmax(LONGEST + kt_below(3000), k % 2 ? 3 : 90, isa);
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++) check_isa(*isa);
	kt_name("scalars keep their bounds");
	check_scalars();
	kt_result();
	return kt_end();
}
