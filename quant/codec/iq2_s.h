/* SPDX-License-Identifier: MIT
 * iq2_s.h - super-blocks of 16 sub-blocks of 16: weight = d*(ls + 1/2)/4 * g, two words of the code book with their
 * signs. Byte k of qs: low bits of the number of word k; bits 2(k%4).. of byte k/4 of qh: its upper two; byte
 * k + 32 of qs: its eight signs. scales: ls of two sub-blocks to a byte, low half first. */
#ifdef QUANT_DECODER

static inline void iq2_s_unpack(const struct iq2_s *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 16; j++) {
		c->sc[j] = (int16_t)(2*(b->scales[j/2] >> j%2*4 & 15) + 1);
		c->mn[j] = 0;
	}
	for (int k = 0; k < 32; k++) {
		uint64_t g = grid_signed(grid_iq2_s[b->qs[k] | (b->qh[k/4] >> k%4*2 & 3) << 8], b->qs[32 + k]);
		memcpy(c->q + 8*k, &g, 8);
	}
}
#endif
