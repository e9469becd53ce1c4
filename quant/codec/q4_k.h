/* SPDX-License-Identifier: MIT
 * q4_k.h - super-blocks of 8 sub-blocks of 32: weight = d*ls*q - dmin*lm, q 4 bits, ls and lm 6 bits.
 * scales: see q4_k_scales. Byte e of group i of qs: code e of sub-block 2i low, of 2i + 1 high. */
#ifdef QUANT_DECODER

static inline void q4_k_unpack_scales(const uint8_t *s, struct codes256 *c)
{
	for (int j = 0; j < 8; j++) {
		int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
		int mn = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
		c->sc[2*j] = c->sc[2*j + 1] = (int16_t)sc;
		c->mn[2*j] = c->mn[2*j + 1] = (int16_t)mn;
	}
}
static inline void q4_k_unpack(const struct q4_k *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->dmin = kern_f16_to_f32(b->dmin);
	q4_k_unpack_scales(b->scales, c);
	for (int g = 0; g < 4; g++)
		for (int i = 0; i < 32; i++) {
			c->q[64*g + i] = (int8_t)(b->qs[32*g + i] & 15);
			c->q[64*g + 32 + i] = (int8_t)(b->qs[32*g + i] >> 4);
		}
}
#endif
#ifdef QUANT_ENCODER

static const struct affine affine_q4_k = { .n = 32, .nmax = 15, .smax = 63, .mmax = 63, .start = affine_starts_15 };
/* of q5_k too */
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
/* The twelve bytes of scales: bytes 0..3 ls of sub-blocks 0..3, 4..7 their lm, 8..11 the low halves of ls and lm
 * of sub-blocks 4..7, whose upper two bits lie above the first eight. */
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
ENCODER(q4_k, 32, 8, affine_tile(&affine_q4_k, q4_k_effort, how->row, t, 8, f),
	.levels = &(const struct levels){ .lo = 0, .hi = 15 }, .scales = scales_min)
#endif
