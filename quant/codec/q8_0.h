/* SPDX-License-Identifier: MIT
 * q8_0.h - blocks of 32: weight = d*q, q a signed byte. */
#ifdef QUANT_DECODER

static inline void q8_0_unpack(const struct q8_0 *b, struct codes32 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->m = 0;
	memcpy(c->q, b->qs, 32);
}
#endif
#ifdef QUANT_ENCODER

/* The format's one rounding, as ggml's: d = max|x|/127, q = x/d to the nearest, halves away from zero, with d
 * as it was before f16 took it. Adding the float below 0.5 and cutting does that: with 0.5 itself the float
 * below 0.5 would become 1. */
static void enc_q8_0(void *dst, const float *x, const float *imp, size_t rows, size_t cols, int level)
{
	struct q8_0 *o = dst;
	(void)imp; (void)level;
	for (size_t b = 0; b < rows*cols/32; b++, x += 32) {
		vf top = vf_dup(0);
		float d, id;
		int32_t q[32];
		for (int e = 0; e < 32; e += VL) top = v_max(v_abs(vf_load(x + e)), top);
		d = v_greatest(top)/127;
		id = d != 0 ? 1/d : 0;
		o[b].d = f16_rounded(d);
		for (int e = 0; e < 32; e += VL) {
			vf v = vf_load(x + e)*id, half = (vf)(((vi)v & INT32_MIN) | (vi)vf_dup(0x1.fffffep-2f));
			vi c = v_int(v_clamp(v + half, -128, 127));
			memcpy(q + e, &c, sizeof c);
		}
		for (int e = 0; e < 32; e++) o[b].qs[e] = (int8_t)q[e];
	}
}
#endif
