/* SPDX-License-Identifier: MIT
 * q2_k.h - super-blocks of 16 sub-blocks of 16: weight = d*ls*q - dmin*lm, q 2 bits, ls and lm 4 bits, in a byte together.
 * Bits 2k of byte i of qs, half h = i/32: code i%16 of sub-block 8h + 2k + i/16%2. */
#ifdef QUANT_ENCODER

static const struct affine q2_k = { .n = 16, .nmax = 3, .smax = 15, .mmax = 15 };
static const struct affine_effort q2_k_effort[] = {
	{ .starts = 2, .iters = 1, .first = 2.6f, .step = .8f, .walks = 0 },
	{ .starts = 4, .iters = 1, .first = 2.4f, .step = .5f, .walks = 0 },
	{ .starts = 4, .iters = 2, .first = 2.4f, .step = .5f, .walks = 1 },
	{ .starts = 6, .iters = 2, .first = 2.2f, .step = .35f, .walks = 1 },
	{ .starts = 6, .iters = 3, .first = 2.2f, .step = .35f, .walks = 2 },
	{ .starts = 8, .iters = 3, .first = 2.2f, .step = .28f, .walks = 3 },
	{ .starts = 12, .iters = 4, .first = 2, .step = .2f, .walks = 3 },
	{ .starts = 16, .iters = 5, .first = 2, .step = .15f, .walks = 4 },
	{ .starts = 32, .iters = 6, .first = 2, .step = .08f, .walks = 6 },
};
static inline void pack_q2_k(struct q2_k *o, const struct tile *t, const struct fitted *f, int h)
{
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]); o->dmin = f16_scale(f->m[0]);
	for (int j = 0; j < 16; j++) o->scales[j] = (uint8_t)((int)f->ls[j] | (int)f->lm[j] << 4);
	for (int i = 0; i < 64; i++) {
		const uint8_t *q = &t->q[i % 16][8*(i/32) + i/16%2];
		o->qs[i] = (uint8_t)(q[0] | q[2] << 2 | q[4] << 4 | q[6] << 6);
	}
}
ENCODER(q2_k, 16, 16, affine_tile(&q2_k, &q2_k_effort[row], &t, 16, &f))
#endif
