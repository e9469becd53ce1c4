/* SPDX-License-Identifier: MIT
 * digits_k.h - part of digits_text.h: super-blocks of 2 to 6 bits, each type's codes in the order in which masks and
 * shifts give them.
 *
 *   chains    32 columns share a scale: sums of two sixteens, one after the other, are scaled at once. Q4_K, Q5_K
 *   IQ4_XS    the same, or words and whole activations: i_iq4_xs of the vocabulary
 *   Q2_K      16 columns share a scale, and a byte has codes of four sixteens: c_q2_k and i_q2_k of the vocabulary
 *   sixteens  16 columns share one: products of four codes are scaled before they are added up. Q3_K, Q6_K; the latter
 *             step by step in registers of 32 bytes */

/* ---- chains: codes c[0] and c[1] with the first four scales, c[2] and c[3] with the others ---- */

/* The 6-bit scales and mins of codec/q4_k.h, from the first 16 bytes of HEADS rows' blocks: scales 0 2 4 6 1 3 5 7,
 * then mins. */
INLINE heads q4_k_sixes(heads x)
{
	heads low = h_shuffle(x, _mm_setr_epi8(4, 6, 12, 14, 5, 7, 13, 15, 8, 9, 10, 11, 12, 13, 14, 15)),
		up = h_shuffle(x, _mm_setr_epi8(-1, -1, 4, 6, -1, -1, 5, 7, -1, -1, -1, -1, 8, 9, 10, 11));
	low = low >> h_each(_mm_setr_epi32(0, 0, 0, 4)) &
		h_each(_mm_setr_epi32(0x0f0f3f3f, 0x0f0f3f3f, 0x3f3f3f3f, 0x0f0f0f0f));
	return low | (up >> 2 & 0x30303030);
}
/* Scales of n blocks, `stride` bytes apart, from their heads; those of each block are stored `step` bytes after those
 * of the one before. There is room for a multiple of HEADS. */
typedef heads heads_fn(heads);
INLINE void heads_of_blocks(const char *w, size_t stride, size_t n, heads_fn *scales, uint8_t *to, size_t step)
{
	for (size_t k = 0; k < n; k += HEADS, to += HEADS*step) {
		const char *p[HEADS];
		UNROLL for (size_t i = 0; i < HEADS; i++) p[i] = w + (k + i < n ? k + i : k)*stride;
		const heads x = scales(h_load(p));
		if (step == 16) memcpy(to, &x, sizeof x);
		else UNROLL for (size_t i = 0; i < HEADS; i++) memcpy(to + i*step, (const char *)&x + 16*i, 16);
	}
}
INLINE void chains_with_minima(const c64 *c, const struct product *m)
{
	UNROLL for (int t = 0; t < m->n_tokens; t++)
		put_sum(m, t, i_chains8(c, high_of(m, t), low_of(m, t), m->to->m + 16*m->at));
}
INLINE void q4_k_block(const void *block, const struct product *m)
{
	const struct q4_k *b = block;
	c64 a, e;
	c_fourths(b->qs, &a, &e);
	const c64 c[4] = { c_and(a, 15), c_and(e, 15), c_upper(a), c_upper(e) };
	UNROLL for (int t = 0; t < m->n_tokens; t++)
		put_sum(m, t, i_q4_k(c, high_of(m, t), low_of(m, t), m->to->m + 16*m->at));
}
INLINE void iq4_xs_block(const void *block, const struct product *m)
{
	const struct iq4_xs *b = block;
	const __m128i table = _mm_xor_si128(x16(iq4_levels), _mm_set1_epi8((char)BIAS_IQ4_XS));
	const c64 x = c_load(b->qs), y = c_load(b->qs + 64), c[4] = { c_level(table, x), c_level(table, c_right(x, 4)),
		c_level(table, y), c_level(table, c_right(y, 4)) };
	const __m256i k = i_order_iq4_xs(),
		low = _mm256_srlv_epi32(_mm256_set1_epi32((int)u32_of(b->scales_l)), _mm256_slli_epi32(k, 2)),
		up = _mm256_srlv_epi32(_mm256_set1_epi32((int)u32_of(b)),
			_mm256_add_epi32(_mm256_set1_epi32(12), _mm256_slli_epi32(k, 1))),
		sc = _mm256_sub_epi32(_mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
			_mm256_and_si256(up, _mm256_set1_epi32(0x30))), _mm256_set1_epi32(32));
	UNROLL for (int t = 0; t < m->n_tokens; t++)
		put_sum(m, t, i_iq4_xs(c, high_of(m, t), low_of(m, t), sc, strip_of(m, t)));
}

/* ---- Q2_K, whose codes come in the order that suits the registers ---- */

INLINE void q2_k_block(const void *block, const struct product *m)
{
	const struct q2_k *b = block;
	c64 c[4];
	c_q2_k(b, m->n_tokens, c);
	q2_k_minima(b, m->to->m + 16*m->at);
	UNROLL for (int n = 0; n < m->n_tokens; n++)
		put_sum(m, n, i_q2_k(b, c, m->n_tokens, high_of(m, n), low_of(m, n), strip_of(m, n)));
}

/* ---- sixteens ---- */

/* sum: i_threes or i_sixteens; sc: the scales of q3_k_words or i_scales; codes have a bias of 1 << bias */
typedef __m256i sixteens_fn(const c64 *c, digits256 high, digits256 low, __m256i sc);
INLINE void sixteens(const c64 *c, __m256i sc, int bias, sixteens_fn *sum, const struct product *m)
{
	UNROLL for (int t = 0; t < m->n_tokens; t++) {
		__m256i biased = _mm256_slli_epi32(_mm256_madd_epi16(sc, i_sums(strip_of(m, t))), bias);
		put_sum(m, t, _mm256_sub_epi32(sum(c, high_of(m, t), low_of(m, t), sc), biased));
	}
}
/* The twelve bytes of scales are at the end of x. */
enum { AT_Q3_K = offsetof(struct q3_k, scales) - 4 };
#if defined DIGITS_LANES
#include "digits_lanes.h"
#else
INLINE void c_q5_k(const struct q5_k *b, c64 *c)
{
	c64 a, e, u[2], v[2];
	c_fourths(b->qs, &a, &e);
	c_fifths(b->qh, u, u + 1);
	c_fifths(b->qh + 16, v, v + 1);
	c[0] = c_join(a, 15, u[0]);
	c[1] = c_join(e, 15, v[0]);
	c[2] = c_join(c_right(a, 4), 15, u[1]);
	c[3] = c_join(c_right(e, 4), 15, v[1]);
}
static const enum digits_order order_q3_k = ORDER_Q3_K;
static heads_fn *const q3_k_heads = q3_k_sixes;
INLINE void q3_k_block(const void *block, const struct product *m)
{
	c64 c[4];
	c_q3_k(block, c);
	sixteens(c, q3_k_words(x16(m->to->m + 16*m->at)), 2, i_threes, m);
}
#endif

/* By chains, with codes of either text above */
INLINE void q5_k_block(const void *block, const struct product *m)
{
	c64 c[4];
	c_q5_k(block, c);
	chains_with_minima(c, m);
}

#if defined DIGITS_STEPS
/* Each register of codes is multiplied before the next one is made. A core that has few waiting instructions in view
 * would else find only those that make codes, then only products. */
INLINE void q6_k_block(const void *block, const struct product *m)
{
	const struct q6_k *b = block;
	const __m256i sc = i_scales(x16(b->scales));
	c64 u = c_both(b->qh, b->qh + 32);
	isum s[DIGITS_TOKENS][2];
	UNROLL for (int t = 0; t < m->n_tokens; t++) {
		s[t][0] = i_zero();
		s[t][1] = _mm256_slli_epi32(_mm256_madd_epi16(sc, i_sums(strip_of(m, t))), 5);
		s[t][1] = _mm256_sub_epi32(i_zero(), s[t][1]);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		const uint8_t *ql = b->ql + i%2*32;
		c64 x = c_both(ql, ql + 64);
		c_stay(&x);
		if (i) c_stay(&u);
		const c64 c = c_merge(c_right(x, i/2*4), 15, c_right(u, 2*i - 4), 48);
		UNROLL for (int t = 0; t < m->n_tokens; t++) {
			i_chain(s[t], c.a, c.b, high_of(m, t).x + 64*i, low_of(m, t).x + 64*i, 32, i_scales_at(sc, i));
			i_stay(s[t]);
		}
	}
	UNROLL for (int t = 0; t < m->n_tokens; t++) put_sum(m, t, i_value(s[t][0], s[t][1]));
}
#else
#if !defined DIGITS_LANES
INLINE void c_q6_k(const struct q6_k *b, c64 *c)
{
	c64 x = c_both(b->ql, b->ql + 64), y = c_both(b->ql + 32, b->ql + 96), u = c_both(b->qh, b->qh + 32);
	c[0] = c_merge(x, 15, c_left(u, 4), 48);
	c[1] = c_merge(y, 15, c_left(u, 2), 48);
	c[2] = c_merge(c_right(x, 4), 15, u, 48);
	c[3] = c_merge(c_right(y, 4), 15, c_right(u, 2), 48);
}
#endif
INLINE void q6_k_block(const void *block, const struct product *m)
{
	const struct q6_k *b = block;
	c64 c[4];
	c_q6_k(b, c);
	sixteens(c, i_scales(x16(b->scales)), 5, i_sixteens, m);
}
#endif
