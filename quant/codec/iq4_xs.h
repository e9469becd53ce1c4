/* SPDX-License-Identifier: MIT
 * iq4_xs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls - 32)*level, the levels of iq4_nl.h, ls 6 bits.
 * Byte i of the 16 of a sub-block: code i low, code i + 16 high. Low halves of ls, two to a byte, in scales_l;
 * their upper two bits in scales_h. */
#ifdef QUANT_DECODER

static inline void iq4_xs_unpack(const struct iq4_xs *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		int ls = (b->scales_l[j/2] >> j%2*4 & 15) | (b->scales_h >> 2*j & 3) << 4;
		c->sc[2*j] = c->sc[2*j + 1] = (int16_t)(ls - 32);
		for (int i = 0; i < 16; i++) {
			c->q[32*j + i] = iq4_levels[b->qs[16*j + i] & 15];
			c->q[32*j + 16 + i] = iq4_levels[b->qs[16*j + i] >> 4];
		}
	}
	memset(c->mn, 0, sizeof c->mn);
}
#endif
