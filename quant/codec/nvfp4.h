/* SPDX-License-Identifier: MIT
 * nvfp4.h - blocks of 64, four sub-blocks of 16: weight = s/2 * level, with the levels of mxfp4.h. s is an 8-bit float
 * without sign: four bits of exponent (bias 7), three of mantissa, subnormals below 2^-6. 0x7f is 0, and otherwise the
 * top bit is ignored, so that 0xff is 480.
 *
 *   d         s of each sub-block
 *   qs        byte i of the 8 of a sub-block: code i in the low half, code i + 8 in the high half
 *
 * A checkpoint in this format also has a float for each whole tensor, which converters keep as a tensor of its own, and
 * by which the graph multiplies. Blocks are decoded and made without it, as in ggml, so that no encoder needs to see
 * the whole tensor. The price: s of common weights (a few hundredths) is subnormal, in steps of 2^-9. */
#ifdef QUANT_DECODER

static inline float nvfp4_scale(uint8_t s)
{
	int e = s >> 3 & 15, m = s & 7;
	if (s == 127) return 0;
	return e ? kern_f32_bits((uint32_t)(e + 119) << 23 | (uint32_t)m << 20) : (float)m*0x1p-10f;
}
/* Makes two parts of 32 codes with two scales each: m is that of the second half. */
static inline void nvfp4_unpack(const struct nvfp4 *b, struct codes32 *c)
{
	for (int p = 0; p < 2; p++) {
		/* the lower halves of both sub-blocks, then the upper halves */
		w4 q = (w4)b_level(fp4_levels, b_nibbles(b->qs + 16*p));
		c[p].d = nvfp4_scale(b->d[2*p]);
		c[p].m = nvfp4_scale(b->d[2*p + 1]);
		b_store(c[p].q, (b32)(w4){ q[0], q[2], q[1], q[3] });
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct levels levels_nvfp4 = { .n = 16, .uneven = &fp4_uneven };
/* How many triples of scales to try; each scale maps the largest magnitude of the sub-block to a level. */
static const int nvfp4_effort[] = { 1, 2, 3, 3, 4, 4, 5, 5, 5 };
/* Finds the scale of weights that are already on the lattice, if it is an odd multiple of 2^-10. Half of that is no
 * scale, so no level twice as high leads to it, and rounding misses it if the largest magnitude is one of the lower
 * levels. So this tries the levels for which the largest magnitude is a whole number of such multiples, and takes one
 * that leaves next to nothing of the error. */
static inline void nvfp4_decoded(const struct tile *t, int o, rf top, rf scale, rf *be, rf *bs)
{
	static const float level[][3] = { { 6, 4, 3 }, { 2, 1, 1 } };
	const rf steps = r_min(top*scale*1024, r_dup(256));
	for (int i = 0; i < 2; i++) {
		rf k[3], err[3];
		rm whole[3];
		for (int j = 0; j < 3; j++) {
			rf r = r_round(steps*(1/level[i][j]));
			rf rest = r_abs(r*level[i][j] - steps);
			/* an odd multiple beyond 15 is no scale */
			whole[j] = m_and(r_lt(rest, r_dup(1e-6f)), m_and(r_gt(r, r_dup(0)), r_lt(r, r_dup(16))));
			k[j] = r_max(r, r_dup(1))*0x1p-10f/scale;
		}
		if (!m_bits(m_or(whole[0], m_or(whole[1], whole[2])))) continue;
		lv_errors(&levels_nvfp4, t, o, k, err);
		for (int j = 0; j < 3; j++) {
			rm ok = m_and(whole[j], r_lt(err[j], *be*1e-6f));
			*be = r_if(ok, err[j], *be); *bs = r_if(ok, k[j], *bs);
		}
	}
}
static inline void nvfp4_tile(struct tile *t, int triples, struct fitted *f)
{
	static const float level[][3] = {
		{ 12.3f, 8.1f, 10.8f }, { 9.2f, 6.3f, 13.6f }, { 7.2f, 11.5f, 5.6f }, { 8.6f, 15, 9.9f },
		{ 16.5f, 20, 26 },
	};
	_Alignas(64) float s[LANES], unit[LANES];
	for (int l = 0; l < LANES; l++) unit[l] = t->scale[l/4];
	for (int o = 0; o < LANES; o += REG) {
		rf top = r_dup(0), scale = r_floats(unit + o), be = r_dup(INFINITY), bs = be, k[3], err[3];
		for (int e = 0; e < 16; e++) top = r_max(top, r_abs(r_floats(&t->x[e][o])));
		for (int i = 0; i < triples; i++) {
			for (int j = 0; j < 3; j++) {
				/* rounds to an s/2, which has four bits; below 2^-7 steps are 2^-10 */
				rf b = top*(1/level[i][j])*scale, r;
				ru u = (ru)b;
				r = (rf)((u + 0x7ffff + ((u >> 20) & 1)) & ~0xfffffu);
				r = r_if(r_lt(b, r_dup(0x1p-7f)), r_round(r_min(b, r_dup(1))*1024)*0x1p-10f, r);
				k[j] = r_max(r_min(r, r_dup(224)), r_dup(0x1p-10f))/scale;
			}
			if (i == 0) bs = k[0];
			lv_errors(&levels_nvfp4, t, o, k, err);
			for (int j = 0; j < 3; j++) {
				rm ok = r_lt(err[j], be);
				be = r_if(ok, err[j], be); bs = r_if(ok, k[j], bs);
			}
		}
		nvfp4_decoded(t, o, top, scale, &be, &bs);
		r_put(s + o, bs);
	}
	for (int l = 0; l < LANES; l++) f->ls[l] = s[l]*unit[l];
	lv_codes(&levels_nvfp4, t, s);
}
static void pack_nvfp4(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct nvfp4 *o = block;
	for (int p = 0; p < 4; p++) {
		float s = 2*f->ls[4*h + p];
		bytes code;
		o->d[p] = (uint8_t)(s < 0x1p-6f ? (int)(s*512) : (int)(float_bits(s) >> 20) - (120 << 3));
		code = fp4_code(t->code[4*h + p]);
		for (int i = 0; i < 8; i++) o->qs[8*p + i] = (uint8_t)(code[i] | code[i + 8] << 4);
	}
}
static void scales_nvfp4(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	(void)c; (void)offset;
	*step = f->ls[lane];
}
ENCODER(nvfp4, 16, 4, nvfp4_tile(t, nvfp4_effort[how->row], f),
	.levels = &levels_nvfp4, .scales = scales_nvfp4)
#endif
