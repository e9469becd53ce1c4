/* SPDX-License-Identifier: MIT
 * iq1_s.h - super-blocks of 8 sub-blocks of 32: weight = d*(2*ls + 1) * (g + delta), four words of -1, 0, 1 of the
 * code book, delta 1/8 or -1/8. Byte k of qs: low bits of the number of word k. An integer of qh: the
 * upper three bits of four words, ls in three bits, the sign of delta. */
#ifdef QUANT_DECODER

/* eight codes of 8*(g + delta), digits g + 1; d is 8*delta */
static inline void iq1_codes(int8_t *q, uint64_t word, int d)
{
	uint8_t g[8];
	memcpy(g, &word, 8);
	for (int i = 0; i < 8; i++) q[i] = (int8_t)(8*g[i] - 8 + d);
}
static inline void iq1_s_unpack(const struct iq1_s *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		unsigned h = b->qh[j];
		c->sc[2*j] = c->sc[2*j + 1] = (int16_t)(2*(h >> 12 & 7) + 1);
		for (int k = 0; k < 4; k++)
			iq1_codes(c->q + 32*j + 8*k, grid_iq1[b->qs[4*j + k] | (h >> 3*k & 7) << 8], h & 0x8000 ? -1 : 1);
	}
	memset(c->mn, 0, sizeof c->mn);
}
#endif
