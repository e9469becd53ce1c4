/* SPDX-License-Identifier: MIT
 * q2_0.h - blocks of 64: weight = d*(q - 1), with q of 2 bits.
 *
 *   qs        bits 2(i%4).. of byte i/4: code i */
#ifdef QUANT_DECODER

static inline void q2_0_unpack(const struct q2_0 *b, struct codes32 *c)
{
	for (int p = 0; p < 2; p++) {
		h8 x = h_bytes(u64_of(b->qs + 8*p));
		x = (x & 3) | (x << 6 & 0x300) | (x << 12 & 0x30000) | (x << 18 & 0x3000000);
		c[p].d = f_half(b->d);
		c[p].m = 0;
		b_store(c[p].q, b_minus((b32)x, 1));
	}
}
#endif
#ifdef QUANT_ENCODER

static const float q2_0_starts[] = {
	2.3f, -2.3f, 1.8f, -1.8f, 2.9f, -2.9f, 1.5f, -1.5f, 3.6f, -3.6f, 2.05f, -2.05f, 1.2f, -1.2f, 2.6f, -2.6f, 4.6f,
	-4.6f, 6, -6, 9, -9, 15, -15,
};
static const struct levels levels_q2_0 = { .n = 16, .lo = -1, .hi = 2, .start = q2_0_starts };
static const struct levels_effort q2_0_effort[] = {
	{ .starts = 4, .iters = 0 },
	{ .starts = 8, .iters = 0 },
	{ .starts = 12, .iters = 0 },
	{ .starts = 14, .iters = 1 },
	{ .starts = 16, .iters = 2 },
	{ .starts = 18, .iters = 2 },
	{ .starts = 20, .iters = 3 },
	{ .starts = 24, .iters = 4 },
	{ .starts = 24, .iters = 6 },
};
static void pack_q2_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q2_0 *o = block;
	o->d = f16_scale(f->d[h]);
	for (int i = 0; i < 16; i++) {
		const uint8_t *c = t->code[4*h + i/4] + i%4*4;
		o->qs[i] = (uint8_t)(c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6);
	}
}
ENCODER(q2_0, 16, 4, levels_units(&levels_q2_0, &q2_0_effort[how->row], how->lift, t, 4, f),
	.exact = true, .levels = &levels_q2_0, .scales = scales_block)
#endif
