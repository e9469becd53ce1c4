/* SPDX-License-Identifier: MIT
 * tq2_0.h - super-blocks of 256: weight = d*(q - 1), with q of 2 bits.
 *
 *   qs        bits 2k.. of byte 32h + i: code 128h + 32k + i */
#ifdef QUANT_DECODER

static inline void tq2_0_unpack(const struct tq2_0 *b, struct codes256 *c)
{
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, s_all(1));
	s_store(c->mn, s_zero());
	for (int h = 0; h < 2; h++) {
		b32 x = b_load(b->qs + 32*h);
		for (int k = 0; k < 4; k++) b_store(c->q + 128*h + 32*k, b_minus(b_field(x, 2*k, 2, 0), 1));
	}
}
#endif
#ifdef QUANT_ENCODER

static void pack_tq2_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct tq2_0 *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	for (int i = 0; i < 4; i++) put_pairs(o->qs + 16*i, t->code + i/2*8 + i%2);
}
ENCODER(tq2_0, 16, 16, levels_units(&levels_ternary, &ternary_effort[how->row], how->lift, t, 16, f),
	.exact = true, .levels = &levels_ternary, .scales = scales_block)
#endif
