/* SPDX-License-Identifier: MIT
 * books_256.h - the vocabulary of books_text.h in registers of 32 bytes. The instance first includes ymm_ISA.h.
 *
 * Words of a code book are read one by one, and may go to any lane. Register i of eight has, in the order of lanes,
 * words i, 8 + i, 16 + i and so on of the block: four words of eight, in lanes of 64 bits, or eight words of four, in
 * lanes of 32 bits. So a lane of all eight registers is a quarter or an eighth of the block. Products of a lane stay in
 * 16 bits until the registers with the same scales are added up, at most 62*16*32 = 31744; what a bias adds may
 * overflow. */
#include <string.h>
#include "bytes_avx2.h"
#include "blocks.h"
#include "digits.h"
#include "grids.h"

#define UNROLL _Pragma("GCC unroll 16")
enum { ROWS = 8 };                      /* side by side, as in digits_256.h */
enum { SIGNED = 64 };                   /* bias of codes with signs, which are below it */
enum { REGISTERS = 8 };
/* For each order of columns: registers, and groups of them with their own scales, one group after another */
enum { N_fours = 8, GROUPS_fours = 2, N_twos = 8, GROUPS_twos = 4, N_threes = 8, GROUPS_threes = 1,
	N_deltas = N_fours, GROUPS_deltas = GROUPS_fours };
/* Of ternary types: c[0] and c[1], a block's bytes */
struct planes { __m256i c[REGISTERS], sc[4]; };
/* start_high, start_low: minus what the bias adds, by group; ternary types have one `start` instead, and no digits */
struct arranged {
	__m256i high[REGISTERS], low[REGISTERS], start_high[4], start_low[4], start;
	const struct strip256 *from;
};
/* For a block: numbers of words; a bit for each sign */
struct prepared { _Alignas(32) uint16_t k[64]; uint8_t signs[32]; };

INLINE void y_store(void *p, __m256i a) { _mm256_store_si256(p, a); }
INLINE __m256i y_words(int n) { return _mm256_set1_epi16((short)n); }
INLINE __m256i y_table(__m128i t) { return _mm256_broadcastsi128_si256(t); }
INLINE __m256i y_and(__m256i a, __m256i b) { return _mm256_and_si256(a, b); }
INLINE __m256i y_or(__m256i a, __m256i b) { return _mm256_or_si256(a, b); }
/* a b c d, four times */
INLINE __m256i y_fours(int a, int b, int c, int d)
{
	return _mm256_set1_epi64x((long long)((uint64_t)(uint16_t)d << 48 | (uint64_t)(uint16_t)c << 32 |
		(uint64_t)(uint16_t)b << 16 | (uint16_t)a));
}

/* ---- code books ---- */

/* Codes with the signs of a register's words, and their bias: byte b's sign is the bit bit[b] of signs' byte at[b] */
INLINE __m256i signed_codes(__m256i c, __m256i signs, __m256i at, __m256i bit)
{
	__m256i minus = _mm256_cmpeq_epi8(y_and(_mm256_shuffle_epi8(signs, at), bit), bit);
	return _mm256_add_epi8(_mm256_sign_epi8(c, y_or(minus, y_bytes(1))), y_bytes(SIGNED));
}
/* The words of eight of register i */
INLINE __m256i words_of_eight(const uint64_t *book, const uint16_t *k, int i)
{
	return _mm256_set_m128i(two64(book + k[i + 16], book + k[i + 24]), two64(book + k[i], book + k[i + 8]));
}
/* Byte i of each lane of 64 bits */
INLINE __m256i of_lane(int i)
{
	return _mm256_add_epi8(_mm256_setr_epi64x(0, 0x0808080808080808, 0, 0x0808080808080808), y_bytes(i));
}
INLINE void signed_eights(struct planes *p, const uint64_t *book, const uint16_t *k, const void *signs)
{
	const __m256i s = y_load(signs), bit = _mm256_set1_epi64x((long long)0x8040201008040201);
	UNROLL for (int i = 0; i < 8; i++) p->c[i] = signed_codes(words_of_eight(book, k, i), s, of_lane(i), bit);
}
/* Bytes of seven signs; the eighth makes the number of minuses even. */
INLINE __m256i even_signs(__m256i s)
{
	const char o = -128;
	const __m256i odd = y_table(_mm_setr_epi8(0, o, o, 0, o, 0, 0, o, o, 0, 0, o, 0, o, o, 0));
	__m256i fold = y_and(_mm256_xor_si256(s, _mm256_srli_epi16(s, 4)), y_bytes(15));
	return y_or(s, _mm256_shuffle_epi8(odd, fold));
}
/* Four times seven bits of each 32 */
INLINE __m256i sevens(__m256i t)
{
	t = y_or(y_and(t, _mm256_set1_epi32(0x3fff)), y_and(_mm256_slli_epi32(t, 2), _mm256_set1_epi32(0x3fff0000)));
	t = y_or(y_and(t, y_words(0x7f)), y_and(_mm256_slli_epi32(t, 1), y_words(0x7f00)));
	return even_signs(t);
}
/* ls in the last four bits of 32: 2*ls + 1 */
INLINE __m256i tail_scales(__m256i t) { return y_or(_mm256_srli_epi32(t, 27), _mm256_set1_epi32(1)); }
/* The n-th word of each lane of 64 bits, four times */
INLINE __m256i word_of_lane(__m256i a, int n)
{
	const __m256i first = _mm256_setr_epi64x(0x0100010001000100, 0x0908090809080908, 0x0100010001000100,
		0x0908090809080908);
	return _mm256_shuffle_epi8(a, _mm256_add_epi8(first, y_bytes(2*n)));
}
/* From 16 words; from 8 integers of 32 bits */
INLINE void scales_of_16(struct planes *p, __m256i sc)
{
	UNROLL for (int g = 0; g < 4; g++) p->sc[g] = word_of_lane(sc, g);
}
INLINE void scales_of_32(struct planes *p, __m256i sc)
{
	p->sc[0] = word_of_lane(sc, 0);
	p->sc[1] = word_of_lane(sc, 2);
}
/* Eight bytes, each with two scales */
INLINE void nibble_scales(struct planes *p, const void *from)
{
	__m128i x = _mm_loadl_epi64(from), low = _mm_set1_epi8(15);
	x = _mm_unpacklo_epi8(_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi16(x, 4), low));
	scales_of_16(p, _mm256_cvtepu8_epi16(_mm_or_si128(_mm_add_epi8(x, x), _mm_set1_epi8(1))));
}

/* ---- words of eight ---- */

#define ONE_BY_ONE(name) \
INLINE void name##_prepare(const char *w, size_t stride, size_t n, struct prepared *to) \
{ \
	for (; n--; w += stride) name##_prepare_one(w, to++); \
}

/* The 32 bits after each 32 bits of numbers */
INLINE __m256i iq2_xxs_tails(const struct iq2_xxs *b)
{
	__m256 x = (__m256)y_load(b->qs), y = (__m256)y_load(b->qs + 16);
	return _mm256_permute4x64_epi64((__m256i)_mm256_shuffle_ps(x, y, 0xdd), 0xd8);
}
INLINE void iq2_xxs_prepare_one(const void *block, struct prepared *to)
{
	const struct iq2_xxs *b = block;
	const __m256i first = y_table(_mm_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, -1));
	y_store(to->k, _mm256_shuffle_epi8(y_load(b->qs), first));
	y_store(to->k + 16, _mm256_shuffle_epi8(y_load(b->qs + 16), first));
	y_store(to->signs, sevens(iq2_xxs_tails(b)));
}
ONE_BY_ONE(iq2_xxs)
INLINE struct planes iq2_xxs_planes(const void *block, const struct prepared *from)
{
	const struct iq2_xxs *b = block;
	struct planes p;
	signed_eights(&p, grid_iq2_xxs, from->k, from->signs);
	scales_of_32(&p, tail_scales(iq2_xxs_tails(b)));
	return p;
}
INLINE void iq2_xs_prepare_one(const void *block, struct prepared *to)
{
	const struct iq2_xs *b = block;
	__m256i x = y_load(b->qs), y = y_load(b->qs + 16), s;
	y_store(to->k, y_and(x, y_words(511)));
	y_store(to->k + 16, y_and(y, y_words(511)));
	s = _mm256_packus_epi16(_mm256_srli_epi16(x, 9), _mm256_srli_epi16(y, 9));
	y_store(to->signs, even_signs(_mm256_permute4x64_epi64(s, 0xd8)));
}
ONE_BY_ONE(iq2_xs)
INLINE struct planes iq2_xs_planes(const void *block, const struct prepared *from)
{
	const struct iq2_xs *b = block;
	struct planes p;
	signed_eights(&p, grid_iq2_xs, from->k, from->signs);
	nibble_scales(&p, b->scales);
	return p;
}
/* The low bytes of 16 numbers, and above them the upper bits that are in the mask */
INLINE void join(uint16_t *k, const uint8_t *low, __m256i up, int mask)
{
	__m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)low));
	y_store(k, y_or(a, y_and(up, y_words(mask))));
}
INLINE void iq2_s_prepare_one(const void *block, struct prepared *to)
{
	const struct iq2_s *b = block;
	const __m256i at = _mm256_setr_epi64x((long long)0xff00ff00ff00ff00, (long long)0xff01ff01ff01ff01,
		(long long)0xff02ff02ff02ff02, (long long)0xff03ff03ff03ff03), by = y_fours(256, 64, 16, 4);
	__m256i h = y_table(_mm_loadl_epi64((const void *)b->qh)), up = _mm256_srli_epi64(h, 32);
	join(to->k, b->qs, _mm256_mullo_epi16(_mm256_shuffle_epi8(h, at), by), 0x300);
	join(to->k + 16, b->qs + 16, _mm256_mullo_epi16(_mm256_shuffle_epi8(up, at), by), 0x300);
}
ONE_BY_ONE(iq2_s)
INLINE struct planes iq2_s_planes(const void *block, const struct prepared *from)
{
	const struct iq2_s *b = block;
	struct planes p;
	signed_eights(&p, grid_iq2_s, from->k, b->qs + 32);
	nibble_scales(&p, b->scales);
	return p;
}
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
/* Digits 0, 1, 2 of the code book, delta 1 or -1: 8*(digit - 1) + delta with a bias of 9. minus: all ones or nothing */
INLINE __m256i iq1_codes(const uint16_t *k, int i, __m256i minus)
{
	__m256i c = _mm256_slli_epi16(words_of_eight(grid_iq1, k, i), 3);
	return _mm256_add_epi8(c, _mm256_andnot_si256(minus, y_bytes(2)));
}
INLINE void iq1_s_prepare_one(const void *block, struct prepared *to)
{
	const struct iq1_s *b = block;
	iq1_numbers(to->k, b->qs, b->qh, 3);
}
ONE_BY_ONE(iq1_s)
INLINE struct planes iq1_s_planes(const void *block, const struct prepared *from)
{
	const struct iq1_s *b = block;
	const __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)b->qh)), minus = _mm256_srai_epi16(h, 15),
		ls = y_and(_mm256_srli_epi16(h, 11), y_words(14));
	struct planes p;
	UNROLL for (int i = 0; i < 8; i++) p.c[i] = iq1_codes(from->k, i, word_of_lane(minus, i/4*2));
	scales_of_32(&p, y_or(ls, y_words(1)));
	return p;
}
INLINE void iq1_m_prepare_one(const void *block, struct prepared *to)
{
	const struct iq1_m *b = block;
	iq1_numbers(to->k, b->qs, b->qh, 4);
}
ONE_BY_ONE(iq1_m)
INLINE struct planes iq1_m_planes(const void *block, const struct prepared *from)
{
	const struct iq1_m *b = block;
	/* lanes of 32 bits of qh twice: half a byte for each register */
	const __m256i h = _mm256_permutevar8x32_epi32(y_twice(b->qh), _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
		by = y_fours(1 << 13, 1 << 10, 1 << 7, 1 << 4);
	__m256i ls = _mm256_cvtepu16_epi64(_mm_loadl_epi64((const void *)b->scales));
	struct planes p;
	UNROLL for (int i = 0; i < 8; i++)
		p.c[i] = iq1_codes(from->k, i, _mm256_srai_epi32(_mm256_slli_epi32(h, 28 - 4*i), 31));
	ls = _mm256_mullo_epi16(word_of_lane(ls, 0), by);
	scales_of_16(&p, y_or(_mm256_srli_epi16(ls, 12), y_words(1)));
	return p;
}

/* ---- words of four ---- */

/* Register i, whose signs are the lower or upper half of byte i/2 of each lane of 32 bits */
INLINE __m256i signed_threes(__m128i a, __m128i b, __m256i signs, int i)
{
	const __m256i at = y_table(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
	return signed_codes(_mm256_set_m128i(b, a), signs, _mm256_add_epi8(at, y_bytes(i/2)),
		_mm256_set1_epi32(i % 2 ? (int)0x80402010 : 0x08040201));
}
#define SIGNED_THREES(p, book, k, signs) \
	UNROLL for (int i = 0; i < 8; i++) \
		(p)->c[i] = signed_threes(four32(book + k[i], book + k[i + 8], book + k[i + 16], book + k[i + 24]), \
			four32(book + k[i + 32], book + k[i + 40], book + k[i + 48], book + k[i + 56]), signs, i)
/* Copies the lower word of each 32 bits to the upper one. */
INLINE __m256i twice(__m256i sc) { return y_or(sc, _mm256_slli_epi32(sc, 16)); }
INLINE void iq3_xxs_prepare_one(const void *block, struct prepared *to)
{
	const struct iq3_xxs *b = block;
	y_store(to->signs, sevens(y_load(b->qs + 64)));
}
ONE_BY_ONE(iq3_xxs)
INLINE struct planes iq3_xxs_planes(const void *block, const struct prepared *from)
{
	const struct iq3_xxs *b = block;
	const __m256i signs = y_load(from->signs);
	struct planes p;
	SIGNED_THREES(&p, grid_iq3_xxs, b->qs, signs);
	p.sc[0] = twice(tail_scales(y_load(b->qs + 64)));
	return p;
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
INLINE struct planes iq3_s_planes(const void *block, const struct prepared *from)
{
	const struct iq3_s *b = block;
	const __m256i signs = y_load(b->signs), by = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
	uint32_t ls;
	__m256i sc;
	struct planes p;
	memcpy(&ls, b->scales, sizeof ls);
	SIGNED_THREES(&p, grid_iq3_s, from->k, signs);
	sc = y_and(_mm256_srlv_epi32(_mm256_set1_epi32((int)ls), by), _mm256_set1_epi32(15));
	p.sc[0] = twice(y_or(_mm256_add_epi32(sc, sc), _mm256_set1_epi32(1)));
	return p;
}

/* ---- ternary types ---- */

INLINE void nothing(const char *w, size_t stride, size_t n, struct prepared *to)
{
	(void)w; (void)stride; (void)n; (void)to;
}
#define tq2_0_prepare nothing
INLINE struct planes tq2_0_planes(const void *block, const struct prepared *none)
{
	const struct tq2_0 *b = block;
	(void)none;
	return (struct planes){ .c = { y_load(b->qs), y_load(b->qs + 32) } };
}
#define tq1_0_prepare nothing
/* c[0]: 32 bytes; c[1]: the other 16, the 4 of qh, and zeros */
INLINE struct planes tq1_0_planes(const void *block, const struct prepared *none)
{
	const struct tq1_0 *b = block;
	(void)none;
	return (struct planes){ .c = { y_load(b->qs),
		_mm256_set_m128i(_mm_loadu_si32(b->qh), _mm_loadu_si128((const void *)(b->qs + 32))) } };
}

/* ---- activations in the same order ---- */

/* The sums of the registers of a group, in 16 bits */
INLINE __m256i products(__m256i s, int n, const __m256i *c, const __m256i *x)
{
	UNROLL for (int i = 0; i < n; i++) s = _mm256_add_epi16(s, _mm256_maddubs_epi16(c[i], x[i]));
	return s;
}
INLINE void starts(int n, int groups, int bias, struct arranged *t)
{
	__m256i ones[REGISTERS];
	n /= groups;
	for (int i = 0; i < n; i++) ones[i] = y_bytes(1);
	UNROLL for (int g = 0; g < groups; g++) {
		__m256i none = _mm256_setzero_si256(), by = y_words(-bias);
		t->start_high[g] = _mm256_mullo_epi16(products(none, n, ones, t->high + g*n), by);
		t->start_low[g] = _mm256_mullo_epi16(products(none, n, ones, t->low + g*n), by);
	}
}
/* Transposes four registers of four lanes of 64 bits: lane j of register i to lane i of register j */
INLINE void transpose_four(__m256i *a, size_t step)
{
	__m256i b = _mm256_unpacklo_epi64(a[0], a[step]), c = _mm256_unpackhi_epi64(a[0], a[step]),
		d = _mm256_unpacklo_epi64(a[2*step], a[3*step]), e = _mm256_unpackhi_epi64(a[2*step], a[3*step]);
	a[0] = _mm256_permute2x128_si256(b, d, 0x20);
	a[step] = _mm256_permute2x128_si256(c, e, 0x20);
	a[2*step] = _mm256_permute2x128_si256(b, d, 0x31);
	a[3*step] = _mm256_permute2x128_si256(c, e, 0x31);
}
/* The i-th 64 bits of each quarter */
INLINE void arrange_words(const int8_t *x, __m256i *to)
{
	UNROLL for (int i = 0; i < 8; i++) to[i] = y_load(x + 64*(i%4) + 32*(i/4));
	transpose_four(to, 1);
	transpose_four(to + 4, 1);
}
/* The i-th 32 bits of each eighth */
INLINE void arrange_halves(const int8_t *x, __m256i *to)
{
	__m256i a[8], b[8];
	UNROLL for (int i = 0; i < 8; i++) a[i] = y_load(x + 32*i);
	UNROLL for (int i = 0; i < 8; i += 2) {
		b[i] = _mm256_unpacklo_epi32(a[i], a[i + 1]);
		b[i + 1] = _mm256_unpackhi_epi32(a[i], a[i + 1]);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		int j = i/2*4 + i%2;
		a[2*i] = _mm256_unpacklo_epi64(b[j], b[j + 2]);
		a[2*i + 1] = _mm256_unpackhi_epi64(b[j], b[j + 2]);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		to[i] = _mm256_permute2x128_si256(a[i], a[i + 4], 0x20);
		to[i + 4] = _mm256_permute2x128_si256(a[i], a[i + 4], 0x31);
	}
}
INLINE void arrange_fours(const struct strip256 *x, int bias, struct arranged *t)
{
	arrange_words(x->in[ORDER_PLAIN].high, t->high);
	arrange_words(x->in[ORDER_PLAIN].low, t->low);
	starts(N_fours, GROUPS_fours, bias, t);
}
#define arrange_deltas arrange_fours
INLINE void arrange_twos(const struct strip256 *x, int bias, struct arranged *t)
{
	arrange_words(x->in[ORDER_PLAIN].high, t->high);
	arrange_words(x->in[ORDER_PLAIN].low, t->low);
	starts(N_twos, GROUPS_twos, bias, t);
}
INLINE void arrange_threes(const struct strip256 *x, int bias, struct arranged *t)
{
	arrange_halves(x->in[ORDER_PLAIN].high, t->high);
	arrange_halves(x->in[ORDER_PLAIN].low, t->low);
	starts(N_threes, GROUPS_threes, bias, t);
}
INLINE void arrange_ternary(const struct strip256 *x, int bias, struct arranged *t)
{
	const __m256i sum = _mm256_srai_epi32(_mm256_load_si256((const void *)x->sum128), 7);
	t->start = _mm256_mullo_epi32(sum, _mm256_set1_epi32(-bias));
	t->from = x;
}
#define BOOKS_TERNARY
#define arrange_tq1_0 arrange_ternary
#define arrange_tq2_0 arrange_ternary

/* ---- products ---- */

INLINE __m256i planes_sum(int n, int groups, const struct planes *c, const struct arranged *t)
{
	__m256i high = _mm256_setzero_si256(), low = high;
	n /= groups;
	UNROLL for (int g = 0; g < groups; g++) {
		high = i_madd(high, products(t->start_high[g], n, c->c + g*n, t->high + g*n), c->sc[g]);
		low = i_madd(low, products(t->start_low[g], n, c->c + g*n, t->low + g*n), c->sc[g]);
	}
	return _mm256_add_epi32(_mm256_slli_epi32(high, 6), low);
}
/* Adds codes of TQ2_0 times digits of n tokens: [0] those at even places of their bytes, [1] those at odd ones, four
 * times as large, which saves shifts. */
INLINE void quarters(int n, __m256i q, const struct arranged *t, int at, __m256i (*high)[2], __m256i (*low)[2])
{
	const __m256i right = _mm256_srli_epi16(q, 4);
	UNROLL for (int k = 0; k < 4; k++) {
		const __m256i c = y_and(k < 2 ? q : right, k%2 ? y_bytes(12) : y_bytes(3));
		UNROLL for (int i = 0; i < n; i++) {
			const struct digits *x = t[i].from->in + ORDER_PLAIN;
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
	quarters(n, c->c[0], t, 0, high, low);
	quarters(n, c->c[1], t, 128, high, low);
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
	__m256i evens[DIGITS_TOKENS], odds[DIGITS_TOKENS];
	UNROLL for (int i = 0; i < n; i++) {
		evens[i] = t[i].start;
		odds[i] = _mm256_setzero_si256();
	}
	UNROLL for (int r = 0; r < 2; r++) {
		const __m256i even = _mm256_slli_epi16(c->c[r], 8), odd = y_and(c->c[r], y_words(0xff00));
		UNROLL for (int k = 0; k < 5; k++) {
			const __m256i first = _mm256_mulhi_epu16(even, y_words(power[k])),
				second = _mm256_mulhi_epu16(odd, y_words(power[k]));
			UNROLL for (int i = 0; i < n; i++) {
				const int16_t *x = t[i].from->thirds[k] + 32*r;
				evens[i] = i_madd(evens[i], first, y_load(x));
				odds[i] = i_madd(odds[i], second, y_load(x + 16));
				__asm__("" : "+x"(evens[i]), "+x"(odds[i]));
			}
		}
	}
	UNROLL for (int i = 0; i < n; i++) y_store(to + (size_t)i*step, _mm256_add_epi32(evens[i], odds[i]));
}
