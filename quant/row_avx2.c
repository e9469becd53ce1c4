/* SPDX-License-Identifier: MIT
 * row_avx2.c - row products with AVX2: digits_text.h in the words of digits_256.h. */
#if defined __x86_64__
#include "ymm_avx2.h"
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avx2
#define BOOKS_TABLE quant_books_avx2
#define ROW_TABLE quant_row_avx2
#define DIGITS_RUNS
/* s plus `by` times the products of up to eight registers of codes with digits. Codes are so small that words hold
 * the sums. */
INLINE vi v_digits(vi s, const vi *c, int n, const int8_t *x, int by)
{
	vi p = _mm256_maddubs_epi16(c[0], v_all32(x));
	UNROLL for (int j = 1; j < n; j++)
		p = _mm256_add_epi16(p, _mm256_maddubs_epi16(c[j], v_all32(digits_four(x, j))));
	return i_madd(s, p, _mm256_set1_epi16((short)by));
}
INLINE vi v_dots(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	(void)most;
	return v_digits(v_digits(s, c, n, high, 64), c, n, low, 1);
}
/* One or two registers of codes times digits at high and low, where those of the second one are 128 bytes further on */
INLINE vi y_dots(const vi *c, int n, const int8_t *high, const int8_t *low)
{
	const vi h = _mm256_maddubs_epi16(c[0], x_load(high)), l = _mm256_maddubs_epi16(c[0], x_load(low));
	return i_madd(_mm256_madd_epi16(n == 1 ? h : i_two(c[0], c[1], high, 128), _mm256_set1_epi16(64)),
		n == 1 ? l : i_two(c[0], c[1], low, 128), _mm256_set1_epi16(1));
}
#include "digits_text.h"
#else
typedef int isa_none;
#endif
