/* SPDX-License-Identifier: MIT
 * nvfp4.h - blocks of 64, four sub-blocks of 16: weight = s/2 * level, the levels of mxfp4.h, s an 8-bit float without
 * sign: four bits exponent (bias 7), three mantissa, subnormals below 2^-6; 0x7f is 0. Byte i of the 8 of a
 * sub-block: code i low, code i + 8 high. A model may hold a scale of the whole tensor beside its blocks, as a
 * tensor of its own; blocks are made and decoded without it. */
#ifdef QUANT_DECODER

static inline float nvfp4_scale(uint8_t s)
{
	int e = s >> 3 & 15, m = s & 7;
	if ((s & 127) == 127) return 0;
	return e ? kern_f32_bits((uint32_t)(e + 119) << 23 | (uint32_t)m << 20) : (float)m*0x1p-10f;
}
/* Four parts of 16 codes, the rest of each zeros. */
static inline void nvfp4_unpack(const struct nvfp4 *b, struct codes32 *c)
{
	memset(c, 0, 4*sizeof *c);
	for (int p = 0; p < 4; p++) {
		c[p].d = nvfp4_scale(b->d[p]);
		for (int i = 0; i < 8; i++) {
			c[p].q[i] = fp4_levels[b->qs[8*p + i] & 15];
			c[p].q[i + 8] = fp4_levels[b->qs[8*p + i] >> 4];
		}
	}
}
#endif
