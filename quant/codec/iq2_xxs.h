/* SPDX-License-Identifier: MIT
 * iq2_xxs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls + 1/2)/4 * g, with ls of 4 bits.
 * g: four words of the code book, with signs.
 *
 *   qs        four integers of 16 bits for each sub-block: two are the numbers of four words, a byte each; the other
 *             two are 32 bits: 7 signs of each word, the eighth making the number of minuses even, then ls */
#ifdef QUANT_DECODER

static inline void iq2_xxs_unpack(const struct iq2_xxs *b, struct codes256 *c)
{
	uint64_t ls = 0;
	c->d = f_half(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		uint32_t k = u32_of(b->qs + 4*j), tail = u32_of(b->qs + 4*j + 2);
		w4 g = { grid_iq2_xxs[k & 255], grid_iq2_xxs[k >> 8 & 255], grid_iq2_xxs[k >> 16 & 255],
			grid_iq2_xxs[k >> 24] };
		ls |= (uint64_t)(tail >> 28) << 8*j;
		b_store(c->q + 32*j, b_signed((b32)g, b_mask(grid_even(grid_sevens(tail)))));
	}
	s_store(c->sc, 2*s_pairs(ls, ls) + 1);
	s_store(c->mn, s_zero());
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq2_xxs = { .n = 32, .word = 8, .base = 3, .level = { 8, 25, 43, 0, 8, 25, 43 },
	.line = 1, .even = 1,
	.top = 15, .unit = 0.125f, .best = grid_best_iq2_xxs, .rank = rank_iq2_xxs, .bias = 1.03f, .flat = 30 };
static const struct grid_effort iq2_xxs_effort[] = {
	{ .starts = 2, .iters = 1, .first = 44.0f, .step = 7.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 42.0f, .step = 6.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 42.0f, .step = 6.0f, .walks = 1, .reach = 1, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 46.0f, .step = 7.0f, .walks = 1, .reach = 0, .again = 0 },
	{ .starts = 3, .iters = 1, .first = 46.0f, .step = 7.0f, .walks = 1, .reach = 1, .again = 0 },
	{ .starts = 4, .iters = 1, .first = 46.0f, .step = 5.25f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 5, .iters = 2, .first = 46.0f, .step = 4.2f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 6, .iters = 2, .first = 46.0f, .step = 3.5f, .walks = 3, .reach = 2, .again = 2 },
	{ .starts = 8, .iters = 2, .first = 46.0f, .step = 2.625f, .walks = 4, .reach = 2, .again = 2 },
};
static void pack_iq2_xxs(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq2_xxs *o = block;
	o->d = f16_scale(f->d[h]);
	for (int j = 0; j < 8; j++) {
		int l = 8*h + j;
		uint32_t tail = (uint32_t)f->ls[l] << 28;
		unsigned n[4];
		for (int k = 0; k < 4; k++) {
			n[k] = grid_number(&book_iq2_xxs, t, 8*k, l);
			tail |= grid_sign_bits(t, 8*k, l, 7) << 7*k;
		}
		o->qs[4*j] = (uint16_t)(n[0] | n[1] << 8);
		o->qs[4*j + 1] = (uint16_t)(n[2] | n[3] << 8);
		o->qs[4*j + 2] = (uint16_t)tail;
		o->qs[4*j + 3] = (uint16_t)(tail >> 16);
	}
}
ENCODER_GRID(iq2_xxs, 32, 8, iq2_xxs_effort)
#endif
