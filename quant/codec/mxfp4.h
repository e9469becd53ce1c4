/* SPDX-License-Identifier: MIT
 * mxfp4.h - blocks of 32: weight = 2^(e - 128) * level. A code is a 4-bit float (sign, two bits exponent, one
 * mantissa), its level twice its value, so that levels are whole. Byte i of qs: code i low, code i + 16 high. */
#ifdef QUANT_DECODER

static const int8_t fp4_levels[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
static inline void mxfp4_unpack(const struct mxfp4 *b, struct codes32 *c)
{
	c->d = kern_f32_bits(b->e < 2 ? 0x00200000u << b->e : (b->e - 1u) << 23);
	c->m = 0;
	for (int i = 0; i < 16; i++) {
		c->q[i] = fp4_levels[b->qs[i] & 15];
		c->q[i + 16] = fp4_levels[b->qs[i] >> 4];
	}
}
#endif
