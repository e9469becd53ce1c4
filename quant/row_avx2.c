/* SPDX-License-Identifier: MIT
 * row_avx2.c - row products with AVX2: digits_text.h in the words of digits_256.h. */
#if defined __x86_64__
#include "ymm_avx2.h"
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avx2
#define BOOKS_TABLE quant_books_avx2
#define ROW_TABLE quant_row_avx2
#define DIGITS_WORDS
/* s plus `by` times the products of up to eight registers of codes with digits. Codes are at most 3, so that words
 * hold the sums; digits_words.h multiplies larger ones. */
INLINE vi v_digits(vi s, const vi *c, int n, const int8_t *x, int by)
{
	vi p = _mm256_maddubs_epi16(c[0], v_all32(x));
	UNROLL for (int j = 1; j < n; j++)
		p = _mm256_add_epi16(p, _mm256_maddubs_epi16(c[j], v_all32(x + 4*j)));
	return i_madd(s, p, _mm256_set1_epi16((short)by));
}
INLINE vi v_dots(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	(void)most;
	return v_digits(v_digits(s, c, n, high, 64), c, n, low, 1);
}
#include "digits_text.h"
#else
typedef int isa_none;
#endif
