/* SPDX-License-Identifier: MIT
 * enc_quick.h - the lowest effort of Q4_0, Q4_1, Q5_0 and Q5_1 without importances: codes from the extremes of the
 * block, then the least-squares scale (and min) for these codes.
 *
 * There is no tile here: the lanes of a register are neighbouring weights of one block. The scales of sixteen blocks
 * are found together. Sums have sixteen lanes, with element i in lane i mod 16, and are folded by halves, so that every
 * width of registers writes the same bytes. */
#ifndef QUANT_ENC_QUICK_H
#define QUANT_ENC_QUICK_H
#include "enc_tile.h"

/* the smallest and the largest of 32 weights, ignoring NaN */
static inline void quick_extremes(const float *x, float *least, float *most)
{
	rf lo = r_dup(INFINITY), hi = -lo;
	for (int e = 0; e < 32; e += REG) {
		lo = r_min(r_floats(x + e), lo);
		hi = r_max(r_floats(x + e), hi);
	}
	*least = -r_greatest(-lo); *most = r_greatest(hi);
}

static inline quad quick_half(const float *s)           /* sixteen lanes to four */
{
	return (quad_load(s) + quad_load(s + 8)) + (quad_load(s + 4) + quad_load(s + 12));
}
/* The codes 0..top of 32 weights at (x + m)*inv, and the sums of q, q q, q x and x. Low halves of codes i and i + 16
 * go to byte i of qs, fifth bits to qh, if there is one. */
struct quick_sums { float q, qq, qx, x; };
static inline struct quick_sums quick_codes(const float *x, float inv, float m, float top, uint8_t *qs, uint8_t *qh)
{
	_Alignas(64) float q1[LANES], q2[LANES], qx[LANES], sx[LANES];
	struct quick_sums r;
	uint32_t high = 0;
	quad a, b, c, d;
	for (int o = 0; o < LANES; o += REG) {
		rf x0 = r_floats(x + o), x1 = r_floats(x + LANES + o), low0, low1;
		rf c0 = r_round(r_clamp((x0 + m)*inv, 0, top)), c1 = r_round(r_clamp((x1 + m)*inv, 0, top));
		low0 = c0; low1 = c1;
		if (qh) {
			rm h0 = r_gt(c0, r_dup(15)), h1 = r_gt(c1, r_dup(15));
			low0 -= r_keep(h0, r_dup(16)); low1 -= r_keep(h1, r_dup(16));
			high |= m_bits(h0) << o | m_bits(h1) << (LANES + o);
		}
		put_codes(qs + o, low0 + 16*low1);
		r_put(q1 + o, c0 + c1); r_put(q2 + o, c0*c0 + c1*c1);
		r_put(qx + o, c0*x0 + c1*x1); r_put(sx + o, x0 + x1);
	}
	for (int i = 0; qh && i < 4; i++) qh[i] = (uint8_t)(high >> 8*i);
	a = quick_half(q1); b = quick_half(q2); c = quick_half(qx); d = quick_half(sx);
	a = QUAD_SHUFFLE(a, b, 0, 1, 4, 5) + QUAD_SHUFFLE(a, b, 2, 3, 6, 7);
	c = QUAD_SHUFFLE(c, d, 0, 1, 4, 5) + QUAD_SHUFFLE(c, d, 2, 3, 6, 7);
	a = QUAD_SHUFFLE(a, c, 0, 2, 4, 6) + QUAD_SHUFFLE(a, c, 1, 3, 5, 7);
	memcpy(&r, &a, sizeof r);
	return r;
}

/* Encodes n <= LANES blocks: puts codes into qs and qh, `stride` bytes from block to block, and scales into f. centred:
 * weight = d*(q - (top + 1)/2), with the weight of largest magnitude at code 0; otherwise weight = d*q + m. */
INLINE void quick_blocks(const float *x, int n, bool centred, float top, struct fitted *f, uint8_t *qs, uint8_t *qh,
	size_t stride)
{
	_Alignas(64) float lo[LANES] = { 0 }, hi[LANES] = { 0 }, q[LANES] = { 0 }, qq[LANES] = { 0 },
		qx[LANES] = { 0 }, sx[LANES] = { 0 };
	_Alignas(64) float inv[LANES], add[LANES];
	float mid = (top + 1)/2;
	for (int k = 0; k < n; k++) quick_extremes(x + 32*k, lo + k, hi + k);
	for (int k = 0; k < LANES; k += REG) {
		rf l = r_floats(lo + k), h = r_floats(hi + k), d = (h - l)/top;
		if (centred) d = r_if(r_gt(0 - l, h), l, h)/-mid;
		d = r_keep(r_gt(r_abs(d), r_dup(1e-30f)), d);
		r_put(inv + k, r_inverse(d)); r_put(add + k, centred ? d*mid : 0 - l);
	}
	for (int k = 0; k < n; k++) {
		struct quick_sums s = quick_codes(x + 32*k, inv[k], add[k], top, qs + (size_t)k*stride,
			qh ? qh + (size_t)k*stride : NULL);
		q[k] = s.q; qq[k] = s.qq; qx[k] = s.qx; sx[k] = s.x;
	}
	for (int k = 0; k < LANES; k += REG) {
		rf a = r_floats(q + k), b = r_floats(qq + k), c = r_floats(qx + k), s = r_floats(sx + k), d;
		if (centred) d = r_ratio(c - mid*s, b - 2*mid*a + 32*mid*mid);
		else d = r_ratio(32*c - a*s, 32*b - a*a);
		r_put(f->ls + k, d); r_put(f->lm + k, (s - d*a)*(1.0f/32));
	}
	for (int k = 0; k < n; k++) { f->d[k] = f->ls[k]; f->m[k] = f->lm[k]; }
}

/* A type with blocks of 32: d first in the block, followed by m if it is not centred. */
struct quick {
	size_t bytes, qs, qh;   /* of a block; offsets of its codes, and of fifth bits, or 0 */
	bool centred;
	float top;
};
static inline void quick_encode(const struct quick *k, const struct coder *c, const struct how *how, void *dst,
	const float *x, size_t n_blocks)
{
	uint8_t *o = dst;
	struct fitted f;
	for (size_t left = n_blocks, n; left; left -= n, o += n*k->bytes, x += 32*n) {
		n = left < LANES ? left : LANES;
		quick_blocks(x, (int)n, k->centred, k->top, &f, o + k->qs, k->qh ? o + k->qh : NULL, k->bytes);
		for (size_t i = 0; i < n; i++) {
			f16 *scales = (void *)(o + i*k->bytes);
			scales[0] = f16_scale(f.d[i]);
			if (!k->centred) scales[1] = f16_scale(f.m[i]);
			/* these codes do not suit what is stored: f16 has rounded it coarsely, or it is beyond f16 */
			if ((f.d[i] != 0 && fabsf(f.d[i]) < f16_coarse) || fabsf(f.d[i]) > 65504
				|| (!k->centred && fabsf(f.m[i]) > 65504))
				encode_tiles(c, scales, x + 32*i, NULL, 1, 32, how);
		}
	}
}
/* ENCODER of a type whose lowest effort is quick_NAME without importances. */
#define ENCODER_QUICK(name, FIT, ...) \
CODER(name, 32, 1, FIT, __VA_ARGS__) \
static void enc_##name(void *dst, const float *x, const float *weights, size_t rows, size_t cols, \
	const struct how *how) \
{ \
	if (weights || how->row) encode_tiles(&coder_##name, dst, x, weights, rows, cols, how); \
	else quick_encode(&quick_##name, &coder_##name, how, dst, x, rows*cols/32); \
}
#endif
