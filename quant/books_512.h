/* SPDX-License-Identifier: MIT
 * books_512.h - the vocabulary of books_text.h in registers of 64 bytes, with VNNI, VBMI and GFNI.
 *
 * A code book of up to 512 words fits a few registers, and one instruction finds 32 or 64 words in two of them; the
 * upper bits of the words' numbers choose the right ones. Longer books are read word by word.
 *
 * The codes at the same place of their bytes, or of the words of a code book, are a plane. The columns in a lane of a
 * plane have the same scale, so the planes' products are added up before they are scaled.
 *
 * A byte of a plane is a place of four columns: plane k of place b is column 4b + k. So a lane of 32 bits is 16
 * consecutive columns, which share a scale. Only ternary types, which have one scale, arrange columns as their bytes
 * do. */
#include <immintrin.h>
#include <string.h>
#include "blocks.h"
#include "digits.h"
#include "grids.h"
#include "inline.h"

enum { ROWS = 16, SUPERS = 8, READS = 0 };      /* rows as in digits_512.h */
/* TQ2_0 is as fast as memory, so it must not wait for sums. */
enum { TERNARY_BY_ROWS = 0, SUPERS_TQ1_0 = 8, SUPERS_TQ2_0 = 2 };
enum { SIGNED = 64 };                   /* bias of codes with signs, which are below it */
enum { PLANES = 5 };
/* Of each order of columns: planes; whether there are scales of 16 columns, and deltas of 32 */
enum { N_sixteens = 4, N_deltas = 4, N_tq1_0 = 5, N_tq2_0 = 4 };
enum { SCALES = 1, DELTAS = 2 };
enum { HAS_sixteens = SCALES, HAS_deltas = SCALES | DELTAS, HAS_tq1_0 = 0, HAS_tq2_0 = 0 };
/* minus: where delta is -1 */
struct planes { __m512i c[PLANES], sc; __mmask8 minus; };
/* Words, or numbers of words */
struct prepared { _Alignas(64) uint16_t k[32]; };
struct arranged { __m512i high[PLANES], low[PLANES], start, start_plus; };

INLINE __m512i z_load(const void *p) { return _mm512_loadu_si512(p); }
/* Loads once: a block's bytes are in two lines, and compilers tend to read memory again. */
INLINE __m512i z_once(const void *p)
{
	__m512i a = z_load(p);
	__asm__("" : "+v"(a));
	return a;
}
INLINE __m512i z_bytes(int n) { return _mm512_set1_epi8((char)n); }
INLINE __m512i z_words(int n) { return _mm512_set1_epi16((short)n); }
/* The same eight bytes in all eight lanes; eight integers of 16 bits, one in each lane; eight of 32 bits */
INLINE __m512i z_eight(const void *p)
{
	long long a;
	memcpy(&a, p, sizeof a);
	return _mm512_set1_epi64(a);
}
INLINE __m512i z_from16(const void *p) { return _mm512_cvtepu16_epi64(_mm_loadu_si128(p)); }
INLINE __m512i z_from32(const void *p) { return _mm512_cvtepu32_epi64(_mm256_loadu_si256(p)); }
/* 32 bytes as words */
INLINE __m512i z_from8(const void *p) { return _mm512_cvtepu8_epi16(_mm256_loadu_si256(p)); }

/* ---- fields of bits ---- */

#define AT(a, b, c, d, e, f, g, h) \
	((a) + (b)*(1ull << 8) + (c)*(1ull << 16) + (d)*(1ull << 24) + (e)*(1ull << 32) + (f)*(1ull << 40) + \
	(g)*(1ull << 48) + (h)*(1ull << 56))

/* first[i] + j*step in byte i of lane j */
INLINE __m512i in_steps(uint64_t first, int step)
{
	typedef uint64_t v8 __attribute__((vector_size(64)));
	const v8 lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
	return (__m512i)(lane*(0x0101010101010101*(uint64_t)step) + first);
}
/* Each byte is the eight bits from there on in its lane of 64. */
INLINE __m512i fields(__m512i x, __m512i from) { return _mm512_multishift_epi64_epi8(from, x); }
/* 2*ls + 1 in each 32 bits; ls has n bits, from bit at[0] or at[4] of the lane on */
INLINE __m512i odd_scales(__m512i x, int n, __m512i at)
{
	__m512i ls = fields(x, _mm512_sub_epi8(at, z_bytes(1)));
	return _mm512_ternarylogic_epi32(ls, _mm512_set1_epi32((2 << n) - 2), _mm512_set1_epi32(1), 0xea);
}
/* a, and above it the bits of b in the mask */
INLINE __m512i join(__m512i a, __m512i b, int mask)
{
	return _mm512_ternarylogic_epi32(b, z_words(mask), a, 0xea);
}

/* ---- code books ---- */

/* Byte k of 128, with bits 0 to 6 of k */
INLINE __m512i bytes_of_128(const uint8_t *book, __m512i k)
{
	return _mm512_permutex2var_epi8(z_load(book), k, z_load(book + 64));
}
/* m: where bit 7 of the number is set; n, o: bits 8 and 9 */
INLINE __m512i bytes_of_256(const uint8_t *book, __m512i k, __mmask64 m)
{
	return _mm512_mask_blend_epi8(m, bytes_of_128(book, k), bytes_of_128(book + 128, k));
}
INLINE __m512i bytes_of_512(const uint8_t *book, __m512i k, __mmask64 m, __mmask64 n)
{
	return _mm512_mask_blend_epi8(n, bytes_of_256(book, k, m), bytes_of_256(book + 256, k, m));
}
INLINE __m512i bytes_of_1024(const uint8_t *book, __m512i k, __mmask64 m, __mmask64 n, __mmask64 o)
{
	return _mm512_mask_blend_epi8(o, bytes_of_512(book, k, m, n), bytes_of_512(book + 512, k, m, n));
}
INLINE __m128i eight_words(const uint16_t *book, const uint16_t *k)
{
	__m128i a = _mm_cvtsi32_si128(book[k[0]]);
	a = _mm_insert_epi16(a, book[k[1]], 1);
	a = _mm_insert_epi16(a, book[k[2]], 2);
	a = _mm_insert_epi16(a, book[k[3]], 3);
	a = _mm_insert_epi16(a, book[k[4]], 4);
	a = _mm_insert_epi16(a, book[k[5]], 5);
	a = _mm_insert_epi16(a, book[k[6]], 6);
	return _mm_insert_epi16(a, book[k[7]], 7);
}
/* 32 words of the book, read one by one */
INLINE __m512i of_many(const uint16_t *book, const uint16_t *k)
{
	__m256i a, b;
	a = _mm256_set_m128i(eight_words(book, k + 8), eight_words(book, k));
	b = _mm256_set_m128i(eight_words(book, k + 24), eight_words(book, k + 16));
	return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}
typedef uint8_t v64 __attribute__((vector_size(64)));
/* All values of six bits */
INLINE v64 six_bits(void)
{
	return (v64){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
		26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
		52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63 };
}
INLINE __m512i of_levels(__m128i level, v64 k)
{
	return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(level), (__m512i)k);
}
/* For each value of six bits: the level of its n bits from `from` on; of two bits from there on with bit `above` */
INLINE __m512i levels_at(__m128i level, int from, int n)
{
	return of_levels(level, (six_bits() >> from) & (uint8_t)((1 << n) - 1));
}
INLINE __m512i levels_and(__m128i level, int from, int above)
{
	const v64 i = six_bits();
	return of_levels(level, ((i >> from) & 3) | ((i >> above) & 1) << 2);
}
/* Each bit from a where it is set in m, else from b */
INLINE __m512i choose(__m512i m, __m512i a, __m512i b) { return _mm512_ternarylogic_epi32(m, a, b, 0xca); }
/* Words of eight elements of two bits: four planes. Each element has one bit more, which selects the upper half of
 * level: for the elements of the first two planes, bits 4 and `second` of the bytes of more0; for the others, those of
 * more1. */
INLINE void plain_fours(struct planes *p, __m512i words, __m512i more0, __m512i more1, int second, __m128i level)
{
	const __m512i low = z_bytes(15), even = levels_and(level, 0, 4), odd = levels_and(level, 2, second);
	__m512i a = choose(low, words, more0), b = choose(low, _mm512_srli_epi16(words, 4), more1);
	p->c[0] = _mm512_permutexvar_epi8(a, even);
	p->c[1] = _mm512_permutexvar_epi8(a, odd);
	p->c[2] = _mm512_permutexvar_epi8(b, even);
	p->c[3] = _mm512_permutexvar_epi8(b, odd);
}
/* For IQ2. The signs of a byte's four elements are its bits from 4 on. */
INLINE void signed_fours(struct planes *p, __m512i words, __m512i signs)
{
	const __m128i level = _mm_setr_epi8(64 + 8, 64 + 25, 64 + 43, 0, 64 - 8, 64 - 25, 64 - 43, 0, 0, 0, 0, 0, 0, 0,
		0, 0);
	plain_fours(p, words, signs, _mm512_srli_epi16(signs, 2), 5, level);
}
/* Words of four elements of three bits, as halves of two elements */
INLINE void plain_threes(struct planes *p, __m512i first, __m512i second, __m128i level)
{
	const __m512i even = levels_at(level, 0, 3), odd = levels_at(level, 3, 3);
	p->c[0] = _mm512_permutexvar_epi8(first, even);
	p->c[1] = _mm512_permutexvar_epi8(first, odd);
	p->c[2] = _mm512_permutexvar_epi8(second, even);
	p->c[3] = _mm512_permutexvar_epi8(second, odd);
}
/* Codes have their bias. A byte of signs is for two places: its lower four bits are for the first. */
INLINE void give_signs(struct planes *p, __m512i signs)
{
	UNROLL for (int k = 0; k < 4; k++) {
		__mmask64 m = _mm512_test_epi8_mask(signs, z_words(1 << k | 0x1000 << k));
		p->c[k] = _mm512_mask_sub_epi8(p->c[k], m, z_bytes(2*SIGNED), p->c[k]);
	}
}
/* Seven signs for each two places; the eighth makes the number of minuses even. */
INLINE __m512i even_signs(__m512i sevens)
{
	return _mm512_gf2p8affine_epi64_epi8(sevens, _mm512_set1_epi64(0x010204081020407f), 0);
}
/* 32 bytes of signs, each twice */
INLINE __m512i bytes_twice(const void *p)
{
	__m512i a = z_from8(p);
	return _mm512_or_si512(a, _mm512_slli_epi16(a, 8));
}

/* Signs in each of two bytes: the lower four for the first, the upper ones for the second, from bit 4 on */
INLINE __m512i in_fours(__m512i x)
{
	return fields(x, in_steps(AT(60, 0, 12, 16, 28, 32, 44, 48), 0));
}

/* ---- words of two rows ---- */

/* Alternately eight bytes of a and of b: 16j + at[i] of each, i from 0 to 7 */
INLINE __m512i by_turns(__m512i a, __m512i b, v64 at)
{
	const v64 i = six_bits();
	return _mm512_permutex2var_epi8(a, (__m512i)((i & 0x30) | (i & 8) << 3 | at), b);
}
/* Joins first and second halves to words, and stores those of each row. */
INLINE void put_words(struct prepared *to, __m512i first, __m512i second)
{
	_mm512_store_si512(to[0].k, _mm512_unpacklo_epi8(first, second));
	_mm512_store_si512(to[1].k, _mm512_unpackhi_epi8(first, second));
}
INLINE const void *block_at(const char *w, size_t stride, size_t r) { return w + r*stride; }
/* The row that is processed with the r-th: the next one, or itself if it is the last */
INLINE size_t second_of(size_t r, size_t n) { return r + 1 < n ? r + 1 : r; }

/* ---- the types ---- */

INLINE void nothing(const char *w, size_t stride, size_t n, struct prepared *to)
{
	(void)w; (void)stride; (void)n; (void)to;
}
#define iq3_xxs_prepare nothing
#define iq3_s_prepare nothing
#define tq1_0_prepare nothing
#define tq2_0_prepare nothing

INLINE void iq2_xxs_prepare(const char *w, size_t stride, size_t n, struct prepared *to)
{
	const v64 i = six_bits();
	for (size_t r = 0; r < n; r += 2) {
		const struct iq2_xxs *a = block_at(w, stride, r), *b = block_at(w, stride, second_of(r, n));
		__m512i k = by_turns(z_load(a->qs), z_load(b->qs), (i & 3) | (i & 4) << 1);
		__mmask64 m = _mm512_movepi8_mask(k);
		put_words(to + r, bytes_of_256(halved_iq2_xxs[0], k, m), bytes_of_256(halved_iq2_xxs[1], k, m));
	}
}
INLINE struct planes iq2_xxs_planes(const void *block, const struct prepared *from)
{
	const struct iq2_xxs *b = block;
	struct planes p;
	const __m512i q = z_once(b->qs), sevens = fields(q, in_steps(AT(32, 32, 39, 39, 46, 46, 53, 53), 0));
	signed_fours(&p, z_load(from->k), in_fours(even_signs(sevens)));
	p.sc = odd_scales(q, 4, in_steps(AT(60, 0, 0, 0, 60, 0, 0, 0), 0));
	return p;
}
/* Eight bytes, each with two scales */
INLINE __m512i nibble_scales(const void *p)
{
	return odd_scales(z_eight(p), 4, in_steps(AT(0, 0, 0, 0, 4, 0, 0, 0), 8));
}
INLINE void iq2_xs_prepare(const char *w, size_t stride, size_t n, struct prepared *to)
{
	const uint8_t (*book)[512] = halved_iq2_xs;
	const v64 even = (six_bits() & 7) << 1;
	for (size_t r = 0; r < n; r += 2) {
		const struct iq2_xs *a = block_at(w, stride, r), *b = block_at(w, stride, second_of(r, n));
		const __m512i x = z_load(a->qs), y = z_load(b->qs), k = by_turns(x, y, even),
			up = by_turns(x, y, even | 1);
		__mmask64 m = _mm512_movepi8_mask(k), o = _mm512_test_epi8_mask(up, z_bytes(1));
		put_words(to + r, bytes_of_512(book[0], k, m, o), bytes_of_512(book[1], k, m, o));
	}
}
INLINE struct planes iq2_xs_planes(const void *block, const struct prepared *from)
{
	const struct iq2_xs *b = block;
	struct planes p;
	const __m512i sevens = fields(z_load(b->qs), in_steps(AT(9, 9, 25, 25, 41, 41, 57, 57), 0));
	signed_fours(&p, z_load(from->k), in_fours(even_signs(sevens)));
	p.sc = nibble_scales(b->scales);
	return p;
}
/* Alternately eight of 32 bytes */
INLINE __m512i eights(const void *a, const void *b)
{
	return _mm512_permutex2var_epi64(_mm512_castsi256_si512(_mm256_loadu_si256(a)),
		_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), _mm512_castsi256_si512(_mm256_loadu_si256(b)));
}
/* Alternately the two bits of eight of 32 numbers, lowest in bytes */
INLINE __m512i eights_of_pairs(const void *a, const void *b)
{
	typedef uint64_t v8 __attribute__((vector_size(64)));
	const v8 j = { 0, 0, 1, 1, 2, 2, 3, 3 };
	return fields(_mm512_unpacklo_epi64(z_eight(a), z_eight(b)),
		(__m512i)(j*0x1010101010101010 + AT(0, 2, 4, 6, 8, 10, 12, 14)));
}
INLINE void iq2_s_prepare(const char *w, size_t stride, size_t n, struct prepared *to)
{
	const uint8_t (*book)[1024] = halved_iq2_s;
	for (size_t r = 0; r < n; r += 2) {
		const struct iq2_s *a = block_at(w, stride, r), *b = block_at(w, stride, second_of(r, n));
		const __m512i k = eights(a->qs, b->qs), up = eights_of_pairs(a->qh, b->qh);
		__mmask64 m = _mm512_movepi8_mask(k), o = _mm512_test_epi8_mask(up, z_bytes(1)),
			q = _mm512_test_epi8_mask(up, z_bytes(2));
		put_words(to + r, bytes_of_1024(book[0], k, m, o, q), bytes_of_1024(book[1], k, m, o, q));
	}
}
INLINE struct planes iq2_s_planes(const void *block, const struct prepared *from)
{
	const struct iq2_s *b = block;
	struct planes p;
	signed_fours(&p, z_load(from->k), fields(z_from32(b->qs + 32), in_steps(AT(60, 0, 4, 8, 12, 16, 20, 24), 0)));
	p.sc = nibble_scales(b->scales);
	return p;
}
INLINE struct planes iq3_xxs_planes(const void *block, const struct prepared *none)
{
	const struct iq3_xxs *b = block;
	(void)none;
	const uint8_t (*book)[256] = halved_iq3_xxs;
	const __m128i level = _mm_add_epi8(_mm_setr_epi8(4, 12, 20, 28, 36, 44, 52, 62, 0, 0, 0, 0, 0, 0, 0, 0),
		_mm_set1_epi8(SIGNED));
	struct planes p;
	const __m512i k = z_once(b->qs), tail = z_from32(b->qs + 64);
	__mmask64 m = _mm512_movepi8_mask(k);
	plain_threes(&p, bytes_of_256(book[0], k, m), bytes_of_256(book[1], k, m), level);
	give_signs(&p, even_signs(fields(tail, in_steps(AT(0, 0, 7, 7, 14, 14, 21, 21), 0))));
	p.sc = odd_scales(tail, 4, in_steps(AT(28, 0, 0, 0, 28, 0, 0, 0), 0));
	return p;
}
INLINE struct planes iq3_s_planes(const void *block, const struct prepared *none)
{
	const struct iq3_s *b = block;
	(void)none;
	const uint8_t (*book)[512] = halved_iq3_s;
	const __m128i level = _mm_setr_epi8(65, 67, 69, 71, 73, 75, 77, 79, 0, 0, 0, 0, 0, 0, 0, 0);
	struct planes p;
	const __m512i k = z_once(b->qs);
	__mmask64 m = _mm512_movepi8_mask(k), n;
	uint32_t sc;
	memcpy(&n, b->qh, sizeof n);
	memcpy(&sc, b->scales, sizeof sc);
	plain_threes(&p, bytes_of_512(book[0], k, m, n), bytes_of_512(book[1], k, m, n), level);
	give_signs(&p, bytes_twice(b->signs));
	p.sc = odd_scales(_mm512_set1_epi32((int)sc), 4, in_steps(AT(0, 0, 0, 0, 0, 0, 0, 0), 4));
	return p;
}
/* The upper three bits of numbers are those of h from `from` on, in every second byte. */
INLINE void iq1_numbers(struct prepared *to, const void *qs, const void *qh, uint64_t from)
{
	_mm512_store_si512(to->k, join(z_from8(qs), fields(z_from16(qh), in_steps(from, 0)), 0x700));
}
INLINE void iq1_s_prepare(const char *w, size_t stride, size_t n, struct prepared *to)
{
	for (size_t r = 0; r < n; r++) {
		const struct iq1_s *b = block_at(w, stride, r);
		iq1_numbers(to + r, b->qs, b->qh, AT(0, 0, 0, 3, 0, 6, 0, 9));
	}
}
/* Digits 0, 1, 2 of the code book, delta 1 or -1: 8*(digit - 1) + delta, of which the product has 8*digit and the start
 * has the rest. */
INLINE struct planes iq1_s_planes(const void *block, const struct prepared *from)
{
	const struct iq1_s *b = block;
	const __m128i level = _mm_set1_epi32(0x00100800);
	const __m512i words = of_many(brief_iq1, from->k);
	return (struct planes){ .c = { _mm512_permutexvar_epi8(words, levels_at(level, 0, 2)),
		_mm512_permutexvar_epi8(words, levels_at(level, 2, 2)),
		_mm512_permutexvar_epi8(words, levels_at(level, 4, 2)),
		_mm512_permutexvar_epi8(_mm512_srli_epi16(words, 2), levels_at(level, 4, 2)) },
		.sc = odd_scales(z_from16(b->qh), 3, in_steps(AT(12, 0, 0, 0, 12, 0, 0, 0), 0)),
		.minus = _mm_movepi16_mask(_mm_loadu_si128((const void *)b->qh)) };
}
INLINE void iq1_m_prepare(const char *w, size_t stride, size_t n, struct prepared *to)
{
	for (size_t r = 0; r < n; r++) {
		const struct iq1_m *b = block_at(w, stride, r);
		iq1_numbers(to + r, b->qs, b->qh, AT(0, 0, 0, 4, 0, 8, 0, 12));
	}
}
INLINE struct planes iq1_m_planes(const void *block, const struct prepared *from)
{
	const struct iq1_m *b = block;
	struct planes p;
	const __m512i h = z_from16(b->qh);
	/* four integers of 16 bits, each with four scales */
	const __m512i at = _mm512_setr_epi64(AT(0, 0, 0, 0, 3, 0, 0, 0), AT(6, 0, 0, 0, 9, 0, 0, 0),
		AT(16, 0, 0, 0, 19, 0, 0, 0), AT(22, 0, 0, 0, 25, 0, 0, 0), AT(32, 0, 0, 0, 35, 0, 0, 0),
		AT(38, 0, 0, 0, 41, 0, 0, 0), AT(48, 0, 0, 0, 51, 0, 0, 0), AT(54, 0, 0, 0, 57, 0, 0, 0));
	const __m512i minus = fields(h, in_steps(AT(63, 63, 3, 3, 7, 7, 11, 11), 0));
	/* as iq1_s_planes, but with a bias of 9, as deltas change within a lane */
	plain_fours(&p, of_many(brief_iq1, from->k), minus, minus, 4,
		_mm_setr_epi8(2, 10, 18, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	p.sc = odd_scales(z_eight(b->scales), 3, at);
	return p;
}
INLINE struct planes tq2_0_planes(const void *block, const struct prepared *none)
{
	const struct tq2_0 *b = block;
	(void)none;
	const __m512i q = z_once(b->qs), three = z_bytes(3);
	return (struct planes){ .c = { _mm512_and_si512(q, three), _mm512_and_si512(_mm512_srli_epi16(q, 2), three),
		_mm512_and_si512(_mm512_srli_epi16(q, 4), three), _mm512_and_si512(_mm512_srli_epi16(q, 6), three) } };
}
INLINE struct planes tq1_0_planes(const void *block, const struct prepared *none)
{
	const struct tq1_0 *b = block;
	(void)none;
	const __m128i digit = _mm_setr_epi8(0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	const __m512i q = _mm512_maskz_loadu_epi8((1ull << 52) - 1, b->qs), three = z_bytes(3),
		second = levels_at(digit, 2, 2), third = levels_at(digit, 4, 2);
	__mmask64 m = _mm512_movepi8_mask(q);
	__m512i u = bytes_of_256(digits_tq1[0], q, m), v = bytes_of_256(digits_tq1[1], q, m);
	return (struct planes){ .c = { _mm512_and_si512(u, three), _mm512_permutexvar_epi8(u, second),
		_mm512_permutexvar_epi8(u, third), _mm512_and_si512(v, three), _mm512_permutexvar_epi8(v, second) } };
}

/* ---- activations in the order of planes ---- */

INLINE void arrange_planes(const int8_t *x, __m512i *to)
{
	UNROLL for (int k = 0; k < 4; k += 2) {
		/* plane k of 128 columns, and k + 1 */
		__m512i at = in_steps(AT(k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24, k + 28), 32), a, b;
		at = _mm512_mask_add_epi8(at, 0xffffffff00000000, at, z_bytes(1));
		a = _mm512_permutex2var_epi8(z_load(x), at, z_load(x + 64));
		b = _mm512_permutex2var_epi8(z_load(x + 128), at, z_load(x + 192));
		to[k] = _mm512_inserti64x4(a, _mm512_castsi512_si256(b), 1);
		to[k + 1] = _mm512_shuffle_i64x2(a, b, 0xee);
	}
}
INLINE __m512i start(const struct strip256 *x, int bias)
{
	__m512i sum = _mm512_cvtepi16_epi32(_mm256_load_si256((const void *)x->sum));
	return _mm512_mullo_epi32(sum, _mm512_set1_epi32(-bias));
}
INLINE void arrange_sixteens(const struct strip256 *x, int bias, struct arranged *t)
{
	arrange_planes(x->in[ORDER_PLAIN].high, t->high);
	arrange_planes(x->in[ORDER_PLAIN].low, t->low);
	t->start = start(x, bias);
}
/* bias: of codes whose delta is -1 */
INLINE void arrange_deltas(const struct strip256 *x, int bias, struct arranged *t)
{
	arrange_sixteens(x, bias, t);
	t->start_plus = start(x, bias - 2);
}
INLINE __m512i two_halves(const int8_t *a, const int8_t *b)
{
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)a)),
		_mm256_loadu_si256((const void *)b), 1);
}
INLINE void arrange_tq2_0(const struct strip256 *x, int bias, struct arranged *t)
{
	UNROLL for (int k = 0; k < 4; k++) {
		t->high[k] = two_halves(x->in[ORDER_PLAIN].high + 32*k, x->in[ORDER_PLAIN].high + 128 + 32*k);
		t->low[k] = two_halves(x->in[ORDER_PLAIN].low + 32*k, x->in[ORDER_PLAIN].low + 128 + 32*k);
	}
	t->start = start(x, bias);
}
/* The columns of the k-th digits of 32 bytes, then of 16, then of 4, then nothing */
INLINE __m512i tq1_plane(const int8_t *x, int k)
{
	__m512i a = _mm512_zextsi256_si512(_mm256_loadu_si256((const void *)(x + 32*k)));
	a = _mm512_inserti32x4(a, _mm_loadu_si128((const void *)(x + 160 + 16*k)), 2);
	return k < 4 ? _mm512_inserti32x4(a, _mm_loadu_si32(x + 240 + 4*k), 3) : a;
}
INLINE void arrange_tq1_0(const struct strip256 *x, int bias, struct arranged *t)
{
	UNROLL for (int k = 0; k < 5; k++) {
		t->high[k] = tq1_plane(x->in[ORDER_PLAIN].high, k);
		t->low[k] = tq1_plane(x->in[ORDER_PLAIN].low, k);
	}
	t->start = start(x, bias);
}

/* ---- products ---- */

INLINE __m256i planes_sum(int n, int has, const struct planes *c, const struct arranged *t)
{
	__m512i s = _mm512_setzero_si512(), u = t->start;
	if (has & DELTAS) u = _mm512_mask_blend_epi64(c->minus, t->start_plus, u);
	UNROLL for (int k = 0; k < n; k++) {
		s = _mm512_dpbusd_epi32(s, c->c[k], t->high[k]);
		u = _mm512_dpbusd_epi32(u, c->c[k], t->low[k]);
	}
	s = _mm512_add_epi32(_mm512_slli_epi32(s, 6), u);
	if (has & SCALES) s = _mm512_mullo_epi32(s, c->sc);
	return _mm256_add_epi32(_mm512_castsi512_si256(s), _mm512_extracti64x4_epi64(s, 1));
}

#define PLANES(name) name##_planes
#define ARRANGE(order) arrange_##order
#define SUMS_OF(name, order) \
INLINE void name##_sums(int n, const struct planes *c, const struct arranged *t, int32_t *to, size_t step) \
{ \
	UNROLL for (int i = 0; i < n; i++, to += step) \
		_mm256_store_si256((void *)to, planes_sum(N_##order, HAS_##order, c, t + i)); \
}
SUMS_OF(iq2_xxs, sixteens)
SUMS_OF(iq2_xs, sixteens)
SUMS_OF(iq2_s, sixteens)
SUMS_OF(iq3_xxs, sixteens)
SUMS_OF(iq3_s, sixteens)
SUMS_OF(iq1_s, deltas)
SUMS_OF(iq1_m, sixteens)
SUMS_OF(tq1_0, tq1_0)
SUMS_OF(tq2_0, tq2_0)
