/* SPDX-License-Identifier: MIT
 * iq2_xxs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls + 1/2)/4 * g, four words of the code book with their
 * signs. Four 16-bit integers of qs to a sub-block: two hold the numbers of four words, a byte each; the other
 * two are 32 bits: 7 signs for each word, the eighth making the minuses even, then ls in the last four. */
#ifdef QUANT_DECODER

static inline void iq2_xxs_unpack(const struct iq2_xxs *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		const uint16_t *q = b->qs + 4*j;
		uint32_t tail = q[2] | (uint32_t)q[3] << 16;
		c->sc[2*j] = c->sc[2*j + 1] = (int16_t)(2*(tail >> 28) + 1);
		for (int k = 0; k < 4; k++) {
			uint64_t g = grid_signed(grid_iq2_xxs[q[k/2] >> k%2*8 & 255], grid_even(tail >> 7*k & 127));
			memcpy(c->q + 32*j + 8*k, &g, 8);
		}
	}
	memset(c->mn, 0, sizeof c->mn);
}
#endif
