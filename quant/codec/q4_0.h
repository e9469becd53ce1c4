/* SPDX-License-Identifier: MIT
 * q4_0.h - blocks of 32: weight = d*(q - 8). Byte i of qs: code i low, code i + 16 high. */
#ifdef QUANT_ENCODER

static const struct levels q4_0 = { .n = 32, .lo = -8, .hi = 7 };
static const struct levels_effort q4_0_effort[] = {
	{ .starts = 1, .iters = 0, .first = 8, .step = 0 },
	{ .starts = 2, .iters = 0, .first = 7.6f, .step = .5f },
	{ .starts = 4, .iters = 1, .first = 7.1f, .step = .4f },
	{ .starts = 6, .iters = 1, .first = 6.8f, .step = .3f },
	{ .starts = 8, .iters = 2, .first = 6.5f, .step = .25f },
	{ .starts = 12, .iters = 2, .first = 6.2f, .step = .2f },
	{ .starts = 20, .iters = 2, .first = 6, .step = .14f },
	{ .starts = 32, .iters = 3, .first = 5.8f, .step = .1f },
	{ .starts = 64, .iters = 3, .first = 5.6f, .step = .055f },
};
static inline void pack_q4_0(struct q4_0 *o, const struct tile *t, const struct fitted *f, int h)
{
	o->d = f16_scale(f->d[h]);
	for (int e = 0; e < 16; e++) o->qs[e] = (uint8_t)(t->q[e][h] | t->q[e + 16][h] << 4);
}
ENCODER(q4_0, 32, 1, levels_blocks(&q4_0, &q4_0_effort[row], &t, &f))
#endif
