/* SPDX-License-Identifier: MIT
 * strip_x86.h - stores a block of a strip (mul.h has the picture), four tokens side by side: sixteen columns of each
 * are a register, and transposing them by pairs gives eight lines of four tokens, two in a register. Sums are taken
 * from these, where each token has a lane: of the columns, and own sums (tile_crossed.h). */
#include <immintrin.h>
#include "inline.h"
#include "mul.h"

enum { SUMS_OF_ROWS = false };          /* sums of struct panel_table */

/* Of sixteen columns of up to four tokens: their sum, and their own sum, of the first `crossed` of their fours */
struct sixteen { __m128i sum, own; };

INLINE __m128i x_halves(__m256i a)
{
	return _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}
/* a: the products of fours 0 and 2 with themselves, b: of 1 and 3 */
INLINE __m128i own_sum(int crossed, __m256i a, __m256i b)
{
	__m128i sum = _mm256_castsi256_si128(a);
	if (crossed > 1) sum = _mm_add_epi32(sum, _mm256_castsi256_si128(b));
	if (crossed > 2) sum = _mm_add_epi32(sum, _mm256_extracti128_si256(a, 1));
	return crossed > 3 ? _mm_add_epi32(sum, _mm256_extracti128_si256(b, 1)) : sum;
}
INLINE __m256i x_row(const struct narrow *q, size_t column) { return _mm256_load_si256((const void *)(q->q + column)); }
/* Stores what n tokens, 2 or 4, have in a line. */
INLINE void x_put(int n, char *to, __m128i a)
{
	if (n == 4) _mm_storeu_si128((void *)to, a);
	else _mm_storel_epi64((void *)to, a);
}
/* Stores the lines of sixteen columns of four tokens, or of two and no others; a line has `tokens`. */
INLINE struct sixteen put_lines(int n, int tokens, int crossed, const struct narrow *q, size_t column, char *to)
{
	const __m256i one = _mm256_set1_epi16(1), zero = _mm256_setzero_si256(), r0 = x_row(q, column),
		r1 = x_row(q + 1, column), r2 = n == 4 ? x_row(q + 2, column) : zero,
		r3 = n == 4 ? x_row(q + 3, column) : zero,
		a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpackhi_epi32(r0, r1),
		c = _mm256_unpacklo_epi32(r2, r3), d = _mm256_unpackhi_epi32(r2, r3),
		p[4] = { _mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c), _mm256_unpacklo_epi64(b, d),
			_mm256_unpackhi_epi64(b, d) };          /* pairs i and i + 4 */
	UNROLL for (int i = 0; i < 4; i++) {
		x_put(n, to + 4*tokens*i, _mm256_castsi256_si128(p[i]));
		x_put(n, to + 4*tokens*(i + 4), _mm256_extracti128_si256(p[i], 1));
	}
	return (struct sixteen){
		x_halves(_mm256_madd_epi16(_mm256_add_epi16(_mm256_add_epi16(p[0], p[1]), _mm256_add_epi16(p[2], p[3])),
			one)),
		own_sum(crossed, _mm256_madd_epi16(p[0], p[1]), _mm256_madd_epi16(p[2], p[3])),
	};
}
/* The same if a line has two tokens: four lines are a register. */
INLINE struct sixteen put_short_lines(int crossed, const struct narrow *q, size_t column, char *to)
{
	const __m256i one = _mm256_set1_epi16(1), r0 = x_row(q, column), r1 = x_row(q + 1, column),
		a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpackhi_epi32(r0, r1),
		first = _mm256_madd_epi16(a, _mm256_srli_si256(a, 8)),
		second = _mm256_madd_epi16(b, _mm256_srli_si256(b, 8));
	const __m128i half = x_halves(_mm256_madd_epi16(_mm256_add_epi16(a, b), one));
	_mm256_storeu_si256((void *)to, _mm256_permute2x128_si256(a, b, 0x20));
	_mm256_storeu_si256((void *)(to + 32), _mm256_permute2x128_si256(a, b, 0x31));
	return (struct sixteen){ _mm_add_epi32(half, _mm_srli_si128(half, 8)), own_sum(crossed, first, second) };
}

/* Stores the tail of a block of 32. s: of both sixteens */
INLINE void end_32(int n, int tokens, int crossed, struct sixteen s[2], __m128i d, char *to)
{
	x_put(n, to + mul_strip_sum(32, (size_t)tokens),
		_mm_castps_si128(_mm_cvtepi32_ps(_mm_add_epi32(s[0].sum, s[1].sum))));
	x_put(n, to + mul_strip_d(32, (size_t)tokens), d);
	if (!crossed) return;
	x_put(n, to + mul_strip_own(32, (size_t)tokens), _mm_add_epi32(s[0].own, s[1].own));
	x_put(n, to + mul_strip_own(32, (size_t)tokens) + 4*tokens, s[0].own);
}
/* Pairs of a and b */
INLINE __m128i x_pairs(__m128i a, __m128i b) { return _mm_blend_epi16(a, _mm_slli_epi32(b, 16), 0xaa); }
/* Stores the tail of a super-block, with sums as struct panel_table's by_32 has them. */
INLINE void end_256(int n, int tokens, int crossed, const struct sixteen s[16], __m128i d, char *to)
{
	char *line = to + mul_strip_sum(256, (size_t)tokens);
	__m128i both[8], lack = _mm_setzero_si128(), own = lack;
	UNROLL for (int i = 0; i < 4; i++) x_put(n, line + 4*tokens*i, x_pairs(s[4*i].sum, s[4*i + 2].sum));
	UNROLL for (int i = 0; i < 8; i++) {
		both[i] = _mm_add_epi32(s[2*i].sum, s[2*i + 1].sum);
		const __m128i kept = _mm_srai_epi32(_mm_slli_epi32(both[i], 16), 16),
			less = _mm_srli_epi32(_mm_sub_epi32(both[i], kept), 16);
		lack = _mm_or_si128(lack, _mm_slli_epi32(_mm_and_si128(less, _mm_set1_epi32(15)), 4*i));
	}
	UNROLL for (int i = 0; i < 4; i++) x_put(n, line + 4*tokens*(4 + i), x_pairs(both[2*i], both[2*i + 1]));
	x_put(n, to + mul_strip_d(256, (size_t)tokens), d);
	x_put(n, to + mul_strip_lack((size_t)tokens), lack);
	UNROLL for (int i = 0; i < 16; i++) own = _mm_add_epi32(own, s[i].own);
	if (crossed) x_put(n, to + mul_strip_own(256, (size_t)tokens), own);
}
/* block must be a constant, since all loops are unrolled */
INLINE void strip_block(int tokens, int crossed, const struct narrow *q, size_t block, char *to)
{
	for (int t = 0; t < tokens; t += 4, q += 4, to += 16) {
		const int n = tokens - t < 4 ? 2 : 4;
		const __m128 d = _mm_setr_ps(q[0].d, q[1].d, n == 4 ? q[2].d : 0, n == 4 ? q[3].d : 0);
		struct sixteen s[16];
		UNROLL for (int i = 0; i < (int)block/16; i++)
			s[i] = tokens == 2 ? put_short_lines(crossed, q, 16*i, to + 64*i) :
				put_lines(n, tokens, crossed, q, 16*i, to + 32*(size_t)tokens*i);
		if (block == 32) end_32(n, tokens, crossed, s, _mm_castps_si128(d), to);
		else end_256(n, tokens, crossed, s, _mm_castps_si128(d), to);
	}
}
/* Stores a block of a strip of `tokens`. */
INLINE void strip_of(int tokens, int crossed, const struct narrow *q, size_t block, char *to)
{
	if (block == 32) strip_block(tokens, crossed, q, 32, to);
	else strip_block(tokens, crossed, q, 256, to);
}
