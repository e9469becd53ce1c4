/* SPDX-License-Identifier: MIT
 * q2_0.h - blocks of 64: weight = d*(q - 1), q 0 to 3. Bits 2(i%4).. of byte i/4: code i. */
#ifdef QUANT_DECODER

static inline void q2_0_unpack(const struct q2_0 *b, struct codes32 *c)
{
	for (int p = 0; p < 2; p++) {
		c[p].d = kern_f16_to_f32(b->d);
		c[p].m = 0;
		for (int i = 0; i < 32; i++) c[p].q[i] = (int8_t)((b->qs[8*p + i/4] >> i%4*2 & 3) - 1);
	}
}
#endif
