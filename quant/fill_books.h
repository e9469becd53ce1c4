/* SPDX-License-Identifier: MIT
 * fill_books.h - the part of fill_256.h for types with code books (IQ1, IQ2, IQ3), and for ternary types.
 *
 * A type with a code book is filled sixteen columns at a time, in three steps, each for eight rows at once:
 *
 *   1 numbers     of the words that the sixteen columns of a row are made of, two to a lane. If a number has more bits
 *                 than a byte, the others are elsewhere in the file, and are put above it.
 *   2 words       The numbers are stored, to be read as indices of the book. The words that are read there (eight codes
 *                 or four, a byte each) are brought into lanes: x[i] has columns 4*i to 4*i + 3 of each row, in the
 *                 order that put_scaled expects.
 *   3 signs       are applied to the lanes, or IQ1's deltas, and put_scaled multiplies by the integer scale.
 *
 * The codec files have the layout of each block. `part` counts the stretches of a block whose bytes are transposed
 * together, and s its sixteens of columns. */

/* ---- numbers and words ---- */

/* The numbers of two words of each row: bytes k and k + 1 of the lanes of x are their lower bits; n more bits of them
 * are those of `up` that begin at bit `first`, and at bit `second`. */
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

/* ---- scales and signs ---- */

/* Stores d times `unit`, with which the scales 2*ls + 1 and the codes of the book are whole numbers. */
INLINE void put_book_d(const struct eight *w, char *to, float unit)
{
	put_d(to, MUL_256, _mm256_mul_ps(halves_of(w, 0), _mm256_set1_ps(unit)));
}
/* The scale 2*ls + 1, where ls is byte `byte` of each lane */
INLINE struct scale odd_scale(__m256i ls, int byte)
{
	return scale_at(_mm256_add_epi8(_mm256_add_epi8(ls, ls), y_bytes(1)), byte, 0);
}
/* The same, where ls is the k-th of four bits each in four bytes of the lanes of ls[0], followed by those of ls[1] */
INLINE struct scale odd_scale_4(const __m256i *ls, int k)
{
	return odd_scale(v_field(ls[k/8], k%2*4, 4, 0), k/2%4);
}
/* grid_sevens of each lane */
INLINE __m256i v_sevens(__m256i u)
{
	return _mm256_or_si256(_mm256_or_si256(v_bits(u, 0, 7, 0), v_bits(u, 7, 7, 8)),
		_mm256_or_si256(v_bits(u, 14, 7, 16), v_bits(u, 21, 7, 24)));
}
/* grid_even of each lane: adds the eighth sign to the seven in each byte */
INLINE __m256i v_even(__m256i s)
{
	static const int8_t odd[16] = { 0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0 };
	return _mm256_or_si256(s, v_level(odd, _mm256_xor_si256(s, v_right(s, 4))));
}
/* Stores the s-th sixteen of columns, whose magnitudes are in x. The signs of the first eight are the bits of byte
 * `first` of the lanes of `signs`, those of the others of byte `second`. */
INLINE void put_signed(char *to, int s, const __m256i x[4], __m256i signs, int first, int second, struct scale sc)
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i minus = v_mask(signs, i < 2 ? first : second, i%2, true);
		put_scaled(to, 16*s + 4*i, _mm256_sub_epi8(_mm256_xor_si256(x[i], minus), minus), sc);
	}
}
/* The same for IQ1, where x has digits 0, 1, 2 for -1, 0, 1. Codes are 8*(digit - 1) plus 1, or minus 1 if the bit of
 * `up` is set that is the sign of delta: `first` for the first eight columns, `second` for the others. */
INLINE void put_deltas(char *to, int s, const __m256i x[4], __m256i up, int first, int second, struct scale sc)
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i minus = _mm256_srai_epi32(v_right(up, (i < 2 ? first : second) - 31), 31),
			add = _mm256_sub_epi8(v_and(minus, -2), y_bytes(7));
		put_scaled(to, 16*s + 4*i, _mm256_add_epi8(v_right(x[i], -3), add), sc);
	}
}

/* ---- words of eight ---- */

INLINE void iq1_s_fill(const struct eight *w, char *to)
{
	__m256i up[4];
	put_book_d(w, to, 0.125f);
	transpose(w, offsetof(struct iq1_s, qh), up);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], x[4];
		transpose(w, offsetof(struct iq1_s, qs) + 16*part, k);
		UNROLL for (int i = 0; i < 8; i++) {
			const __m256i h = up[2*part + i/4];
			const int at = i/2%2*16, number = at + i%2*6;   /* bits of h: the sub-block's, the number's */
			eights(grid_iq1, numbers(k[i/2], i%2*2, h, number, number + 3, 3), x);
			put_deltas(to, 8*part + i, x, h, at + 15, at + 15, odd_scale(v_bits(h, at + 12, 3, 0), 0));
		}
	}
}
INLINE void iq1_m_fill(const struct eight *w, char *to)
{
	__m256i up[4], last[4];
	transpose(w, offsetof(struct iq1_m, qh), up);
	transpose(w, sizeof(struct iq1_m) - 16, last);       /* of which last[2] and last[3] have the scales and d */
	put_d(to, MUL_256, _mm256_mul_ps(_mm256_set1_ps(0.125f), low_halves(
		_mm256_or_si256(_mm256_or_si256(v_bits(last[2], 12, 4, 0), v_bits(last[2], 28, 4, 4)),
			_mm256_or_si256(v_bits(last[3], 12, 4, 8), v_bits(last[3], 28, 4, 12))))));
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], x[4];
		transpose(w, offsetof(struct iq1_m, qs) + 16*part, k);
		UNROLL for (int i = 0; i < 8; i++) {
			const __m256i h = up[2*part + i/4];
			const int at = i%4*8;
			eights(grid_iq1, numbers(k[i/2], i%2*2, h, at, at + 4, 3), x);
			put_deltas(to, 8*part + i, x, h, at + 3, at + 7,
				odd_scale(v_bits(last[2 + part], i/4*16 + i%4*3, 3, 0), 0));
		}
	}
}
INLINE void iq2_xxs_fill(const struct eight *w, char *to)
{
	put_book_d(w, to, 0.125f);
	UNROLL for (int part = 0; part < 4; part++) {
		__m256i k[4], x[4];
		transpose(w, offsetof(struct iq2_xxs, qs) + 16*part, k);
		UNROLL for (int i = 0; i < 4; i++) {
			const __m256i number = k[i/2*2], tail = k[i/2*2 + 1];
			eights(grid_iq2_xxs, words_at(number, i%2*2, i%2*2 + 1), x);
			put_signed(to, 4*part + i, x, v_even(v_sevens(tail)), i%2*2, i%2*2 + 1,
				odd_scale(v_bits(tail, 28, 4, 0), 0));
		}
	}
}
INLINE void iq2_xs_fill(const struct eight *w, char *to)
{
	__m256i last[4];
	put_book_d(w, to, 0.125f);
	transpose(w, sizeof(struct iq2_xs) - 16, last);      /* of which last[2] and last[3] are the scales */
	UNROLL for (int part = 0; part < 4; part++) {
		__m256i k[4], x[4];
		transpose(w, offsetof(struct iq2_xs, qs) + 16*part, k);
		UNROLL for (int i = 0; i < 4; i++) {
			const int s = 4*part + i;
			eights(grid_iq2_xs, _mm256_and_si256(k[i], _mm256_set1_epi16(511)), x);
			put_signed(to, s, x, v_even(_mm256_srli_epi16(k[i], 9)), 0, 2, odd_scale_4(last + 2, s));
		}
	}
}
INLINE void iq2_s_fill(const struct eight *w, char *to)
{
	__m256i last[4];
	put_book_d(w, to, 0.125f);
	transpose(w, sizeof(struct iq2_s) - 16, last);       /* upper bits of numbers, then scales */
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i k[4], signs[4], x[4];
		transpose(w, offsetof(struct iq2_s, qs) + 16*part, k);
		transpose(w, offsetof(struct iq2_s, qs) + 32 + 16*part, signs);
		UNROLL for (int i = 0; i < 8; i++) {
			const int s = 8*part + i;
			eights(grid_iq2_s, numbers(k[i/2], i%2*2, last[part], 4*i, 4*i + 2, 2), x);
			put_signed(to, s, x, signs[i/2], i%2*2, i%2*2 + 1, odd_scale_4(last + 2, s));
		}
	}
}

/* ---- words of four ---- */

INLINE void iq3_xxs_fill(const struct eight *w, char *to)
{
	put_book_d(w, to, 0.25f);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i tail[4], k[4], x[4];
		transpose(w, offsetof(struct iq3_xxs, qs) + 64 + 16*part, tail);
		UNROLL for (int i = 0; i < 8; i++) {
			if (i%4 == 0) transpose(w, offsetof(struct iq3_xxs, qs) + 32*part + 4*i, k);
			fours(grid_iq3_xxs, words_at(k[i%4], 0, 1), x);
			fours(grid_iq3_xxs, words_at(k[i%4], 2, 3), x + 2);
			put_signed(to, 8*part + i, x, v_even(v_sevens(tail[i/2])), i%2*2, i%2*2 + 1,
				odd_scale(v_bits(tail[i/2], 28, 4, 0), 0));
		}
	}
}
INLINE void iq3_s_fill(const struct eight *w, char *to)
{
	const __m256i scales = lanes_of(w, offsetof(struct iq3_s, scales));
	__m256i up[4];
	put_book_d(w, to, 1);
	transpose(w, offsetof(struct iq3_s, qh), up);
	UNROLL for (int part = 0; part < 2; part++) {
		__m256i signs[4], k[4], x[4];
		transpose(w, offsetof(struct iq3_s, signs) + 16*part, signs);
		UNROLL for (int i = 0; i < 8; i++) {
			const int s = 8*part + i;
			if (i%4 == 0) transpose(w, offsetof(struct iq3_s, qs) + 32*part + 4*i, k);
			fours(grid_iq3_s, numbers(k[i%4], 0, up[part], 4*i, 4*i + 1, 1), x);
			fours(grid_iq3_s, numbers(k[i%4], 2, up[part], 4*i + 2, 4*i + 3, 1), x + 2);
			put_signed(to, s, x, signs[i/2], i%2*2, i%2*2 + 1, odd_scale_4(&scales, s/2));
		}
	}
}

/* ---- ternary ---- */

/* The bytes of a lane hold n digits each, the most significant first (codec/tq1_0.h). Stores the first digits of the
 * four bytes in columns column to column + 3, and each next one `step` columns further on. A byte is a fraction of 256:
 * times three, its whole part is the next digit, and what is left of it is the next fraction. It is kept in the upper
 * half of 16 bits. */
INLINE void put_digits(char *to, int column, int step, int n, __m256i x)
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
	UNROLL for (int part = 0; part < 3; part++) {
		transpose(w, 16*part, x);
		UNROLL for (int i = 0; i < 4; i++)
			put_digits(to, (part < 2 ? 16*part : 160) + 4*i, part < 2 ? 32 : 16, 5, x[i]);
	}
	put_digits(to, 240, 4, 4, lanes_of(w, offsetof(struct tq1_0, qh)));
}
INLINE void tq2_0_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_256, halves_of(w, offsetof(struct tq2_0, d)));
	UNROLL for (int part = 0; part < 4; part++) {
		__m256i x[4];
		transpose_codes(w, 16*part, x);
		UNROLL for (int k = 0; k < 4; k++) UNROLL for (int i = 0; i < 4; i++)
			put_plain(to, 128*(part/2) + 32*k + 16*(part%2) + 4*i,
				v_minus(v_field(x[i], 2*k, 2, 0), 1));
	}
}
