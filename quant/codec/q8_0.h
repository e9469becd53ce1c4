/* SPDX-License-Identifier: MIT
 * q8_0.h - blocks of 32: weight = d*q, q a signed byte. */
#ifdef QUANT_DECODER

static inline void q8_0_unpack(const struct q8_0 *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = 0;
	b_store(c->q, b_load(b->qs));
}
#endif
#ifdef QUANT_ENCODER

/* Rounds in the only way that the format has, ggml's: d = max|x|/127 and q = x*(1/d) to the nearest, halves away from
 * zero, with d as it was before it became an f16. Adding the float below 0.5 and truncating does that; if 0.5 itself
 * were added, the float below 0.5 would become 1. */
static void enc_q8_0(void *dst, const float *x, const float *weights, size_t rows, size_t cols, const struct how *how)
{
	enum { GROUP = 16 };            /* blocks whose scales are divided and rounded together */
	struct q8_0 *o = dst;
	size_t n = rows*cols/32, g;
	float top[GROUP] = { 0 }, inverse[GROUP];
	int32_t half[GROUP];
	(void)weights; (void)how;
	for (size_t b = 0; b < n; b += g, x += 32*g, o += g) {
		g = n - b < GROUP ? n - b : GROUP;
		for (size_t k = 0; k < g; k++) {
			rf most = r_dup(0);
			for (int e = 0; e < 32; e += REG) most = r_max(r_abs(r_floats(x + 32*k + e)), most);
			top[k] = r_greatest(most);
		}
		for (int k = 0; k < GROUP; k += REG) {
			rf d = r_floats(top + k)/127;
			ri h = half_f16(d);
			r_put(inverse + k, r_inverse(d));
			memcpy(half + k, &h, sizeof h);
		}
		for (size_t k = 0; k < g; k++) {
			int32_t q[32];
			rf id = r_dup(inverse[k]);
			o[k].d = (uint16_t)half[k];
			for (int e = 0; e < 32; e += REG) {
				rf v = r_floats(x + 32*k + e)*id,
					up = (rf)(((ri)v & INT32_MIN) | (ri)r_dup(0x1.fffffep-2f));
				ri c = ri_trunc(r_clamp(v + up, -128, 127));
				memcpy(q + e, &c, sizeof c);
			}
			for (int e = 0; e < 32; e++) o[k].qs[e] = (int8_t)q[e];
		}
	}
}
/* Only for error feedback: the scale that rounding takes, without the code -128. */
static const struct levels levels_q8_0 = { .n = 32, .lo = -127, .hi = 127 };
static void q8_0_tile(struct tile *t, struct fitted *f)
{
	for (int o = 0; o < LANES; o += REG) {
		_Alignas(64) float d[REG];
		rf top = r_dup(0);
		for (int e = 0; e < 32; e++) top = r_max(r_abs(r_floats(&t->x[e][o])), top);
		r_put(d, top/127);
		for (int l = 0; l < REG; l++) f->d[o + l] = d[l]*t->scale[o + l];
	}
}
static void pack_q8_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q8_0 *o = block;
	o->d = f16_scale(f->d[h]);
	for (int e = 0; e < 32; e++) o->qs[e] = (int8_t)(t->code[h][e] - 127);
}
CODER(q8_0, 32, 1, q8_0_tile(t, f), .levels = &levels_q8_0, .scales = scales_block)
#endif
