/* SPDX-License-Identifier: MIT
 * q4_k.h - super-blocks of 8 sub-blocks of 32: weight = d*ls*q - dmin*lm, with q of 4 bits, ls and lm of 6.
 *
 *   qs        byte e of the 32 of group i: code e of sub-block 2i in the low half, of 2i + 1 in the high half
 *   scales    bytes 0..3    ls of sub-blocks 0..3 in six bits; above it the upper two bits of ls of 4..7
 *             bytes 4..7    lm of sub-blocks 0..3 in six bits; above it the upper two bits of lm of 4..7
 *             bytes 8..11   of sub-blocks 4..7: the lower four bits of ls in the low half, of lm in the high half */
#ifdef QUANT_DECODER

/* Unpacks the twelve bytes of scales to eight ls and eight lm. */
static inline void q4_k_unpack_scales(const uint8_t *s, struct codes256 *c)
{
	uint32_t a = u32_of(s), b = u32_of(s + 4), e = u32_of(s + 8), six = 0x3f3f3f3f, low = 0x0f0f0f0f,
		two = 0x03030303;
	uint64_t sc = (uint64_t)((e & low) | (a >> 6 & two) << 4) << 32 | (a & six);
	uint64_t mn = (uint64_t)((e >> 4 & low) | (b >> 6 & two) << 4) << 32 | (b & six);
	s_store(c->sc, s_pairs(sc, sc));
	s_store(c->mn, s_pairs(mn, mn));
}
static inline void q4_k_unpack(const struct q4_k *b, struct codes256 *c)
{
	c->d = f_half(b->d);
	c->dmin = f_half(b->dmin);
	q4_k_unpack_scales(b->scales, c);
	for (int g = 0; g < 4; g++) {
		b32 x = b_load(b->qs + 32*g);
		b_store(c->q + 64*g, b_field(x, 0, 4, 0));
		b_store(c->q + 64*g + 32, b_field(x, 4, 4, 0));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct affine affine_q4_k = { .n = 32, .nmax = 15, .smax = 63, .mmax = 63, .start = affine_starts_15 };
/* for q5_k too */
static const struct affine_effort q4_k_effort[] = {
	{ .starts = 2, .iters = 1, .walks = 0 },
	{ .starts = 4, .iters = 1, .walks = 0 },
	{ .starts = 6, .iters = 2, .walks = 0 },
	{ .starts = 8, .iters = 2, .walks = 1 },
	{ .starts = 10, .iters = 2, .walks = 1 },
	{ .starts = 12, .iters = 3, .walks = 1 },
	{ .starts = 12, .iters = 4, .walks = 2 },
	{ .starts = 20, .iters = 5, .walks = 3 },
	{ .starts = 32, .iters = 6, .walks = 4 },
};
/* Packs eight ls and eight lm into the twelve bytes. */
static inline void q4_k_scales(uint8_t *scales, const float *ls, const float *lm)
{
	for (int j = 0; j < 4; j++) {
		int a = (int)ls[j], b = (int)lm[j], c = (int)ls[j + 4], e = (int)lm[j + 4];
		scales[j] = (uint8_t)(a | c >> 4 << 6);
		scales[j + 4] = (uint8_t)(b | e >> 4 << 6);
		scales[j + 8] = (uint8_t)((c & 15) | (e & 15) << 4);
	}
}
static void pack_q4_k(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q4_k *o = block;
	o->d = f16_scale(f->d[h]); o->dmin = f16_scale(f->m[h]);
	q4_k_scales(o->scales, f->ls + 8*h, f->lm + 8*h);
	for (int i = 0; i < 8; i++)
		put_nibbles(o->qs + 16*i, t->code[8*h + i/2*2] + i%2*16, t->code[8*h + i/2*2 + 1] + i%2*16);
}
AGAIN(q4_k, affine_again(&affine_q4_k, &q4_k_effort[how->row], t, v))
ENCODER(q4_k, 32, 8, affine_tile(&affine_q4_k, q4_k_effort, how->row, t, 8, f),
	.exact = true, .affine = &affine_q4_k, .levels = &(const struct levels){ .lo = 0, .hi = 15 },
	.scales = scales_min, .again = again_q4_k)
#endif
