/* SPDX-License-Identifier: MIT
 * q6_k.h - super-blocks of 16 sub-blocks of 16: weight = d*ls*(q - 32), with q of 6 bits, ls a signed byte. Half h of
 * the super-block has 128 codes:
 *
 *   ql        byte 64h + i, i < 64: the lower four bits of code i in the low half, of code i + 64 in the high half
 *   qh        byte 32h + i, i < 32: the upper two bits of codes i, i + 32, i + 64 and i + 96 */
#ifdef QUANT_DECODER

static inline void q6_k_unpack(const struct q6_k *b, struct codes256 *c)
{
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, s_bytes(b_load16(b->scales)));
	s_store(c->mn, s_zero());
	for (int h = 0; h < 2; h++) {
		b32 up = b_load(b->qh + 32*h);
		for (int k = 0; k < 4; k++) {
			b32 x = b_load(b->ql + 64*h + k%2*32);
			b_store(c->q + 128*h + 32*k, b_minus(b_field(x, k/2*4, 4, 0) | b_field(up, 2*k, 2, 4), 32));
		}
	}
}
#endif
#ifdef QUANT_ENCODER

static const float q6_k_starts[] = {
	31.05f, 29.95f, 32.15f, -32.15f, 29.12f, 28.02f, 26.93f, 26.1f, 25, 31.6f, 30.77f, -31.88f, 28.85f, 30.23f,
	32.7f, -32.7f, -33.8f, 27.2f, 31.88f, 33.52f, 31.32f, 29.68f, 27.75f, 25.55f, 28.3f, -35.17f, 32.42f, 29.4f,
	-32.42f, 25.27f, -31.6f, 26.65f, 34.35f, 28.57f, 32.98f, -33.52f, 35.73f, 26.38f, 25.82f, 30.5f,
};
static const struct levels levels_q6_k = { .n = 16, .lo = -32, .hi = 31, .slo = -128, .shi = 127,
	.start = q6_k_starts };
static const struct levels_effort q6_k_effort[] = {
	{ .starts = 2, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 4, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 8, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 10, .iters = 0, .walks = 1, .reach = 0, .steps = true },
	{ .starts = 14, .iters = 0, .walks = 1, .reach = 0, .steps = true },
	{ .starts = 14, .iters = 0, .walks = 2, .reach = 1, .steps = true },
	{ .starts = 20, .iters = 0, .walks = 2, .reach = 2, .steps = true },
	{ .starts = 40, .iters = 0, .walks = 3, .reach = 4, .steps = true },
	{ .starts = 40, .iters = 1, .walks = 4, .reach = 14, .steps = true },
};
static void pack_q6_k(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q6_k *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	for (int j = 0; j < 16; j++) o->scales[j] = (int8_t)f->ls[j];
	for (int i = 0; i < 4; i++) {
		const uint8_t (*c)[32] = t->code + i/2*8 + i%2;
		bytes high = { 0 };
		put_nibbles(o->ql + 64*(i/2) + i%2*16, c[0], c[4]);
		put_nibbles(o->ql + 64*(i/2) + i%2*16 + 32, c[2], c[6]);
		for (int k = 0; k < 4; k++) high |= (bytes_load(c[2*k]) >> 4) << 2*k;
		bytes_store(o->qh + 16*i, high);
	}
}
AGAIN(q6_k, levels_again(&levels_q6_k, &q6_k_effort[how->row], t, v))
ENCODER(q6_k, 16, 16, levels_tile(&levels_q6_k, &q6_k_effort[how->row], how->lift, t, 16, f),
	.exact = true, .levels = &levels_q6_k, .scales = scales_sub, .again = again_q6_k)
#endif
