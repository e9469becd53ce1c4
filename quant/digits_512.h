/* SPDX-License-Identifier: MIT
 * digits_512.h - the vocabulary of digits_text.h in registers of 64 bytes, with VNNI. */
#include "bytes_avx2.h"
#include "digits.h"
#include "inline.h"
#include "unpack.h"

typedef __m512i c64;                    /* 64 codes, columns in order */
typedef __m512i isum;

INLINE c64 c_load(const void *p) { return _mm512_loadu_si512(p); }
INLINE c64 c_four_times(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128(p)); }
INLINE c64 c_twice(const void *p) { return _mm512_broadcast_i64x4(_mm256_loadu_si256(p)); }
INLINE c64 c_halves(__m256i a, __m256i b) { return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1); }
/* 32 bytes at p, 32 at q */
INLINE c64 c_both(const void *p, const void *q) { return c_halves(_mm256_loadu_si256(p), _mm256_loadu_si256(q)); }
/* Of four times 32 bytes, the first sixteens and the second sixteens */
#define ORDER_CHAINS ORDER_FOURTHS
INLINE void c_fourths(const void *p, c64 *first, c64 *second)
{
	__m512i a = c_load(p), b = c_load((const char *)p + 64);
	__asm__("" : "+v"(b));          /* loaded once */
	*first = _mm512_shuffle_i64x2(a, b, 0x88);
	*second = _mm512_shuffle_i64x2(a, b, 0xdd);
}
/* 32 bytes, and the same moved right by four */
INLINE c64 c_nibbles(const void *p)
{
	return _mm512_srlv_epi16(c_twice(p), c_halves(_mm256_setzero_si256(), _mm256_set1_epi16(4)));
}
INLINE c64 c_right(c64 c, int n) { return _mm512_srli_epi16(c, (unsigned)n); }
INLINE c64 c_left(c64 c, int n) { return _mm512_slli_epi16(c, (unsigned)n); }
INLINE c64 c_and(c64 c, int mask) { return _mm512_and_si512(c, _mm512_set1_epi8((char)mask)); }
/* (a & of_a) | b, and (a & of_a) | (b & of_b) */
INLINE c64 c_join(c64 a, int of_a, c64 b)
{
	return _mm512_ternarylogic_epi64(a, _mm512_set1_epi8((char)of_a), b, 0xea);
}
INLINE c64 c_merge(c64 a, int of_a, c64 b, int of_b) { return c_join(a, of_a, c_and(b, of_b)); }
/* 16 bytes four times: 16 times bit 2*q of quarter q, and bit 2*q + 1 */
INLINE void c_fifths(const void *p, c64 *even, c64 *odd)
{
	const __m512i by = _mm512_setr_epi32(4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0, 30, 30, 30, 30),
		x = _mm512_rolv_epi32(_mm512_broadcast_i32x4(_mm_loadu_si128(p)), by);
	*even = c_and(x, 16);
	*odd = c_and(c_right(x, 1), 16);
}
INLINE __m512i four_words(int a, int b, int c, int d)
{
	__m256i ab = _mm256_set_m128i(_mm_set1_epi16((short)b), _mm_set1_epi16((short)a)),
		cd = _mm256_set_m128i(_mm_set1_epi16((short)d), _mm_set1_epi16((short)c));
	return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}
/* a in the first byte of each 32 bits of the first quarter, and so on */
INLINE __m512i quarters8(int a, int b, int c, int d)
{
	return _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
}
/* The levels of the lower halves of bytes, ignoring the upper halves */
INLINE c64 c_level(__m128i table, c64 c)
{
	const __m512i t = _mm512_broadcast_i32x4(table);
#if defined DIGITS_LANES
	return _mm512_permutexvar_epi8(c, t);   /* only six bits of a byte count */
#else
	return _mm512_shuffle_epi8(t, c_and(c, 15));
#endif
}
INLINE isum i_zero(void) { return _mm512_setzero_si512(); }
typedef struct { __m512i x[4]; } digits256;
INLINE digits256 d_load(const int8_t *p)
{
	return (digits256){ { _mm512_load_si512(p), _mm512_load_si512(p + 64), _mm512_load_si512(p + 128),
		_mm512_load_si512(p + 192) } };
}
INLINE isum i_fours(c64 c, __m512i x) { return _mm512_dpbusd_epi32(_mm512_setzero_si512(), c, x); }
INLINE __m256i i_eight(__m512i a)
{
	return _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
}
/* 64*high + low, in eight lanes */
INLINE __m256i i_value(isum high, isum low)
{
	return i_eight(_mm512_add_epi32(_mm512_slli_epi32(high, 6), low));
}
/* For codes 128*k.. in ORDER_HALVES: in each quarter four words for the first register, four for the second */
INLINE __m512i i_factors(__m256i sc, int k)
{
	const __m512i one = four_words(0, 1, 8, 9),
		at = _mm512_mask_add_epi16(one, 0xf0f0f0f0, one, _mm512_set1_epi16(2));
	return _mm512_permutexvar_epi16(_mm512_add_epi16(at, _mm512_set1_epi16((short)(4*k))),
		_mm512_castsi256_si512(sc));
}
/* Sums of four products fit 16 bits. */
INLINE isum i_scaled(isum a, c64 c, c64 d, const __m512i *x, __m512i f)
{
	return _mm512_dpwssd_epi32(a, _mm512_packs_epi32(i_fours(c, x[0]), i_fours(d, x[1])), f);
}
#define ORDER_SIXTEENS ORDER_HALVES
/* The scales of sixteens as words, and the sums of these sixteens */
INLINE __m256i i_scales(__m128i sc) { return _mm256_cvtepi8_epi16(sc); }
INLINE __m256i i_sums(const struct strip256 *x) { return _mm256_load_si256((const void *)x->sum); }
/* The sums of codes times scales, in eight lanes; sc2 for c[2] and c[3] */
INLINE __m256i i_halves(const c64 *c, digits256 high, digits256 low, __m256i sc, __m256i sc2)
{
	isum h = i_zero(), l = h;
	UNROLL for (int k = 0; k < 2; k++) {
		const __m512i f = i_factors(k ? sc2 : sc, k);
		h = i_scaled(h, c[2*k], c[2*k + 1], high.x + 2*k, f);
		l = i_scaled(l, c[2*k], c[2*k + 1], low.x + 2*k, f);
	}
	return i_value(h, l);
}
INLINE __m256i i_sixteens(const c64 *c, digits256 high, digits256 low, __m256i sc)
{
	return i_halves(c, high, low, sc, sc);
}
#if !defined DIGITS_LANES
/* Q3_K: two registers have halves of bytes with three bits each, with a bias of 4, the upper bit joined to the lower
 * two by tables of halves of hmask's bytes: bits 0 and 2 move to 2 and 6, or bits 1 and 3. Upper halves stay in place,
 * 16 times too large. */
#define ORDER_Q3_K ORDER_SIXTEENS
INLINE void c_q3_k(const struct q3_k *b, c64 *c)
{
	const __m128i first = _mm_setr_epi8(0, 4, 0, 4, 64, 68, 64, 68, 0, 4, 0, 4, 64, 68, 64, 68),
		second = _mm_setr_epi8(0, 0, 4, 4, 0, 0, 4, 4, 64, 64, 68, 68, 64, 64, 68, 68);
	const c64 x = c_load(b->qs), h = c_nibbles(b->hmask),
		even = c_join(x, 0x33, c_level(first, h)), odd = c_join(c_right(x, 2), 0x33, c_level(second, h));
	c[0] = c_and(even, 7);
	c[1] = c_and(odd, 7);
	c[2] = c_and(even, 0x70);
	c[3] = c_and(odd, 0x70);
}
INLINE __m256i q3_k_words(__m128i sc) { return i_scales(sc); }
INLINE __m256i i_threes(const c64 *c, digits256 high, digits256 low, __m256i sc)
{
	return _mm256_srai_epi32(i_halves(c, high, low, _mm256_slli_epi16(sc, 4), sc), 4);
}
#endif
INLINE __m512i i_chain(c64 a, c64 b, const __m512i *high, const __m512i *low)
{
	__m512i s = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), a, high[0]), b, high[1]);
	return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_slli_epi32(s, 6), a, low[0]), b, low[1]);
}
/* The sums of c[0] and c[1], and of c[2] and c[3], times four integers each, in eight lanes */
INLINE __m256i i_chains(const c64 *c, digits256 high, digits256 low, __m256i sc)
{
	const __m512i at = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
	__m512i s = _mm512_castsi256_si512(sc), f = _mm512_permutexvar_epi32(at, s),
		g = _mm512_permutexvar_epi32(_mm512_add_epi32(at, _mm512_set1_epi32(4)), s),
		a = _mm512_mullo_epi32(i_chain(c[0], c[1], high.x, low.x), f),
		b = _mm512_mullo_epi32(i_chain(c[2], c[3], high.x + 2, low.x + 2), g);
	return i_eight(_mm512_add_epi32(a, b));
}
/* Sums of sub-blocks times scales, in order. A register of codes has half of four sub-blocks. */
enum { BIAS_IQ4_XS = 128 };
INLINE __m256i i_order_iq4_xs(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
INLINE __m256i i_iq4_xs(const c64 *c, digits256 high, digits256 low, __m256i sc, const struct strip256 *x)
{
	return _mm256_sub_epi32(i_chains(c, high, low, sc),
		_mm256_mullo_epi32(sc, _mm256_load_si256((const void *)x->sum128)));
}
/* The sums of c and d, which fit 16 bits for each digit, times f: words of 256 times a scale for the high digits, of
 * the scale for the low ones */
INLINE isum i_chain8(isum a, c64 c, c64 d, const __m512i *high, const __m512i *low, __m512i f)
{
	const __m512i h = _mm512_dpbusd_epi32(i_fours(c, high[0]), d, high[1]),
		l = _mm512_dpbusd_epi32(i_fours(c, low[0]), d, low[1]);
	return _mm512_dpwssd_epi32(a, _mm512_packs_epi32(h, l), f);
}
/* Indices for a shuffle: of quarter k, four words of 256 times byte k, then four words of that byte */
INLINE __m512i four_scales(void)
{
	typedef uint64_t v8 __attribute__((vector_size(64)));
	const v8 words = { 0x0080, 0x8000, 0x0180, 0x8001, 0x0280, 0x8002, 0x0380, 0x8003 };
	return (__m512i)(words*0x0001000100010001);
}
/* The same times bytes, with digits of ORDER_FOURTHS */
INLINE __m256i i_chains8(const c64 *c, digits256 high, digits256 low, const uint8_t *sc)
{
	const __m512i s = c_four_times(sc), at = four_scales(),
		f = _mm512_shuffle_epi8(s, at), g = _mm512_shuffle_epi8(s, _mm512_add_epi8(at, _mm512_set1_epi8(4)));
	return i_eight(i_chain8(i_chain8(i_zero(), c[0], c[1], high.x, low.x, f), c[2], c[3], high.x + 2, low.x + 2,
		g));
}
/* Q4_K: upper halves of bytes stay where they are, 16 times too large. Their digits are of another size, 16*high + low,
 * so that the sum of the low ones moves down, instead of the codes, before the high ones are added. */
#define ORDER_Q4_K ORDER_FOURTHS_UP
INLINE c64 c_upper(c64 c) { return c_and(c, 0xf0); }
INLINE __m256i i_q4_k(const c64 *c, digits256 high, digits256 low, const uint8_t *sc)
{
	const __m512i s = c_four_times(sc), f = _mm512_shuffle_epi8(s, four_scales()),
		g = _mm512_shuffle_epi8(s, _mm512_or_si512(quarters8(4, 5, 6, 7), _mm512_set1_epi32((int)0x80808000)));
	__m512i a = _mm512_dpbusd_epi32(i_fours(c[2], low.x[2]), c[3], low.x[3]);
	a = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_srai_epi32(a, 4), c[2], high.x[2]), c[3], high.x[3]);
	return i_eight(i_chain8(_mm512_mullo_epi32(a, g), c[0], c[1], high.x, low.x, f));
}

/* ---- Q2_K: a lane is one sixteen, whose codes stay where their bits are ---- */

#define ORDER_Q2_K(n_tokens) ORDER_LANES
/* c[i] has the i-th four bytes of each quarter in all its lanes, of which each keeps two bits. */
INLINE void c_q2_k(const struct q2_k *b, int n_tokens, c64 *c)
{
	const __m512i x = c_load(b->qs),
		bits = _mm512_broadcast_i32x4(_mm_setr_epi32(0x03030303, 0x30303030, 0x0c0c0c0c, (int)0xc0c0c0c0));
	(void)n_tokens;
	c[0] = _mm512_and_si512(_mm512_shuffle_epi32(x, 0x00), bits);
	c[1] = _mm512_and_si512(_mm512_shuffle_epi32(x, 0x55), bits);
	c[2] = _mm512_and_si512(_mm512_shuffle_epi32(x, 0xaa), bits);
	c[3] = _mm512_and_si512(_mm512_shuffle_epi32(x, 0xff), bits);
}
INLINE __m256i i_q2_k(const struct q2_k *b, const c64 *c, int n_tokens, digits256 high, digits256 low,
	const struct strip256 *x)
{
	const __m512i lanes = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_setr_epi32((int)0x80808000, (int)0x80808004,
		(int)0x80808002, (int)0x80808006)), quarters8(0, 1, 8, 9));
	__m512i h = _mm512_setzero_si512(), l = h, sc = _mm512_shuffle_epi8(c_four_times(b->scales), lanes);
	(void)n_tokens;
	(void)x;
	UNROLL for (int i = 0; i < 4; i++) {
		h = _mm512_dpbusd_epi32(h, c[i], high.x[i]);
		l = _mm512_dpbusd_epi32(l, c[i], low.x[i]);
	}
	l = _mm512_srav_epi32(_mm512_add_epi32(_mm512_slli_epi32(h, 6), l),
		_mm512_broadcast_i32x4(_mm_setr_epi32(0, 4, 2, 6)));
	return i_eight(_mm512_mullo_epi32(l, _mm512_and_si512(sc, _mm512_set1_epi32(15))));
}
/* in integer registers: storing a vector register would take a slot of products */
INLINE void q2_k_minima(const struct q2_k *b, uint8_t *to)
{
	uint64_t scales[2];
	memcpy(scales, b->scales, sizeof scales);
	__asm__("" : "+r"(scales[0]));
	memcpy(to, scales, sizeof scales);
}

/* ---- the first sixteen bytes of some rows' blocks ---- */

enum { HEADS = 4 };
typedef uint32_t heads __attribute__((vector_size(16*HEADS)));
/* Sixteen bytes each */
INLINE __m512i sixteens_of(const char *a, const char *b, const char *c, const char *d)
{
	__m256i ab = _mm256_set_m128i(_mm_loadu_si128((const void *)b), _mm_loadu_si128((const void *)a)),
		cd = _mm256_set_m128i(_mm_loadu_si128((const void *)d), _mm_loadu_si128((const void *)c));
	return _mm512_inserti64x4(_mm512_castsi256_si512(ab), cd, 1);
}
INLINE heads h_load(const char *const *p) { return (heads)sixteens_of(p[0], p[1], p[2], p[3]); }
INLINE heads h_minus(heads a, int n) { return (heads)_mm512_sub_epi8((__m512i)a, _mm512_set1_epi8((char)n)); }
INLINE heads h_each(__m128i a) { return (heads)_mm512_broadcast_i32x4(a); }
INLINE heads h_shuffle(heads a, __m128i at) { return (heads)_mm512_shuffle_epi8((__m512i)a, (__m512i)h_each(at)); }
/* The scales of codec/q3_k.h, from the twelve bytes at the end of x */
INLINE heads q3_k_sixes(heads x)
{
	heads low = h_shuffle(x, _mm_setr_epi8(4, 5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11)) >>
			h_each(_mm_setr_epi32(0, 0, 4, 4)) & 0x0f0f0f0f,
		up = h_shuffle(x, _mm_setr_epi8(12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15)) >>
			h_each(_mm_setr_epi32(0, 2, 4, 6)) & 0x03030303;
	return h_minus(low | up << 4, 32);
}

/* ---- rows side by side ---- */

enum { ROWS = 16, SUPERS = 8, BY_ROWS = 0, READS = READS_64 };
/* Zen 5 reads rows of blocks of this size into L1 faster eight at a time than sixteen. */
#define DIGITS_Q8_0_ALONE (&quant_digits_avx2)
#include "digits_rows.h"
typedef __m512i vi;                     /* a lane for each row */

/* Loads sixteen bytes of rows k, k + 4, k + 8 and k + 12. */
INLINE vi v_fourth(const struct rows *w, size_t k, int at)
{
	return sixteens_of(row(w, k, at), row(w, k + 4, at), row(w, k + 8, at), row(w, k + 12, at));
}
/* Turns integers of each of four times four rows into four registers with a lane for each row. */
INLINE void v_transpose(const vi *a, vi *to)
{
	vi b[4];
	b[0] = _mm512_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm512_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm512_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm512_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm512_unpacklo_epi64(b[0], b[2]);
	to[1] = _mm512_unpackhi_epi64(b[0], b[2]);
	to[2] = _mm512_unpacklo_epi64(b[1], b[3]);
	to[3] = _mm512_unpackhi_epi64(b[1], b[3]);
}
#if defined DIGITS_LANES
/* Moves bit k of byte i of each eight bytes to bit 7 - i of byte k. */
INLINE vi v_transpose_bits(vi a)
{
	return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64((long long)0x8040201008040201), a, 0);
}
#endif
/* Loads sixteen bytes of each row, as four integers. */
INLINE void v_four(const struct rows *w, int at, vi *to)
{
	vi a[4];
	UNROLL for (size_t k = 0; k < 4; k++) a[k] = v_fourth(w, k, at);
	v_transpose(a, to);
}
/* Loads four bytes of each row. */
INLINE vi v_one(const struct rows *w, int at)
{
	__m128i a[4];
	UNROLL for (size_t k = 0; k < 4; k++) a[k] = four_rows(w, 4*k, at);
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(a[1], a[0])),
		_mm256_set_m128i(a[3], a[2]), 1);
}
INLINE vi v_and(vi a, int n) { return _mm512_and_si512(a, _mm512_set1_epi8((char)n)); }
INLINE vi v_right(vi a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
INLINE vi v_left(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
INLINE vi v_down(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
INLINE vi v_flip(vi a, int n) { return _mm512_xor_si512(a, _mm512_set1_epi8((char)n)); }
INLINE vi v_level(__m128i table, vi a) { return c_level(table, a); }
INLINE vi v_none(void) { return _mm512_setzero_si512(); }
INLINE vi v_byte(vi a, int i) { return _mm512_and_si512(v_right(a, 8*i), _mm512_set1_epi32(255)); }
/* n is hidden so that the compiler does not shift and add */
INLINE vi v_times(vi a, int n)
{
	vi b = _mm512_set1_epi32(n);
	__asm__("" : "+v"(b));
	return _mm512_mullo_epi32(a, b);
}
/* Bits 2*i and 2*i + 1 of the lowest byte at the end of byte i */
INLINE vi v_spread(vi a)
{
	a = _mm512_or_si512(a, _mm512_slli_epi32(a, 12));
	return _mm512_or_si512(a, _mm512_slli_epi32(a, 6));
}
/* c + n where the bit is set: of bits 4*j to 4*j + 3 of each lane */
INLINE vi v_bits(vi c, vi bits, int j, int n)
{
	const __m512i at = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
	__m512i b = _mm512_shuffle_epi8(bits, _mm512_add_epi8(at, _mm512_set1_epi8((char)(j/2))));
	__mmask64 m = _mm512_test_epi8_mask(b, _mm512_set1_epi32(j%2 ? (int)0x80402010 : 0x08040201));
	return _mm512_mask_add_epi8(c, m, c, _mm512_set1_epi8((char)n));
}
INLINE vi v_all32(const void *x)
{
	int32_t n;
	memcpy(&n, x, sizeof n);
	return _mm512_set1_epi32(n);
}
/* Adds four columns of each row to sums. */
INLINE vi v_dot(vi s, vi c, const int8_t *x)
{
	__asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(c), "m"(*(const int8_t (*)[4])x));
	return s;
}
/* s and the products of n registers with digits, 64*high + low; codes are at most `most` */
INLINE vi v_dots(vi s, const vi *c, int n, const int8_t *high, const int8_t *low, int most)
{
	vi h[2] = { v_none(), v_none() }, l[2] = { s, v_none() };       /* short chains */
	(void)most;
	UNROLL for (int j = 0; j < n; j++) {
		h[j%2] = v_dot(h[j%2], c[j], digits_four(high, j));
		l[j%2] = v_dot(l[j%2], c[j], digits_four(low, j));
	}
	return _mm512_add_epi32(_mm512_slli_epi32(_mm512_add_epi32(h[0], h[1]), 6), _mm512_add_epi32(l[0], l[1]));
}
INLINE void v_store(int32_t *to, vi s) { _mm512_store_si512(to, s); }

typedef __m512 vf;
struct two { vf d, m; };
INLINE vf v_from(const float *p) { return _mm512_load_ps(p); }
INLINE void v_to(float *p, vf a) { _mm512_store_ps(p, a); }
INLINE vi v_load(const void *p) { return _mm512_load_si512(p); }
INLINE vf v_all(float a) { return _mm512_set1_ps(a); }
INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE vf v_floats(vi a) { return _mm512_cvtepi32_ps(a); }
INLINE vf v_negative(vf a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
/* Row 4*i + j at lane i + 4*j */
INLINE vi transposed(void) { return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15); }
INLINE vf v_halves(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_load_si256((const void *)p)); }
/* Pairs of halves, d below */
INLINE struct two v_pairs(vi a)
{
	return (struct two){ _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)),
		_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(a, 16))) };
}
INLINE vi v_words(const uint16_t *p) { return _mm512_cvtepu16_epi32(_mm256_load_si256((const void *)p)); }
/* mxfp4_scale */
INLINE vf v_exponent(vi e)
{
	vi some = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
	__mmask16 low = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
	return (vf)_mm512_mask_sllv_epi32(some, low, _mm512_set1_epi32(0x00200000), e);
}
/* nvfp4_scale of both bytes: 7 bits where a half has its exponent and mantissa, seven powers of two too small */
INLINE struct two v_smalls(const uint16_t *p)
{
	const __m256i a = _mm256_load_si256((const void *)p), bits = _mm256_set1_epi16(127 << 7),
		b = _mm256_maskz_mov_epi8(_mm256_cmpneq_epi8_mask(a, _mm256_set1_epi8(127)), a);
	const vf by = v_all(128);
	return (struct two){ _mm512_mul_ps(_mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(b, 7), bits)), by),
		_mm512_mul_ps(_mm512_cvtph_ps(_mm256_and_si256(_mm256_srli_epi16(b, 1), bits)), by) };
}
INLINE vi halves32(vi a, vi b) { return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)); }
INLINE vi halves64(vi a, vi b) { return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)); }
/* In each quarter, the sums over the lanes of four registers' same quarter */
INLINE vi four(vi a, vi b, vi c, vi d) { return halves64(halves32(a, b), halves32(c, d)); }
/* Sums of eight lanes of each row, two rows to a register */
INLINE vi eights(const vi *s)
{
	const vi at = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
	vi a = four(s[0], s[1], s[2], s[3]), b = four(s[4], s[5], s[6], s[7]);
	return _mm512_permutexvar_epi32(at,
		_mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd)));
}
INLINE vi v_eights(const int32_t *p)
{
	vi s[8];
	UNROLL for (int i = 0; i < 8; i++) s[i] = v_load(p + 16*i);
	return eights(s);
}
/* Sums of eight mins of each row, which follow eight scales, times sums of activations */
INLINE vi v_minima(const uint8_t *m, const int16_t *first, const int16_t *second)
{
	const vi u = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)first)),
		v = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)second));
	vi s[4];
	UNROLL for (int i = 0; i < 4; i++) {
		vi w = _mm512_unpackhi_epi8(v_load(m + 64*i), _mm512_setzero_si512());
		s[i] = _mm512_dpwssd_epi32(_mm512_madd_epi16(w, u), w, v);
	}
	return _mm512_permutexvar_epi32(transposed(), four(s[0], s[1], s[2], s[3]));
}
/* The same for sixteen each, which stay in the upper halves of bytes */
INLINE vi v_minima16(const uint8_t *m, const struct strip256 *x)
{
	const vi high = c_four_times(x->sum_high), low = c_four_times(x->sum_low);
	vi s[4];
	UNROLL for (int i = 0; i < 4; i++) {
		const vi w = v_and(v_load(m + 64*i), 0xf0);
		s[i] = _mm512_dpbusd_epi32(_mm512_slli_epi32(_mm512_dpbusd_epi32(v_none(), w, high), 8), w, low);
	}
	return _mm512_srai_epi32(_mm512_permutexvar_epi32(transposed(), four(s[0], s[1], s[2], s[3])), 4);
}
struct pair { vi d, m; };
INLINE struct pair v_q2_k(const int32_t *p, const uint8_t *m, const struct strip256 *x)
{
	return (struct pair){ v_eights(p), v_minima16(m, x) };
}
