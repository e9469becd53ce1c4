/* SPDX-License-Identifier: MIT
 * q4_1.h - blocks of 32: weight = d*q + m, with q of 4 bits.
 *
 *   qs        byte i: code i in the low half, code i + 16 in the high half */
#ifdef QUANT_DECODER

static inline void q4_1_unpack(const struct q4_1 *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = f_half(b->m);
	b_store(c->q, b_nibbles(b->qs));
}
#endif
#ifdef QUANT_ENCODER

static const struct affine affine_q4_1 = { .n = 32, .nmax = 15, .start = affine_starts_15 };
/* for q5_1 too */
static const struct affine_effort q4_1_effort[] = {
	{ .starts = 2, .iters = 1 },
	{ .starts = 4, .iters = 1 },
	{ .starts = 6, .iters = 2 },
	{ .starts = 8, .iters = 2, .steps = true },
	{ .starts = 12, .iters = 3, .steps = true },
	{ .starts = 16, .iters = 3, .steps = true },
	{ .starts = 20, .iters = 4, .steps = true },
	{ .starts = 32, .iters = 5, .steps = true },
	{ .starts = 32, .iters = 8, .steps = true },
};
static void pack_q4_1(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q4_1 *o = block;
	o->d = f16_scale(f->d[h]); o->m = f16_scale(f->m[h]);
	put_nibbles(o->qs, t->code[h], t->code[h] + 16);
}
static const struct quick quick_q4_1 = { .bytes = sizeof(struct q4_1), .centred = false, .top = 15,
	.qs = offsetof(struct q4_1, qs) };
ENCODER_QUICK(q4_1, affine_blocks(&affine_q4_1, &q4_1_effort[how->row], t, f),
	.exact = true, .affine = &affine_q4_1, .levels = &(const struct levels){ .lo = 0, .hi = 15 },
	.scales = scales_block_min)
#endif
