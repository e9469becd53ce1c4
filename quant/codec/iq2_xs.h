/* SPDX-License-Identifier: MIT
 * iq2_xs.h - super-blocks of 16 sub-blocks of 16: weight = d*(ls + 1/2)/4 * g, two words of the code book with their
 * signs. An integer of qs: 9 bits the number of the word, 7 bits signs, the eighth making the
 * minuses even. scales: ls of two sub-blocks to a byte, low half first. */
#ifdef QUANT_DECODER

static inline void iq2_xs_unpack(const struct iq2_xs *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 16; j++) {
		c->sc[j] = (int16_t)(2*(b->scales[j/2] >> j%2*4 & 15) + 1);
		c->mn[j] = 0;
	}
	for (int k = 0; k < 32; k++) {
		uint64_t g = grid_signed(grid_iq2_xs[b->qs[k] & 511], grid_even(b->qs[k] >> 9));
		memcpy(c->q + 8*k, &g, 8);
	}
}
#endif
