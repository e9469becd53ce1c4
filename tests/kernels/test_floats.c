/* SPDX-License-Identifier: MIT
 * test_floats.c - 16-bit floats, whole arrays of them, with every instruction set: all 65536 patterns one way, against
 * what their bits mean; the other way every upper half of a float with the lower halves at which rounding changes,
 * against the scalars of quant.h. Also the search for numbers beyond a limit, and the sums of errors. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "../../quant/quant.h"
#include "../../quant/vec.h"

enum { ALL = 65536 };
static uint16_t h[ALL + 1], back[ALL];
static float x[ALL];

static uint32_t bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static float from_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }

/* What the bits of a half or bfloat mean. A NaN keeps its payload, which stays in the upper bits. */
static uint32_t wide(bool bf, uint16_t v)
{
	int exponent = v >> 10 & 31, digits = v & 0x3ff;
	if (bf) return (uint32_t)v << 16;
	if (exponent == 31) return (uint32_t)(v & 0x8000) << 16 | 0x7f800000 | (uint32_t)digits << 13;
	return bits(ldexpf((float)(exponent ? digits + 1024 : digits), (exponent ? exponent : 1) - 25))
		| (uint32_t)(v & 0x8000) << 16;
}
/* Through a pointer, so that the float is returned as one is between files: in 32-bit programs on x86 in a register of
 * the x87, which makes every NaN a quiet one. */
static float (*volatile const returned)(uint32_t) = from_bits;
static void widen_one_by_one(void **state)
{
	(void)state;
	for (int i = 0; i < ALL; i++) {
		assert_int_equal(bits(quant_f16_to_f32((uint16_t)i)), bits(returned(wide(false, (uint16_t)i))));
		assert_int_equal(bits(quant_bf16_to_f32((uint16_t)i)), bits(returned(wide(true, (uint16_t)i))));
	}
}

static void widen(const char *isa)
{
	for (int i = 0; i < ALL; i++) h[i] = (uint16_t)i;
	for (int shift = 0; shift < 2; shift++) {       /* odd addresses, and lengths that are not whole vectors */
		unsigned char *src = (unsigned char *)h + shift;
		memmove(src, h, 2*ALL);
		for (int bf = 0; bf < 2; bf++) {
			memset(x, 0xaa, sizeof x);
			quant_decode(bf ? GGU_TYPE_BF16 : GGU_TYPE_F16, src, x, ALL - 1);
			assert_int_equal(bits(x[ALL - 1]), 0xaaaaaaaa);
			quant_decode(bf ? GGU_TYPE_BF16 : GGU_TYPE_F16, src + 2*(ALL - 1), x + ALL - 1, 1);
			for (int i = 0; i < ALL; i++) {
				uint32_t want = wide(bf, (uint16_t)i);
				if (bits(x[i]) != want)
					fail_msg("%s: %s %04x is %08x, not %08x", isa, bf ? "bf16" : "f16", i,
						bits(x[i]), want);
			}
		}
		memmove(h, src, 2*ALL);
	}
}

static void narrow(const char *isa)
{
	static const uint32_t low[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001, 0x7fff,
		0x8000, 0x8001, 0xffff };
	for (size_t k = 0; k < sizeof low/sizeof *low; k++) {
		for (uint32_t i = 0; i < ALL; i++) x[i] = from_bits(i << 16 | low[k]);
		for (int bf = 0; bf < 2; bf++) {
			memset(back, 0xaa, sizeof back);
			quant_encode(bf ? GGU_TYPE_BF16 : GGU_TYPE_F16, NULL, x, NULL, 1, ALL - 3,
				QUANT_EFFORT_DEFAULT, back);
			assert_int_equal(back[ALL - 3], 0xaaaa);
			quant_encode(bf ? GGU_TYPE_BF16 : GGU_TYPE_F16, NULL, x + ALL - 3, NULL, 3, 1,
				QUANT_EFFORT_DEFAULT, back + ALL - 3);
			for (int i = 0; i < ALL; i++) {
				uint16_t want = bf ? quant_f32_to_bf16(x[i]) : quant_f32_to_f16(x[i]);
				if (back[i] != want)
					fail_msg("%s: %08x as %s is %04x, not %04x", isa, bits(x[i]), bf ? "bf16" :
						"f16", back[i], want);
			}
		}
	}
}

/* test_decode checks numbers; this checks NaN. */
static void nan_stays(void **state)
{
	(void)state;
	for (uint32_t u = 0x7f800001; u < 0x7fffffff; u += 0x101) {
		assert_true(isnan(quant_f16_to_f32(quant_f32_to_f16(from_bits(u)))));
		assert_true(isnan(quant_bf16_to_f32(quant_f32_to_bf16(from_bits(u)))));
	}
	assert_int_equal(quant_f32_to_f16(from_bits(0xff802000)), 0xfe01);
	assert_int_equal(quant_f32_to_bf16(from_bits(0xff810000)), 0xffc1);
}

static void beyond(const char *isa)
{
	enum { N = 200 };
	static const float far[] = { 65520, -65520, 1e30f, INFINITY, -INFINITY, NAN };
	float near = nextafterf(65520, 0);
	for (size_t n = 0; n <= N; n++) {
		for (size_t i = 0; i < n; i++) x[i] = i%2 ? near : -near;
		if (vec_beyond(x, n, 65520) != n) fail_msg("%s: none of %zu is beyond", isa, n);
		for (size_t i = 0; i < n; i++) {
			float was = x[i];
			x[i] = far[i%6];
			if (vec_beyond(x, n, 65520) != i) fail_msg("%s: number %zu of %zu is beyond", isa, i, n);
			if ((vec_beyond(x, n, INFINITY) != i) != (i%6 < 3))
				fail_msg("%s: number %zu of %zu is not finite", isa, i, n);
			x[i] = was;
		}
	}
}

/* Compares with the lanes and the tree, written out. */
static void loss(const char *isa)
{
	enum { N = 100 };
	float y[N], w[N];
	for (int i = 0; i < N; i++) {
		x[i] = (float)(i*7%31) - 15.3f;
		y[i] = x[i] + (float)(i*5%17)*0.01f;
		w[i] = 0.1f + (float)(i%13);
	}
	for (size_t n = 0; n <= N; n++)
		for (int with = 0; with < 2; with++) {
			double e[16] = { 0 }, s[16] = { 0 }, error = 1, norm = 2;
			for (size_t i = 0; i < n; i++) {
				double a = x[i], d = (double)y[i] - a, k = with ? w[i] : 1;
				e[i%16] += k*d*d;
				s[i%16] += k*a*a;
			}
			for (int k = 8; k; k /= 2) for (int l = 0; l < k; l++) e[l] += e[l + k], s[l] += s[l + k];
			vec_loss(x, y, with ? w : NULL, n, &error, &norm);
			if (error != 1 + e[0] || norm != 2 + s[0])
				fail_msg("%s: %zu numbers: %a %a, not %a %a", isa, n, error, norm, 1 + e[0], 2 + s[0]);
		}
}

/* Compares with twice the digits. long double has some of them or more, so an addition is right to 103 bits or to those
 * of long double. Rows in any parts give the same bits, and so do columns one by one. */
static void squares(const char *isa)
{
	enum { N = 75, ROWS = 40, STRIDE = 81 };
	static float rows[ROWS*STRIDE];
	for (int i = 0; i < ROWS*STRIDE; i++) rows[i] = ldexpf((float)(i*7%31) - 15.3f, i*11%40 - 20);
	for (size_t n = 1; n <= N; n += n < 70 ? 23 : 1) {
		double sum[N] = { 0 }, rest[N] = { 0 }, parts[N] = { 0 }, left[N] = { 0 };
		vec_squares(sum, rest, rows, STRIDE, ROWS, n);
		vec_squares(parts, left, rows, STRIDE, 7, n);
		vec_squares(parts, left, rows + 7*STRIDE, STRIDE, ROWS - 7, n);
		if (memcmp(sum, parts, sizeof sum) != 0 || memcmp(rest, left, sizeof rest) != 0)
			fail_msg("%s: %zu columns in two parts differ", isa, n);
		for (size_t j = 0; j < n; j++) {
			long double want = 0;
			double one = 0, own = 0;
			for (int t = 0; t < ROWS; t++) want += (long double)rows[t*STRIDE + j]*rows[t*STRIDE + j];
			vec_squares(&one, &own, rows + j, STRIDE, ROWS, 1);
			if (fabsl(sum[j] + (long double)rest[j] - want) > ROWS*(LDBL_EPSILON + 0x1p-103L)*want
				|| one != sum[j] || own != rest[j] || fabs(rest[j]) > sum[j]*DBL_EPSILON/2)
				fail_msg("%s: column %zu of %zu: %a + %a", isa, j, n, sum[j], rest[j]);
		}
		for (size_t j = n; j < N; j++) assert_true(sum[j] == 0);
	}
}

static void each(void **state)
{
	void (*const test)(const char *) = *(void (**)(const char *))*state;
	for (const char *const *isa = quant_available(); *isa; isa++) {
		assert_int_equal(quant_select(*isa, NULL), GGU_OK);
		test(*isa);
	}
}

int main(void)
{
	static void (*const test[])(const char *) = { widen, narrow, beyond, loss, squares };
	const struct CMUnitTest tests[] = {
		{ "every half and bfloat is widened to what its bits mean", each, NULL, NULL,
			(void *)(uintptr_t)&test[0] },
		{ "floats around every half and bfloat are rounded as the scalar is", each, NULL, NULL,
			(void *)(uintptr_t)&test[1] },
		{ "numbers beyond a limit are found", each, NULL, NULL, (void *)(uintptr_t)&test[2] },
		{ "losses are summed in lanes", each, NULL, NULL, (void *)(uintptr_t)&test[3] },
		{ "squares are summed in twice the digits", each, NULL, NULL, (void *)(uintptr_t)&test[4] },
		{ "and so they are one by one", widen_one_by_one, NULL, NULL, NULL },
		cmocka_unit_test(nan_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
