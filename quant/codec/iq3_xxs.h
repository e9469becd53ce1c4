/* SPDX-License-Identifier: MIT
 * iq3_xxs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls + 1/2)/2 * g, eight words of four of the code book
 * with their signs. Byte k of qs, k < 64: the number of word k. Then 32 bits for each sub-block: 7 signs for
 * each 8 weights, the eighth making the minuses even, and ls in the last four. */
#ifdef QUANT_DECODER

static inline void iq3_xxs_unpack(const struct iq3_xxs *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d)*0.25f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		const uint8_t *p = b->qs + 64 + 4*j, *q = b->qs + 8*j;
		uint32_t tail = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		c->sc[2*j] = c->sc[2*j + 1] = (int16_t)(2*(tail >> 28) + 1);
		for (int k = 0; k < 4; k++) {
			uint64_t g = grid_iq3_xxs[q[2*k]] | (uint64_t)grid_iq3_xxs[q[2*k + 1]] << 32;
			g = grid_signed(g, grid_even(tail >> 7*k & 127));
			memcpy(c->q + 32*j + 8*k, &g, 8);
		}
	}
	memset(c->mn, 0, sizeof c->mn);
}
#endif
