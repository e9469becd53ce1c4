/* SPDX-License-Identifier: MIT
 * digits_256.h - the vocabulary of digits_text.h in registers of 32 bytes. The instance first includes ymm_ISA.h,
 * and gives
 *   v_dots(s, c, n, high, low, most)        s += products of n registers of codes, at most `most`, with digits of four
 *                                           columns each, 64*high + low */
#include "bytes_avx2.h"
#include "digits.h"
#include "unpack.h"

typedef struct { __m256i a, b; } c64;   /* 64 codes, columns in order */
typedef __m256i isum;

INLINE c64 c_load(const void *p) { return (c64){ y_load(p), y_load((const char *)p + 32) }; }
INLINE c64 c_four_times(const void *p) { return (c64){ y_twice(p), y_twice(p) }; }
/* 32 bytes at p, 32 at q, in ORDER_EIGHTS */
INLINE c64 y_eights(__m256i a, __m256i b) { return (c64){ _mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b) }; }
INLINE c64 c_both(const void *p, const void *q) { return y_eights(y_load(p), y_load(q)); }
/* 32 bytes at p, and the same moved right by four */
INLINE c64 c_nibbles(const void *p) { return (c64){ y_load(p), _mm256_srli_epi16(y_load(p), 4) }; }
/* Of four times 32 bytes, the first sixteens and the second sixteens, in ORDER_FOURTH_EIGHTS */
#define ORDER_CHAINS ORDER_FOURTH_EIGHTS
INLINE void c_fourths(const void *from, c64 *first, c64 *second)
{
	const char *p = from;
	*first = y_eights(y_two(p, p + 32), y_two(p + 64, p + 96));
	*second = y_eights(y_two(p + 16, p + 48), y_two(p + 80, p + 112));
}
INLINE c64 c_look(c64 table, c64 c)
{
	return (c64){ _mm256_shuffle_epi8(table.a, c.a), _mm256_shuffle_epi8(table.b, c.b) };
}
/* 16 bytes four times, in the same order: 16 times bit 2*q of quarter q, and bit 2*q + 1. The lower half of a byte has
 * those of quarters 0 and 1, the upper half those of 2 and 3. */
INLINE void c_fifths(const void *p, c64 *even, c64 *odd)
{
	const __m256i x = y_twice(p), lower = _mm256_and_si256(x, y_bytes(15)),
		upper = _mm256_and_si256(_mm256_srli_epi16(x, 4), y_bytes(15)),
		e = _mm256_setr_epi32(0x10001000, 0x10001000, 0x10001000, 0x10001000,
			0, 0x10101010, 0, 0x10101010),
		o = _mm256_setr_epi32(0x10100000, 0x10100000, 0x10100000, 0x10100000,
			0, 0, 0x10101010, 0x10101010);
	const c64 k = y_eights(lower, upper);
	*even = c_look((c64){ e, e }, k);
	*odd = c_look((c64){ o, o }, k);
}
INLINE __m256i y_move(__m256i a, int n)
{
	return n == 0 ? a : n > 0 ? _mm256_srli_epi16(a, n) : _mm256_slli_epi16(a, -n);
}
/* Words of the first half moved right by a, of the second half by b; negative: left */
INLINE c64 c_move(c64 c, int a, int b) { return (c64){ y_move(c.a, a), y_move(c.b, b) }; }
INLINE c64 c_right(c64 c, int n) { return c_move(c, n, n); }
INLINE c64 c_and(c64 c, int mask)
{
	return (c64){ _mm256_and_si256(c.a, y_bytes(mask)), _mm256_and_si256(c.b, y_bytes(mask)) };
}
INLINE c64 c_or(c64 a, c64 b) { return (c64){ _mm256_or_si256(a.a, b.a), _mm256_or_si256(a.b, b.b) }; }
/* (a & of_a) | b, and (a & of_a) | (b & of_b) */
INLINE c64 c_join(c64 a, int of_a, c64 b) { return c_or(c_and(a, of_a), b); }
INLINE c64 c_merge(c64 a, int of_a, c64 b, int of_b) { return c_join(a, of_a, c_and(b, of_b)); }
/* The levels of the lower halves of bytes, ignoring the upper halves */
INLINE c64 c_level(__m128i table, c64 c)
{
	const __m256i t = _mm256_broadcastsi128_si256(table);
	c = c_and(c, 15);
	return (c64){ _mm256_shuffle_epi8(t, c.a), _mm256_shuffle_epi8(t, c.b) };
}
INLINE isum i_zero(void) { return _mm256_setzero_si256(); }
typedef struct { const int8_t *x; } digits256;  /* in memory, as there are too few registers */
INLINE digits256 d_load(const int8_t *p) { return (digits256){ p }; }
INLINE __m256i x_load(const int8_t *x) { return _mm256_load_si256((const void *)x); }
/* Sums of lanes two apart of a, next to those of b */
INLINE __m256i halves32(__m256i a, __m256i b)
{
	return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
/* 64*high + low, in eight lanes */
INLINE __m256i i_value(isum high, isum low) { return _mm256_add_epi32(_mm256_slli_epi32(high, 6), low); }
/* Codes times digits at x and `next` after it, in words */
INLINE __m256i i_two(__m256i a, __m256i b, const int8_t *x, int next)
{
	return _mm256_add_epi16(_mm256_maddubs_epi16(a, x_load(x)), _mm256_maddubs_epi16(b, x_load(x + next)));
}
/* Both digits' sums of a and b, times words f */
INLINE void i_chain(isum *s, __m256i a, __m256i b, const int8_t *high, const int8_t *low, int next, __m256i f)
{
	s[0] = i_madd(s[0], i_two(a, b, high, next), f);
	s[1] = i_madd(s[1], i_two(a, b, low, next), f);
}
#define ORDER_SIXTEENS ORDER_EIGHTS
/* The scales of sixteens as words, the even ones before the odd ones, and the sums of these sixteens */
INLINE __m256i i_scales(__m128i sc)
{
	return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(sc, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11,
		13, 15)));
}
INLINE __m256i i_sums(const struct strip256 *x) { return _mm256_load_si256((const void *)x->first); }
/* The scales for register i of Q6_K's codes */
INLINE __m256i i_scales_at(__m256i sc, int i)
{
	const long long first = 0x0100010001000100, second = 0x0908090809080908;
	const __m256i at = _mm256_setr_epi64x(first, second, first, second);
	return _mm256_shuffle_epi8(sc, _mm256_add_epi8(at, y_bytes(2*i)));
}
/* Keeps what is made of a from being made earlier. */
INLINE void c_stay(c64 *a) { __asm__("" : "+x"(a->a), "+x"(a->b)); }
INLINE void i_stay(isum *s) { __asm__("" : "+x"(s[0]), "+x"(s[1])); }
#define DIGITS_STEPS
/* Codes times digits at x and after it, in words: four registers at places `next` apart */
INLINE __m256i i_four(__m256i a, __m256i b, __m256i c, __m256i d, const int8_t *x, int next)
{
	return _mm256_add_epi16(i_two(a, b, x, next), i_two(c, d, x + 2*next, next));
}
/* The sums of c[0] and c[1], and of c[2] and c[3], times four bytes each, in eight lanes, with digits of
 * ORDER_FOURTH_EIGHTS: each of four registers has eight codes of a sub-block. */
INLINE __m256i i_chains8(const c64 *c, digits256 high, digits256 low, const uint8_t *sc)
{
	const __m256i four = y_twice(sc), words = _mm256_setr_epi32((int)0x80008000, (int)0x80008000, (int)0x80028002,
			(int)0x80028002, (int)0x80018001, (int)0x80018001, (int)0x80038003, (int)0x80038003);
	isum s[2] = { i_zero(), i_zero() };
	UNROLL for (int i = 0; i < 2; i++) {
		const __m256i f = _mm256_shuffle_epi8(four, _mm256_add_epi8(words, y_bytes(4*i)));
		const c64 u = c[2*i], v = c[2*i + 1];
		s[0] = i_madd(s[0], i_four(u.a, u.b, v.a, v.b, high.x + 128*i, 32), f);
		s[1] = i_madd(s[1], i_four(u.a, u.b, v.a, v.b, low.x + 128*i, 32), f);
	}
	return _mm256_add_epi32(_mm256_slli_epi32(s[0], 8), s[1]);
}
#define ORDER_Q4_K ORDER_CHAINS
#define i_q4_k i_chains8
INLINE c64 c_upper(c64 c) { return c_and(c_right(c, 4), 15); }

/* ---- Q3_K, and Q2_K for one token, in ORDER_LANES: a lane is a sixteen, and four registers have its codes. a: of the
 * first 128 columns, b: of the others. For more tokens, Q2_K's code times scale is looked up in a table for each
 * sixteen bytes, so that no sum needs scaling. ---- */

/* Four bytes of each of two sixteens: the i-th of a's in the first two lanes, of b's in the others */
INLINE __m256i y_fours(__m256i a, __m256i b, int i)
{
	const __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
	return _mm256_castps_si256(i == 0 ? _mm256_shuffle_ps(x, y, 0x00) : i == 1 ? _mm256_shuffle_ps(x, y, 0x55) :
		i == 2 ? _mm256_shuffle_ps(x, y, 0xaa) : _mm256_shuffle_ps(x, y, 0xff));
}
/* Halves of bytes have codes of sixteens that are 4 apart, those of even and odd sixteens that are 2 apart. Even lanes
 * keep the lower halves' codes, odd lanes those of the upper ones, 16 times too large. bits: what a lane keeps */
INLINE void c_lanes(c64 even, c64 odd, __m256i bits, c64 *c)
{
	UNROLL for (int i = 0; i < 4; i++)
		c[i] = (c64){ _mm256_and_si256(y_fours(even.a, odd.a, i), bits),
			_mm256_and_si256(y_fours(even.b, odd.b, i), bits) };
}
/* The sums of codes of at most 7, times words of scales. Words hold eight products: 8*16*7*32 = 28672. */
INLINE __m256i i_lanes(const c64 *c, digits256 high, digits256 low, __m256i first, __m256i second)
{
	isum s[2];
	UNROLL for (int i = 0; i < 2; i++) {
		const int8_t *x = i ? low.x : high.x;
		s[i] = i_madd(i_zero(), i_four(c[0].a, c[1].a, c[2].a, c[3].a, x, 64), first);
		s[i] = i_madd(s[i], i_four(c[0].b, c[1].b, c[2].b, c[3].b, x + 32, 64), second);
	}
	return _mm256_srav_epi32(i_value(s[0], s[1]), y_load(quant_q3_k.four));
}
#define ORDER_Q3_K ORDER_LANES
INLINE __m256i y_and(__m256i a, const uint64_t *bits) { return _mm256_and_si256(a, y_load(bits)); }
INLINE __m256i y_shuffle(__m256i a, const uint64_t *at) { return _mm256_shuffle_epi8(a, y_load(at)); }
/* Codes have a bias of 4. Their upper bits are joined to the lower two by tables of halves of hmask's bytes: bits 0 and
 * 2 move to 2 and 6, or bits 1 and 3. */
INLINE __m256i q3_k_joined(__m256i lower, const uint64_t *table, __m256i half)
{
	return _mm256_or_si256(y_and(lower, quant_q3_k.pair), _mm256_shuffle_epi8(y_load(table), half));
}
INLINE void c_q3_k(const struct q3_k *b, c64 *c)
{
	const uint64_t *even = quant_q3_k.even, *odd = quant_q3_k.odd;
	const c64 x = c_load(b->qs), y = c_right(x, 2), h = c_nibbles(b->hmask);
	const __m256i first = y_and(h.a, quant_q3_k.half), second = y_and(h.b, quant_q3_k.half);
	c_lanes((c64){ q3_k_joined(x.a, even, first), q3_k_joined(x.b, even, second) },
		(c64){ q3_k_joined(y.a, odd, first), q3_k_joined(y.b, odd, second) }, y_load(quant_q3_k.three), c);
}
INLINE __m256i q3_k_words(__m128i sc) { return _mm256_cvtepi8_epi16(sc); }
INLINE __m256i i_threes(const c64 *c, digits256 high, digits256 low, __m256i sc)
{
	return i_lanes(c, high, low, y_shuffle(sc, quant_q3_k.first), y_shuffle(sc, quant_q3_k.second));
}
#define ORDER_Q2_K(n_tokens) ((n_tokens) == 1 ? ORDER_LANES : ORDER_HALVES)
INLINE void q2_k_lanes(const struct q2_k *b, c64 *c)
{
	const c64 x = c_load(b->qs);
	c_lanes(x, c_right(x, 2), y_each(_mm_setr_epi32(0x03030303, 0x30303030, 0x03030303, 0x30303030)), c);
}
INLINE __m256i q2_k_lanes_sum(const struct q2_k *b, const c64 *c, digits256 high, digits256 low)
{
	const __m256i at = _mm256_setr_epi32((int)0x80008000, (int)0x80048004, (int)0x80028002, (int)0x80068006,
			(int)0x80018001, (int)0x80058005, (int)0x80038003, (int)0x80078007),
		sc = _mm256_and_si256(y_twice(b->scales), y_bytes(15));
	return i_lanes(c, high, low, _mm256_shuffle_epi8(sc, at),
		_mm256_shuffle_epi8(sc, _mm256_add_epi8(at, y_bytes(8))));
}
/* In each quarter a table for sixteens k and k + 2 of its four in ORDER_HALVES: at index i the first one's scale times
 * i, at 4*i the other's */
INLINE __m256i y_tables(__m256i sc, int k)
{
	const __m256i at = _mm256_setr_epi32((int)0x80008000, (int)0x80808002, (int)0x80808002, (int)0x80808002,
			(int)0x81018101, (int)0x81818103, (int)0x81818103, (int)0x81818103),
		by = _mm256_setr_epi32(0x03020100, 1, 2, 3, 0x03020100, 1, 2, 3);
	return _mm256_mullo_epi16(_mm256_shuffle_epi8(sc, _mm256_add_epi8(at, y_bytes(k))), by);
}
INLINE c64 c_tables(c64 sc, int k) { return (c64){ y_tables(sc.a, k), y_tables(sc.b, k + 8) }; }
/* Codes are moved by four bits or not at all: a table is indexed by bits 0 and 1, or by bits 2 and 3. */
INLINE void q2_k_scaled(const struct q2_k *b, c64 *c)
{
	const c64 sc = c_and(c_four_times(b->scales), 15), t = c_tables(sc, 0), u = c_tables(sc, 4), x = c_load(b->qs),
		y = c_right(x, 4);
	c[0] = c_look(t, c_and(x, 3));
	c[1] = c_look(t, c_and(x, 12));
	c[2] = c_look(u, c_and(y, 3));
	c[3] = c_look(u, c_and(y, 12));
}
/* Words hold sixteen products of such codes, which are at most 63, with digits. */
INLINE __m256i q2_k_scaled_sum(const c64 *c, digits256 high, digits256 low)
{
	__m256i h = i_zero(), l = h;
	UNROLL for (int i = 0; i < 4; i++) {
		h = _mm256_add_epi16(h, i_two(c[i].a, c[i].b, high.x + 64*i, 32));
		l = _mm256_add_epi16(l, i_two(c[i].a, c[i].b, low.x + 64*i, 32));
	}
	return i_madd(i_madd(i_zero(), h, _mm256_set1_epi16(64)), l, _mm256_set1_epi16(1));
}
INLINE void c_q2_k(const struct q2_k *b, int n_tokens, c64 *c)
{
	if (n_tokens == 1) q2_k_lanes(b, c);
	else q2_k_scaled(b, c);
}
/* Each lane's sum is next to one of mins times sums of activations. */
INLINE __m256i i_q2_k(const struct q2_k *b, const c64 *c, int n_tokens, digits256 high, digits256 low,
	const struct strip256 *x)
{
	const __m256i minima = _mm256_srli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)b->scales)), 4),
		sum = n_tokens == 1 ? q2_k_lanes_sum(b, c, high, low) : q2_k_scaled_sum(c, high, low);
	return halves32(sum, _mm256_madd_epi16(minima, y_load(x->sum)));
}
INLINE void q2_k_minima(const struct q2_k *b, uint8_t *to) { (void)b; (void)to; }

/* ---- the first sixteen bytes of some rows' blocks ---- */

enum { HEADS = 2 };
typedef uint32_t heads __attribute__((vector_size(16*HEADS)));
INLINE heads h_load(const char *const *p) { return (heads)y_two(p[0], p[1]); }
INLINE heads h_minus(heads a, int n) { return (heads)_mm256_sub_epi8((__m256i)a, y_bytes(n)); }
INLINE heads h_each(__m128i a) { return (heads)_mm256_broadcastsi128_si256(a); }
INLINE heads h_shuffle(heads a, __m128i at) { return (heads)_mm256_shuffle_epi8((__m256i)a, (__m256i)h_each(at)); }
/* The scales of codec/q3_k.h, from the twelve bytes at the end of x: the even ones, then the odd ones */
INLINE heads q3_k_sixes(heads x)
{
	const struct q3_k_constants *k = &quant_q3_k;
	const __m256i low = _mm256_srlv_epi32(y_shuffle((__m256i)x, k->low), y_load(k->four)),
		up = _mm256_srli_epi16(_mm256_mullo_epi16(y_shuffle((__m256i)x, k->up), y_load(k->up_by)), 2);
	return (heads)_mm256_sub_epi8(_mm256_or_si256(y_and(low, k->half), y_and(up, k->up_bits)), y_load(k->bias));
}

/* ---- rows side by side ---- */

enum { ROWS = 8, SUPERS = 32, BY_ROWS = 1, READS = READS_32 };
#define DIGITS_Q8_0_ALONE NULL
#include "digits_rows.h"
typedef __m256i vi;                     /* a lane for each row */

/* Loads sixteen bytes of each row, as four integers. */
INLINE void v_four(const struct rows *w, int at, vi *to)
{
	vi a[4];
	UNROLL for (size_t k = 0; k < 4; k++) a[k] = y_two(row(w, k, at), row(w, k + 4, at));
	y_transpose(a, to);
}
/* Loads four bytes of each row. */
INLINE vi v_one(const struct rows *w, int at)
{
	return _mm256_set_m128i(four_rows(w, 4, at), four_rows(w, 0, at));
}
INLINE vi v_and(vi a, int n) { return _mm256_and_si256(a, y_bytes(n)); }
INLINE vi v_right(vi a, int n) { return _mm256_srli_epi32(a, n); }
INLINE vi v_down(vi a, int n) { return _mm256_srai_epi32(a, n); }
INLINE vi v_flip(vi a, int n) { return _mm256_xor_si256(a, y_bytes(n)); }
INLINE vi v_level(__m128i table, vi a)
{
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), v_and(a, 15));
}
INLINE vi v_none(void) { return _mm256_setzero_si256(); }
INLINE vi v_byte(vi a, int i) { return _mm256_and_si256(v_right(a, 8*i), _mm256_set1_epi32(255)); }
INLINE vi v_times(vi a, int n) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(n)); }
/* Bits 2*i and 2*i + 1 of the lowest byte at the end of byte i */
INLINE vi v_spread(vi a)
{
	a = _mm256_or_si256(a, _mm256_slli_epi32(a, 12));
	return _mm256_or_si256(a, _mm256_slli_epi32(a, 6));
}
/* c + n where the bit is set: of bits 4*j to 4*j + 3 of each lane */
INLINE vi v_bits(vi c, vi bits, int j, int n)
{
	const __m256i at = _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c)),
		bit = _mm256_set1_epi32(j%2 ? (int)0x80402010 : 0x08040201);
	__m256i b = _mm256_and_si256(_mm256_shuffle_epi8(bits, _mm256_add_epi8(at, y_bytes(j/2))), bit);
	return _mm256_or_si256(c, _mm256_and_si256(_mm256_cmpeq_epi8(b, bit), y_bytes(n)));
}
INLINE vi v_all32(const void *x)
{
	int32_t n;
	memcpy(&n, x, sizeof n);
	return _mm256_set1_epi32(n);
}
INLINE void v_store(int32_t *to, vi s) { _mm256_store_si256((void *)to, s); }

typedef __m256 vf;
struct two { vf d, m; };
INLINE vf v_from(const float *p) { return _mm256_load_ps(p); }
INLINE void v_to(float *p, vf a) { _mm256_store_ps(p, a); }
INLINE vi v_load(const void *p) { return _mm256_load_si256(p); }
INLINE vf v_all(float a) { return _mm256_set1_ps(a); }
INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE vf v_floats(vi a) { return _mm256_cvtepi32_ps(a); }
INLINE vf v_negative(vf a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
INLINE vf v_halves(const uint16_t *p) { return _mm256_cvtph_ps(_mm_load_si128((const void *)p)); }
/* Pairs of halves, d below */
INLINE struct two v_pairs(vi a)
{
	vi p = _mm256_packus_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(a, 16));
	p = _mm256_permute4x64_epi64(p, 0xd8);
	return (struct two){ _mm256_cvtph_ps(_mm256_castsi256_si128(p)),
		_mm256_cvtph_ps(_mm256_extracti128_si256(p, 1)) };
}
INLINE vi v_words(const uint16_t *p) { return _mm256_cvtepu16_epi32(_mm_load_si128((const void *)p)); }
/* mxfp4_scale */
INLINE vf v_exponent(vi e)
{
	vi low = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e),
		some = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
	return _mm256_blendv_ps((vf)some, (vf)low, (vf)_mm256_cmpgt_epi32(_mm256_set1_epi32(2), e));
}
/* nvfp4_scale of both bytes: 7 bits where a half has its exponent and mantissa, seven powers of two too small */
INLINE struct two v_smalls(const uint16_t *p)
{
	const __m128i a = _mm_load_si128((const void *)p), bits = _mm_set1_epi16(127 << 7),
		b = _mm_andnot_si128(_mm_cmpeq_epi8(a, _mm_set1_epi8(127)), a);
	const vf by = v_all(128);
	return (struct two){ _mm256_mul_ps(_mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(b, 7), bits)), by),
		_mm256_mul_ps(_mm256_cvtph_ps(_mm_and_si128(_mm_srli_epi16(b, 1), bits)), by) };
}
INLINE vi halves64(vi a, vi b) { return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)); }
/* In each half, the sums over the lanes of four registers' same half */
INLINE vi four(vi a, vi b, vi c, vi d) { return halves64(halves32(a, b), halves32(c, d)); }
INLINE vi sums_at(const int32_t *p, size_t stride)
{
	return four(v_load(p), v_load(p + stride), v_load(p + 2*stride), v_load(p + 3*stride));
}
/* Signed bytes times activations: those of even bytes, and those of odd ones. The bytes are the upper halves of words,
 * so sums are 256 times too large; those of 32 columns are at most 256*32*128*2032 < 2^31. */
INLINE __m256i i_bytes(__m256i c, __m256i even, __m256i odd)
{
	const __m256i up = y_each(_mm_setr_epi8(-1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, 14)),
		upper = _mm256_set1_epi16((short)0xff00);
	return i_madd(_mm256_madd_epi16(_mm256_shuffle_epi8(c, up), even), _mm256_and_si256(c, upper), odd);
}
/* Sums of sub-blocks times scales, both in i_order_iq4_xs. A register of codes has half of two sub-blocks. */
enum { BIAS_IQ4_XS = 0 };
INLINE __m256i i_order_iq4_xs(void) { return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7); }
INLINE __m256i i_iq4_xs(const c64 *c, digits256 high, digits256 low, __m256i sc, const struct strip256 *x)
{
	const __m256i half[2][4] = { { c[0].a, c[0].b, c[2].a, c[2].b }, { c[1].a, c[1].b, c[3].a, c[3].b } };
	__m256i a[4];
	(void)high;
	(void)low;
	UNROLL for (int i = 0; i < 4; i++) {
		const int16_t (*w)[16] = x->words + 4*i;
		a[i] = _mm256_add_epi32(i_bytes(half[0][i], y_load(w[0]), y_load(w[1])),
			i_bytes(half[1][i], y_load(w[2]), y_load(w[3])));
	}
	return _mm256_mullo_epi32(_mm256_srai_epi32(four(a[0], a[1], a[2], a[3]), 8), sc);
}
/* The sums over both halves of a, followed by those of b */
INLINE vi eight(vi a, vi b)
{
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x21), _mm256_blend_epi32(a, b, 0xf0));
}
/* Sums of eight lanes of each row */
INLINE vi v_eights(const int32_t *p) { return eight(sums_at(p, 8), sums_at(p + 32, 8)); }
/* Sums of eight mins of each row, which follow eight scales, times sums of activations */
INLINE vi v_minima(const uint8_t *m, const int16_t *first, const int16_t *second)
{
	const vi u = y_twice(first), v = y_twice(second);
	vi s[4];
	UNROLL for (int i = 0; i < 4; i++) {
		vi w = _mm256_unpackhi_epi8(v_load(m + 32*i), v_none());
		s[i] = _mm256_add_epi32(_mm256_madd_epi16(w, u), _mm256_madd_epi16(w, v));
	}
	return _mm256_permutevar8x32_epi32(four(s[0], s[1], s[2], s[3]), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/* The sums of eight rows' lanes, of which every other one is for mins: those for d, and those for m */
struct pair { vi d, m; };
INLINE struct pair v_q2_k(const int32_t *p, const uint8_t *none, const struct strip256 *x)
{
	__m256 half[2];
	(void)none;
	(void)x;
	UNROLL for (int i = 0; i < 2; i++, p += 16)
		half[i] = _mm256_castsi256_ps(eight(halves64(v_load(p), v_load(p + 8)),
			halves64(v_load(p + 32), v_load(p + 40))));
	return (struct pair){ _mm256_castps_si256(_mm256_shuffle_ps(half[0], half[1], 0x88)),
		_mm256_castps_si256(_mm256_shuffle_ps(half[0], half[1], 0xdd)) };
}
