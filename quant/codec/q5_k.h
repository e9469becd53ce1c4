/* SPDX-License-Identifier: MIT
 * q5_k.h - super-blocks of 8 sub-blocks of 32: weight = d*ls*q - dmin*lm, with q of 5 bits, ls and lm of 6.
 *
 *   qs        the lower four bits of codes, as in q4_k.h
 *   qh        bit j of byte e: the fifth bit of code e of sub-block j
 *   scales    as in q4_k.h */
#ifdef QUANT_DECODER

/* The scales are q4_k's. */
static inline void q5_k_unpack(const struct q5_k *b, struct codes256 *c)
{
	b32 up = b_load(b->qh);
	c->d = f_half(b->d);
	c->dmin = f_half(b->dmin);
	q4_k_unpack_scales(b->scales, c);
	for (int g = 0; g < 4; g++) {
		b32 x = b_load(b->qs + 32*g);
		b_store(c->q + 64*g, b_field(x, 0, 4, 0) | b_field(up, 2*g, 1, 4));
		b_store(c->q + 64*g + 32, b_field(x, 4, 4, 0) | b_field(up, 2*g + 1, 1, 4));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct affine affine_q5_k = { .n = 32, .nmax = 31, .smax = 63, .mmax = 63, .start = affine_starts_31 };
static void pack_q5_k(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q5_k *o = block;
	o->d = f16_scale(f->d[h]); o->dmin = f16_scale(f->m[h]);
	q4_k_scales(o->scales, f->ls + 8*h, f->lm + 8*h);
	for (int i = 0; i < 8; i++)
		put_nibbles(o->qs + 16*i, t->code[8*h + i/2*2] + i%2*16, t->code[8*h + i/2*2 + 1] + i%2*16);
	for (int e = 0; e < 32; e += 16) {
		bytes high = { 0 };
		for (int j = 0; j < 8; j++) high |= (bytes_load(t->code[8*h + j] + e) >> 4) << j;
		bytes_store(o->qh + e, high);
	}
}
AGAIN(q5_k, affine_again(&affine_q5_k, &q4_k_effort[how->row], t, v))
ENCODER(q5_k, 32, 8, affine_tile(&affine_q5_k, q4_k_effort, how->row, t, 8, f),
	.exact = true, .affine = &affine_q5_k, .levels = &(const struct levels){ .lo = 0, .hi = 31 },
	.scales = scales_min, .again = again_q5_k)
#endif
