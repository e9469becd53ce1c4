/* SPDX-License-Identifier: MIT
 * row_avxvnni.c - row products with AVX-VNNI: digits_text.h in the words of digits_256.h. */
#if defined __x86_64__
#include "ymm_avxvnni.h"
#include "digits_256.h"
#define DIGITS_TABLE quant_digits_avxvnni
#define BOOKS_TABLE quant_books_avxvnni
#define ROW_TABLE quant_row_avxvnni
#define DIGITS_RUNS
INLINE vi v_dots(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	vi h[2] = { v_none(), v_none() }, l[2] = { s, v_none() };       /* short chains */
	(void)most;
	UNROLL for (int j = 0; j < n; j++) {
		h[j%2] = _mm256_dpbusd_epi32(h[j%2], c[j], v_all32(digits_four(high, j)));
		l[j%2] = _mm256_dpbusd_epi32(l[j%2], c[j], v_all32(digits_four(low, j)));
	}
	return _mm256_add_epi32(_mm256_slli_epi32(_mm256_add_epi32(h[0], h[1]), 6), _mm256_add_epi32(l[0], l[1]));
}
/* One or two registers of codes times digits at high and low, where those of the second one are 128 bytes further on */
INLINE vi y_dots(const vi *c, int n, const int8_t *high, const int8_t *low)
{
	vi h = _mm256_dpbusd_epi32(v_none(), c[0], x_load(high)), l = _mm256_dpbusd_epi32(v_none(), c[0], x_load(low));
	if (n == 2) {
		h = _mm256_dpbusd_epi32(h, c[1], x_load(high + 128));
		l = _mm256_dpbusd_epi32(l, c[1], x_load(low + 128));
	}
	return i_value(h, l);
}
#include "digits_text.h"
#else
typedef int isa_none;
#endif
