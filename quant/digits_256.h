/* SPDX-License-Identifier: MIT
 * digits_256.h - the vocabulary of digits_text.h in registers of 32 bytes. The instance gives i_madd(a, u, v): a +=
 * pairs of products of 16 int16. */
#include "bytes_avx2.h"
#include "digits.h"
#include "unpack.h"

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
INLINE __m256i y_two(const char *p, const char *q)
{
	return _mm256_set_m128i(_mm_loadu_si128((const void *)q), _mm_loadu_si128((const void *)p));
}
/* 32 bytes at p, 32 at q */
INLINE c64 c_both(const void *p, const void *q) { return (c64){ y_load(p), y_load(q) }; }
/* Of four times 32 bytes, the first sixteens and the second ones */
INLINE void c_fourths(const void *from, c64 *first, c64 *second)
{
	const char *p = from;
	*first = (c64){ y_two(p, p + 32), y_two(p + 64, p + 96) };
	*second = (c64){ y_two(p + 16, p + 48), y_two(p + 80, p + 112) };
}
/* 16 bytes four times: of quarter q bit 2*q at 4, bit 2*q + 1 at 5 */
INLINE c64 c_fifths(const void *p)
{
	return (c64){ _mm256_sllv_epi32(y_twice(p), _mm256_setr_epi32(4, 4, 4, 4, 2, 2, 2, 2)),
		_mm256_srlv_epi32(y_twice(p), _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2)) };
}
INLINE __m256i y_move(__m256i a, int n)
{
	return n == 0 ? a : n > 0 ? _mm256_srli_epi16(a, n) : _mm256_slli_epi16(a, -n);
}
/* Words of the first half moved right by a, of the second half by b; negative: left */
INLINE c64 c_move(c64 c, int a, int b) { return (c64){ y_move(c.a, a), y_move(c.b, b) }; }
INLINE c64 c_right(c64 c, int n) { return c_move(c, n, n); }
INLINE c64 c_left(c64 c, int n) { return c_move(c, -n, -n); }
INLINE c64 c_and(c64 c, int mask)
{
	return (c64){ _mm256_and_si256(c.a, y_set(mask)), _mm256_and_si256(c.b, y_set(mask)) };
}
INLINE c64 c_or(c64 a, c64 b) { return (c64){ _mm256_or_si256(a.a, b.a), _mm256_or_si256(a.b, b.b) }; }
/* a where a bit of the mask is set, else b */
INLINE c64 c_select(c64 a, c64 b, int mask) { return c_or(c_and(a, mask), c_and(b, ~mask)); }
/* (c & mask) | n */
INLINE c64 c_and_or(c64 c, int mask, int n) { return c_or(c_and(c, mask), (c64){ y_set(n), y_set(n) }); }
/* (a & of_a) | (b & of_b) */
INLINE c64 c_merge(c64 a, int of_a, c64 b, int of_b) { return c_or(c_and(a, of_a), c_and(b, of_b)); }
/* + four bytes, lowest first */
INLINE c64 c_add(c64 c, int n)
{
	__m256i a = _mm256_set1_epi32(n);
	return (c64){ _mm256_add_epi8(c.a, a), _mm256_add_epi8(c.b, a) };
}
INLINE c64 c_less(c64 a, c64 b) { return (c64){ _mm256_sub_epi8(a.a, b.a), _mm256_sub_epi8(a.b, b.b) }; }
/* The lower and the upper two of four bytes of a, b in turn, in each sixteen; its lower eight twice */
INLINE c64 c_lower(c64 a, c64 b)
{
	return (c64){ _mm256_unpacklo_epi32(a.a, b.a), _mm256_unpacklo_epi32(a.b, b.b) };
}
INLINE c64 c_upper(c64 a, c64 b)
{
	return (c64){ _mm256_unpackhi_epi32(a.a, b.a), _mm256_unpackhi_epi32(a.b, b.b) };
}
INLINE c64 c_low_twice(c64 c) { return (c64){ _mm256_unpacklo_epi64(c.a, c.a), _mm256_unpacklo_epi64(c.b, c.b) }; }
/* Each of sixteen bytes times the four of n, which is hidden lest the compiler shift and add */
INLINE c64 c_times(__m128i a, int n)
{
	__m256i b = _mm256_set1_epi32(n);
	__asm__("" : "+x"(b));
	return (c64){ _mm256_mullo_epi32(_mm256_cvtepu8_epi32(a), b),
		_mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(a, 8)), b) };
}
INLINE c64 c_look(c64 table, c64 c)
{
	return (c64){ _mm256_shuffle_epi8(table.a, c.a), _mm256_shuffle_epi8(table.b, c.b) };
}
INLINE c64 c_shuffle(c64 c, __m128i at)
{
	__m256i a = _mm256_broadcastsi128_si256(at);
	return (c64){ _mm256_shuffle_epi8(c.a, a), _mm256_shuffle_epi8(c.b, a) };
}
INLINE c64 c_level(__m128i table, c64 c)
{
	__m256i t = _mm256_broadcastsi128_si256(table);
	return (c64){ _mm256_shuffle_epi8(t, c.a), _mm256_shuffle_epi8(t, c.b) };
}
INLINE __m256i y_scale(__m256i sc, int j)
{
	const long long first = 0x0100010001000100, second = 0x0302030203020302;
	const __m256i pair = _mm256_setr_epi64x(first, first, second, second);
	__m256i half = j < 4 ? _mm256_permute2x128_si256(sc, sc, 0) : _mm256_permute2x128_si256(sc, sc, 0x11);
	return _mm256_shuffle_epi8(half, _mm256_add_epi8(pair, y_set(4*(j%4))));
}
INLINE factors c_factors(__m256i sc, enum digits_order order, int k)
{
	if (order == ORDER_HALVES)
		return (factors){ { y_scale(sc, 2*k), y_scale(sc, 2*k + 4), y_scale(sc, 2*k + 1),
			y_scale(sc, 2*k + 5) } };
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
/* Four integers, each as the words of a quarter, and four more */
typedef struct { __m256i f[2][2]; } chain;
INLINE chain c_chain(__m256i sc)
{
	const __m256i a = _mm256_setr_epi64x(0x0100010001000100, 0x0100010001000100, 0x0504050405040504,
			0x0504050405040504), b = _mm256_add_epi8(a, y_set(8));
	__m256i first = _mm256_permute4x64_epi64(sc, 0x44), second = _mm256_permute4x64_epi64(sc, 0xee);
	return (chain){ { { _mm256_shuffle_epi8(first, a), _mm256_shuffle_epi8(first, b) },
		{ _mm256_shuffle_epi8(second, a), _mm256_shuffle_epi8(second, b) } } };
}
INLINE isum i_chain(isum s, __m256i a, __m256i b, const int8_t *x, __m256i f)
{
	__m256i p = _mm256_add_epi16(_mm256_maddubs_epi16(a, x_load(x)), _mm256_maddubs_epi16(b, x_load(x + 64)));
	return i_madd(s, p, f);
}
/* The sums of c[0] and c[1], and of c[2] and c[3], times f, in eight lanes */
INLINE __m256i i_chains(const c64 *c, digits256 high, digits256 low, chain f)
{
	isum h = i_zero(), l = i_zero();
	UNROLL for (int i = 0; i < 2; i++) {
		h = i_chain(h, c[2*i].a, c[2*i + 1].a, high.x + 128*i, f.f[i][0]);
		h = i_chain(h, c[2*i].b, c[2*i + 1].b, high.x + 128*i + 32, f.f[i][1]);
		l = i_chain(l, c[2*i].a, c[2*i + 1].a, low.x + 128*i, f.f[i][0]);
		l = i_chain(l, c[2*i].b, c[2*i + 1].b, low.x + 128*i + 32, f.f[i][1]);
	}
	return i_value(h, l);
}
/* Sums of the products of four registers with digits, as words or already as integers */
INLINE isum i_bytes(const c64 *c, const int8_t *x, int most, int by)
{
	const __m256i f = _mm256_set1_epi16((short)by);
	isum s = i_zero();
	__m256i p = i_zero();
	UNROLL for (int i = 0; i < 4; i++) {
		__m256i q = _mm256_add_epi16(_mm256_maddubs_epi16(c[i].a, x_load(x + 64*i)),
			_mm256_maddubs_epi16(c[i].b, x_load(x + 64*i + 32)));
		if (most*16*32 < 32768) p = _mm256_add_epi16(p, q);
		else s = i_madd(s, q, f);
	}
	return most*16*32 < 32768 ? i_madd(s, p, f) : s;
}
/* The sums of all codes, which are at most `most`, in eight lanes */
INLINE __m256i i_tabled(const c64 *c, digits256 high, digits256 low, int most)
{
	return _mm256_add_epi32(i_bytes(c, high.x, most, 64), i_bytes(c, low.x, most, 1));
}

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
/* Four elements of two bits to a byte, 16 bytes: the first sixteens of their two blocks, and the second ones */
INLINE p_reg p_two_bits(const char *p)
{
	__m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
	x = _mm256_or_si256(x, _mm256_slli_epi32(x, 12));
	return _mm256_and_si256(_mm256_or_si256(x, _mm256_slli_epi32(x, 6)), y_set(3));
}
INLINE void p_spread(const char *p, size_t stride, p_reg *a, p_reg *b)
{
	p_reg x = p_two_bits(p), y = p_two_bits(p + 8);
	(void)stride;
	*a = _mm256_permute2x128_si256(x, y, 0x20);
	*b = _mm256_permute2x128_si256(x, y, 0x31);
}
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

/* ---- sums, eight rows side by side ---- */

enum { ROWS = 8 };
typedef __m256 vf;
typedef __m256i vi;
struct two { vf d, m; };
INLINE vf v_from(const float *p) { return _mm256_load_ps(p); }
INLINE void v_to(float *p, vf a) { _mm256_store_ps(p, a); }
INLINE vi v_load(const void *p) { return _mm256_load_si256(p); }
INLINE vf v_all(float a) { return _mm256_set1_ps(a); }
INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf v_floats(vi a) { return _mm256_cvtepi32_ps(a); }
INLINE vf v_negative(vf a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
INLINE vi v_less(vi a, int32_t n) { return _mm256_sub_epi32(a, _mm256_set1_epi32(n)); }
INLINE vf v_order(vf a) { return a; }           /* of rows in v_fours and v_turn, and back */
INLINE vf v_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_load_si128((const void *)p)); }
/* Pairs of halves, d below */
INLINE struct two v_pairs(vi a)
{
	vi p = _mm256_packus_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(a, 16));
	p = _mm256_permute4x64_epi64(p, 0xd8);
	return (struct two){ _mm256_cvtph_ps(_mm256_castsi256_si128(p)),
		_mm256_cvtph_ps(_mm256_extracti128_si256(p, 1)) };
}
INLINE vi v_right(vi a, int n) { return _mm256_srli_epi32(a, n); }
/* mxfp4_scale */
INLINE vf v_exponent(vi e)
{
	vi low = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e),
		some = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
	return _mm256_blendv_ps((vf)some, (vf)low, (vf)_mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
}
/* nvfp4_scale of the lowest bytes: 7 bits where a float has its exponent and mantissa, 119 powers of two too small */
INLINE vf v_small(vi a)
{
	vi top = _mm256_cmpeq_epi32(_mm256_and_si256(a, _mm256_set1_epi32(255)), _mm256_set1_epi32(127));
	vi x = _mm256_slli_epi32(_mm256_and_si256(a, _mm256_set1_epi32(127)), 20);
	return _mm256_mul_ps((vf)_mm256_andnot_si256(top, x), _mm256_set1_ps(0x1p119f));
}
INLINE vi halves32(vi a, vi b) { return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)); }
INLINE vi halves64(vi a, vi b) { return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)); }
/* In each half, the sums over the lanes of four registers' same half */
INLINE vi four(vi a, vi b, vi c, vi d) { return halves64(halves32(a, b), halves32(c, d)); }
INLINE vi four_at(const int32_t *p, size_t stride)
{
	return four(v_load(p), v_load(p + stride), v_load(p + 2*stride), v_load(p + 3*stride));
}
/* Sums of eight lanes of each row */
INLINE vi v_eights(const int32_t *p)
{
	vi a = four_at(p, 8), b = four_at(p + 32, 8);
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
/* Sums of eight minima of each row times those of activations */
INLINE vi v_minima(const uint8_t *m, const int16_t *first, const int16_t *second)
{
	const vi u = y_twice(first), v = y_twice(second);
	vi s[4];
	UNROLL for (int i = 0; i < 4; i++) {
		vi w = _mm256_cvtepu8_epi16(_mm_load_si128((const void *)(m + 16*i)));
		s[i] = _mm256_add_epi32(_mm256_madd_epi16(w, u), _mm256_madd_epi16(w, v));
	}
	return _mm256_permutevar8x32_epi32(four(s[0], s[1], s[2], s[3]), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/* The same of sixteen each, in the upper halves of bytes */
INLINE vi v_minima16(const uint8_t *m, const int16_t *sum)
{
	vi s[8], a, b;
	UNROLL for (int r = 0; r < 8; r++) {
		vi w = _mm256_srli_epi16(_mm256_cvtepu8_epi16(_mm_load_si128((const void *)(m + 16*r))), 4);
		s[r] = _mm256_madd_epi16(w, y_load(sum));
	}
	a = four(s[0], s[1], s[2], s[3]);
	b = four(s[4], s[5], s[6], s[7]);
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
/* Sums of four lanes: of four blocks of each row */
INLINE void v_fours(const int32_t *p, vi *to)
{
	UNROLL for (int i = 0; i < 2; i++) {
		vi a = four_at(p + 8*i, 16), b = four_at(p + 8*i + 64, 16);
		to[2*i] = _mm256_permute2x128_si256(a, b, 0x20);
		to[2*i + 1] = _mm256_permute2x128_si256(a, b, 0x31);
	}
}
/* Four of each row: column i to to[i] */
INLINE void v_turn(const void *p, vi *to)
{
	const char *row = p;
	vi a[4], b[4];
	UNROLL for (int r = 0; r < 4; r++) a[r] = y_two(row + 16*r, row + 16*r + 64);
	b[0] = _mm256_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm256_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm256_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm256_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm256_unpacklo_epi64(b[0], b[2]);
	to[1] = _mm256_unpackhi_epi64(b[0], b[2]);
	to[2] = _mm256_unpacklo_epi64(b[1], b[3]);
	to[3] = _mm256_unpackhi_epi64(b[1], b[3]);
}
/* The same of halves */
INLINE void v_turn_halves(const uint16_t *p, vf *to)
{
	const __m128i by = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
	__m128i a[4], b[4];
	UNROLL for (int r = 0; r < 4; r++) a[r] = _mm_shuffle_epi8(_mm_load_si128((const __m128i *)p + r), by);
	b[0] = _mm_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm256_cvtph_ps(_mm_unpacklo_epi64(b[0], b[2]));
	to[1] = _mm256_cvtph_ps(_mm_unpackhi_epi64(b[0], b[2]));
	to[2] = _mm256_cvtph_ps(_mm_unpacklo_epi64(b[1], b[3]));
	to[3] = _mm256_cvtph_ps(_mm_unpackhi_epi64(b[1], b[3]));
}
