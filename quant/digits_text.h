/* SPDX-License-Identifier: MIT
 * digits_text.h - a row's blocks times the digits of activations, one text for all widths of registers; defines the
 * table DIGITS_TABLE. An instance includes digits_256.h or digits_512.h before.
 *
 * A super-block's codes come 64 columns at a time as unsigned bytes, from NAME_codes below or, of the types that have
 * none, from the codec by way of memory. */
#include "unpack.h"

INLINE void ahead(const char *p, size_t bytes)
{
	UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}
INLINE __m256i sum_at(const int16_t *p) { return _mm256_load_si256((const void *)p); }
INLINE __m128i x16(const void *p) { return _mm_loadu_si128(p); }

/* ---- super-blocks ---- */

/* Of each 16 columns, as integers. Sums are of c*sc*x - bias*sc*x, minima apart. */
struct super { __m256i sc, mn; };
typedef struct super super_fn(const void *block);
typedef c64 codes_fn(const void *block, int k);

INLINE struct super signed_scales(__m128i sc)
{
	return (struct super){ _mm256_cvtepi8_epi16(sc), _mm256_setzero_si256() };
}

/* The 6-bit scales and minima of codec/q4_k.h, from the block's first 16 bytes. */
INLINE struct super q4_k_super(const void *block)
{
	__m128i x = x16(block);
	__m128i low = _mm_shuffle_epi8(x, _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)),
		up = _mm_shuffle_epi8(x, _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11));
	low = _mm_and_si128(_mm_srlv_epi32(low, _mm_setr_epi32(0, 0, 0, 4)),
		_mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f));
	up = _mm_and_si128(_mm_srli_epi32(up, 2), _mm_set1_epi8(0x30));
	low = _mm_or_si128(low, up);
	return (struct super){ _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(low, low)),
		_mm256_cvtepi8_epi16(_mm_unpackhi_epi8(low, low)) };
}
INLINE c64 q4_k_codes(const void *block, int k)
{
	const struct q4_k *b = block;
	return c_and(c_move(c_twice(b->qs + 32*k), 0, 4), 15);
}
INLINE c64 q5_k_codes(const void *block, int k)
{
	const struct q5_k *b = block;
	c64 up = c_move(c_twice(b->qh), 2*k - 4, 2*k - 3);
	return c_and(c_select(c_move(c_twice(b->qs + 32*k), 0, 4), up, 15), 31);
}
INLINE struct super q6_k_super(const void *block)
{
	const struct q6_k *b = block;
	return signed_scales(x16(b->scales));
}
INLINE c64 q6_k_codes(const void *block, int k)
{
	const struct q6_k *b = block;
	c64 low = c_load(b->ql + k/2*64), up = c_move(c_twice(b->qh + k/2*32), k%2*4 - 4, k%2*4 - 2);
	return c_and(c_select(k%2 ? c_move(low, 4, 4) : low, up, 15), 63);
}
INLINE struct super q2_k_super(const void *block)
{
	const struct q2_k *b = block;
	__m128i x = x16(b->scales), low = _mm_set1_epi8(15);
	return (struct super){ _mm256_cvtepi8_epi16(_mm_and_si128(x, low)),
		_mm256_cvtepi8_epi16(_mm_and_si128(_mm_srli_epi16(x, 4), low)) };
}
INLINE c64 q2_k_codes(const void *block, int k)
{
	const struct q2_k *b = block;
	return c_and(c_move(c_twice(b->qs + k/2*32), k%2*4, k%2*4 + 2), 3);
}
INLINE struct super q3_k_super(const void *block)
{
	const struct q3_k *b = block;
	return signed_scales((__m128i)(q3_k_scales(b->scales) - (uint8_t)32));
}
INLINE c64 q3_k_codes(const void *block, int k)
{
	const struct q3_k *b = block;
	c64 up = c_move(c_twice(b->hmask), 2*k - 2, 2*k - 1);
	return c_and(c_select(c_move(c_twice(b->qs + k/2*32), k%2*4, k%2*4 + 2), up, 3), 7);
}
INLINE struct super iq4_xs_super(const void *block)
{
	const struct iq4_xs *b = block;
	uint64_t ls = spread4(u32_of(b->scales_l)) | spread2(b->scales_h) << 4;
	__m256i sc = _mm256_sub_epi16((__m256i)s_pairs(ls, ls), _mm256_set1_epi16(32));
	return (struct super){ sc, _mm256_setzero_si256() };
}
INLINE c64 iq4_xs_codes(const void *block, int k)
{
	const struct iq4_xs *b = block;
	__m128i table = _mm_xor_si128(x16(iq4_levels), _mm_set1_epi8(-128));
	return c_level(table, c_and(c_nibbles(c_quarters(b->qs + 32*k)), 15));
}

enum { NEXT_S = sizeof ((struct digit_sums *)0)->s[0]/4, NEXT_M = sizeof ((struct digit_sums *)0)->m[0]/4 };
/* The sums of a block: codes (64 columns each) times n_tokens tokens. d: the digits of one token, which several rows
 * meet; to: lanes of the first token's sum */
INLINE void scaled(int n_tokens, const c64 *c, struct super s, const digits256 *d, const char *strip,
	size_t strip_stride, int bias, int32_t *to)
{
	const factors f[2] = { c_factors(s.sc, 0), c_factors(s.sc, 1) };
	UNROLL for (int t = 0; t < n_tokens; t++) {
		const struct strip256 *x = (const void *)(strip + (size_t)t*strip_stride);
		digits256 h = n_tokens == 1 ? d[0] : d_load(x->high), l = n_tokens == 1 ? d[1] : d_load(x->low);
		isum high = i_scaled(i_scaled(i_zero(), c[0], c[1], h, 0, f[0]), c[2], c[3], h, 1, f[1]),
			low = i_scaled(i_scaled(i_zero(), c[0], c[1], l, 0, f[0]), c[2], c[3], l, 1, f[1]);
		__m256i a = i_value(high, low);
		if (bias)
			a = _mm256_sub_epi32(a, _mm256_mullo_epi32(_mm256_madd_epi16(s.sc, sum_at(x->sum)),
				_mm256_set1_epi32(bias)));
		_mm256_store_si256((void *)(to + t*NEXT_S), a);
	}
}
struct kind { size_t bytes, at_d; int bias, has_min; };        /* has_min: dmin is behind d */
INLINE void supers(int n_tokens, const struct digits_part *p, struct digit_sums *to, struct kind k, super_fn *scales_of,
	codes_fn *codes)
{
	for (size_t b = 0; b < p->n; b++) {
		const char *w = p->w + b*k.bytes, *strip = p->strip + b*sizeof(struct strip256),
			*next = p->next + b*k.bytes*DIGITS_ROWS;
		const struct strip256 *x = (const void *)strip;
		const digits256 d[2] = { d_load(x->high), d_load(x->low) };
		for (size_t r = 0, at = b*DIGITS_ROWS; r < p->n_rows; r++, at++, w += p->w_stride, next += k.bytes) {
			const c64 c[4] = { codes(w, 0), codes(w, 1), codes(w, 2), codes(w, 3) };
			struct super s = scales_of(w);
			ahead(next, k.bytes);
			scaled(n_tokens, c, s, d, strip, p->strip_stride, k.bias, to->s[0] + 8*at);
			if (k.has_min) UNROLL for (int t = 0; t < n_tokens; t++) {
				x = (const void *)(strip + (size_t)t*p->strip_stride);
				_mm256_store_si256((void *)(to->m[t] + 8*at), _mm256_madd_epi16(s.mn, sum_at(x->sum)));
			}
			if (k.has_min) memcpy(to->d.pair + at, w + k.at_d, 4);
			else memcpy(to->d.half + at, w + k.at_d, 2);
		}
	}
}
/* By way of struct codes256: a type whose codes have no function here. */
INLINE void supers_of_codec(int n_tokens, const struct digits_part *p, struct digit_sums *to, size_t bytes,
	unpack256_fn *unpack)
{
	for (size_t b = 0; b < p->n; b++) {
		const char *w = p->w + b*bytes, *strip = p->strip + b*sizeof(struct strip256),
			*next = p->next + b*bytes*DIGITS_ROWS;
		const struct strip256 *x = (const void *)strip;
		const digits256 d[2] = { d_load(x->high), d_load(x->low) };
		for (size_t r = 0, at = b*DIGITS_ROWS; r < p->n_rows; r++, at++, w += p->w_stride, next += bytes) {
			struct codes256 q;
			c64 c[4];
			struct super s;
			ahead(next, bytes);
			unpack(w, &q);
			UNROLL for (int k = 0; k < 4; k++) c[k] = c_add(c_halves(q.q + 64*k, q.q + 64*k + 32), 128);
			s.sc = _mm256_loadu_si256((const void *)q.sc);
			scaled(n_tokens, c, s, d, strip, p->strip_stride, 128, to->s[0] + 8*at);
			to->d.f[0][at] = q.d;
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
INLINE void unit_sums(int n_tokens, struct pieces p, const digits32 *d, const char *strip, size_t strip_stride, int j,
	int32_t *to)
{
	UNROLL for (int t = 0; t < n_tokens; t++) {
		const struct strip32 *x = (const void *)(strip + (size_t)t*strip_stride);
		p_store(to + t*NEXT_S + 8*j, p_dot(p.a, p.b, n_tokens == 1 ? *d : p_digits(x, j)));
	}
}
/* The first n bytes, 2 or 4, of four blocks: d, or d and m */
INLINE void scales_of_unit(const char *u, size_t bytes, size_t block, int n, struct digit_sums *to, size_t at)
{
	uint32_t q[4] = { 0 };
	UNROLL for (size_t i = 0; i < 4; i++) memcpy(q + i, u + i*bytes/4/block*block, (size_t)n);
	if (n == 4) _mm_store_si128((void *)(to->d.pair + at), four32(q, q + 1, q + 2, q + 3));
	else {
		uint64_t h = (uint64_t)(q[2] | q[3] << 16) << 32 | (q[0] | q[1] << 16);
		memcpy(to->d.half + at, &h, 8);
	}
}
INLINE void units(int n_tokens, const struct digits_part *p, struct digit_sums *to, size_t bytes, size_t block,
	int scale, pieces_fn *pieces)
{
	for (size_t q = 0; q < p->n; q++) {
		const char *u = p->w + q*bytes, *strip = p->strip + q*sizeof(struct strip32),
			*next = p->next + q*bytes*DIGITS_ROWS;
		digits32 d[STEPS];
		UNROLL for (int j = 0; j < STEPS; j++) d[j] = p_digits((const void *)strip, j);
		for (size_t r = 0, at = q*DIGITS_ROWS; r < p->n_rows; r++, at++, u += p->w_stride, next += bytes) {
			ahead(next, bytes);
			UNROLL for (int j = 0; j < STEPS; j++)
				unit_sums(n_tokens, pieces(u, j), d + j, strip, p->strip_stride, j, to->s[0] + 16*at);
			scales_of_unit(u, bytes, block, scale, to, 4*at);
		}
	}
}
/* By way of struct codes32. */
INLINE void units_of_codec(int n_tokens, const struct digits_part *p, struct digit_sums *to, size_t bytes, size_t block,
	unpack32_fn *unpack)
{
	for (size_t q = 0; q < p->n; q++) {
		const char *u = p->w + q*bytes, *strip = p->strip + q*sizeof(struct strip32),
			*next = p->next + q*bytes*DIGITS_ROWS;
		digits32 d[STEPS];
		UNROLL for (int j = 0; j < STEPS; j++) d[j] = p_digits((const void *)strip, j);
		for (size_t r = 0, at = q*DIGITS_ROWS; r < p->n_rows; r++, at++, u += p->w_stride, next += bytes) {
			struct codes32 c[4];
			ahead(next, bytes);
			UNROLL for (size_t i = 0; i < bytes/block; i++) unpack(u + i*block, c + i*4*block/bytes);
			UNROLL for (size_t i = 0; i < 4; i++) to->d.f[0][4*at + i] = c[i].d;
			UNROLL for (int j = 0; j < STEPS; j++) {
				const char *from = (const char *)c[j*BLOCKS].q;
				struct pieces v = { p_add(p_load(from, sizeof *c), 128),
					p_add(p_load(from + 16, sizeof *c), 128) };
				unit_sums(n_tokens, v, d + j, strip, p->strip_stride, j, to->s[0] + 16*at);
			}
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
			*next = p->next + 2*q*bytes*DIGITS_ROWS;
		for (size_t r = 0, at = q*DIGITS_ROWS; r < p->n_rows; r++, at++, u += p->w_stride, next += 2*bytes) {
			ahead(next, 2*bytes);
			UNROLL for (size_t i = 0; i < 8; i++)
				to->d.f[i%2][4*at + i/2] = nvfp4_scale((uint8_t)u[i/4*bytes + i%4]);
			UNROLL for (int j = 0; j < STEPS; j++) {
				p_reg x = p_gather(u + 4 + (size_t)j*bytes, 16, bytes), low = p_level(table, p_low(x)),
					up = p_level(table, p_high(x)), a = p_lower(low, up), b = p_upper(low, up);
				UNROLL for (int t = 0; t < n_tokens; t++) {
					digits32 d = p_digits((const void *)(strip + (size_t)t*p->strip_stride), j);
					int32_t *s = to->s[t] + (2*q*DIGITS_ROWS + r)*16 + 8*j;
					p_store(s, p_dot_half(a, d.high[0], d.low[0]));
					p_store(s + DIGITS_ROWS*16, p_dot_half(b, d.high[1], d.low[1]));
				}
			}
		}
	}
}

/* ---- the table ---- */

/* Functions of 1, 2 and 4 tokens */
#define SUMS(name, call) \
static void name##_1(const struct digits_part *p, struct digit_sums *to) { enum { T = 1 }; call; } \
static void name##_2(const struct digits_part *p, struct digit_sums *to) { enum { T = 2 }; call; } \
static void name##_4(const struct digits_part *p, struct digit_sums *to) { enum { T = 4 }; call; }
#define SUPER(name, like, codes, bias, min) \
SUMS(name, supers(T, p, to, (struct kind){ sizeof(struct name), offsetof(struct name, d), bias, min }, like##_super, \
	codes##_codes))
#define SUPER_OF_CODEC(name) SUMS(name, supers_of_codec(T, p, to, sizeof(struct name), unpack_##name))
#define UNITS(name, n_blocks, scale) \
SUMS(name, units(T, p, to, n_blocks*sizeof(struct name), sizeof(struct name), scale, name##_pieces))
#define UNITS_OF_CODEC(name, n_blocks) \
SUMS(name, units_of_codec(T, p, to, n_blocks*sizeof(struct name), sizeof(struct name), unpack_##name))

SUPER(q2_k, q2_k, q2_k, 0, 1)
SUPER(q3_k, q3_k, q3_k, 4, 0)
SUPER(q4_k, q4_k, q4_k, 0, 1)
SUPER(q5_k, q4_k, q5_k, 0, 1)
SUPER(q6_k, q6_k, q6_k, 32, 0)
SUPER(iq4_xs, iq4_xs, iq4_xs, 128, 0)
SUPER_OF_CODEC(iq1_s)
SUPER_OF_CODEC(iq1_m)
SUPER_OF_CODEC(iq2_xxs)
SUPER_OF_CODEC(iq2_xs)
SUPER_OF_CODEC(iq2_s)
SUPER_OF_CODEC(iq3_xxs)
SUPER_OF_CODEC(iq3_s)
SUPER_OF_CODEC(tq1_0)
SUPER_OF_CODEC(tq2_0)
UNITS(q4_0, 4, 2)
UNITS(q4_1, 4, 4)
UNITS(q5_0, 4, 2)
UNITS(q5_1, 4, 4)
UNITS(q8_0, 4, 2)
UNITS(iq4_nl, 4, 2)
UNITS_OF_CODEC(mxfp4, 4)
SUMS(nvfp4, units_nvfp4(T, p, to))
UNITS_OF_CODEC(q1_0, 1)
UNITS_OF_CODEC(q2_0, 2)

#define OF(name) { name##_1, name##_2, name##_4 }
const struct digits_table DIGITS_TABLE = { {
	[GGU_TYPE_Q2_K] = { OF(q2_k), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q3_K] = { OF(q3_k), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_Q4_K] = { OF(q4_k), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q5_K] = { OF(q5_k), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q6_K] = { OF(q6_k), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_IQ4_XS] = { OF(iq4_xs), DIGITS_HALF, 1, 0 },
	[GGU_TYPE_IQ1_S] = { OF(iq1_s), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ1_M] = { OF(iq1_m), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ2_XXS] = { OF(iq2_xxs), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ2_XS] = { OF(iq2_xs), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ2_S] = { OF(iq2_s), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ3_XXS] = { OF(iq3_xxs), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_IQ3_S] = { OF(iq3_s), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_TQ1_0] = { OF(tq1_0), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_TQ2_0] = { OF(tq2_0), DIGITS_FLOAT, 1, 0 },
	[GGU_TYPE_Q4_0] = { OF(q4_0), DIGITS_HALF, 1, 8 },
	[GGU_TYPE_Q4_1] = { OF(q4_1), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q5_0] = { OF(q5_0), DIGITS_HALF, 1, 16 },
	[GGU_TYPE_Q5_1] = { OF(q5_1), DIGITS_PAIR, 1, 0 },
	[GGU_TYPE_Q8_0] = { OF(q8_0), DIGITS_HALF, 1, 128 },
	[GGU_TYPE_IQ4_NL] = { OF(iq4_nl), DIGITS_HALF, 1, 128 },
	[GGU_TYPE_MXFP4] = { OF(mxfp4), DIGITS_FLOAT, 1, 128 },
	[GGU_TYPE_NVFP4] = { OF(nvfp4), DIGITS_FLOAT, 1, 12 },
	[GGU_TYPE_Q1_0] = { OF(q1_0), DIGITS_FLOAT, 1, 128 },
	[GGU_TYPE_Q2_0] = { OF(q2_0), DIGITS_FLOAT, 1, 128 },
} };
