/* SPDX-License-Identifier: MIT
 * iq3_s.h - super-blocks of 8 sub-blocks of 32: weight = d*(2*ls + 1) * g, eight words of four of the code book with
 * their signs. Byte k of qs and bit k%8 of byte k/8 of qh: the number of word k. signs: a bit for each
 * weight. scales: ls of two sub-blocks to a byte, low half first. */
#ifdef QUANT_DECODER

static inline void iq3_s_unpack(const struct iq3_s *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->dmin = 0;
	for (int j = 0; j < 16; j++) {
		c->sc[j] = (int16_t)(2*(b->scales[j/4] >> j/2%2*4 & 15) + 1);
		c->mn[j] = 0;
	}
	for (int k = 0; k < 32; k++) {
		const uint8_t *q = b->qs + 2*k;
		unsigned h = b->qh[k/4] >> k%4*2;
		uint64_t g = grid_iq3_s[q[0] | (h & 1) << 8] | (uint64_t)grid_iq3_s[q[1] | (h & 2) << 7] << 32;
		g = grid_signed(g, b->signs[k]);
		memcpy(c->q + 8*k, &g, 8);
	}
}
#endif
