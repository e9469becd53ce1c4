/* SPDX-License-Identifier: MIT
 * q5_0.h - blocks of 32: weight = d*(q - 16). Byte i of qs: low bits of codes i and i + 16; bit j of qh: bit 4 of code j. */
#ifdef QUANT_ENCODER

static const struct levels q5_0 = { .n = 32, .lo = -16, .hi = 15 };
static const struct levels_effort q5_0_effort[] = {
	{ .starts = 1, .iters = 0, .first = 16, .step = 0 },
	{ .starts = 2, .iters = 0, .first = 15.5f, .step = .5f },
	{ .starts = 4, .iters = 1, .first = 15, .step = .4f },
	{ .starts = 8, .iters = 1, .first = 14, .step = .3f },
	{ .starts = 12, .iters = 1, .first = 13.5f, .step = .25f },
	{ .starts = 16, .iters = 1, .first = 13, .step = .22f },
	{ .starts = 24, .iters = 2, .first = 12.5f, .step = .17f },
	{ .starts = 40, .iters = 2, .first = 12, .step = .11f },
	{ .starts = 80, .iters = 3, .first = 11.5f, .step = .06f },
};
static inline void pack_q5_0(struct q5_0 *o, const struct tile *t, const struct fitted *f, int h)
{
	o->d = f16_scale(f->d[h]);
	q5_bits(o->qs, o->qh, t, h);
}
ENCODER(q5_0, 32, 1, levels_blocks(&q5_0, &q5_0_effort[row], &t, &f))
#endif
