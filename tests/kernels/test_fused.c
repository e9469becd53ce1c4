/* SPDX-License-Identifier: MIT
 * test_fused.c - a*b + c in double is that of the C library's fmaf, to the bit: one at a time and in registers.
 *
 * Rounding twice, to double and to float, goes wrong next to the middle between two floats, where random bits seldom
 * come; so some cases are made for it. */
#include <math.h>
#include "../../quant/lane_c.h"
#include "../lib/kerntest.h"

static uint32_t of(int exponent, uint32_t fraction)
{
	exponent = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
	return kt_random() << 31 | (uint32_t)exponent << 23 | (fraction & 0x7fffff);
}
/* Case k: of any bits, or with sums around 1, subnormal, or up to infinity. In half of those the product is nearly a
 * power of two, (1 + u)*(1 - u), and the addend one of which that is half the last place, or its neighbour. */
static void draw(uint32_t bits[3][REG], size_t k, size_t kind)
{
	static const int middle[] = { 127, 60, 190 };
	if (kind == 3) {
		for (int i = 0; i < 3; i++) bits[i][k] = kt_random();
	} else {
		const int a = middle[kind] + (int)kt_below(20), b = middle[kind] - (int)kt_below(20);
		const uint32_t u = 1 + (uint32_t)kt_below((size_t)1 << kt_below(13));
		const bool near = kt_below(2);
		const int away = near ? 23 + (int)kt_below(3) : (int)kt_below(60) - 30;
		bits[0][k] = of(a, near ? u : kt_random());
		bits[1][k] = of(b, near ? -2*u : kt_random());
		bits[2][k] = of(a + b - 127 + away, kt_random());
	}
}
/* The sums of four are those of fmaf; returns how many rounding twice would get wrong. */
static size_t four(const uint32_t bits[3][REG])
{
	size_t n = 0;
	rf x[3], y;
	memcpy(x, bits, sizeof x);
	y = r_fma(x[0], x[1], x[2]);
	for (size_t k = 0; k < REG; k++) {
		const float a = x[0][k], b = x[1][k], c = x[2][k], lane = y[k];
		const float want = fmaf(a, b, c), one = fused(a, b, c), twice = (float)((double)a*b + c);
		if (!kt_same(&one, &want, 1, NULL)) kt_fail("%a*%a + %a is %a, not %a", a, b, c, one, want);
		if (!kt_same(&lane, &want, 1, NULL))
			kt_fail("%a*%a + %a in a register is %a, not %a", a, b, c, lane, want);
		n += !kt_same(&twice, &want, 1, NULL);
	}
	return n;
}
static void drawn(void)
{
	enum { TIMES = 150000 };
	size_t hard = 0;
	for (size_t i = 0; i < TIMES; i++) {
		uint32_t bits[3][REG];
		for (size_t k = 0; k < REG; k++) draw(bits, k, i%4);
		hard += four(bits);
	}
	if (hard < 100) kt_fail("only %zu of the sums would be wrong if they were rounded twice", hard);
}
/* Each of these with each, and with each */
static void ends(void)
{
	static const uint32_t end[] = { 0, 1, 0x007fffff, 0x00800000, 0x3f800000, 0x3f800001, 0x7f7fffff, 0x7f800000,
		0x7fc00000 };
	enum { N = 2*sizeof end/sizeof *end };
	for (size_t i = 0; i < N*N*N; i++) {
		const size_t at[3] = { i%N, i/N%N, i/N/N };
		uint32_t bits[3][REG];
		for (int a = 0; a < 3; a++)
			for (size_t k = 0; k < REG; k++) bits[a][k] = end[at[a]/2] | (uint32_t)(at[a]%2) << 31;
		four(bits);
	}
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	kt_name("sums that are hard to round");
	drawn();
	kt_result();
	kt_name("zeros, subnormals, the largest float, infinities and NaN");
	ends();
	kt_result();
	return kt_end();
}
