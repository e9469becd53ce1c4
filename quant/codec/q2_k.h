/* SPDX-License-Identifier: MIT
 * q2_k.h - super-blocks of 16 sub-blocks of 16: weight = d*ls*q - dmin*lm, with q of 2 bits, ls and lm of 4.
 *
 *   scales    ls and lm of a sub-block in a byte, ls in the low half
 *   qs        bits 2k.. of byte i, in half h = i/32: code i%16 of sub-block 8h + 2k + i/16%2 */
#ifdef QUANT_DECODER

static inline void q2_k_unpack(const struct q2_k *b, struct codes256 *c)
{
	b16 scales = b_load16(b->scales);
	c->d = f_half(b->d);
	c->dmin = f_half(b->dmin);
	s_store(c->sc, s_bytes(b_field16(scales, 0, 4)));
	s_store(c->mn, s_bytes(b_field16(scales, 4, 4)));
	for (int h = 0; h < 2; h++) {
		b32 x = b_load(b->qs + 32*h);
		for (int k = 0; k < 4; k++) b_store(c->q + 128*h + 32*k, b_field(x, 2*k, 2, 0));
	}
}
#endif
#ifdef QUANT_ENCODER

/* The fourth start is not the greedy choice, which was 2.4, .5. For most weights it is as good, and it finds the scale
 * of weights with three levels, which no other of the first eight does. */
static const struct affine_start q2_k_starts[AFFINE_STARTS] = {
	{ 3.7f, .5f }, { 3.6f, 0 }, { 3.6f, 1 }, { 2.4f, 0 }, { 4.5f, 1 }, { 4.8f, .25f }, { 2.5f, 1 },
	{ 3.7f, .75f }, { 4.9f, .5f }, { 4.7f, 0 }, { 3.3f, 0 }, { 4.9f, .75f }, { 2.5f, 0 }, { 5, 1 }, { 3.2f, .25f },
	{ 3.4f, .75f }, { 2.4f, .75f }, { 4.2f, .5f }, { 4.2f, .75f }, { 4, .25f }, { 3.2f, .5f }, { 1.6f, .25f },
	{ 2.6f, 0 }, { 3.6f, .25f }, { 4.3f, 0 }, { 4.3f, 1 }, { 4.2f, 0 }, { 3.4f, .25f }, { 3.8f, 0 }, { 5, .5f },
	{ 2.8f, .25f }, { 3.3f, 1 },
};
static const struct affine affine_q2_k = { .n = 16, .nmax = 3, .smax = 15, .mmax = 15, .thrift = 0.002f,
	.start = q2_k_starts };
static const struct affine_effort q2_k_effort[] = {
	{ .starts = 2, .iters = 1, .walks = 0 },
	{ .starts = 4, .iters = 1, .walks = 0 },
	{ .starts = 4, .iters = 2, .walks = 1 },
	{ .starts = 6, .iters = 2, .walks = 1 },
	{ .starts = 6, .iters = 2, .walks = 2 },
	{ .starts = 8, .iters = 3, .walks = 3 },
	{ .starts = 12, .iters = 4, .walks = 3 },
	{ .starts = 16, .iters = 5, .walks = 4 },
	{ .starts = 32, .iters = 6, .walks = 6 },
};
static void pack_q2_k(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct q2_k *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]); o->dmin = f16_scale(f->m[0]);
	for (int j = 0; j < 16; j++) o->scales[j] = (uint8_t)((int)f->ls[j] | (int)f->lm[j] << 4);
	for (int i = 0; i < 4; i++) put_pairs(o->qs + 16*i, t->code + i/2*8 + i%2);
}
AGAIN(q2_k, affine_again(&affine_q2_k, &q2_k_effort[how->row], t, v))
ENCODER(q2_k, 16, 16, affine_tile(&affine_q2_k, q2_k_effort, how->row, t, 16, f),
	.exact = true, .affine = &affine_q2_k, .levels = &(const struct levels){ .lo = 0, .hi = 3 },
	.scales = scales_min, .again = again_q2_k)
#endif
