/* SPDX-License-Identifier: MIT
 * q5_0.h - blocks of 32: weight = d*(q - 16), with q of 5 bits.
 *
 *   qs        byte i: the lower four bits of code i in the low half, of code i + 16 in the high half
 *   qh        bit j: the fifth bit of code j */
#ifdef QUANT_DECODER

static inline void q5_0_unpack(const struct q5_0 *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = 0;
	b_store(c->q, b_minus(b_nibbles(b->qs) | (b_mask(u32_of(b->qh)) & 16), 16));
}
#endif
#ifdef QUANT_ENCODER

static const float q5_0_starts[] = {
	15.85f, -16.2f, 16.2f, 14.1f, 16.9f, -15.85f, -16.73f, 15.15f, 13.05f, 14.8f, -18.3f, 16.55f, 19, 12, 13.75f,
	17.6f, 15.32f, -16.38f, -17.25f, 14.28f, 15.68f, -19, 14.97f, 16.02f, -15.68f, -16.02f, 13.22f, 16.38f, 18.12f,
	12.7f, -16.55f, -17.77f, 14.62f, 17.25f, 12.18f, -16.9f, 13.93f, 16.73f, 13.57f, 18.48f,
};
static const struct levels levels_q5_0 = { .n = 32, .lo = -16, .hi = 15, .start = q5_0_starts };
static void pack_q5_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q5_0 *o = block;
	o->d = f16_scale(f->d[h]);
	q5_bits(o->qs, o->qh, t->code[h]);
}
static const struct quick quick_q5_0 = { .bytes = sizeof(struct q5_0), .centred = true, .top = 31,
	.qs = offsetof(struct q5_0, qs), .qh = offsetof(struct q5_0, qh) };
ENCODER_QUICK(q5_0, levels_blocks(&levels_q5_0, &q4_0_effort[how->row], t, f),
	.exact = true, .levels = &levels_q5_0, .scales = scales_block)
#endif
