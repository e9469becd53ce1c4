/* SPDX-License-Identifier: MIT
 * attn_wide.h - keys and values of a tile as floats; part of attn_text.h.
 *
 * Keys of a head lie turned: the fields of the format's block (of a float, the float itself) are rows of ATTN_BLOCK
 * positions, so that lanes are positions. Q5_1, for each 32 dimensions:
 *
 *   d[64] m[64] halves | qh0[64] .. qh3[64] | qs0[64] .. qs15[64] bytes
 *
 * Values lie as the format has them, a row for each position. Weights are those of quant_decode: d*q is exact. */
#include "blocks.h"
#include "kern.h"

/* The codes of dimensions r and r + 16 are the halves of byte r of qs; bit r of qh is bit 4 of code r. */
static inline ri low4(ri qs) { return qs & 15; }
static inline ri high4(ri qs) { return qs >> 4; }

static void wide_halves(const void *src, size_t n, bool bf16, float *to)
{
	const char *s = src;
	size_t i = 0;
	for (; i + REG <= n; i += REG) r_put(to + i, bf16 ? r_bf16(s + 2*i) : r_f16(s + 2*i));
	for (; i < n; i++) {
		uint16_t h;
		memcpy(&h, s + 2*i, 2);
		to[i] = bf16 ? kern_bf16_to_f32(h) : kern_f16_to_f32(h);
	}
}

/* ---- keys: 32 dimensions of all positions ---- */

static void k_q8_0(const uint8_t *b, float *k)
{
	for (size_t p = 0; p < ATTN_BLOCK; p += REG) {
		rf d = r_f16(b + 2*p);
		const uint8_t *q = b + 2*ATTN_BLOCK + p;
		for (size_t i = 0; i < 32; i++) r_put(k + i*ATTN_BLOCK + p, d*r_int(r_i8(q + i*ATTN_BLOCK)));
	}
}
static void k_q4_0(const uint8_t *b, float *k)
{
	for (size_t p = 0; p < ATTN_BLOCK; p += REG) {
		rf d = r_f16(b + 2*p);
		const uint8_t *q = b + 2*ATTN_BLOCK + p;
		for (size_t i = 0; i < 16; i++) {
			ri c = r_u8(q + i*ATTN_BLOCK);
			r_put(k + i*ATTN_BLOCK + p, d*r_int(low4(c) - 8));
			r_put(k + (i + 16)*ATTN_BLOCK + p, d*r_int(high4(c) - 8));
		}
	}
}
static void k_q5_1(const uint8_t *b, float *k)
{
	for (size_t p = 0; p < ATTN_BLOCK; p += REG) {
		rf d = r_f16(b + 2*p), m = r_f16(b + 2*ATTN_BLOCK + 2*p);
		const uint8_t *h = b + 4*ATTN_BLOCK + p, *q = h + 4*ATTN_BLOCK;
		ri h0 = r_u8(h) | r_u8(h + ATTN_BLOCK) << 8, h1 = r_u8(h + 2*ATTN_BLOCK) | r_u8(h + 3*ATTN_BLOCK) << 8;
		for (size_t i = 0; i < 16; i++, h0 >>= 1, h1 >>= 1) {
			ri c = r_u8(q + i*ATTN_BLOCK);
			r_put(k + i*ATTN_BLOCK + p, d*r_int(low4(c) | (h0 & 1) << 4) + m);
			r_put(k + (i + 16)*ATTN_BLOCK + p, d*r_int(high4(c) | (h1 & 1) << 4) + m);
		}
	}
}
static void wide_k(uint32_t type, const void *src, size_t dim, float *k)
{
	const uint8_t *b = src;
	if (type == GGU_TYPE_F16 || type == GGU_TYPE_BF16) {
		wide_halves(src, dim*ATTN_BLOCK, type == GGU_TYPE_BF16, k);
		return;
	}
	for (size_t i = 0; i < dim/32; i++, k += 32*ATTN_BLOCK) {
		if (type == GGU_TYPE_Q8_0) k_q8_0(b + i*ATTN_BLOCK*sizeof(struct q8_0), k);
		else if (type == GGU_TYPE_Q4_0) k_q4_0(b + i*ATTN_BLOCK*sizeof(struct q4_0), k);
		else k_q5_1(b + i*ATTN_BLOCK*sizeof(struct q5_1), k);
	}
}

/* ---- values: n blocks of 32 ---- */

static void v_q8_0(const struct q8_0 *b, size_t n, float *v)
{
	for (; n; n--, b++, v += 32) {
		rf d = r_dup(kern_f16_to_f32(b->d));
		UNROLL for (size_t i = 0; i < 32; i += REG) r_put(v + i, d*r_int(r_i8(b->qs + i)));
	}
}
static void v_q4_0(const struct q4_0 *b, size_t n, float *v)
{
	for (; n; n--, b++, v += 32) {
		rf d = r_dup(kern_f16_to_f32(b->d));
		UNROLL for (size_t i = 0; i < 16; i += REG) {
			ri c = r_u8(b->qs + i);
			r_put(v + i, d*r_int(low4(c) - 8));
			r_put(v + 16 + i, d*r_int(high4(c) - 8));
		}
	}
}
static void v_q5_1(const struct q5_1 *b, size_t n, float *v)
{
	ri lane = { 0 };
	for (int i = 0; i < REG; i++) lane[i] = i;
	for (; n; n--, b++, v += 32) {
		rf d = r_dup(kern_f16_to_f32(b->d)), m = r_dup(kern_f16_to_f32(b->m));
		ri h0 = (ri){ 0 } + (b->qh[0] | b->qh[1] << 8), h1 = (ri){ 0 } + (b->qh[2] | b->qh[3] << 8);
		UNROLL for (int i = 0; i < 16; i += REG) {
			ri c = r_u8(b->qs + i);
			r_put(v + i, d*r_int(low4(c) | (h0 >> (lane + i) & 1) << 4) + m);
			r_put(v + 16 + i, d*r_int(high4(c) | (h1 >> (lane + i) & 1) << 4) + m);
		}
	}
}
static void wide_v(uint32_t type, const void *src, size_t dim, size_t n_pos, float *v, size_t v_wide)
{
	const char *s = src;
	for (size_t p = 0; p < n_pos; p++, v += v_wide) {
		switch (type) {
		case GGU_TYPE_F32: memcpy(v, s, 4*dim); s += 4*dim; break;
		case GGU_TYPE_F16: case GGU_TYPE_BF16: wide_halves(s, dim, type == GGU_TYPE_BF16, v); s += 2*dim; break;
		case GGU_TYPE_Q8_0: v_q8_0((const void *)s, dim/32, v); s += dim/32*sizeof(struct q8_0); break;
		case GGU_TYPE_Q4_0: v_q4_0((const void *)s, dim/32, v); s += dim/32*sizeof(struct q4_0); break;
		default: v_q5_1((const void *)s, dim/32, v); s += dim/32*sizeof(struct q5_1); break;
		}
	}
}
/* Squares of 16, so that lines are used while they are near. */
static void turn_k(const float *k, size_t dim, size_t n_pos, float *v, size_t v_wide)
{
	for (size_t j0 = 0; j0 < dim; j0 += 16)
		for (size_t p0 = 0; p0 < n_pos; p0 += 16)
			for (size_t p = p0; p < p0 + 16; p++)
				for (size_t j = j0; j < j0 + 16 && j < dim; j++) v[p*v_wide + j] = k[j*ATTN_BLOCK + p];
}
