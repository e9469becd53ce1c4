/* SPDX-License-Identifier: MIT
 * q4_0.h - blocks of 32: weight = d*(q - 8), with q of 4 bits.
 *
 *   qs        byte i: code i in the low half, code i + 16 in the high half */
#ifdef QUANT_DECODER

static inline void q4_0_unpack(const struct q4_0 *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = 0;
	b_store(c->q, b_minus(b_nibbles(b->qs), 8));
}
#endif
#ifdef QUANT_ENCODER

static const float q4_0_starts[] = {
	7.9f, -8.3f, 8.6f, 7.2f, -9, -7.9f, 9.9f, 8.2f, 6.2f, 9, -8.6f, -9.9f, 6.9f, -7.6f, 7.7f, 8.4f, -8.1f, 9.4f, 6,
	-9.4f, 8.8f, 7.4f, 8.1f, -8.8f, 6.6f, -8.4f, 7.1f, -7.7f, -8.2f, 9.6f, 6.4f, -9.7f, -8, 7.3f, 9.2f, 7.6f, 8.3f,
	-9.2f, 8, 6.7f,
};
static const struct levels levels_q4_0 = { .n = 32, .lo = -8, .hi = 7, .start = q4_0_starts };
/* for q5_0 too */
static const struct levels_effort q4_0_effort[] = {
	{ .starts = 2, .iters = 0 },
	{ .starts = 4, .iters = 0 },
	{ .starts = 12, .iters = 1 },
	{ .starts = 24, .iters = 1, .steps = true },
	{ .starts = 40, .iters = 2, .steps = true },
	{ .starts = 40, .iters = 3, .steps = true },
	{ .starts = 40, .iters = 4, .steps = true },
	{ .starts = 40, .iters = 5, .steps = true },
	{ .starts = 40, .iters = 6, .steps = true },
};
static void pack_q4_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q4_0 *o = block;
	o->d = f16_scale(f->d[h]);
	put_nibbles(o->qs, t->code[h], t->code[h] + 16);
}
static const struct quick quick_q4_0 = { .bytes = sizeof(struct q4_0), .centred = true, .top = 15,
	.qs = offsetof(struct q4_0, qs) };
ENCODER_QUICK(q4_0, levels_blocks(&levels_q4_0, &q4_0_effort[how->row], t, f),
	.exact = true, .levels = &levels_q4_0, .scales = scales_block)
#endif
