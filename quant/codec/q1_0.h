/* SPDX-License-Identifier: MIT
 * q1_0.h - blocks of 128: weight = d or -d. Bit i%8 of byte i/8: 1 for d. */
#ifdef QUANT_DECODER

static inline void q1_0_unpack(const struct q1_0 *b, struct codes32 *c)
{
	for (int p = 0; p < 4; p++) {
		c[p].d = kern_f16_to_f32(b->d);
		c[p].m = 0;
		for (int i = 0; i < 32; i++) c[p].q[i] = b->qs[4*p + i/8] >> i%8 & 1 ? 1 : -1;
	}
}
#endif
