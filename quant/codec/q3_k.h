/* SPDX-License-Identifier: MIT
 * q3_k.h - super-blocks of 16 sub-blocks of 16: weight = d*(ls - 32)*(q - 4), with q of 3 bits, ls of 6.
 *
 *   qs        the lower two bits of codes, as in q2_k.h: bits 2k.. of byte i, in half h = i/32
 *   hmask     bit 4h + k of byte i%32: the third bit of the same code
 *   scales    bytes 0..7: the lower four bits of ls 0..7 in the low half, of 8..15 in the high half;
 *             bytes 8..11: the upper two bits of ls j, j + 4, j + 8, j + 12 */
#ifdef QUANT_DECODER

/* ls 0..15, a byte each. */
static inline b16 q3_k_scales(const uint8_t *s)
{
	uint32_t a = u32_of(s), b = u32_of(s + 4), up = u32_of(s + 8), low = 0x0f0f0f0f, two = 0x03030303;
	return (b16)(h4){ (a & low) | (up & two) << 4, (b & low) | (up >> 2 & two) << 4,
		(a >> 4 & low) | (up >> 4 & two) << 4,
		(b >> 4 & low) | (up >> 6 & two) << 4 };
}
static inline void q3_k_unpack(const struct q3_k *b, struct codes256 *c)
{
	b32 up = b_load(b->hmask);
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, s_bytes(q3_k_scales(b->scales) - (uint8_t)32));
	s_store(c->mn, s_zero());
	for (int h = 0; h < 2; h++) {
		b32 x = b_load(b->qs + 32*h);
		for (int k = 0; k < 4; k++)
			b_store(c->q + 128*h + 32*k, b_minus(b_field(x, 2*k, 2, 0) | b_field(up, 4*h + k, 1, 2), 4));
	}
}
#endif
#ifdef QUANT_ENCODER

static const float q3_k_starts[] = {
	-3.837f, 4.275f, -4.537f, 3.138f, 5.237f, 3.837f, -5.412f, -4.188f, 4.625f, 3.4f, -4.888f, 5.412f, 4.1f,
	-3.663f, -4.013f, 3.663f, 4.975f, 4.45f, -4.362f, 4.013f, 2.263f, 2.875f, -5.062f, -4.713f, 3.225f, 3.05f,
	2.525f, -4.275f, 2, 4.8f, -4.1f, -3.925f, 3.75f, -4.45f, 4.362f, 3.925f, 2.962f, 4.188f, -3.75f, 3.312f,
};
static const struct levels levels_q3_k = { .n = 16, .lo = -4, .hi = 3, .slo = -32, .shi = 31, .start = q3_k_starts,
	.dense = 2.2f };
static const struct levels_effort q3_k_effort[] = {
	{ .starts = 2, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 4, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 8, .iters = 1, .walks = 1, .reach = 0 },
	{ .starts = 10, .iters = 1, .walks = 1, .reach = 1, .steps = true },
	{ .starts = 16, .iters = 1, .walks = 1, .reach = 1, .steps = true },
	{ .starts = 16, .iters = 2, .walks = 3, .reach = 1, .steps = true },
	{ .starts = 20, .iters = 3, .walks = 4, .reach = 2, .steps = true },
	{ .starts = 32, .iters = 3, .walks = 6, .reach = 3, .steps = true },
	{ .starts = 40, .iters = 4, .walks = 8, .reach = 5, .steps = true },
};
static void pack_q3_k(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q3_k *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	memset(o->scales, 0, sizeof o->scales);
	for (int j = 0; j < 16; j++) {
		int s = (int)f->ls[j] + 32;
		o->scales[j % 8] |= (uint8_t)((s & 15) << j/8*4);
		o->scales[8 + j % 4] |= (uint8_t)(s >> 4 << j/4*2);
	}
	for (int i = 0; i < 4; i++) put_pairs(o->qs + 16*i, t->code + i/2*8 + i%2);
	for (int i = 0; i < 2; i++) {
		bytes high = { 0 };
		for (int k = 0; k < 8; k++) high |= (bytes_load(t->code[2*k + i]) >> 2) << k;
		bytes_store(o->hmask + 16*i, high);
	}
}
AGAIN(q3_k, levels_again(&levels_q3_k, &q3_k_effort[how->row], t, v))
ENCODER(q3_k, 16, 16, levels_tile(&levels_q3_k, &q3_k_effort[how->row], how->lift, t, 16, f),
	.exact = true, .levels = &levels_q3_k, .scales = scales_sub, .again = again_q3_k)
#endif
