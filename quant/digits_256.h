/* SPDX-License-Identifier: MIT
 * digits_256.h - the vocabulary of digits_text.h in registers of 32 bytes. The instance gives i_madd(a, u, v): a +=
 * pairs of products of 16 int16. */
#include "bytes_avx2.h"
#include "digits.h"

#define INLINE static inline __attribute__((always_inline))
typedef struct { __m256i a, b; } c64;   /* 64 codes, columns in order */
typedef __m256i isum;
typedef struct { __m256i q[4]; } factors;        /* of 128 codes: a word for each pair */
INLINE isum i_madd(isum a, __m256i u, __m256i v);

INLINE __m256i y_load(const void *p) { return _mm256_loadu_si256(p); }
INLINE __m256i y_twice(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); }
INLINE __m256i y_set(int n) { return _mm256_set1_epi8((char)n); }
INLINE c64 c_load(const void *p) { return (c64){ y_load(p), y_load((const char *)p + 32) }; }
INLINE c64 c_twice(const void *p) { return (c64){ y_load(p), y_load(p) }; }
/* 16 bytes twice, then the next 16 twice */
INLINE c64 c_quarters(const void *p) { return (c64){ y_twice(p), y_twice((const char *)p + 16) }; }
INLINE __m256i y_move(__m256i a, int n)
{
	return n == 0 ? a : n > 0 ? _mm256_srli_epi16(a, n) : _mm256_slli_epi16(a, -n);
}
/* Words of the first half moved right by a, of the second half by b; negative: left */
INLINE c64 c_move(c64 c, int a, int b) { return (c64){ y_move(c.a, a), y_move(c.b, b) }; }
/* Words of odd quarters moved right by 4, with what comes in from the byte above */
INLINE c64 c_nibbles(c64 c)
{
	const __m256i by = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
	return (c64){ _mm256_srlv_epi32(c.a, by), _mm256_srlv_epi32(c.b, by) };
}
INLINE c64 c_and(c64 c, int mask)
{
	return (c64){ _mm256_and_si256(c.a, y_set(mask)), _mm256_and_si256(c.b, y_set(mask)) };
}
INLINE c64 c_or(c64 a, c64 b) { return (c64){ _mm256_or_si256(a.a, b.a), _mm256_or_si256(a.b, b.b) }; }
/* a where a bit of the mask is set, else b */
INLINE c64 c_select(c64 a, c64 b, int mask) { return c_or(c_and(a, mask), c_and(b, ~mask)); }
INLINE c64 c_level(__m128i table, c64 c)
{
	__m256i t = _mm256_broadcastsi128_si256(table);
	return (c64){ _mm256_shuffle_epi8(t, c.a), _mm256_shuffle_epi8(t, c.b) };
}
INLINE __m256i y_signed(__m256i c, uint32_t signs, int bias)
{
	__m256i m = (__m256i)b_mask(signs);
	return _mm256_add_epi8(_mm256_xor_si256(c, m), _mm256_sub_epi8(y_set(bias), m));
}
/* bias + c, or bias - c where a sign is set */
INLINE c64 c_signed(c64 c, uint64_t signs, int bias)
{
	return (c64){ y_signed(c.a, (uint32_t)signs, bias), y_signed(c.b, (uint32_t)(signs >> 32), bias) };
}
/* c + n where a bit is set */
INLINE c64 c_more(c64 c, uint64_t bits, int n)
{
	return (c64){ _mm256_add_epi8(c.a, _mm256_and_si256((__m256i)b_mask((uint32_t)bits), y_set(n))),
		_mm256_add_epi8(c.b, _mm256_and_si256((__m256i)b_mask((uint32_t)(bits >> 32)), y_set(n))) };
}
INLINE c64 c_of(__m256i a, __m256i b) { return (c64){ a, b }; }
INLINE c64 c_join(__m128i a, __m128i b, __m128i c, __m128i d)
{
	return (c64){ _mm256_set_m128i(b, a), _mm256_set_m128i(d, c) };
}
INLINE __m256i y_scale(__m256i sc, int j)
{
	const long long first = 0x0100010001000100, second = 0x0302030203020302;
	const __m256i pair = _mm256_setr_epi64x(first, first, second, second);
	__m256i half = j < 4 ? _mm256_permute2x128_si256(sc, sc, 0) : _mm256_permute2x128_si256(sc, sc, 0x11);
	return _mm256_shuffle_epi8(half, _mm256_add_epi8(pair, y_set(4*(j%4))));
}
INLINE factors c_factors(__m256i sc, int k)
{
	return (factors){ { y_scale(sc, 4*k), y_scale(sc, 4*k + 1), y_scale(sc, 4*k + 2), y_scale(sc, 4*k + 3) } };
}
INLINE isum i_zero(void) { return _mm256_setzero_si256(); }
typedef struct { const int8_t *x; } digits256;  /* where they lie: registers are too few */
INLINE digits256 d_load(const int8_t *p) { return (digits256){ p }; }
INLINE __m256i x_load(const int8_t *x) { return _mm256_load_si256((const void *)x); }
INLINE isum i_pairs(isum a, __m256i c, const int8_t *x, __m256i sc)
{
	return i_madd(a, _mm256_maddubs_epi16(c, x_load(x)), sc);
}
/* += codes of half k times digits of activations times scales */
INLINE isum i_scaled(isum a, c64 c, c64 d, digits256 x, int k, factors sc)
{
	a = i_pairs(i_pairs(a, c.a, x.x + 128*k, sc.q[0]), c.b, x.x + 128*k + 32, sc.q[1]);
	return i_pairs(i_pairs(a, d.a, x.x + 128*k + 64, sc.q[2]), d.b, x.x + 128*k + 96, sc.q[3]);
}
/* 64*high + low, in eight lanes */
INLINE __m256i i_value(isum high, isum low) { return _mm256_add_epi32(_mm256_slli_epi32(high, 6), low); }

/* ---- blocks of 32 ---- */

enum { STEPS = 2 };                     /* registers to a unit */
typedef __m256i p_reg;                  /* 16 bytes of each of two blocks */
INLINE p_reg p_load(const char *p, size_t stride)
{
	return _mm256_set_m128i(_mm_loadu_si128((const void *)(p + stride)), _mm_loadu_si128((const void *)p));
}
/* Sixteens at p, p + inner */
INLINE p_reg p_gather(const char *p, size_t inner, size_t outer) { (void)outer; return p_load(p, inner); }
/* The lower and the upper eights of a, then of b, in each sixteen */
INLINE p_reg p_lower(p_reg a, p_reg b) { return _mm256_unpacklo_epi64(a, b); }
INLINE p_reg p_upper(p_reg a, p_reg b) { return _mm256_unpackhi_epi64(a, b); }
/* Four bytes for each block, lowest first, four times over */
INLINE p_reg p_fours(const void *p, int j)
{
	const __m256i at = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
	__m256i x = _mm256_castsi128_si256(_mm_loadu_si128(p));
	return _mm256_permutevar8x32_epi32(x, _mm256_add_epi32(at, _mm256_set1_epi32(2*j)));
}
INLINE p_reg p_none(void) { return _mm256_setzero_si256(); }
INLINE p_reg p_low(p_reg a) { return _mm256_and_si256(a, y_set(15)); }
INLINE p_reg p_high(p_reg a) { return _mm256_and_si256(_mm256_srli_epi16(a, 4), y_set(15)); }
INLINE p_reg p_add(p_reg a, int n) { return _mm256_add_epi8(a, y_set(n)); }
INLINE p_reg p_level(__m128i table, p_reg a) { return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), a); }
/* a | n where the bit is set: of bytes 2*half and 2*half + 1 of each sixteen, the lowest first */
INLINE p_reg p_bits(p_reg a, p_reg bits, int half, int n)
{
	const __m256i spread = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0101010101010101, 0)),
		bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	__m256i b = _mm256_shuffle_epi8(bits, _mm256_add_epi8(spread, y_set(2*half)));
	b = _mm256_cmpeq_epi8(_mm256_and_si256(b, bit), bit);
	return _mm256_add_epi8(a, _mm256_and_si256(b, y_set(n)));
}
typedef struct { __m256i high[2], low[2]; } digits32;
INLINE digits32 p_digits(const struct strip32 *x, int j)
{
	const int8_t *high = x->high + 32*j, *low = x->low + 32*j;
	return (digits32){ { x_load(high), x_load(high + 64) }, { x_load(low), x_load(low + 64) } };
}
INLINE __m256i p_pairs(p_reg a, p_reg b, const __m256i *x)
{
	return _mm256_add_epi16(_mm256_maddubs_epi16(a, x[0]), _mm256_maddubs_epi16(b, x[1]));
}
INLINE isum p_dot(p_reg a, p_reg b, digits32 x)
{
	isum s = _mm256_madd_epi16(p_pairs(a, b, x.high), _mm256_set1_epi16(64));
	return i_madd(s, p_pairs(a, b, x.low), _mm256_set1_epi16(1));
}
/* The first sixteens or the second ones alone */
INLINE isum p_dot_half(p_reg a, __m256i high, __m256i low)
{
	isum s = _mm256_madd_epi16(_mm256_maddubs_epi16(a, high), _mm256_set1_epi16(64));
	return i_madd(s, _mm256_maddubs_epi16(a, low), _mm256_set1_epi16(1));
}
INLINE void p_store(int32_t *to, isum s) { _mm256_store_si256((void *)to, s); }
