/* SPDX-License-Identifier: MIT
 * q4_1.h - blocks of 32: weight = d*q + m. Byte i of qs: code i low, code i + 16 high. */
#ifdef QUANT_ENCODER

static const struct affine q4_1 = { .n = 32, .nmax = 15 };
static const struct affine_effort q4_1_effort[] = {
	{ .starts = 2, .iters = 1, .first = 14, .step = 1 },
	{ .starts = 4, .iters = 1, .first = 13.4f, .step = .8f },
	{ .starts = 6, .iters = 2, .first = 13, .step = .7f },
	{ .starts = 8, .iters = 2, .first = 13, .step = .6f },
	{ .starts = 8, .iters = 3, .first = 13, .step = .6f },
	{ .starts = 12, .iters = 3, .first = 12.5f, .step = .45f },
	{ .starts = 16, .iters = 4, .first = 12.5f, .step = .35f },
	{ .starts = 24, .iters = 5, .first = 12, .step = .25f },
	{ .starts = 48, .iters = 6, .first = 12, .step = .13f },
};
static inline void pack_q4_1(struct q4_1 *o, const struct tile *t, const struct fitted *f, int h)
{
	o->d = f16_scale(f->d[h]); o->m = f16_scale(f->m[h]);
	for (int e = 0; e < 16; e++) o->qs[e] = (uint8_t)(t->q[e][h] | t->q[e + 16][h] << 4);
}
ENCODER(q4_1, 32, 1, affine_blocks(&q4_1, &q4_1_effort[row], &t, &f))
#endif
