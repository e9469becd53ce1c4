/* SPDX-License-Identifier: MIT
 * digits_text.h - a row's blocks times the digits of activations, one text for all widths of registers; defines the
 * table DIGITS_TABLE. An instance includes digits_256.h or digits_512.h before.
 *
 * Super-blocks are in digits_k.h and books_text.h; a unit's codes of blocks of 32 come as pieces, from NAME_pieces. */

INLINE void ahead(const char *p, size_t bytes)
{
	UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}
INLINE __m256i sum_at(const int16_t *p) { return _mm256_load_si256((const void *)p); }
INLINE __m128i x16(const void *p) { return _mm_loadu_si128(p); }

enum { NEXT_S = sizeof ((struct digit_sums *)0)->s[0]/4 };

/* ---- products of super-blocks ---- */

/* What a row's block meets: tokens' strips of it, and the digits of the first token, in the order of the type. at:
 * where its sums belong. */
struct meet {
	int n_tokens;
	const char *strip;
	size_t strip_stride;
	enum digits_order order;
	const digits256 *d;
	struct digit_sums *to;
	size_t at;
};
INLINE const struct strip256 *strip_of(const struct meet *m, int t)
{
	return (const void *)(m->strip + (size_t)t*m->strip_stride);
}
/* Where there is but one token, its digits stay in registers for several rows. */
INLINE digits256 high_of(const struct meet *m, int t)
{
	return m->n_tokens == 1 ? m->d[0] : d_load(strip_of(m, t)->in[m->order].high);
}
INLINE digits256 low_of(const struct meet *m, int t)
{
	return m->n_tokens == 1 ? m->d[1] : d_load(strip_of(m, t)->in[m->order].low);
}
/* Lanes of token t's sum */
INLINE void leave(const struct meet *m, int t, __m256i a)
{
	_mm256_store_si256((void *)(m->to->s[0] + t*NEXT_S + 8*m->at), a);
}
typedef void block_fn(const void *block, const struct meet *m);

/* Codes of 64 columns each, times scales of sixteens. */
INLINE void sixteens(const c64 *c, __m256i sc, int bias, const struct meet *m)
{
	const factors f[2] = { c_factors(sc, m->order, 0), c_factors(sc, m->order, 1) };
	UNROLL for (int t = 0; t < m->n_tokens; t++) {
		digits256 h = high_of(m, t), l = low_of(m, t);
		isum high = i_scaled(i_scaled(i_zero(), c[0], c[1], h, 0, f[0]), c[2], c[3], h, 1, f[1]),
			low = i_scaled(i_scaled(i_zero(), c[0], c[1], l, 0, f[0]), c[2], c[3], l, 1, f[1]);
		__m256i a = i_value(high, low);
		if (bias)
			a = _mm256_sub_epi32(a, _mm256_mullo_epi32(_mm256_madd_epi16(sc, sum_at(strip_of(m, t)->sum)),
				_mm256_set1_epi32(bias)));
		leave(m, t, a);
	}
}
#include "digits_k.h"

/* has_min: dmin is behind d */
struct kind { size_t bytes, at_d; int has_min; };
INLINE void supers(int n_tokens, const struct digits_part *p, struct digit_sums *to, struct kind k,
	enum digits_order order, block_fn *block)
{
	for (size_t b = 0; b < p->n; b++) {
		const char *w = p->w + b*k.bytes, *strip = p->strip + b*sizeof(struct strip256),
			*next = p->next + b*k.bytes*ROWS;
		const struct strip256 *x = (const void *)strip;
		const digits256 d[2] = { d_load(x->in[order].high), d_load(x->in[order].low) };
		for (size_t r = 0, at = b*ROWS; r < p->n_rows; r++, at++, w += p->w_stride, next += k.bytes) {
			const struct meet m = { n_tokens, strip, p->strip_stride, order, d, to, at };
			ahead(next, k.bytes);
			block(w, &m);
			if (k.has_min) memcpy(to->d.pair + at, w + k.at_d, 4);
			else memcpy(to->d.half + at, w + k.at_d, 2);
		}
	}
}

/* ---- blocks of 32 ---- */

/* The first and the second sixteens of a unit's blocks, or of its half j in registers of 32 bytes. */
struct pieces { p_reg a, b; };
typedef struct pieces pieces_fn(const char *unit, int j);
enum { BLOCKS = 4/STEPS };

INLINE struct pieces nibbles(const char *qs, size_t stride)
{
	p_reg x = p_load(qs, stride);
	return (struct pieces){ p_low(x), p_high(x) };
}
INLINE struct pieces q4_0_pieces(const char *u, int j)
{
	return nibbles(u + j*BLOCKS*(int)sizeof(struct q4_0) + 2, sizeof(struct q4_0));
}
INLINE struct pieces q4_1_pieces(const char *u, int j)
{
	return nibbles(u + j*BLOCKS*(int)sizeof(struct q4_1) + 4, sizeof(struct q4_1));
}
/* qh, and behind it qs */
INLINE struct pieces fives(const char *qh, size_t stride)
{
	struct pieces p = nibbles(qh + 4, stride);
	p_reg up = p_load(qh, stride);
	return (struct pieces){ p_bits(p.a, up, 0, 16), p_bits(p.b, up, 1, 16) };
}
INLINE struct pieces q5_0_pieces(const char *u, int j)
{
	return fives(u + j*BLOCKS*(int)sizeof(struct q5_0) + 2, sizeof(struct q5_0));
}
INLINE struct pieces q5_1_pieces(const char *u, int j)
{
	return fives(u + j*BLOCKS*(int)sizeof(struct q5_1) + 4, sizeof(struct q5_1));
}
INLINE struct pieces q8_0_pieces(const char *u, int j)
{
	const char *qs = u + j*BLOCKS*(int)sizeof(struct q8_0) + 2;
	const size_t stride = sizeof(struct q8_0);
	return (struct pieces){ p_add(p_load(qs, stride), 128), p_add(p_load(qs + 16, stride), 128) };
}
INLINE struct pieces levels(const int8_t *table, int bias, struct pieces p)
{
	__m128i t = _mm_add_epi8(x16(table), _mm_set1_epi8((char)bias));
	return (struct pieces){ p_level(t, p.a), p_level(t, p.b) };
}
INLINE struct pieces iq4_nl_pieces(const char *u, int j)
{
	return levels(iq4_levels, 128, nibbles(u + j*BLOCKS*(int)sizeof(struct iq4_nl) + 2, sizeof(struct iq4_nl)));
}
INLINE struct pieces mxfp4_pieces(const char *u, int j)
{
	return levels(fp4_levels, 12, nibbles(u + j*BLOCKS*(int)sizeof(struct mxfp4) + 1, sizeof(struct mxfp4)));
}
INLINE struct pieces q1_0_pieces(const char *u, int j)
{
	p_reg bits = p_fours(u + 2, j);
	return (struct pieces){ p_bits(p_none(), bits, 0, 2), p_bits(p_none(), bits, 1, 2) };
}
INLINE struct pieces q2_0_pieces(const char *u, int j)
{
	struct pieces p;
	p_spread(u + j*(int)sizeof(struct q2_0) + 2, sizeof(struct q2_0), &p.a, &p.b);
	return p;
}
INLINE void unit_sums(int n_tokens, struct pieces p, const digits32 *d, const char *strip, size_t strip_stride, int j,
	int32_t *to)
{
	UNROLL for (int t = 0; t < n_tokens; t++) {
		const struct strip32 *x = (const void *)(strip + (size_t)t*strip_stride);
		p_store(to + t*NEXT_S + 8*j, p_dot(p.a, p.b, n_tokens == 1 ? *d : p_digits(x, j)));
	}
}
/* The first n bytes of four blocks: 2, d; 4, d and m; 1, an exponent */
INLINE void scales_of_unit(const char *u, size_t bytes, size_t block, int n, struct digit_sums *to, size_t at)
{
	uint32_t q[4] = { 0 };
	UNROLL for (size_t i = 0; i < 4; i++) memcpy(q + i, u + i*bytes/4/block*block, (size_t)n);
	if (n == 2) {
		uint64_t h = (uint64_t)(q[2] | q[3] << 16) << 32 | (q[0] | q[1] << 16);
		memcpy(to->d.half + at, &h, 8);
	} else if (n == 4) _mm_store_si128((void *)(to->d.pair + at), four32(q, q + 1, q + 2, q + 3));
	else memcpy(to->d.pair + at, q, sizeof q);
}
INLINE void units(int n_tokens, const struct digits_part *p, struct digit_sums *to, size_t bytes, size_t block,
	int scale, pieces_fn *pieces)
{
	for (size_t q = 0; q < p->n; q++) {
		const char *u = p->w + q*bytes, *strip = p->strip + q*sizeof(struct strip32),
			*next = p->next + q*bytes*ROWS;
		digits32 d[STEPS];
		UNROLL for (int j = 0; j < STEPS; j++) d[j] = p_digits((const void *)strip, j);
		for (size_t r = 0, at = q*ROWS; r < p->n_rows; r++, at++, u += p->w_stride, next += bytes) {
			ahead(next, bytes);
			UNROLL for (int j = 0; j < STEPS; j++)
				unit_sums(n_tokens, pieces(u, j), d + j, strip, p->strip_stride, j, to->s[0] + 16*at);
			scales_of_unit(u, bytes, block, scale, to, 4*at);
		}
	}
}
/* A unit is two blocks, its sixteens have scales of their own. */
INLINE void units_nvfp4(int n_tokens, const struct digits_part *p, struct digit_sums *to)
{
	const size_t bytes = sizeof(struct nvfp4);
	const __m128i table = _mm_add_epi8(x16(fp4_levels), _mm_set1_epi8(12));
	for (size_t q = 0; q < p->n; q++) {
		const char *u = p->w + 2*q*bytes, *strip = p->strip + q*sizeof(struct strip32),
			*next = p->next + 2*q*bytes*ROWS;
		for (size_t r = 0, at = q*ROWS; r < p->n_rows; r++, at++, u += p->w_stride, next += 2*bytes) {
			ahead(next, 2*bytes);
			uint64_t scales = (uint64_t)u32_of(u + bytes) << 32 | u32_of(u);
			_mm_store_si128((void *)(to->d.pair + 4*at),
				_mm_cvtepu16_epi32(_mm_cvtsi64_si128((long long)scales)));
			UNROLL for (int j = 0; j < STEPS; j++) {
				p_reg x = p_gather(u + 4 + (size_t)j*bytes, 16, bytes), low = p_level(table, p_low(x)),
					up = p_level(table, p_high(x)), a = p_lower(low, up), b = p_upper(low, up);
				UNROLL for (int t = 0; t < n_tokens; t++) {
					digits32 d = p_digits((const void *)(strip + (size_t)t*p->strip_stride), j);
					int32_t *s = to->s[t] + (2*q*ROWS + r)*16 + 8*j;
					p_store(s, p_dot_half(a, d.high[0], d.low[0]));
					p_store(s + ROWS*16, p_dot_half(b, d.high[1], d.low[1]));
				}
			}
		}
	}
}

/* ---- the table ---- */

/* Functions of 1, 2 and 4 tokens */
#define SUMS(name, call) \
static void name##_1(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 1 }; \
	call; \
} \
static void name##_2(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 2 }; \
	call; \
} \
static void name##_4(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 4 }; \
	call; \
}
#define SUPER(name, order, min) \
SUMS(name, supers(T, p, to, (struct kind){ sizeof(struct name), offsetof(struct name, d), min }, order, \
	name##_block))
#define UNITS(name, n_blocks, scale) \
SUMS(name, units(T, p, to, n_blocks*sizeof(struct name), sizeof(struct name), scale, name##_pieces))

SUPER(q2_k, ORDER_HALVES, 1)
SUPER(q3_k, ORDER_HALVES, 0)
SUPER(q4_k, ORDER_FOURTHS, 1)
SUPER(q5_k, ORDER_FOURTHS, 1)
SUPER(q6_k, ORDER_HALVES, 0)
SUPER(iq4_xs, ORDER_PAIRS, 0)
UNITS(q4_0, 4, 2)
UNITS(q4_1, 4, 4)
UNITS(q5_0, 4, 2)
UNITS(q5_1, 4, 4)
UNITS(q8_0, 4, 2)
UNITS(iq4_nl, 4, 2)
UNITS(mxfp4, 4, 1)
SUMS(nvfp4, units_nvfp4(T, p, to))
UNITS(q1_0, 1, 2)
UNITS(q2_0, 2, 2)

#define OF(name) { name##_1, name##_2, name##_4 }
#include "digits_settle.h"
const struct digits_table DIGITS_TABLE = { ROWS, settle, {
	[GGU_TYPE_Q2_K] = { OF(q2_k), DIGITS_PAIR_16, 1, 0 },
	[GGU_TYPE_Q3_K] = { OF(q3_k), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_Q4_K] = { OF(q4_k), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q5_K] = { OF(q5_k), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q6_K] = { OF(q6_k), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_IQ4_XS] = { OF(iq4_xs), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_Q4_0] = { OF(q4_0), DIGITS_HALF, 1, 8 },
	[GGU_TYPE_Q4_1] = { OF(q4_1), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q5_0] = { OF(q5_0), DIGITS_HALF, 1, 16 },
	[GGU_TYPE_Q5_1] = { OF(q5_1), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q8_0] = { OF(q8_0), DIGITS_HALF, 1, 128 },
	[GGU_TYPE_IQ4_NL] = { OF(iq4_nl), DIGITS_HALF, 1, 128 },
	[GGU_TYPE_MXFP4] = { OF(mxfp4), DIGITS_EXPONENT, 1, 12 },
	[GGU_TYPE_NVFP4] = { OF(nvfp4), DIGITS_SMALL, 1, 12 },
	[GGU_TYPE_Q1_0] = { OF(q1_0), DIGITS_HALF, 1, 1 },
	[GGU_TYPE_Q2_0] = { OF(q2_0), DIGITS_HALF, 1, 1 },
} };
