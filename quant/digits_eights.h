/* SPDX-License-Identifier: MIT
 * digits_eights.h - part of digits_units.h: blocks of 32 of eight rows for AVX2. AVX2 adds up words after each product
 * anyway, so fewer shuffles of bytes are worth some lanes to be added up at the end.
 *
 *   Q4_0 and its like  c[4*p + k]: eight columns, from 8*k, of rows 2*p and 2*p + 1, and of the rows 4 after them
 *   Q8_0               c[r]: a row's 32 columns */

/* Types whose bytes have sixteen columns in their lower halves and sixteen in their upper halves */
INLINE void pair_eights(const struct rows *w, size_t p, int at, vi *c)
{
	const vi a = y_two(row(w, 2*p, at), row(w, 2*p + 4, at)),
		b = y_two(row(w, 2*p + 1, at), row(w, 2*p + 5, at)),
		first = _mm256_unpacklo_epi64(a, b), second = _mm256_unpackhi_epi64(a, b);
	c[0] = v_and(first, 15);
	c[1] = v_and(second, 15);
	c[2] = v_and(v_right(first, 4), 15);
	c[3] = v_and(v_right(second, 4), 15);
}
INLINE void nibble_eights(const struct rows *w, int at, vi *c)
{
	UNROLL for (size_t p = 0; p < 2; p++) pair_eights(w, p, at, c + 4*p);
}
INLINE void q4_0_codes(const struct rows *w, int j, vi *c) { nibble_eights(w, 2 + 16*j, c); }
INLINE void q4_1_codes(const struct rows *w, int j, vi *c) { nibble_eights(w, 4 + 16*j, c); }
/* Types with fifth bits: qh, followed by qs. Bits 0 to 3 of bytes are moved to places 4 to 7, so that the lesser of
 * such a byte and of 16 is the fifth bit in its place. */
INLINE void fives(const struct rows *w, int at, vi *c)
{
	const vi bits = v_one(w, at), left = _mm256_slli_epi32(bits, 4),
		of[2] = { _mm256_unpacklo_epi64(bits, left), _mm256_unpackhi_epi64(bits, left) },
		from = _mm256_broadcastsi128_si256(_mm_setr_epi32(0x08080808, 0, 0x0c0c0c0c, 0x04040404)),
		bit = _mm256_set1_epi32((int)0x80402010);
	UNROLL for (size_t p = 0; p < 2; p++, c += 4) {
		pair_eights(w, p, at + 4, c);
		UNROLL for (int i = 0; i < 4; i++) {
			const vi x = _mm256_shuffle_epi8(of[p], _mm256_add_epi8(from, y_bytes(i)));
			c[i] = _mm256_or_si256(c[i], _mm256_min_epu8(_mm256_and_si256(x, bit), y_bytes(16)));
		}
	}
}
INLINE void q5_0_codes(const struct rows *w, int j, vi *c) { fives(w, 2 + 20*j, c); }
INLINE void q5_1_codes(const struct rows *w, int j, vi *c) { fives(w, 4 + 20*j, c); }
INLINE void iq4_nl_codes(const struct rows *w, int j, vi *c)
{
	const __m128i table = _mm_xor_si128(x16(iq4_levels), _mm_set1_epi8(-128));
	nibble_eights(w, 2 + 16*j, c);
	UNROLL for (int i = 0; i < 8; i++) c[i] = v_level(table, c[i]);
}
INLINE void q8_0_codes(const struct rows *w, int j, vi *c)
{
	UNROLL for (size_t r = 0; r < 8; r++) c[r] = v_flip(y_load(row(w, r, 2 + 32*j)), 128);
}

/* s plus, times `by`, the products of four registers, of eight columns each, with digits */
INLINE vi eights_digits(vi s, const vi *c, const int8_t *x, int most, int by)
{
	const int some = 32767/(64*most);
	const vi f = _mm256_set1_epi16((short)by);
	vi p = v_none();
	UNROLL for (int j = 0; j < 4; j++) {
		int64_t n;
		memcpy(&n, x + 8*j, sizeof n);
		vi q = _mm256_maddubs_epi16(c[j], _mm256_set1_epi64x(n));
		p = j%some ? _mm256_add_epi16(p, q) : q;
		if (j%some == some - 1 || j == 3) s = i_madd(s, p, f);
	}
	return s;
}
INLINE vi eights(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	vi a[2];
	(void)n;
	UNROLL for (int p = 0; p < 2; p++)
		a[p] = eights_digits(eights_digits(v_none(), c + 4*p, high, most, 64), c + 4*p, low, most, 1);
	const __m256 u = _mm256_castsi256_ps(a[0]), v = _mm256_castsi256_ps(a[1]);
	return _mm256_add_epi32(s, _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(u, v, 0x88)),
		_mm256_castps_si256(_mm256_shuffle_ps(u, v, 0xdd))));
}
INLINE vi wholes(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	const vi h = y_load(high), l = y_load(low);
	vi a[8];
	(void)n;
	(void)most;
	UNROLL for (int r = 0; r < 8; r++)
		a[r] = i_madd(_mm256_madd_epi16(_mm256_maddubs_epi16(c[r], h), _mm256_set1_epi16(64)),
			_mm256_maddubs_epi16(c[r], l), _mm256_set1_epi16(1));
	return _mm256_add_epi32(s, eight(four(a[0], a[1], a[2], a[3]), four(a[4], a[5], a[6], a[7])));
}
static dots_fn *const dots_eights = eights, *const dots_wholes = wholes;
