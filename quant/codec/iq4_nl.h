/* SPDX-License-Identifier: MIT
 * iq4_nl.h - blocks of 32: weight = d*level, one of sixteen uneven ones. Byte i of qs: code i low, code i + 16 high. */
#ifdef QUANT_DECODER

static const int8_t iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static inline void iq4_nl_unpack(const struct iq4_nl *b, struct codes32 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->m = 0;
	for (int i = 0; i < 16; i++) {
		c->q[i] = iq4_levels[b->qs[i] & 15];
		c->q[i + 16] = iq4_levels[b->qs[i] >> 4];
	}
}
#endif
