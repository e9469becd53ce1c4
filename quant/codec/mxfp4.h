/* SPDX-License-Identifier: MIT
 * mxfp4.h - blocks of 32: weight = 2^(e - 128) * level. A code is a 4-bit float (a sign, two bits of exponent, one of
 * mantissa), and its level is twice its value, so that levels are whole numbers.
 *
 *   qs        byte i: code i in the low half, code i + 16 in the high half */
#ifdef QUANT_DECODER

static const int8_t fp4_levels[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
static inline float mxfp4_scale(uint8_t e) { return kern_f32_bits(e < 2 ? 0x00200000u << e : (e - 1u) << 23); }
static inline void mxfp4_unpack(const struct mxfp4 *b, struct codes32 *c)
{
	c->d = mxfp4_scale(b->e);
	c->m = 0;
	b_store(c->q, b_level(fp4_levels, b_nibbles(b->qs)));
}
#endif
#ifdef QUANT_ENCODER

/* The levels in ascending order. Index 7 is 0, of either sign. */
static const struct uneven fp4_uneven = {
	.half = 0, .quarter = { -3.5f, 3.5f }, .eighth = { -7, -1.5f, 1.5f, 7 },
	.mid = { -10, -5, -2.5f, -0.5f, 0.5f, 2.5f, 5, 10 },
	.even = { -12, -6, -3, -1, 0, 2, 4, 8 }, .odd = { -8, -4, -2, 0, 1, 3, 6, 12 },
};
static inline bytes fp4_code(const uint8_t *index)
{
	bytes i = bytes_load(index);
	return ((bytes)(i > 7) & (i - 8)) | ((bytes)(i < 7) & (15 - i));
}
static const struct levels levels_mxfp4 = { .n = 32, .uneven = &fp4_uneven };
/* Triples of powers of two to try. The greatest magnitude is in [1, 2), which the greatest level, 12, meets with 2^-4
 * or 2^-3; where it is 2^127 or more, in [2, 4). */
static const int mxfp4_effort[] = { 1, 1, 2, 2, 2, 2, 3, 3, 4 };
static const float mxfp4_power[][3] = {
	{ 0x1p-4f, 0x1p-3f, 0x1p-5f }, { 0x1p-6f, 0x1p-2f, 0x1p-7f }, { 0x1p-8f, 0x1p-9f, 0x1p-10f }, { 0x1p-1f, 1, 2 },
};
/* Tries three powers, within the least and the greatest scale, and puts the best scale of some lanes, and its error,
 * into s and err. */
INLINE void mxfp4_try(const struct tile *t, int o, const float *power, rf least, rf most, rm some, rf *s, rf *err)
{
	rf k[3], left[3];
	for (int j = 0; j < 3; j++) k[j] = r_min(r_max(r_dup(power[j]), least), most);
	lv_errors(&levels_mxfp4, t, o, k, left);
	for (int j = 0; j < 3; j++) {
		rm ok = m_and(some, r_lt(left[j], *err));
		*err = r_if(ok, left[j], *err); *s = r_if(ok, k[j], *s);
	}
}
static inline void mxfp4_tile(struct tile *t, int triples, struct fitted *f)
{
	_Alignas(64) float s[LANES];
	for (int o = 0; o < LANES; o += REG) {
		const rf scale = r_floats(t->scale + o), one = r_dup(1);
		const rf least = 0x1p-128f/scale, most = 0x1p124f/scale;        /* 12 times that is the last weight */
		const rm all = r_lt(0 - one, one), high = r_lt(0x1p125f*one, scale);
		rf err = r_dup(INFINITY), best = r_max(r_dup(mxfp4_power[0][0]), least);
		for (int i = 0; i < triples; i++)
			mxfp4_try(t, o, mxfp4_power[i], least, most, all, &best, &err);
		if (triples == 1 && m_bits(high))
			mxfp4_try(t, o, mxfp4_power[1], least, most, high, &best, &err);
		r_put(s + o, best);
	}
	for (int l = 0; l < LANES; l++) f->d[l] = s[l]*t->scale[l];
	lv_codes(&levels_mxfp4, t, s);
}
static void pack_mxfp4(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct mxfp4 *o = block;
	uint32_t u = float_bits(f->d[h]);       /* a power of two, 2^-128 to 2^124 */
	o->e = (uint8_t)(u == 0x00200000 ? 0 : u == 0x00400000 ? 1 : (u >> 23) + 1);
	bytes_store(o->qs, fp4_code(t->code[h]) | fp4_code(t->code[h] + 16) << 4);
}
static void scales_mxfp4(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	(void)c; (void)offset;
	*step = f->d[lane];
}
ENCODER(mxfp4, 32, 1, mxfp4_tile(t, mxfp4_effort[how->row], f),
	.levels = &levels_mxfp4, .scales = scales_mxfp4)
#endif
