/* SPDX-License-Identifier: MIT
 * row_avx2.c - rows with AVX2. */
#if defined __x86_64__
#include "digits_y_avx2.h"
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avx2
/* s and the products of n registers with digits, times `by`; codes are at most `most`, sums of words fit 16 bits */
INLINE vi v_digits(vi s, const vi *c, int n, const int8_t *x, int most, int by)
{
	const int some = 32767/(64*most);
	const vi f = _mm256_set1_epi16((short)by);
	vi p = v_none();
	UNROLL for (int j = 0; j < n; j++) {
		vi q = _mm256_maddubs_epi16(c[j], v_all32(x + 4*j));
		p = j%some ? _mm256_add_epi16(p, q) : q;
		if (j%some == some - 1 || j == n - 1) s = i_madd(s, p, f);
	}
	return s;
}
INLINE vi v_dots(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	return v_digits(v_digits(s, c, n, high, most, 64), c, n, low, most, 1);
}
#include "digits_text.h"
#else
typedef int isa_none;
#endif
