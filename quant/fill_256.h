/* SPDX-License-Identifier: MIT
 * fill_256.h - fills panels straight from blocks, eight rows side by side in registers of 32 bytes: one text for x86
 * that defines the table FILL_TABLE. Types that are not in it are unpacked row by row (mul.c).
 *
 * Each lane of a register belongs to a row. Sixteen bytes of each row are transposed as they are in the file, while a
 * byte still holds up to four codes: transposing unpacked int16 would be two to eight times the work. Masks and shifts
 * then leave four codes in each lane, which are scaled and stored where the panel has these four columns. An instance
 * first includes digits_y_avx2.h, and gives WIDTH, the outputs of its panels, BY_32, whether they have minima so
 * (struct panel_table), and
 *   put_pairs(to, column, p, q)     stores columns column, + 1 (p) and + 2, + 3 (q) of eight rows, as int16
 * If the codes of blocks of 32 are bytes in its panels, it defines PUT_BYTES and
 *   put_bytes(to, column, c)        stores four columns of eight rows, signed
 * `to` is the panel's block, plus 4*first bytes if the rows are its outputs first to first + 7. */
#include <string.h>
#include "bytes_avx2.h"
#include "mul.h"
#include "unpack.h"

/* The codes of four columns in each lane: signed bytes, or unsigned bytes from which bias is to be subtracted. */
struct codes { __m256i c; bool is_signed; int bias; };
/* Where a block of each of the eight rows begins. */
struct eight { const char *row[8]; };

/* ---- rows to lanes ---- */

/* Turns sixteen bytes of each row, or the fourteen after the first two, into registers of four bytes of each row. */
INLINE void turn_from(const struct eight *w, size_t at, bool behind_two, __m256i to[4])
{
	__m256i a[4];
	UNROLL for (int k = 0; k < 4; k++) {
		a[k] = y_two(w->row[k] + at, w->row[k + 4] + at);
		if (behind_two) a[k] = _mm256_srli_si256(a[k], 2);
	}
	y_turn(a, to);
}
INLINE void turn(const struct eight *w, size_t at, __m256i to[4]) { turn_from(w, at, false, to); }
/* Four bytes of each row */
INLINE __m256i lanes_of(const struct eight *w, size_t at)
{
	int32_t x[8];
	UNROLL for (int r = 0; r < 8; r++) memcpy(x + r, w->row[r] + at, 4);
	return _mm256_setr_epi32(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}
/* A half of each row */
INLINE __m256 halves_of(const struct eight *w, size_t at)
{
	int16_t x[8];
	UNROLL for (int r = 0; r < 8; r++) memcpy(x + r, w->row[r] + at, 2);
	return _mm256_cvtph_ps(_mm_setr_epi16(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
}
/* The lower halves of lanes as floats */
INLINE __m256 low_halves(__m256i a)
{
	a = _mm256_packus_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), a);
	return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(a, 0x08)));
}
INLINE __m256 high_halves(__m256i a) { return low_halves(_mm256_srli_epi32(a, 16)); }

/* ---- codes ---- */

INLINE __m256i v_and(__m256i a, int mask) { return _mm256_and_si256(a, y_bytes(mask)); }
INLINE __m256i v_right(__m256i a, int n) { return n < 0 ? _mm256_slli_epi32(a, -n) : _mm256_srli_epi32(a, n); }
/* Bits from.. of each byte, n of them, at bit `to` */
INLINE __m256i v_field(__m256i a, int from, int n, int to)
{
	return v_and(v_right(a, from - to), ((1 << n) - 1) << to);
}
INLINE __m256i v_level(const int8_t *table, __m256i a) { return _mm256_shuffle_epi8(y_twice(table), v_and(a, 15)); }
INLINE struct codes plain(__m256i c) { return (struct codes){ c, false, 0 }; }
INLINE struct codes with_bias(__m256i c, int bias) { return (struct codes){ c, false, bias }; }
INLINE struct codes with_sign(__m256i c) { return (struct codes){ c, true, 0 }; }
/* Bytes a and b of each lane as the lower, or the upper, halves of two words */
INLINE __m256i bytes_at(__m256i x, int a, int b, bool upper)
{
	const int two = upper ? a << 8 | b << 24 | 0x00800080 : a | b << 16 | (int)0x80008000,
		step = upper ? 0x04000400 : 0x00040004;
	return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(
		_mm_setr_epi32(two, two + step, two + 2*step, two + 3*step)));
}
INLINE __m256i words_at(__m256i x, int a, int b, bool is_signed)
{
	const __m256i w = bytes_at(x, a, b, is_signed);
	return is_signed ? _mm256_srai_epi16(w, 8) : w;
}
/* The codes of the first two columns, or of the others */
INLINE __m256i pair_of(struct codes c, int first)
{
	const __m256i w = words_at(c.c, first, first + 1, c.is_signed);
	return c.bias ? _mm256_sub_epi16(w, _mm256_set1_epi16((short)c.bias)) : w;
}
/* sc: words */
INLINE void put_scaled(char *to, size_t column, struct codes c, __m256i sc)
{
	put_pairs(to, column, _mm256_mullo_epi16(pair_of(c, 0), sc), _mm256_mullo_epi16(pair_of(c, 2), sc));
}
INLINE void put_codes(char *to, size_t column, struct codes c)
{
#if defined PUT_BYTES
	put_bytes(to, column, c.bias ? _mm256_sub_epi8(c.c, y_bytes(c.bias)) : c.c);
#else
	put_pairs(to, column, pair_of(c, 0), pair_of(c, 2));
#endif
}

/* ---- super-blocks ---- */

INLINE void put_floats(char *to, __m256 a) { _mm256_storeu_ps((float *)(void *)to, a); }
INLINE void put_d(char *to, enum mul_kind kind, __m256 d) { put_floats(to + mul_panel_d(kind, WIDTH), d); }
INLINE void put_m(char *to, enum mul_kind kind, __m256 m) { put_floats(to + mul_panel_m(kind, WIDTH), m); }
INLINE __m256 negative(__m256 a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
INLINE void put_minima(char *to, int line, __m256i mn)
{
	_mm256_storeu_si256((void *)(to + mul_panel_mn(MUL_256_MIN, WIDTH) + 4*WIDTH*(size_t)line), mn);
}
/* Eight minima of 32 columns, in bytes */
INLINE void put_minima_32(char *to, const __m256i mn[2])
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i m = mn[i/2];
		const int a = i%2*2, b = a + 1;
		if (BY_32) {
			put_minima(to, i, _mm256_setzero_si256());
			put_minima(to, 4 + i, words_at(m, a, b, false));
		} else {
			put_minima(to, 2*i, words_at(m, a, a, false));
			put_minima(to, 2*i + 1, words_at(m, b, b, false));
		}
	}
}
/* Sixteen minima of 16 columns, in bytes */
INLINE void put_minima_16(char *to, const __m256i mn[4])
{
	UNROLL for (int i = 0; i < 4; i++) {
		const __m256i odd = words_at(mn[i], 1, 3, false);
		if (BY_32) {
			put_minima(to, i, _mm256_sub_epi16(words_at(mn[i], 0, 2, false), odd));
			put_minima(to, 4 + i, odd);
		} else {
			put_minima(to, 2*i, words_at(mn[i], 0, 1, false));
			put_minima(to, 2*i + 1, words_at(mn[i], 2, 3, false));
		}
	}
}
INLINE void put_pair(char *to, __m256i pair)
{
	put_d(to, MUL_256_MIN, low_halves(pair));
	put_m(to, MUL_256_MIN, negative(high_halves(pair)));
}

/* Q4_K (qh 0), and Q5_K, whose fifth bits are at qh; scales as in codec/q4_k.h */
INLINE void four_or_five(const struct eight *w, char *to, size_t qh, size_t qs)
{
	__m256i h[4], sc[2], mn[2], u[8];
	turn(w, 0, h);
	put_pair(to, h[0]);
	sc[0] = v_and(h[1], 63);
	mn[0] = v_and(h[2], 63);
	sc[1] = _mm256_or_si256(v_and(h[3], 15), v_field(h[1], 6, 2, 4));
	mn[1] = _mm256_or_si256(v_field(h[3], 4, 4, 0), v_field(h[2], 6, 2, 4));
	put_minima_32(to, mn);
	if (qh) {
		turn(w, qh, u);
		turn(w, qh + 16, u + 4);
	}
	UNROLL for (int j = 0; j < 8; j += 2) {
		const __m256i low = words_at(sc[j/4], j%4, j%4, false),
			high = words_at(sc[j/4], j%4 + 1, j%4 + 1, false);
		UNROLL for (int half = 0; half < 2; half++) {
			__m256i x[4];
			turn(w, qs + 16*(size_t)j + 16*(size_t)half, x);
			UNROLL for (int i = 0; i < 4; i++) {
				const size_t column = 32*(size_t)j + 16*(size_t)half + 4*(size_t)i;
				__m256i a = v_and(x[i], 15), b = v_field(x[i], 4, 4, 0);
				if (qh) {
					a = _mm256_or_si256(a, v_field(u[4*half + i], j, 1, 4));
					b = _mm256_or_si256(b, v_field(u[4*half + i], j + 1, 1, 4));
				}
				put_scaled(to, column, plain(a), low);
				put_scaled(to, column + 32, plain(b), high);
			}
		}
	}
}
INLINE void q4_k_fill(const struct eight *w, char *to)
{
	four_or_five(w, to, 0, offsetof(struct q4_k, qs));
}
INLINE void q5_k_fill(const struct eight *w, char *to)
{
	four_or_five(w, to, offsetof(struct q5_k, qh), offsetof(struct q5_k, qs));
}
INLINE void q6_k_fill(const struct eight *w, char *to)
{
	__m256i sc[4];
	put_d(to, MUL_256, halves_of(w, offsetof(struct q6_k, d)));
	turn(w, offsetof(struct q6_k, scales), sc);
	UNROLL for (size_t part = 0; part < 4; part++) {        /* sixteens of both halves */
		const size_t h = part/2, s = part%2, ql = 64*h + 16*s, qh = offsetof(struct q6_k, qh) + 32*h + 16*s;
		__m256i x[8], up[4];
		turn(w, ql, x);
		turn(w, ql + 32, x + 4);
		turn(w, qh, up);
		UNROLL for (int k = 0; k < 4; k++) {
			const int at = (int)(2*(size_t)k + s), scale = (int)(8*h) + at;
			const __m256i by = words_at(sc[scale/4], scale%4, scale%4, true);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*(size_t)at + 4*(size_t)i, with_bias(_mm256_or_si256(
					v_field(x[k%2*4 + i], k/2*4, 4, 0), v_field(up[i], 2*k, 2, 4)), 32), by);
		}
	}
}
/* Scales 4*i to 4*i + 3 from the twelve bytes s, as codec/q3_k.h has them, their bias subtracted */
INLINE __m256i q3_k_sixes(const __m256i s[3], int i)
{
	return _mm256_sub_epi8(_mm256_or_si256(v_field(s[i%2], i/2*4, 4, 0), v_field(s[2], 2*i, 2, 4)), y_bytes(32));
}
INLINE void q3_k_fill(const struct eight *w, char *to)
{
	__m256i s[4], sc[4];
	turn_from(w, sizeof(struct q3_k) - 16, true, s);
	put_d(to, MUL_256, low_halves(s[3]));
	UNROLL for (int i = 0; i < 4; i++) sc[i] = q3_k_sixes(s, i);
	UNROLL for (size_t part = 0; part < 4; part++) {
		const size_t h = part/2, half = part%2;
		__m256i x[4], up[4];
		turn(w, offsetof(struct q3_k, qs) + 32*h + 16*half, x);
		turn(w, offsetof(struct q3_k, hmask) + 16*half, up);
		UNROLL for (int k = 0; k < 4; k++) {
			const int at = (int)(2*(size_t)k + half), scale = (int)(8*h) + at;
			const __m256i by = words_at(sc[scale/4], scale%4, scale%4, true);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*(size_t)at + 4*(size_t)i, with_bias(_mm256_or_si256(
					v_field(x[i], 2*k, 2, 0), v_field(up[i], (int)(4*h) + k, 1, 2)), 4), by);
		}
	}
}
INLINE void q2_k_fill(const struct eight *w, char *to)
{
	__m256i s[4], last[4], mn[4];
	turn(w, sizeof(struct q2_k) - 16, last);
	put_pair(to, last[3]);
	turn(w, offsetof(struct q2_k, scales), s);
	UNROLL for (int i = 0; i < 4; i++) mn[i] = v_field(s[i], 4, 4, 0);
	put_minima_16(to, mn);
	UNROLL for (size_t part = 0; part < 4; part++) {
		const size_t h = part/2, half = part%2;
		__m256i x[4];
		turn(w, offsetof(struct q2_k, qs) + 32*h + 16*half, x);
		UNROLL for (int k = 0; k < 4; k++) {
			const int at = (int)(2*(size_t)k + half), scale = (int)(8*h) + at;
			const __m256i by = words_at(v_and(s[scale/4], 15), scale%4, scale%4, false);
			UNROLL for (int i = 0; i < 4; i++)
				put_scaled(to, 128*h + 16*(size_t)at + 4*(size_t)i,
					plain(v_field(x[i], 2*k, 2, 0)), by);
		}
	}
}
INLINE void iq4_xs_fill(const struct eight *w, char *to)
{
	__m256i s[4];
	turn(w, 0, s);
	put_d(to, MUL_256, low_halves(s[0]));
	UNROLL for (int j = 0; j < 8; j++) {
		const __m256i low = _mm256_and_si256(v_right(s[1], 4*j), _mm256_set1_epi32(15)),
			up = _mm256_and_si256(v_right(s[0], 12 + 2*j), _mm256_set1_epi32(48)),
			sc = _mm256_sub_epi32(_mm256_or_si256(low, up), _mm256_set1_epi32(32)),
			by = _mm256_shuffle_epi8(sc, _mm256_broadcastsi128_si256(_mm_setr_epi32(0x01000100, 0x05040504,
				0x09080908, 0x0d0c0d0c)));
		__m256i x[4];
		turn(w, offsetof(struct iq4_xs, qs) + 16*(size_t)j, x);
		UNROLL for (int i = 0; i < 4; i++) {
			const size_t column = 32*(size_t)j + 4*(size_t)i;
			put_scaled(to, column, with_sign(v_level(iq4_levels, x[i])), by);
			put_scaled(to, column + 16, with_sign(v_level(iq4_levels, v_right(x[i], 4))), by);
		}
	}
}

/* ---- blocks of 32 ---- */

/* Sixteen columns in the lower and sixteen in the upper halves of the bytes at `at`; bits: their fifth bits, or NULL */
INLINE void nibbles(const struct eight *w, char *to, size_t at, const __m256i *bits, int bias)
{
	__m256i x[4];
	turn(w, at, x);
	UNROLL for (int i = 0; i < 8; i++) {
		__m256i c = v_field(x[i%4], i/4*4, 4, 0);
		if (bits) {
			const __m256i bit = _mm256_set1_epi32(i%2 ? (int)0x80402010 : 0x08040201), spread =
				_mm256_shuffle_epi8(*bits, _mm256_broadcastsi128_si256(_mm_add_epi8(_mm_setr_epi32(0,
					0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)(i/2)))));
			c = _mm256_or_si256(c, v_and(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit), 16));
		}
		put_codes(to, 4*(size_t)i, with_bias(c, bias));
	}
}
INLINE void levels(const struct eight *w, char *to, size_t at, const int8_t *table)
{
	__m256i x[4];
	turn(w, at, x);
	UNROLL for (int i = 0; i < 8; i++)
		put_codes(to, 4*(size_t)i, with_sign(v_level(table, v_right(x[i%4], i/4*4))));
}
/* d and m of rows of blocks with minima */
INLINE void put_two(const struct eight *w, char *to)
{
	const __m256i pair = lanes_of(w, 0);
	put_d(to, MUL_32_MIN, low_halves(pair));
	put_m(to, MUL_32_MIN, high_halves(pair));
}
INLINE void q4_0_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_32, halves_of(w, 0));
	nibbles(w, to, offsetof(struct q4_0, qs), NULL, 8);
}
INLINE void q4_1_fill(const struct eight *w, char *to)
{
	put_two(w, to);
	nibbles(w, to, offsetof(struct q4_1, qs), NULL, 0);
}
INLINE void q5_0_fill(const struct eight *w, char *to)
{
	const __m256i bits = lanes_of(w, offsetof(struct q5_0, qh));
	put_d(to, MUL_32, halves_of(w, 0));
	nibbles(w, to, offsetof(struct q5_0, qs), &bits, 16);
}
INLINE void q5_1_fill(const struct eight *w, char *to)
{
	const __m256i bits = lanes_of(w, offsetof(struct q5_1, qh));
	put_two(w, to);
	nibbles(w, to, offsetof(struct q5_1, qs), &bits, 0);
}
INLINE void q8_0_fill(const struct eight *w, char *to)
{
	__m256i x[8];
	put_d(to, MUL_32, halves_of(w, 0));
	turn(w, offsetof(struct q8_0, qs), x);
	turn(w, offsetof(struct q8_0, qs) + 16, x + 4);
	UNROLL for (size_t i = 0; i < 8; i++) put_codes(to, 4*i, with_sign(x[i]));
}
INLINE void iq4_nl_fill(const struct eight *w, char *to)
{
	put_d(to, MUL_32, halves_of(w, 0));
	levels(w, to, offsetof(struct iq4_nl, qs), iq4_levels);
}
INLINE void mxfp4_fill(const struct eight *w, char *to)
{
	float d[8];
	UNROLL for (int r = 0; r < 8; r++) d[r] = mxfp4_scale((uint8_t)w->row[r][0]);
	put_d(to, MUL_32, _mm256_loadu_ps(d));
	levels(w, to, offsetof(struct mxfp4, qs), fp4_levels);
}

/* ---- the table ---- */

typedef void block_fn(const struct eight *w, char *to);
INLINE void blocks(const char *const *row, size_t n, char *to, size_t bytes, enum mul_kind kind,
	block_fn *fill)
{
	struct eight w;
	memcpy(w.row, row, sizeof w.row);
	for (size_t i = 0; i < n; i += mul_block(kind), to += mul_panel_bytes(kind, WIDTH)) {
		fill(&w, to);
		for (int r = 0; r < 8; r++) w.row[r] += bytes;
	}
}
#define FILL(name, kind) \
static void fill_##name(const char *const *row, size_t n, char *to) \
{ \
	blocks(row, n, to, sizeof(struct name), kind, name##_fill); \
}
FILL(q2_k, MUL_256_MIN)
FILL(q3_k, MUL_256)
FILL(q4_k, MUL_256_MIN)
FILL(q5_k, MUL_256_MIN)
FILL(q6_k, MUL_256)
FILL(iq4_xs, MUL_256)
FILL(q4_0, MUL_32)
FILL(q4_1, MUL_32_MIN)
FILL(q5_0, MUL_32)
FILL(q5_1, MUL_32_MIN)
FILL(q8_0, MUL_32)
FILL(iq4_nl, MUL_32)
FILL(mxfp4, MUL_32)
fill_fn *const FILL_TABLE[GGU_TYPE_COUNT] = {
	[GGU_TYPE_Q2_K] = fill_q2_k,
	[GGU_TYPE_Q3_K] = fill_q3_k,
	[GGU_TYPE_Q4_K] = fill_q4_k,
	[GGU_TYPE_Q5_K] = fill_q5_k,
	[GGU_TYPE_Q6_K] = fill_q6_k,
	[GGU_TYPE_IQ4_XS] = fill_iq4_xs,
	[GGU_TYPE_Q4_0] = fill_q4_0,
	[GGU_TYPE_Q4_1] = fill_q4_1,
	[GGU_TYPE_Q5_0] = fill_q5_0,
	[GGU_TYPE_Q5_1] = fill_q5_1,
	[GGU_TYPE_Q8_0] = fill_q8_0,
	[GGU_TYPE_IQ4_NL] = fill_iq4_nl,
	[GGU_TYPE_MXFP4] = fill_mxfp4,
};
