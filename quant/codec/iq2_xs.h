/* SPDX-License-Identifier: MIT
 * iq2_xs.h - super-blocks of 16 sub-blocks of 16: weight = d*(ls + 1/2)/4 * g, with ls of 4 bits.
 * g: two words of the code book, with signs.
 *
 *   qs        integer k: the number of word k in 9 bits, then 7 of its signs; the eighth makes the number of minuses
 *             even
 *   scales    ls of two sub-blocks in a byte, the first in the low half */
#ifdef QUANT_DECODER

/* All 32 signs of four integers, each of which has seven signs above nine bits. */
static inline uint32_t iq2_xs_signs(uint64_t k)
{
	k = (k >> 9 & 0x7f) | (k >> 17 & 0x7f00) | (k >> 25 & 0x7f0000) | (k >> 33 & 0x7f000000);
	return grid_even((uint32_t)k);
}
static inline void iq2_xs_unpack(const struct iq2_xs *b, struct codes256 *c)
{
	uint64_t ls = u64_of(b->scales), low = 0x0f0f0f0f0f0f0f0f;
	c->d = f_half(b->d)*0.125f;
	c->dmin = 0;
	s_store(c->sc, 2*s_pairs(ls & low, ls >> 4 & low) + 1);
	s_store(c->mn, s_zero());
	for (int j = 0; j < 8; j++) {
		uint64_t k = u64_of(b->qs + 4*j);
		w4 g = { grid_iq2_xs[k & 511], grid_iq2_xs[k >> 16 & 511], grid_iq2_xs[k >> 32 & 511],
			grid_iq2_xs[k >> 48 & 511] };
		b_store(c->q + 32*j, b_signed((b32)g, b_mask(iq2_xs_signs(k))));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq2_xs = { .n = 16, .word = 8, .base = 3, .level = { 8, 25, 43, 0, 8, 25, 43 },
	.line = 1, .even = 1,
	.top = 15, .unit = 0.125f, .best = grid_best_iq2_xs, .rank = rank_iq2_xs, .bias = 1.03f,
	.dense = 0.42f, .dense_top = 32 };
/* for iq2_s too */
static const struct grid_effort iq2_xs_effort[] = {
	{ .starts = 2, .iters = 1, .first = 44.0f, .step = 7.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 42.0f, .step = 6.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 42.0f, .step = 6.0f, .walks = 1, .reach = 1, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 45.0f, .step = 7.0f, .walks = 1, .reach = 0, .again = 0 },
	{ .starts = 3, .iters = 1, .first = 45.0f, .step = 7.0f, .walks = 1, .reach = 1, .again = 0 },
	{ .starts = 4, .iters = 1, .first = 45.0f, .step = 4.667f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 5, .iters = 2, .first = 45.0f, .step = 3.5f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 6, .iters = 2, .first = 45.0f, .step = 2.8f, .walks = 3, .reach = 2, .again = 2 },
	{ .starts = 8, .iters = 2, .first = 45.0f, .step = 2.0f, .walks = 4, .reach = 2, .again = 2 },
};
static void pack_iq2_xs(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq2_xs *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	for (int j = 0; j < 8; j++) o->scales[j] = (uint8_t)((int)f->ls[2*j] | (int)f->ls[2*j + 1] << 4);
	for (int k = 0; k < 32; k++)
		o->qs[k] = (uint16_t)(grid_number(&book_iq2_xs, t, k%2*8, k/2) | grid_sign_bits(t, k%2*8,
			k/2, 7) << 9);
}
ENCODER_GRID(iq2_xs, 16, 16, iq2_xs_effort)
#endif
