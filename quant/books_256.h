/* SPDX-License-Identifier: MIT
 * books_256.h - the vocabulary of books_text.h in registers of 32 bytes. The instance first includes ymm_ISA.h.
 *
 * Words of a code book are looked up one by one, by loads that widen their eight codes to int16. The codes get their
 * signs there, and are multiplied with whole activations. With digits there would be as many products, and a bias to
 * add.
 *
 * 32 columns are two registers: in one the first eight columns of both sixteens, in the other the second ones. So the
 * halves of a sum are those of the sixteens, whether they share a scale or not. */
#include <string.h>
#include "bytes_avx2.h"
#include "blocks.h"
#include "digits.h"
#include "grids.h"
#include "inline.h"

enum { ROWS = 8, SUPERS = 8, READS = READS_BOOKS_32 };  /* rows as in digits_256.h */
enum { TERNARY_BY_ROWS = 1, SUPERS_TQ1_0 = 32, SUPERS_TQ2_0 = 32 };
enum { SIGNED = 0 };                    /* bias of codes with signs */
/* Numbers of words, of types that have them in pieces */
struct prepared { _Alignas(32) uint16_t k[64]; };
/* Named as in books_512.h; here codes are made while they are multiplied. */
struct planes { const void *block; const struct prepared *from; };
/* start: what a bias adds, to be subtracted */
struct arranged { const struct strip256 *x; __m256i start; };
/* Scales of the first 128 columns and of the others, in eight lanes: first sixteens of each 32, second ones */
struct scales { __m256i of[2]; };
/* Codes of 32 columns, as words */
struct thirty_two { __m256i first, second; };

INLINE void y_store(void *p, __m256i a) { _mm256_store_si256(p, a); }
INLINE __m256i y_words(int n) { return _mm256_set1_epi16((short)n); }
INLINE __m256i y_ints(int n) { return _mm256_set1_epi32(n); }
INLINE __m256i y_and(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
INLINE __m256i y_or(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
/* a b c d, four times */
INLINE __m256i y_fours(int a, int b, int c, int d)
{
	return _mm256_set1_epi64x((long long)((uint64_t)(uint16_t)d << 48 | (uint64_t)(uint16_t)c << 32 |
		(uint64_t)(uint16_t)b << 16 | (uint16_t)a));
}

/* ---- codes ---- */

/* A word of eight; two words of four */
INLINE __m128i eight(const uint64_t *book, uint64_t k)
{
	return _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(book + k)));
}
INLINE __m128i two_fours(const uint32_t *book, uint64_t k, uint64_t l)
{
	return _mm_cvtepu8_epi16(_mm_insert_epi32(_mm_cvtsi32_si128((int)book[k]), (int)book[l], 1));
}
INLINE struct thirty_two of_eights(const __m128i *c)
{
	return (struct thirty_two){ _mm256_set_m128i(c[2], c[0]), _mm256_set_m128i(c[3], c[1]) };
}
/* From scales of 32 columns in eight lanes; from bytes, in the order of struct scales */
INLINE struct scales scales_of_32(__m256i sc)
{
	return (struct scales){ { y_each(_mm256_castsi256_si128(sc)), y_each(_mm256_extracti128_si256(sc, 1)) } };
}
INLINE struct scales scales_of_16(__m128i sc)
{
	return (struct scales){ { _mm256_cvtepu8_epi32(sc), _mm256_cvtepu8_epi32(_mm_srli_si128(sc, 8)) } };
}
/* ls in the last four bits of 32: 2*ls + 1 */
INLINE struct scales tail_scales(__m256i t) { return scales_of_32(y_or(_mm256_srli_epi32(t, 27), y_ints(1))); }
/* Eight bytes, each with two scales */
INLINE struct scales nibble_scales(const void *from)
{
	__m128i x = _mm_loadl_epi64(from), low = _mm_set1_epi8(15);
	x = _mm_unpacklo_epi32(_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi16(x, 4), low));
	return scales_of_16(_mm_or_si128(_mm_add_epi8(x, x), _mm_set1_epi8(1)));
}
INLINE void nothing(const char *w, size_t stride, size_t n, struct prepared *to)
{
	(void)w; (void)stride; (void)n; (void)to;
}
#define ONE_BY_ONE(name) \
INLINE void name##_prepare(const char *w, size_t stride, size_t n, struct prepared *to) \
{ \
	for (; n--; w += stride) name##_prepare_one(w, to++); \
}
/* The low bytes of 16 numbers, and above them the upper bits that are in the mask */
INLINE void join(uint16_t *k, const uint8_t *low, __m256i up, int mask)
{
	__m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)low));
	y_store(k, y_or(a, y_and(up, y_words(mask))));
}

/* ---- signs ----
 * Those of eight columns are the upper byte of a word, bit i that of column i; the lower byte is not zero. A register
 * has such words for 64 columns, each twice: in its first half those of the first two eights of each 32, in its second
 * half those of the others. With them, the function for one token of IQ2_S has 313 instructions; with +1 and -1 from a
 * table it had 431. */

/* Codes of columns 32*g to 32*g + 31 with their signs. s: those of these columns and of the neighbours that have the
 * other half of 64; each is shifted to the top */
INLINE struct thirty_two signed_as(struct thirty_two c, __m256i s, int g)
{
	const __m256i to_top = y_each(_mm_setr_epi16(128, 64, 32, 16, 8, 4, 2, 1)),
		first = g%2 ? _mm256_shuffle_epi32(s, 0xaa) : _mm256_shuffle_epi32(s, 0),
		second = g%2 ? _mm256_shuffle_epi32(s, 0xff) : _mm256_shuffle_epi32(s, 0x55);
	return (struct thirty_two){ _mm256_sign_epi16(c.first, _mm256_mullo_epi16(first, to_top)),
		_mm256_sign_epi16(c.second, _mm256_mullo_epi16(second, to_top)) };
}
/* From the 32 bytes of a block: the signs of columns 32*g to 32*g + 31 and of their neighbours */
INLINE __m256i signs_of_bytes(const uint8_t *bytes, int g)
{
	const __m256i from = _mm256_setr_epi8(-1, 0, -1, 0, -1, 1, -1, 1, -1, 4, -1, 4, -1, 5, -1, 5,
			-1, 2, -1, 2, -1, 3, -1, 3, -1, 6, -1, 6, -1, 7, -1, 7),
		at = _mm256_add_epi8(from, y_bytes(8*(g/2%2)));
	return y_or(_mm256_shuffle_epi8(y_twice(bytes + 16*(g/4)), at), y_words(1));
}
/* From words for columns 128*(g/4) on that have seven signs in their upper bytes; the eighth sign makes the number of
 * minuses even. */
INLINE __m256i signs_of_sevens(__m256i x, int g)
{
	const __m256i odd = y_each(_mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128,
			0)),
		twice = _mm256_setr_epi8(0, 1, 0, 1, 2, 3, 2, 3, 8, 9, 8, 9, 10, 11, 10, 11,
			4, 5, 4, 5, 6, 7, 6, 7, 12, 13, 12, 13, 14, 15, 14, 15),
		seven = y_and(x, y_words(0x7f00)), four = _mm256_xor_si256(seven, _mm256_slli_epi16(seven, 4)),
		eighth = _mm256_shuffle_epi8(odd, _mm256_srli_epi16(four, 4)),
		s = y_or(y_or(seven, eighth), y_words(1));
	return _mm256_shuffle_epi8(g/2%2 ? _mm256_permute4x64_epi64(s, 0xee) : _mm256_permute4x64_epi64(s, 0x44),
		twice);
}
/* Such words from integers of four times seven signs: two in each half of x, which begin at bytes 0 and `step` after
 * those that `at` names */
INLINE __m256i sevens_of(__m256i x, __m256i at, int step)
{
	const __m256i from = y_each(_mm_setr_epi8(0, 1, 0, 1, 1, 2, 2, 3, 0, 1, 0, 1, 1, 2, 2, 3)),
		next = y_each(_mm_set_epi64x((long long)((uint64_t)step*0x0101010101010101), 0));
	return _mm256_mullo_epi16(_mm256_shuffle_epi8(x, _mm256_add_epi8(_mm256_add_epi8(from, next), at)),
		y_fours(256, 2, 4, 8));
}

/* ---- words of eight ---- */

#define iq2_xxs_prepare nothing
INLINE struct thirty_two iq2_xxs_codes(const struct planes *p, int g)
{
	const struct iq2_xxs *b = p->block;
	/* of each 32 columns: four numbers of 8 bits, four times 7 signs, the scale */
	const uint8_t *k = (const uint8_t *)(b->qs + 4*g);
	const __m256i s = sevens_of(y_load(b->qs + 16*(g/4)), y_bytes(4), 8);
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = eight(grid_iq2_xxs, k[i]);
	return signed_as(of_eights(c), signs_of_sevens(s, g), g);
}
INLINE struct scales iq2_xxs_scales(const struct planes *p)
{
	const struct iq2_xxs *b = p->block;
	const __m256 x = (__m256)y_load(b->qs), y = (__m256)y_load(b->qs + 16);
	return tail_scales(_mm256_permute4x64_epi64((__m256i)_mm256_shuffle_ps(x, y, 0xdd), 0xd8));
}
#define iq2_xs_prepare nothing
INLINE struct thirty_two iq2_xs_codes(const struct planes *p, int g)
{
	const struct iq2_xs *b = p->block;
	/* of eight columns: 9 bits of a number, 7 signs */
	const __m256i s = _mm256_srli_epi16(y_load(b->qs + 16*(g/4)), 1);
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = eight(grid_iq2_xs, b->qs[4*g + i] & 511);
	return signed_as(of_eights(c), signs_of_sevens(s, g), g);
}
INLINE struct scales iq2_xs_scales(const struct planes *p)
{
	const struct iq2_xs *b = p->block;
	return nibble_scales(b->scales);
}
INLINE void iq2_s_prepare_one(const void *block, struct prepared *to)
{
	const struct iq2_s *b = block;
	const __m256i at = _mm256_setr_epi64x((long long)0xff00ff00ff00ff00, (long long)0xff01ff01ff01ff01,
		(long long)0xff02ff02ff02ff02, (long long)0xff03ff03ff03ff03), by = y_fours(256, 64, 16, 4);
	__m256i h = y_each(_mm_loadl_epi64((const void *)b->qh)), up = _mm256_srli_epi64(h, 32);
	join(to->k, b->qs, _mm256_mullo_epi16(_mm256_shuffle_epi8(h, at), by), 0x300);
	join(to->k + 16, b->qs + 16, _mm256_mullo_epi16(_mm256_shuffle_epi8(up, at), by), 0x300);
}
ONE_BY_ONE(iq2_s)
INLINE struct thirty_two iq2_s_codes(const struct planes *p, int g)
{
	const struct iq2_s *b = p->block;
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = eight(grid_iq2_s, p->from->k[4*g + i]);
	return signed_as(of_eights(c), signs_of_bytes(b->qs + 32, g), g);
}
INLINE struct scales iq2_s_scales(const struct planes *p)
{
	const struct iq2_s *b = p->block;
	return nibble_scales(b->scales);
}

/* ---- IQ1: digits 0, 1, 2 of the code book are multiplied with 8, and what 8*(digit - 1) + delta has besides, with
 * sums of activations. ---- */

/* Integers 4j to 4j + 3 of qh, each four times */
INLINE __m256i iq1_upper(const void *qh, int j)
{
	const long long a = 0x0100010001000100, b = 0x0302030203020302;
	const __m256i at = _mm256_setr_epi64x(a, b, a + 0x0404040404040404, b + 0x0404040404040404);
	return _mm256_shuffle_epi8(y_twice(qh), _mm256_add_epi8(at, y_bytes(8*j)));
}
/* Makes numbers whose upper three bits are at bits 0, a, 2a and 3a of each integer of qh; the last are moved down. */
INLINE void iq1_numbers(uint16_t *k, const uint8_t *qs, const void *qh, int a)
{
	UNROLL for (int j = 0; j < 2; j++) {
		__m256i h = iq1_upper(qh, j), up = _mm256_mullo_epi16(h, y_fours(256, 256 >> a, 256 >> 2*a, 0));
		up = _mm256_blend_epi16(up, _mm256_srli_epi16(h, 3*a - 8), 0x88);
		join(k + 16*j, qs + 16*j, up, 0x700);
	}
}
INLINE struct thirty_two iq1_codes(const struct planes *p, int g)
{
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = eight(grid_iq1, p->from->k[4*g + i]);
	return of_eights(c);
}
INLINE void iq1_s_prepare_one(const void *block, struct prepared *to)
{
	const struct iq1_s *b = block;
	iq1_numbers(to->k, b->qs, b->qh, 3);
}
ONE_BY_ONE(iq1_s)
#define iq1_s_codes iq1_codes
INLINE __m256i iq1_s_qh(const struct planes *p)
{
	const struct iq1_s *b = p->block;
	return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)b->qh));
}
/* 8*(2*ls + 1) */
INLINE struct scales iq1_s_scales(const struct planes *p)
{
	return scales_of_32(y_or(y_and(_mm256_srli_epi32(iq1_s_qh(p), 8), y_ints(7 << 4)), y_ints(8)));
}
INLINE __m256i iq1_s_start(const struct planes *p, const struct strip256 *x)
{
	const __m256i h = iq1_s_qh(p), ls = y_or(y_and(_mm256_srli_epi32(h, 11), y_ints(14)), y_ints(1)),
		delta = _mm256_sub_epi32(y_ints(-7), y_and(_mm256_srli_epi32(h, 14), y_ints(2))),
		sum = _mm256_srai_epi32(_mm256_load_si256((const void *)x->sum128), 7);
	return _mm256_mullo_epi32(_mm256_madd_epi16(ls, delta), sum);
}
INLINE void iq1_m_prepare_one(const void *block, struct prepared *to)
{
	const struct iq1_m *b = block;
	iq1_numbers(to->k, b->qs, b->qh, 4);
}
ONE_BY_ONE(iq1_m)
#define iq1_m_codes iq1_codes
/* Sixteen scales of three bits, 2*ls + 1, as words */
INLINE __m256i iq1_m_words(const struct planes *p)
{
	const struct iq1_m *b = p->block;
	const __m256i by = y_fours(1 << 13, 1 << 10, 1 << 7, 1 << 4), first = _mm256_setr_epi64x(0x0100010001000100,
			0x0908090809080908, 0x0100010001000100, 0x0908090809080908),
		ls = _mm256_cvtepu16_epi64(_mm_loadl_epi64((const void *)b->scales));
	return y_or(_mm256_srli_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(ls, first), by), 12), y_words(1));
}
INLINE struct scales iq1_m_scales(const struct planes *p)
{
	const __m256i order = y_each(_mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, -1, -1, -1, -1, -1, -1, -1, -1)),
		sc = _mm256_shuffle_epi8(_mm256_slli_epi16(iq1_m_words(p), 3), order);
	return (struct scales){ { _mm256_cvtepu8_epi32(_mm256_castsi256_si128(sc)),
		_mm256_cvtepu8_epi32(_mm256_extracti128_si256(sc, 1)) } };
}
/* Deltas are for eight columns: bits 3 of qh for even eights, bits 7 for odd ones. */
INLINE __m256i iq1_m_start(const struct planes *p, const struct strip256 *x)
{
	const struct iq1_m *b = p->block;
	const __m256i ls = iq1_m_words(p), bit = _mm256_setr_epi64x(0x0008000800080008, 0x0008000800080008,
			0x0080008000800080, 0x0080008000800080);
	__m256i sum = _mm256_setzero_si256();
	UNROLL for (int i = 0; i < 2; i++) {
		const __m256i qh = y_each(_mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(b->qh + 8*i)))),
			minus = _mm256_cmpeq_epi16(y_and(qh, bit), bit),
			delta = _mm256_add_epi16(_mm256_add_epi16(minus, minus), y_words(-7)),
			both = y_each(i ? _mm256_extracti128_si256(ls, 1) : _mm256_castsi256_si128(ls));
		sum = i_madd(sum, _mm256_mullo_epi16(both, delta), y_load(x->sum8[i]));
	}
	return sum;
}

/* ---- words of four ---- */

#define iq3_xxs_prepare nothing
INLINE struct thirty_two iq3_xxs_codes(const struct planes *p, int g)
{
	const struct iq3_xxs *b = p->block;
	const uint8_t *k = b->qs + 8*g;
	const __m256i at = _mm256_set_m128i(_mm_set1_epi8(8), _mm_setzero_si128()),
		s = sevens_of(y_twice(b->qs + 64 + 16*(g/4)), at, 4);
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = two_fours(grid_iq3_xxs, k[2*i], k[2*i + 1]);
	return signed_as(of_eights(c), signs_of_sevens(s, g), g);
}
INLINE struct scales iq3_xxs_scales(const struct planes *p)
{
	const struct iq3_xxs *b = p->block;
	return tail_scales(y_load(b->qs + 64));
}
INLINE void iq3_s_prepare_one(const void *block, struct prepared *to)
{
	const struct iq3_s *b = block;
	const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
		-32768);
	UNROLL for (int j = 0; j < 4; j++) {
		uint16_t h;
		memcpy(&h, b->qh + 2*j, sizeof h);
		join(to->k + 16*j, b->qs + 16*j, _mm256_cmpeq_epi16(y_and(y_words(h), bit), bit), 256);
	}
}
ONE_BY_ONE(iq3_s)
INLINE struct thirty_two iq3_s_codes(const struct planes *p, int g)
{
	const struct iq3_s *b = p->block;
	const uint16_t *k = p->from->k + 8*g;
	__m128i c[4];
	UNROLL for (int i = 0; i < 4; i++) c[i] = two_fours(grid_iq3_s, k[2*i], k[2*i + 1]);
	return signed_as(of_eights(c), signs_of_bytes(b->signs, g), g);
}
INLINE struct scales iq3_s_scales(const struct planes *p)
{
	const struct iq3_s *b = p->block;
	const __m256i by = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28),
		sc = y_and(_mm256_srlv_epi32(y_ints((int)u32_of(b->scales)), by), y_ints(15));
	return scales_of_32(y_or(_mm256_add_epi32(sc, sc), y_ints(1)));
}

/* ---- products ---- */

typedef struct thirty_two codes_fn(const struct planes *p, int g);
typedef struct scales scales_fn(const struct planes *p);
typedef __m256i start_fn(const struct planes *p, const struct strip256 *x);
INLINE __m256i no_start(const struct planes *p, const struct strip256 *x)
{
	(void)p; (void)x;
	return _mm256_setzero_si256();
}
/* The sums of the quarters of a, b, c, d, in this order in each half */
INLINE __m256i y_lanes(const __m256i *a)
{
	const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a[0], a[1]), _mm256_unpackhi_epi32(a[0], a[1])),
		cd = _mm256_add_epi32(_mm256_unpacklo_epi32(a[2], a[3]), _mm256_unpackhi_epi32(a[2], a[3]));
	return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}
INLINE void book_sums(int n, const struct planes *p, const struct arranged *t, int32_t *to, size_t step,
	codes_fn *codes, scales_fn *scales, start_fn *start)
{
	const struct scales sc = scales(p);
	__m256i sum[DIGITS_TOKENS];
	UNROLL for (int i = 0; i < n; i++) sum[i] = start(p, t[i].x);
	UNROLL for (int half = 0; half < 2; half++) {
		__m256i a[DIGITS_TOKENS][4];
		UNROLL for (int j = 0; j < 4; j++) {
			const int g = 4*half + j;
			const struct thirty_two c = codes(p, g);
			UNROLL for (int i = 0; i < n; i++) {
				const int16_t (*x)[16] = t[i].x->eights + 2*g;
				a[i][j] = i_madd(_mm256_madd_epi16(c.first, y_load(x[0])), c.second, y_load(x[1]));
			}
		}
		UNROLL for (int i = 0; i < n; i++)
			sum[i] = _mm256_add_epi32(sum[i], _mm256_mullo_epi32(y_lanes(a[i]), sc.of[half]));
	}
	UNROLL for (int i = 0; i < n; i++) y_store(to + (size_t)i*step, sum[i]);
}
#define BOOK_SUMS(name, start) \
INLINE void name##_sums(int n, const struct planes *p, const struct arranged *t, int32_t *to, size_t step) \
{ book_sums(n, p, t, to, step, name##_codes, name##_scales, start); }
BOOK_SUMS(iq2_xxs, no_start)
BOOK_SUMS(iq2_xs, no_start)
BOOK_SUMS(iq2_s, no_start)
BOOK_SUMS(iq3_xxs, no_start)
BOOK_SUMS(iq3_s, no_start)
BOOK_SUMS(iq1_s, iq1_s_start)
BOOK_SUMS(iq1_m, iq1_m_start)

/* ---- ternary types ---- */

#define tq2_0_prepare nothing
#define tq1_0_prepare nothing
/* Adds codes of TQ2_0 times digits of n tokens: [0] those at even places of their bytes, [1] those at odd ones, four
 * times as large, which saves shifts. */
INLINE void quarters(int n, __m256i q, const struct arranged *t, int at, __m256i (*high)[2], __m256i (*low)[2])
{
	const __m256i right = _mm256_srli_epi16(q, 4);
	UNROLL for (int k = 0; k < 4; k++) {
		const __m256i c = y_and(k < 2 ? q : right, k%2 ? y_bytes(12) : y_bytes(3));
		UNROLL for (int i = 0; i < n; i++) {
			const struct digits *x = t[i].x->in + ORDER_PLAIN;
			__m256i *h = high[i] + k%2, *l = low[i] + k%2;
			*h = _mm256_add_epi16(*h, _mm256_maddubs_epi16(c, y_load(x->high + at + 32*k)));
			*l = _mm256_add_epi16(*l, _mm256_maddubs_epi16(c, y_load(x->low + at + 32*k)));
			__asm__("" : "+x"(*h), "+x"(*l));       /* codes one after another, or registers run out */
		}
	}
}
INLINE void tq2_0_sums(int n, const struct planes *c, const struct arranged *t, int32_t *to, size_t step)
{
	__m256i high[DIGITS_TOKENS][2], low[DIGITS_TOKENS][2];
	UNROLL for (int i = 0; i < n; i++)
		high[i][0] = high[i][1] = low[i][0] = low[i][1] = _mm256_setzero_si256();
	const struct tq2_0 *b = c->block;
	quarters(n, y_load(b->qs), t, 0, high, low);
	quarters(n, y_load(b->qs + 32), t, 128, high, low);
	UNROLL for (int i = 0; i < n; i++) {
		const __m256i h = _mm256_add_epi16(high[i][0], _mm256_srai_epi16(high[i][1], 2)),
			l = _mm256_add_epi16(low[i][0], _mm256_srai_epi16(low[i][1], 2));
		y_store(to + (size_t)i*step, i_madd(i_madd(t[i].start, h, y_words(64)), l, y_words(1)));
	}
}
/* A byte a of TQ1_0 is a fraction of 256. Its first k digits of base 3 are the integer a*3^k/256, rounded down, which
 * is the upper half of 256*a times 3^k. A code is a difference, c[k] = first[k + 1] - 3*first[k], of two of them, so
 * the sum of c[k]*x[k] is that of first[k + 1]*(x[k] - 3*x[k + 1]), whose second factor the strip has. */
INLINE void tq1_0_sums(int n, const struct planes *c, const struct arranged *t, int32_t *to, size_t step)
{
	static const int16_t power[5] = { 3, 9, 27, 81, 243 };
	const struct tq1_0 *b = c->block;
	/* 32 bytes; the other 16, the 4 of qh, and zeros */
	const __m256i q[2] = { y_load(b->qs),
		_mm256_set_m128i(_mm_loadu_si32(b->qh), _mm_loadu_si128((const void *)(b->qs + 32))) };
	__m256i evens[DIGITS_TOKENS], odds[DIGITS_TOKENS];
	UNROLL for (int i = 0; i < n; i++) {
		evens[i] = t[i].start;
		odds[i] = _mm256_setzero_si256();
	}
	UNROLL for (int r = 0; r < 2; r++) {
		const __m256i even = _mm256_slli_epi16(q[r], 8), odd = y_and(q[r], y_words(0xff00));
		UNROLL for (int k = 0; k < 5; k++) {
			const __m256i first = _mm256_mulhi_epu16(even, y_words(power[k])),
				second = _mm256_mulhi_epu16(odd, y_words(power[k]));
			UNROLL for (int i = 0; i < n; i++) {
				const int16_t *x = t[i].x->thirds[k] + 32*r;
				evens[i] = i_madd(evens[i], first, y_load(x));
				odds[i] = i_madd(odds[i], second, y_load(x + 16));
				__asm__("" : "+x"(evens[i]), "+x"(odds[i]));
			}
		}
	}
	UNROLL for (int i = 0; i < n; i++) y_store(to + (size_t)i*step, _mm256_add_epi32(evens[i], odds[i]));
}

/* ---- what books_text.h asks for besides ---- */

INLINE struct planes of_block(const void *block, const struct prepared *from) { return (struct planes){ block, from }; }
INLINE void of_strip(const struct strip256 *x, int bias, struct arranged *t)
{
	const __m256i sum = _mm256_srai_epi32(_mm256_load_si256((const void *)x->sum128), 7);
	*t = (struct arranged){ x, _mm256_mullo_epi32(sum, y_ints(-bias)) };
}
#define PLANES(name) of_block
#define ARRANGE(order) of_strip
