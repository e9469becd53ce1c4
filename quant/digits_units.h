/* SPDX-License-Identifier: MIT
 * digits_units.h - part of digits_text.h: blocks of 32, ROWS rows side by side.
 *
 * Four bytes of each row's block are an integer of 32 bits, and a register has those of all rows. Masks and shifts make
 * codes of it, four columns of all rows, which are multiplied with those columns' digits in every lane, so sums need
 * not be added up across lanes. There are always ROWS rows. Registers of 32 bytes have Q1_0 and Q2_0 so; for the others
 * there is digits_runs.h. */

/* A type's block */
struct unit {
	size_t bytes;
	int blocks, parts;              /* blocks of 32 in it; parts of these that have a scale of their own */
	int scale;                      /* bytes of the scales of a block of 32, including the min */
	int bias, most;                 /* of codes; the largest code, including it */
	int even;                       /* codes of even blocks of 32 are so many bits higher in their bytes */
	int side_by_side;               /* digits_runs.h: even if rows are short, as there is little work to a byte */
};
/* The codes of its j-th 32 columns in every row: c[i] has columns 4i to 4i + 3. c[8] to c[11] are kept from one j to
 * the next. */
typedef void codes_fn(const struct rows *w, int j, vi *c);

/* Types whose bytes have sixteen columns in their lower halves and sixteen in their upper halves */
INLINE void nibbles(const struct rows *w, int at, vi *c)
{
	vi x[4];
	v_four(w, at, x);
	UNROLL for (int i = 0; i < 4; i++) {
		c[i] = v_and(x[i], 15);
		c[4 + i] = v_and(v_right(x[i], 4), 15);
	}
}
/* The same, where a half is the number of a level */
INLINE void levels(const struct rows *w, int at, const int8_t *table, int bias, vi *c)
{
	const __m128i t = _mm_add_epi8(x16(table), _mm_set1_epi8((char)bias));
	vi x[4];
	v_four(w, at, x);
	UNROLL for (int i = 0; i < 4; i++) {
		c[i] = v_level(t, x[i]);
		c[4 + i] = v_level(t, v_right(x[i], 4));
	}
}
INLINE void q4_0_codes(const struct rows *w, int j, vi *c) { nibbles(w, 2 + 16*j, c); }
INLINE void q4_1_codes(const struct rows *w, int j, vi *c) { nibbles(w, 4 + 16*j, c); }
/* The same with fifth bits: qh, followed by qs */
INLINE void fives(const struct rows *w, int at, vi *c)
{
	const vi bits = v_one(w, at);
	nibbles(w, at + 4, c);
	UNROLL for (int i = 0; i < 8; i++) c[i] = v_bits(c[i], bits, i, 16);
}
INLINE void q5_0_codes(const struct rows *w, int j, vi *c) { fives(w, 2 + 20*j, c); }
INLINE void q5_1_codes(const struct rows *w, int j, vi *c) { fives(w, 4 + 20*j, c); }
INLINE void q8_0_codes(const struct rows *w, int j, vi *c)
{
	v_four(w, 2 + 32*j, c);
	v_four(w, 18 + 32*j, c + 4);
	UNROLL for (int i = 0; i < 8; i++) c[i] = v_flip(c[i], BIAS_BYTE);
}
INLINE void iq4_nl_codes(const struct rows *w, int j, vi *c) { levels(w, 2 + 16*j, iq4_levels, BIAS_BYTE, c); }
INLINE void mxfp4_codes(const struct rows *w, int j, vi *c) { levels(w, 1 + 16*j, fp4_levels, BIAS_FP4, c); }
/* The same, but the halves of a byte are eight columns apart. */
INLINE void nvfp4_codes(const struct rows *w, int j, vi *c)
{
	vi n[8];
	levels(w, 4 + 16*j, fp4_levels, BIAS_FP4, n);
	UNROLL for (int i = 0; i < 8; i++) c[i] = n[i/4*2 + i/2%2*4 + i%2];
}
#if defined DIGITS_LANES
/* A matrix of bits transposes eight bytes: byte k, from its upper bits to its lower ones, has columns k, k + 8, to k +
 * 56, so four bytes are four consecutive columns. Codes are in bit 1 or, of even blocks, in bit 5. */
enum { EVEN_Q1_0 = 4 };
INLINE void q1_0_codes(const struct rows *w, int j, vi *c)
{
	if (j == 0) {
		vi a[4];
		UNROLL for (size_t k = 0; k < 4; k++) a[k] = v_transpose_bits(v_fourth(w, k, 2));
		v_transpose(a, c + 8);
	}
	UNROLL for (int i = 0; i < 8; i++) {
		const vi x = c[8 + j/2*2 + i%2];
		c[i] = v_and(i < 4 ? v_right(x, 2 - i/2) : v_left(x, i/2 - 2), j%2 ? 2 : 32);
	}
}
#else
enum { EVEN_Q1_0 = 0 };
INLINE void q1_0_codes(const struct rows *w, int j, vi *c)
{
	const vi bits = v_one(w, 2 + 4*j);
	UNROLL for (int i = 0; i < 8; i++) c[i] = v_bits(v_none(), bits, i, 2);
}
#endif
INLINE void q2_0_codes(const struct rows *w, int j, vi *c)
{
	if (j == 0) v_four(w, 2, c + 8);
	UNROLL for (int i = 0; i < 8; i++) c[i] = v_and(v_spread(v_byte(c[8 + 2*j + i/4], i%4)), 3);
}

/* Stores the scales of a block's j-th 32 columns. If there is one of up to 16 bits, one store takes those of two
 * rows. */
INLINE void scales_of_rows(const struct rows *w, int from, int n, struct digit_sums *to, size_t at)
{
	if (n == 4) {
		UNROLL for (size_t r = 0; r < ROWS; r++) memcpy(to->d.pair + at + r, row(w, r, from), 4);
		return;
	}
	UNROLL for (size_t r = 0; r < ROWS; r += 2) {
		const char *p = row(w, r, from), *q = row(w, r + 1, from);
		const uint32_t both = n == 2 ? *(const u16 *)p | (uint32_t)*(const u16 *)q << 16 :
			*(const uint8_t *)p | (uint32_t)*(const uint8_t *)q << 16;
		memcpy(to->d.half + at + r, &both, sizeof both);
	}
}
/* One token times one block of 32 columns of all rows, whose codes are `up` bits higher. x: the token's strip_run, 16*k
 * bytes further on for block k */
INLINE void unit_sums(const vi *c, const char *x, struct unit like, int up, int32_t *to)
{
	const int n = like.parts, fours = 8/n;
	const struct sums32 *all = (const void *)(x + offsetof(struct strip_run, of));
	const int8_t *high = (const void *)(x + offsetof(struct strip_run, high)),
		*low = (const void *)(x + offsetof(struct strip_run, low));
	UNROLL for (int i = 0; i < n; i++) {
		const vi less = v_times(v_all32(n == 1 ? &all->all : all->sum + i), -like.bias*(1 << up)),
			sum = v_dots(less, c + fours*i, fours, digits_four(high, fours*i), digits_four(low, fours*i),
				like.most);
		v_store(to + i*ROWS, up ? v_down(sum, up) : sum);
	}
}
INLINE void units(int n_tokens, const struct digits_part *part, struct digit_sums *to, struct unit like,
	codes_fn *codes)
{
	const struct digits_part p = *part;
	const char *near = p.near, *x = p.strip;
	struct rows w = rows_at(p.w, p.w_stride);
	for (size_t u = 0, at = 0; u < p.n; u++, rows_go(&w, like.bytes), near += like.bytes*ROWS) {
		fetch_lines(near, w.stride, like.bytes*ROWS, p.fetch);
		vi c[12];
		UNROLL for (int j = 0; j < like.blocks; j++, at += ROWS, x += 16) {
			codes(&w, j, c);
			UNROLL for (int t = 0; t < n_tokens; t++)
				unit_sums(c, x + (size_t)t*p.strip_stride, like, j%2 ? 0 : like.even,
					to->s + t*(DIGITS_SUMS/n_tokens) + (size_t)like.parts*at);
			if (j == 0 || like.parts == 2) scales_of_rows(&w, (like.parts - 1)*2*j, like.scale, to, at);
		}
		if (at%(8*ROWS) == 0) x += sizeof(struct strip_run) - 8*16;     /* the next run */
	}
}
