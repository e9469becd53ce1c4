/* SPDX-License-Identifier: MIT
 * fill_lanes.h - the vocabulary of fill_256.h: transposing the bytes of eight rows, so that each lane of a register
 * belongs to a row; then codes and scales in lanes. Words that begin with v_ work on lanes or on their bytes. */
#include <string.h>
#include "bytes_avx2.h"
#include "mul.h"
#include "unpack.h"

#if defined PUT_BYTES
enum { IN_PAIRS = false };
#else
enum { IN_PAIRS = true };               /* are codes of blocks of 32 put as pairs of int16? */
#endif
/* A scale in those bytes of a lane where its first pair of columns has its codes, and in those of its second pair.
 * vpmaddubsw multiplies bytes without sign by bytes with one. So either the scale has no sign (bias 0), or the codes
 * have none, and bias must be subtracted from them: that is `less`, bias times the scale, subtracted from products. */
struct scale { __m256i first, second, less; int bias; };
/* Where a block of each of the eight rows begins. */
struct eight { const char *row[8]; };

/* ---- rows to lanes ---- */

/* Transposes sixteen bytes of each row, or the fourteen after the first two, to registers of four bytes of each row. */
INLINE void transpose_from(const struct eight *w, size_t at, bool behind_two, __m256i to[4])
{
	__m256i a[4];
	UNROLL for (int k = 0; k < 4; k++) {
		a[k] = y_two(w->row[k] + at, w->row[k + 4] + at);
		if (behind_two) a[k] = _mm256_srli_si256(a[k], 2);
	}
	y_transpose(a, to);
}
INLINE void transpose(const struct eight *w, size_t at, __m256i to[4]) { transpose_from(w, at, false, to); }
/* The bytes of each lane in the order of columns 0, 2, 1, 3: those of a pair are every other one. */
INLINE __m256i by_pairs(__m256i a)
{
	return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(_mm_setr_epi32(0x03010200, 0x07050604, 0x0b090a08,
		0x0f0d0e0c)));
}
/* Transposes sixteen bytes of codes, into that order if they are to be stored as pairs. */
INLINE void turn_if(const struct eight *w, size_t at, bool pairs, __m256i to[4])
{
	transpose(w, at, to);
	if (pairs) UNROLL for (int i = 0; i < 4; i++) to[i] = by_pairs(to[i]);
}
INLINE void transpose_codes(const struct eight *w, size_t at, __m256i to[4]) { turn_if(w, at, true, to); }
INLINE void transpose_units(const struct eight *w, size_t at, __m256i to[4]) { turn_if(w, at, IN_PAIRS, to); }
/* Four bytes of each row */
INLINE __m256i lanes_of(const struct eight *w, size_t at)
{
	int32_t x[8];
	UNROLL for (int r = 0; r < 8; r++) memcpy(x + r, w->row[r] + at, 4);
	return _mm256_setr_epi32(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}
/* A half (f16) of each row */
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
/* The n bits of each byte that begin at bit `from`, moved to bit `to`. v_bits does the same with lanes of 32 bits. */
INLINE __m256i v_field(__m256i a, int from, int n, int to)
{
	return v_and(v_right(a, from - to), ((1 << n) - 1) << to);
}
INLINE __m256i v_bits(__m256i a, int from, int n, int to)
{
	return _mm256_and_si256(v_right(a, from - to), _mm256_set1_epi32((int)(((1u << n) - 1) << to)));
}
/* A byte of each lane in all four */
INLINE __m256i v_spread(__m256i a, int byte)
{
	return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(_mm_add_epi8(_mm_setr_epi32(0, 0x04040404, 0x08080808,
		0x0c0c0c0c), _mm_set1_epi8((char)byte))));
}
/* Byte `byte` of each lane has a bit for each of eight columns. For the first four columns, or the last four if
 * `upper`, a byte that is -1 where the bit is set and 0 where it is not. */
INLINE __m256i v_mask(__m256i bits, int byte, bool upper, bool pairs)
{
	const __m256i bit = _mm256_set1_epi32((int)((pairs ? 0x08020401u : 0x08040201u) << (upper ? 4 : 0)));
	return _mm256_cmpeq_epi8(_mm256_and_si256(v_spread(bits, byte), bit), bit);
}
INLINE __m256i v_minus(__m256i a, int n) { return _mm256_sub_epi8(a, y_bytes(n)); }
/* The levels, of a table of sixteen, that the lower halves of bytes stand for */
INLINE __m256i v_level(const int8_t *table, __m256i a) { return _mm256_shuffle_epi8(y_twice(table), v_and(a, 15)); }
/* The same levels plus 128, so that they have no sign */
INLINE __m256i v_level_128(const int8_t *table, __m256i a)
{
	return _mm256_shuffle_epi8(_mm256_xor_si256(y_twice(table), y_bytes(128)), v_and(a, 15));
}
/* Bytes a and b of each lane as the lower, or the upper, bytes of two int16, whose other byte is 0 */
INLINE __m256i bytes_at(__m256i x, int a, int b, bool upper)
{
	const int two = upper ? a << 8 | b << 24 | 0x00800080 : a | b << 16 | (int)0x80008000,
		step = upper ? 0x04000400 : 0x00040004;
	return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(
		_mm_setr_epi32(two, two + step, two + 2*step, two + 3*step)));
}
INLINE __m256i words_at(__m256i x, int a, int b) { return bytes_at(x, a, b, false); }
/* The scale that is byte `byte` of each lane. bias: of the codes, a power of two; 0: the scale has no sign. */
INLINE struct scale scale_at(__m256i sc, int byte, int bias)
{
	const __m256i second = bytes_at(sc, byte, byte, true);
	return (struct scale){ bytes_at(sc, byte, byte, false), second,
		_mm256_srai_epi16(second, bias ? 8 - __builtin_ctz((unsigned)bias) : 0), bias };
}
/* The pair of columns whose codes are in the same bytes as sc, times the scale */
INLINE __m256i product(__m256i c, __m256i sc, struct scale of)
{
	return of.bias ? _mm256_sub_epi16(_mm256_maddubs_epi16(c, sc), of.less) : _mm256_maddubs_epi16(sc, c);
}
/* Stores four columns of eight rows: codes c, in the order of by_pairs, times a scale. */
INLINE void put_scaled(char *to, int column, __m256i c, struct scale sc)
{
	put_pairs(to, column, product(c, sc.first, sc), product(c, sc.second, sc));
}
/* The same without a scale */
INLINE void put_plain(char *to, int column, __m256i c)
{
	const __m256i one = _mm256_set1_epi16(1), second = _mm256_set1_epi16(0x100);
	put_scaled(to, column, c, (struct scale){ one, second, one, 0 });
}
/* Stores four columns of blocks of 32, whose scale is not part of the panel's codes. */
INLINE void put_codes(char *to, int column, __m256i c)
{
#if defined PUT_BYTES
	put_bytes(to, column, c);
#else
	put_plain(to, column, c);
#endif
}
