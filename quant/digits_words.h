/* SPDX-License-Identifier: MIT
 * digits_words.h - part of digits_units.h: blocks of 32 of eight rows for AVX2. Codes are words, which are multiplied
 * with whole activations. With digits there would be as many products of bytes, and then more, as the sums of these are
 * words.
 *
 *   c[2*r], c[2*r + 1]     bytes of rows r and r + 4: the first and the second sixteen columns, or c[r], c[r + 4] if
 *                          these have scales of their own
 *   c[r] of by_nibbles     bytes of rows r and r + 4 as they are in the file, with the first sixteen columns below
 *
 * Even columns are one register of words, odd columns another, in the order of strip32's words. */

/* Sixteen bytes of rows r and r + 4 */
INLINE vi two_rows(const struct rows *w, size_t r, int at) { return y_two(row(w, r, at), row(w, r + 4, at)); }
INLINE void as_they_are(const struct rows *w, int at, vi *c)
{
	UNROLL for (size_t r = 0; r < 4; r++) c[r] = two_rows(w, r, at);
}
INLINE void q4_0_codes(const struct rows *w, int j, vi *c) { as_they_are(w, 2 + 16*j, c); }
INLINE void q4_1_codes(const struct rows *w, int j, vi *c) { as_they_are(w, 4 + 16*j, c); }
/* With fifth bits: qh, followed by qs */
INLINE void fives(const struct rows *w, int at, vi *c)
{
	const vi from = y_each(_mm_setr_epi32(0, 0, 0x01010101, 0x01010101)),
		bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	UNROLL for (size_t r = 0; r < 4; r++) {
		const vi x = two_rows(w, r, at + 4), bits = _mm256_set_m128i(
			_mm_set1_epi32((int)u32_of(row(w, r + 4, at))), _mm_set1_epi32((int)u32_of(row(w, r, at))));
		UNROLL for (int i = 0; i < 2; i++) {
			const vi some = _mm256_and_si256(_mm256_shuffle_epi8(bits, _mm256_add_epi8(from,
				y_bytes(2*i))), bit);
			c[2*r + (size_t)i] = _mm256_or_si256(v_and(i ? v_right(x, 4) : x, 15),
				v_and(_mm256_cmpeq_epi8(some, bit), 16));
		}
	}
}
INLINE void q5_0_codes(const struct rows *w, int j, vi *c) { fives(w, 2 + 20*j, c); }
INLINE void q5_1_codes(const struct rows *w, int j, vi *c) { fives(w, 4 + 20*j, c); }
INLINE void q8_0_codes(const struct rows *w, int j, vi *c)
{
	UNROLL for (size_t r = 0; r < 4; r++) {
		c[2*r] = two_rows(w, r, 2 + 32*j);
		c[2*r + 1] = two_rows(w, r, 18 + 32*j);
	}
}
/* Where halves of bytes are numbers of levels */
INLINE void levels(const struct rows *w, int at, const int8_t *table, vi *c)
{
	UNROLL for (size_t r = 0; r < 4; r++) {
		const vi x = two_rows(w, r, at);
		c[2*r] = v_level(x16(table), x);
		c[2*r + 1] = v_level(x16(table), v_right(x, 4));
	}
}
INLINE void iq4_nl_codes(const struct rows *w, int j, vi *c) { levels(w, 2 + 16*j, iq4_levels, c); }
INLINE void mxfp4_codes(const struct rows *w, int j, vi *c) { levels(w, 1 + 16*j, fp4_levels, c); }
/* The halves of a byte are eight columns apart. */
INLINE void nvfp4_codes(const struct rows *w, int j, vi *c)
{
	UNROLL for (size_t r = 0; r < 4; r++) {
		const vi x = two_rows(w, r, 4 + 16*j), y = v_right(x, 4);
		c[r] = v_level(x16(fp4_levels), _mm256_unpacklo_epi64(x, y));
		c[4 + r] = v_level(x16(fp4_levels), _mm256_unpackhi_epi64(x, y));
	}
}

/* The i-th sixteen activations, twice */
struct words { vi even, odd; };
INLINE struct words words_at(const struct strip32 *x, int i)
{
	return (struct words){ y_twice(x->words[2*i]), y_twice(x->words[2*i + 1]) };
}
INLINE vi words_sum(vi even, vi odd, struct words x)
{
	return i_madd(_mm256_madd_epi16(even, x.even), odd, x.odd);
}
INLINE vi bytes_sum(vi c, struct words x) { return i_bytes(c, x.even, x.odd); }
INLINE vi by_bytes(vi s, const vi *c, int n, const struct strip32 *x, int from, int most)
{
	const struct words first = words_at(x, from/16), second = words_at(x, 1);
	vi a[4];
	(void)most;
	UNROLL for (int r = 0; r < 4; r++)
		a[r] = n == 4 ? bytes_sum(c[r], first)
			: _mm256_add_epi32(bytes_sum(c[2*r], first), bytes_sum(c[2*r + 1], second));
	return _mm256_add_epi32(s, v_down(four(a[0], a[1], a[2], a[3]), 8));
}
/* Halves of bytes where they are: as upper ones are 16 times too large, the activations of the lower ones become so. */
INLINE vi by_nibbles(vi s, const vi *c, int n, const struct strip32 *x, int from, int most)
{
	const vi down = y_each(_mm_setr_epi8(1, -1, 3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, 15, -1)),
		lower = _mm256_set1_epi16(15), upper = _mm256_set1_epi16(0xf0);
	const struct words x0 = words_at(x, 0), second = words_at(x, 1),
		first = { _mm256_slli_epi16(x0.even, 4), _mm256_slli_epi16(x0.odd, 4) };
	vi a[4];
	(void)n;
	(void)from;
	(void)most;
	UNROLL for (int r = 0; r < 4; r++) {
		const vi odd = _mm256_shuffle_epi8(c[r], down);
		a[r] = _mm256_add_epi32(
			words_sum(_mm256_and_si256(c[r], lower), _mm256_and_si256(odd, lower), first),
			words_sum(_mm256_and_si256(c[r], upper), _mm256_and_si256(odd, upper), second));
	}
	return _mm256_add_epi32(s, v_down(four(a[0], a[1], a[2], a[3]), 4));
}
enum { BIAS_Q8_0 = 0, BIAS_IQ4_NL = 0, BIAS_FP4 = 0 };
