/* SPDX-License-Identifier: MIT
 * iq2_s.h - super-blocks of 16 sub-blocks of 16: weight = d*(ls + 1/2)/4 * g, with ls of 4 bits.
 * g: two words of the code book, with signs.
 *
 *   qs        byte k, k < 32: the lower eight bits of the number of word k; byte k + 32: the signs of its eight weights
 *   qh        bits 2(k%4).. of byte k/4: the upper two bits of that number
 *   scales    ls of two sub-blocks in a byte, the first in the low half */
#ifdef QUANT_DECODER

static inline void iq2_s_unpack(const struct iq2_s *b, struct codes256 *c)
{
	uint64_t ls = u64_of(b->scales), low = 0x0f0f0f0f0f0f0f0f;
	c->d = f_half(b->d)*0.125f;
	c->dmin = 0;
	s_store(c->sc, 2*s_pairs(ls & low, ls >> 4 & low) + 1);
	s_store(c->mn, s_zero());
	for (int j = 0; j < 8; j++) {
		const uint8_t *k = b->qs + 4*j;
		unsigned h = b->qh[j];
		w4 g = { grid_iq2_s[k[0] | (h << 8 & 0x300)], grid_iq2_s[k[1] | (h << 6 & 0x300)],
			grid_iq2_s[k[2] | (h << 4 & 0x300)], grid_iq2_s[k[3] | (h << 2 & 0x300)] };
		b_store(c->q + 32*j, b_signed((b32)g, b_mask(u32_of(b->qs + 32 + 4*j))));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq2_s = { .n = 16, .word = 8, .base = 3, .level = { 8, 25, 43, 0, 8, 25, 43 }, .line = 1,
	.top = 15, .unit = 0.125f, .best = grid_best_iq2_s, .rank = rank_iq2_s, .bias = 1.03f,
	.dense = 0.42f, .dense_top = 32 };
static void pack_iq2_s(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq2_s *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	memset(o->qh, 0, sizeof o->qh);
	for (int j = 0; j < 8; j++) o->scales[j] = (uint8_t)((int)f->ls[2*j] | (int)f->ls[2*j + 1] << 4);
	for (int k = 0; k < 32; k++) {
		unsigned n = grid_number(&book_iq2_s, t, k%2*8, k/2);
		o->qs[k] = (uint8_t)n;
		o->qh[k/4] |= (uint8_t)(n >> 8 << k%4*2);
		o->qs[32 + k] = (uint8_t)grid_sign_bits(t, k%2*8, k/2, 8);
	}
}
ENCODER_GRID(iq2_s, 16, 16, iq2_xs_effort)
#endif
