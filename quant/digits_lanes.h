/* SPDX-License-Identifier: MIT
 * digits_lanes.h - part of digits_k.h in registers of 64 bytes with GFNI (DIGITS_LANES): Q5_K, Q6_K and Q3_K, whose
 * bits are moved to their places by matrices of bits.
 *
 * Q5_K and Q6_K: bits of each byte of qh go to the ends of that byte's halves, where one operation joins them with the
 * codes' lower bits.
 *
 * Q3_K, with a lane for each sixteen columns: two registers have what digits_256.h has in four, halves of bytes with
 * three bits each, the upper one joined to the lower two. Upper halves stay in place, as Q2_K's codes do, and a lane is
 * scaled once. */

/* The lower halves of a's bytes, the upper ones of b's */
INLINE __m512i two_halves(__m512i a, __m512i b)
{
	return _mm512_ternarylogic_epi64(_mm512_set1_epi8(15), a, b, 0xca);
}
/* ---- Q5_K ---- */

/* Bits 2*q and 2*q + 1 of quarter q, at 4 and at 0 */
INLINE __m512i q5_k_upper(const uint8_t *qh)
{
	const uint64_t one = 1ull << 24 | 2ull << 56;
	const __m512i bits = _mm512_setr_epi64((long long)one, (long long)one, (long long)(one << 2),
		(long long)(one << 2), (long long)(one << 4), (long long)(one << 4), (long long)(one << 6),
		(long long)(one << 6));
	return _mm512_gf2p8affine_epi64_epi8(c_four_times(qh), bits, 0);
}
INLINE void c_q5_k(const struct q5_k *b, c64 *c)
{
	/* the upper half down, the lowest bit above it */
	const __m512i turn = _mm512_set1_epi64(0x1020408001000000), u = q5_k_upper(b->qh), v = q5_k_upper(b->qh + 16);
	c64 a, e;
	c_fourths(b->qs, &a, &e);
	c[0] = two_halves(a, u);
	c[1] = two_halves(e, v);
	c[2] = _mm512_gf2p8affine_epi64_epi8(two_halves(u, a), turn, 0);
	c[3] = _mm512_gf2p8affine_epi64_epi8(two_halves(v, e), turn, 0);
}

/* ---- Q6_K ---- */

/* Bits k and k + 1 of each byte at 4 and 5, bits k + 4 and k + 5 at 0 and 1 */
INLINE __m512i q6_k_upper(__m512i qh, int k)
{
	const uint64_t bits = 1ull << 24 | 2ull << 16 | 16ull << 56 | 32ull << 48;
	return _mm512_gf2p8affine_epi64_epi8(qh, _mm512_set1_epi64((long long)(bits << k)), 0);
}
INLINE void c_q6_k(const struct q6_k *b, c64 *c)
{
	/* the upper half down, the lowest two bits above it */
	const __m512i turn = _mm512_set1_epi64(0x1020408001020000), x = c_both(b->ql, b->ql + 64),
		y = c_both(b->ql + 32, b->ql + 96);
	__m512i qh = c_load(b->qh);
	__asm__("" : "+v"(qh));         /* loaded once */
	const __m512i u = q6_k_upper(qh, 0), v = q6_k_upper(qh, 2);
	c[0] = two_halves(x, u);
	c[1] = two_halves(y, v);
	c[2] = _mm512_gf2p8affine_epi64_epi8(two_halves(u, x), turn, 0);
	c[3] = _mm512_gf2p8affine_epi64_epi8(two_halves(v, y), turn, 0);
}

/* ---- Q3_K ---- */

static const enum digits_order order_q3_k = ORDER_LANES;

/* Moves bits k and k + 2 of a byte of hmask to places 2 and 6; those of the last two quarters are four higher. */
INLINE __m512i q3_k_upper(__m512i hmask, int k)
{
	const uint64_t one = (1ull << k << 40) | (1ull << (k + 2) << 8), two = one << 4;
	const __m512i bits = _mm512_setr_epi64((long long)one, (long long)one, (long long)one, (long long)one,
		(long long)two, (long long)two, (long long)two, (long long)two);
	return _mm512_gf2p8affine_epi64_epi8(hmask, bits, 0);
}
INLINE void c_q3_k(const struct q3_k *b, c64 *c)
{
	__m512i x = c_load(b->qs);
	__asm__("" : "+v"(x));          /* loaded once */
	const __m512i h = c_twice(b->hmask), even = c_join(x, 0x33, q3_k_upper(h, 0)),
		odd = c_join(_mm512_srli_epi16(x, 2), 0x33, q3_k_upper(h, 1)),
		bits = _mm512_broadcast_i32x4(_mm_setr_epi32(0x07070707, 0x70707070, 0x07070707, 0x70707070));
	const __m512 u = _mm512_castsi512_ps(even), v = _mm512_castsi512_ps(odd);
	c[0] = _mm512_and_si512(_mm512_castps_si512(_mm512_shuffle_ps(u, v, 0x00)), bits);
	c[1] = _mm512_and_si512(_mm512_castps_si512(_mm512_shuffle_ps(u, v, 0x55)), bits);
	c[2] = _mm512_and_si512(_mm512_castps_si512(_mm512_shuffle_ps(u, v, 0xaa)), bits);
	c[3] = _mm512_and_si512(_mm512_castps_si512(_mm512_shuffle_ps(u, v, 0xff)), bits);
}
/* Scales by lanes */
INLINE heads q3_k_heads(heads x)
{
	return h_shuffle(q3_k_sixes(x), _mm_setr_epi8(0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15));
}
INLINE void q3_k_block(const void *block, const struct product *m)
{
	const struct q3_k *b = block;
	const __m512i sc = _mm512_cvtepi8_epi32(x16(m->to->m + 16*m->at)),
		by = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 4, 0, 4));
	c64 c[4];
	c_q3_k(b, c);
	UNROLL for (int t = 0; t < m->n_tokens; t++) {          /* low sums begin with what the bias of 4 adds */
		const digits256 high = high_of(m, t), low = low_of(m, t);
		__m512i h = _mm512_setzero_si512(), l = _mm512_load_si512(strip_of(m, t)->less4);
		UNROLL for (int i = 0; i < 4; i++) {
			h = _mm512_dpbusd_epi32(h, c[i], high.x[i]);
			l = _mm512_dpbusd_epi32(l, c[i], low.x[i]);
		}
		l = _mm512_srav_epi32(_mm512_add_epi32(_mm512_slli_epi32(h, 6), l), by);
		put_sum(m, t, i_eight(_mm512_mullo_epi32(l, sc)));
	}
}
