/* SPDX-License-Identifier: MIT
 * fill_books.h - the part of fill_256.h for types with code books, and for ternary types.
 *
 * The numbers of words are made for eight rows at once, two to a lane, and stored to be read as indices. The halves of
 * words of eight codes, and words of four, are lanes as they are. Signs and deltas are applied to lanes. */

/* ---- words ---- */

/* The numbers of two words: bytes k and k + 1 of lanes of x; above them n bits of `up`, from bits `first`, `second` */
INLINE __m256i numbers(__m256i x, int k, __m256i up, int first, int second, int n)
{
	return _mm256_or_si256(words_at(x, k, k + 1),
		_mm256_or_si256(v_bits(up, first, n, 8), v_bits(up, second, n, 24)));
}
/* Sixteen columns: two words of eight codes of each row, whose numbers are in its lane */
INLINE void eights(const uint64_t *book, __m256i number, __m256i to[4])
{
	uint16_t at[16];
	_mm256_storeu_si256((void *)at, number);
	UNROLL for (int i = 0; i < 2; i++) {
		const __m256 a = (__m256)_mm256_set_m128i(two64(book + at[8 + i], book + at[10 + i]),
				two64(book + at[i], book + at[2 + i])),
			b = (__m256)_mm256_set_m128i(two64(book + at[12 + i], book + at[14 + i]),
				two64(book + at[4 + i], book + at[6 + i]));
		to[2*i] = by_pairs((__m256i)_mm256_shuffle_ps(a, b, 0x88));
		to[2*i + 1] = by_pairs((__m256i)_mm256_shuffle_ps(a, b, 0xdd));
	}
}
/* Eight columns: two words of four codes of each row */
INLINE void fours(const uint32_t *book, __m256i number, __m256i to[2])
{
	uint16_t at[16];
	_mm256_storeu_si256((void *)at, number);
	UNROLL for (int i = 0; i < 2; i++)
		to[i] = by_pairs(_mm256_set_m128i(
			four32(book + at[8 + i], book + at[10 + i], book + at[12 + i], book + at[14 + i]),
			four32(book + at[i], book + at[2 + i], book + at[4 + i], book + at[6 + i])));
}

/* ---- signs and scales ---- */

/* The even number of minuses of grid_even, for seven signs in each byte */
INLINE __m256i v_even(__m256i s)
{
	static const int8_t odd[16] = { 0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0 };
	return _mm256_or_si256(s, v_level(odd, _mm256_xor_si256(s, v_right(s, 4))));
}
/* grid_sevens of each lane */
INLINE __m256i v_sevens(__m256i u)
{
	return _mm256_or_si256(_mm256_or_si256(v_bits(u, 0, 7, 0), v_bits(u, 7, 7, 8)),
		_mm256_or_si256(v_bits(u, 14, 7, 16), v_bits(u, 21, 7, 24)));
}
/* The scale 2*s + 1, s a byte of each lane */
INLINE struct scale odd(__m256i s, int byte)
{
	return scale_at(_mm256_add_epi8(_mm256_add_epi8(s, s), y_bytes(1)), byte, 0);
}
/* Sixteen columns of magnitudes, the first eight with the signs of byte `first`, the others with those of `second` */
INLINE void put_signed(char *to, size_t column, const __m256i x[4], __m256i signs, int first, int second,
	struct scale sc)
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i minus = v_mask(signs, i < 2 ? first : second, i%2, true);
		put_scaled(to, column + 4*(size_t)i,
			_mm256_sub_epi8(_mm256_xor_si256(x[i], minus), minus), sc);
	}
}
/* Sixteen columns of IQ1's digits; their deltas are minus where bit `first`, or `second`, of the lane is set. */
INLINE void put_deltas(char *to, size_t column, const __m256i x[4], __m256i up, int first, int second,
	struct scale sc)
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i minus = _mm256_srai_epi32(v_right(up, (i < 2 ? first : second) - 31), 31),
			delta = _mm256_sub_epi8(v_and(minus, -2), y_bytes(7));
		put_scaled(to, column + 4*(size_t)i, _mm256_add_epi8(v_right(x[i], -3), delta), sc);
	}
}
INLINE void put_part(const struct eight *w, char *to, size_t at_d, float part)
{
	put_d(to, MUL_256, _mm256_mul_ps(halves_of(w, at_d), _mm256_set1_ps(part)));
}

/* ---- words of eight ---- */

INLINE void iq1_s_fill(const struct eight *w, char *to)
{
	__m256i up[4];
	put_part(w, to, 0, 0.125f);
	turn(w, offsetof(struct iq1_s, qh), up);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], x[4];
		turn(w, offsetof(struct iq1_s, qs) + 16*(size_t)part, k);
		UNROLL for (int j = 0; j < 4; j++) {
			const __m256i h = up[2*part + j/2];
			const int at = 16*(j%2);
			const struct scale sc = odd(v_bits(h, at + 12, 3, 0), 0);
			UNROLL for (int half = 0; half < 2; half++) {
				eights(grid_iq1, numbers(k[j], 2*half, h, at + 6*half, at + 6*half + 3, 3), x);
				put_deltas(to, 128*(size_t)part + 32*(size_t)j + 16*(size_t)half, x, h, at + 15,
					at + 15, sc);
			}
		}
	}
}
INLINE void iq1_m_fill(const struct eight *w, char *to)
{
	__m256i up[4], last[4];
	turn(w, offsetof(struct iq1_m, qh), up);
	turn(w, sizeof(struct iq1_m) - 16, last);
	put_d(to, MUL_256, _mm256_mul_ps(_mm256_set1_ps(0.125f), low_halves(
		_mm256_or_si256(_mm256_or_si256(v_bits(last[2], 12, 4, 0), v_bits(last[2], 28, 4, 4)),
			_mm256_or_si256(v_bits(last[3], 12, 4, 8), v_bits(last[3], 28, 4, 12))))));
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], x[4];
		turn(w, offsetof(struct iq1_m, qs) + 16*(size_t)part, k);
		UNROLL for (int j = 0; j < 4; j++) UNROLL for (int half = 0; half < 2; half++) {
			const __m256i h = up[2*part + j/2];
			const struct scale sc =
				odd(v_bits(last[2 + part], 16*(j/2) + 6*(j%2) + 3*half, 3, 0), 0);
			const int at = 16*(j%2) + 8*half;
			eights(grid_iq1, numbers(k[j], 2*half, h, at, at + 4, 3), x);
			put_deltas(to, 128*(size_t)part + 32*(size_t)j + 16*(size_t)half, x, h, at + 3, at + 7, sc);
		}
	}
}
INLINE void iq2_xxs_fill(const struct eight *w, char *to)
{
	put_part(w, to, 0, 0.125f);
	UNROLL for (size_t j = 0; j < 8; j += 2) {
		__m256i k[4], x[4];
		turn(w, offsetof(struct iq2_xxs, qs) + 8*j, k);
		UNROLL for (int i = 0; i < 4; i++) {
			const __m256i tail = k[i/2*2 + 1];
			eights(grid_iq2_xxs, words_at(k[i/2*2], i%2*2, i%2*2 + 1), x);
			put_signed(to, 32*j + 16*(size_t)i, x, v_even(v_sevens(tail)), i%2*2, i%2*2 + 1,
				odd(v_bits(tail, 28, 4, 0), 0));
		}
	}
}
/* The scale of sixteen columns: four bits, of eight bytes */
INLINE struct scale scale_of(const __m256i s[2], int sixteen)
{
	return odd(v_field(s[sixteen/8], sixteen%2*4, 4, 0), sixteen/2%4);
}
INLINE void iq2_xs_fill(const struct eight *w, char *to)
{
	__m256i last[4];
	put_part(w, to, 0, 0.125f);
	turn(w, sizeof(struct iq2_xs) - 16, last);
	UNROLL for (int part = 0; part < 4; part++) {
		__m256i k[4], x[4];
		turn(w, offsetof(struct iq2_xs, qs) + 16*(size_t)part, k);
		UNROLL for (int i = 0; i < 4; i++) {
			eights(grid_iq2_xs, _mm256_and_si256(k[i], _mm256_set1_epi16(511)), x);
			put_signed(to, 64*(size_t)part + 16*(size_t)i, x, v_even(_mm256_srli_epi16(k[i], 9)), 0, 2,
				scale_of(last + 2, 4*part + i));
		}
	}
}
INLINE void iq2_s_fill(const struct eight *w, char *to)
{
	__m256i last[4];
	put_part(w, to, 0, 0.125f);
	turn(w, sizeof(struct iq2_s) - 16, last);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], signs[4], x[4];
		turn(w, offsetof(struct iq2_s, qs) + 16*(size_t)part, k);
		turn(w, offsetof(struct iq2_s, qs) + 32 + 16*(size_t)part, signs);
		UNROLL for (int i = 0; i < 8; i++) {
			eights(grid_iq2_s, numbers(k[i/2], i%2*2, last[part], 4*i, 4*i + 2, 2), x);
			put_signed(to, 128*(size_t)part + 16*(size_t)i, x, signs[i/2], i%2*2, i%2*2 + 1,
				scale_of(last + 2, 8*part + i));
		}
	}
}

/* ---- words of four ---- */

INLINE void iq3_xxs_fill(const struct eight *w, char *to)
{
	put_part(w, to, 0, 0.25f);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i tail[4], k[4], x[4];
		turn(w, offsetof(struct iq3_xxs, qs) + 64 + 16*(size_t)part, tail);
		UNROLL for (int i = 0; i < 8; i++) {
			if (i%4 == 0) turn(w, offsetof(struct iq3_xxs, qs) + 32*(size_t)part + 4*(size_t)i, k);
			fours(grid_iq3_xxs, words_at(k[i%4], 0, 1), x);
			fours(grid_iq3_xxs, words_at(k[i%4], 2, 3), x + 2);
			put_signed(to, 128*(size_t)part + 16*(size_t)i, x, v_even(v_sevens(tail[i/2])), i%2*2,
				i%2*2 + 1, odd(v_bits(tail[i/2], 28, 4, 0), 0));
		}
	}
}
INLINE void iq3_s_fill(const struct eight *w, char *to)
{
	const __m256i s = lanes_of(w, offsetof(struct iq3_s, scales));
	__m256i up[4];
	put_part(w, to, 0, 1);
	turn(w, offsetof(struct iq3_s, qh), up);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i signs[4], k[4], x[4];
		turn(w, offsetof(struct iq3_s, signs) + 16*(size_t)part, signs);
		UNROLL for (int i = 0; i < 8; i++) {
			if (i%4 == 0) turn(w, offsetof(struct iq3_s, qs) + 32*(size_t)part + 4*(size_t)i, k);
			fours(grid_iq3_s, numbers(k[i%4], 0, up[part], 4*i, 4*i + 1, 1), x);
			fours(grid_iq3_s, numbers(k[i%4], 2, up[part], 4*i + 2, 4*i + 3, 1), x + 2);
			put_signed(to, 128*(size_t)part + 16*(size_t)i, x, signs[i/2], i%2*2, i%2*2 + 1,
				odd(v_field(s, i/2%2*4, 4, 0), 2*part + i/4));
		}
	}
}

/* ---- ternary ---- */

/* n digits of the bytes of lanes of x, the next one `step` columns further on */
INLINE void put_digits(char *to, size_t column, size_t step, int n, __m256i x)
{
	const __m256i three = _mm256_set1_epi16(3), one = _mm256_set1_epi16(1);
	__m256i p = bytes_at(x, 0, 1, true), q = bytes_at(x, 2, 3, true);
	UNROLL for (int i = 0; i < n; i++, column += step) {
		put_pairs(to, column, _mm256_sub_epi16(_mm256_mulhi_epu16(p, three), one),
			_mm256_sub_epi16(_mm256_mulhi_epu16(q, three), one));
		p = _mm256_mullo_epi16(p, three);
		q = _mm256_mullo_epi16(q, three);
	}
}
INLINE void tq1_0_fill(const struct eight *w, char *to)
{
	__m256i x[4];
	put_d(to, MUL_256, halves_of(w, offsetof(struct tq1_0, d)));
	UNROLL for (size_t part = 0; part < 3; part++) {
		turn(w, 16*part, x);
		UNROLL for (size_t i = 0; i < 4; i++)
			put_digits(to, (part < 2 ? 16*part : 160) + 4*i, part < 2 ? 32 : 16, 5, x[i]);
	}
	put_digits(to, 240, 4, 4, lanes_of(w, offsetof(struct tq1_0, qh)));
}
INLINE void tq2_0_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_256, halves_of(w, offsetof(struct tq2_0, d)));
	UNROLL for (size_t part = 0; part < 4; part++) {
		__m256i x[4];
		turn_codes(w, 16*part, x);
		UNROLL for (size_t k = 0; k < 4; k++) UNROLL for (size_t i = 0; i < 4; i++)
			put_plain(to, 128*(part/2) + 32*k + 16*(part%2) + 4*i,
				v_less(v_field(x[i], 2*(int)k, 2, 0), 1));
	}
}
