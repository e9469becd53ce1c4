/* SPDX-License-Identifier: MIT
 * iq4_xs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls - 32)*level, the levels of iq4_nl.h, ls of 6 bits.
 *
 *   qs        byte i of the 16 of a sub-block: code i in the low half, code i + 16 in the high half
 *   scales_l  the lower four bits of ls, of two sub-blocks in a byte
 *   scales_h  their upper two bits */
#ifdef QUANT_DECODER

static inline void iq4_xs_unpack(const struct iq4_xs *b, struct codes256 *c)
{
	uint64_t ls = spread4(u32_of(b->scales_l)) | spread2(b->scales_h) << 4;
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, s_pairs(ls, ls) - 32);
	s_store(c->mn, s_zero());
	for (int j = 0; j < 8; j++) b_store(c->q + 32*j, b_level(iq4_levels, b_nibbles(b->qs + 16*j)));
}
#endif
#ifdef QUANT_ENCODER

static const struct levels levels_iq4_xs = { .n = 32, .uneven = &iq4_uneven, .slo = -32, .shi = 31,
	.start = iq4_starts };
static const struct levels_effort iq4_xs_effort[] = {
	{ .starts = 2, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 4, .iters = 0, .walks = 1, .reach = 0 },
	{ .starts = 8, .iters = 1, .walks = 1, .reach = 0 },
	{ .starts = 12, .iters = 1, .walks = 1, .reach = 0 },
	{ .starts = 16, .iters = 1, .walks = 2, .reach = 0 },
	{ .starts = 20, .iters = 1, .walks = 2, .reach = 1 },
	{ .starts = 20, .iters = 2, .walks = 4, .reach = 1 },
	{ .starts = 24, .iters = 3, .walks = 6, .reach = 3 },
	{ .starts = 24, .iters = 4, .walks = 8, .reach = 5 },
};
static void pack_iq4_xs(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq4_xs *o = block;
	o->d = f16_scale(f->d[h]);
	o->scales_h = 0;
	memset(o->scales_l, 0, sizeof o->scales_l);
	for (int j = 0; j < 8; j++) {
		int s = (int)f->ls[8*h + j] + 32;
		o->scales_l[j/2] |= (uint8_t)((s & 15) << j%2*4);
		o->scales_h |= (uint16_t)(s >> 4 << 2*j);
		put_nibbles(o->qs + 16*j, t->code[8*h + j], t->code[8*h + j] + 16);
	}
}
AGAIN(iq4_xs, levels_again(&levels_iq4_xs, &iq4_xs_effort[how->row], t, v))
ENCODER(iq4_xs, 32, 8, levels_tile(&levels_iq4_xs, &iq4_xs_effort[how->row], how->lift, t, 8, f),
	.exact = true, .levels = &levels_iq4_xs, .scales = scales_sub, .again = again_iq4_xs)
#endif
