/* SPDX-License-Identifier: MIT
 * q6_k.h - super-blocks of 16 sub-blocks of 16: weight = d*ls*(q - 32), q 6 bits, ls a signed byte.
 * Half h of 128 codes: bytes 64h.. of ql hold the low halves of codes i and i + 64, bytes 32h.. of qh the upper two
 * bits of codes i, i + 32, i + 64, i + 96. */
#ifdef QUANT_ENCODER

static const struct levels q6_k = { .n = 16, .lo = -32, .hi = 31, .slo = -128, .shi = 127 };
static const struct levels_effort q6_k_effort[] = {
	{ .starts = 2, .iters = 0, .first = 30, .step = 2, .walks = 1, .reach = 0 },
	{ .starts = 4, .iters = 0, .first = 29, .step = 1, .walks = 1, .reach = 0 },
	{ .starts = 4, .iters = 0, .first = 29, .step = 1, .walks = 1, .reach = 2 },
	{ .starts = 4, .iters = 0, .first = 29, .step = 1, .walks = 1, .reach = 4 },
	{ .starts = 4, .iters = 0, .first = 29, .step = 1, .walks = 2, .reach = 4 },
	{ .starts = 6, .iters = 0, .first = 28, .step = .8f, .walks = 2, .reach = 6 },
	{ .starts = 10, .iters = 0, .first = 27, .step = .6f, .walks = 3, .reach = 8 },
	{ .starts = 20, .iters = 0, .first = 26, .step = .35f, .walks = 3, .reach = 10 },
	{ .starts = 40, .iters = 1, .first = 26, .step = .18f, .walks = 4, .reach = 14 },
};
static inline void pack_q6_k(struct q6_k *o, const struct tile *t, const struct fitted *f, int h)
{
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	for (int j = 0; j < 16; j++) o->scales[j] = (int8_t)f->ls[j];
	for (int i = 0; i < 64; i++) {
		const uint8_t *q = &t->q[i % 16][8*(i/32) + i/16%2];
		uint8_t *l = o->ql + 64*(i/32) + i%32;
		l[0] = (uint8_t)((q[0] & 15) | (q[4] & 15) << 4);
		l[32] = (uint8_t)((q[2] & 15) | (q[6] & 15) << 4);
		o->qh[i] = (uint8_t)(q[0] >> 4 | q[2] >> 4 << 2 | q[4] >> 4 << 4 | q[6] >> 4 << 6);
	}
}
ENCODER(q6_k, 16, 16, levels_tile(&q6_k, &q6_k_effort[row], &t, 16, &f))
#endif
