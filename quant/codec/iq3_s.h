/* SPDX-License-Identifier: MIT
 * iq3_s.h - super-blocks of 8 sub-blocks of 32: weight = d*(2*ls + 1) * g, with ls of 4 bits.
 * g: eight words of the code book, of four weights each, with signs.
 *
 *   qs        byte k: the lower eight bits of the number of word k
 *   qh        bit k%8 of byte k/8: the ninth bit of that number
 *   signs     a bit for each weight
 *   scales    ls of two sub-blocks in a byte, the first in the low half */
#ifdef QUANT_DECODER

static inline void iq3_s_unpack(const struct iq3_s *b, struct codes256 *c)
{
	const uint32_t *word = grid_iq3_s;
	uint64_t ls = spread4(u32_of(b->scales));
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, 2*s_pairs(ls, ls) + 1);
	s_store(c->mn, s_zero());
	for (int j = 0; j < 8; j++) {
		const uint8_t *k = b->qs + 8*j;
		unsigned h = b->qh[j];
		h8 g = { word[k[0] | (h << 8 & 256)], word[k[1] | (h << 7 & 256)], word[k[2] | (h << 6 & 256)],
			word[k[3] | (h << 5 & 256)],
			word[k[4] | (h << 4 & 256)], word[k[5] | (h << 3 & 256)], word[k[6] | (h << 2 & 256)],
				word[k[7] | (h << 1 & 256)] };
		b_store(c->q + 32*j, b_signed((b32)g, b_mask(u32_of(b->signs + 4*j))));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq3_s = { .n = 32, .word = 4, .base = 8, .level = { 1, 3, 5, 7, 9, 11, 13, 15 },
	.line = 7,
	.top = 15, .unit = 1, .best = grid_best_iq3_s, .rank = rank_iq3_s, .bias = 1.04f, .flat = 7.2f };
static const struct grid_effort iq3_s_effort[] = {
	{ .starts = 1, .iters = 1, .first = 14.0f, .step = 2.5f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 2, .iters = 1, .first = 13.0f, .step = 2.5f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 12.0f, .step = 2.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 2, .iters = 1, .first = 14.0f, .step = 2.5f, .walks = 1, .reach = 0, .again = 0 },
	{ .starts = 3, .iters = 1, .first = 14.0f, .step = 1.25f, .walks = 1, .reach = 0, .again = 0 },
	{ .starts = 3, .iters = 1, .first = 14.0f, .step = 1.25f, .walks = 1, .reach = 1, .again = 0 },
	{ .starts = 4, .iters = 1, .first = 14.0f, .step = 0.833f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 6, .iters = 2, .first = 14.0f, .step = 0.5f, .walks = 3, .reach = 2, .again = 2 },
	{ .starts = 8, .iters = 2, .first = 14.0f, .step = 0.357f, .walks = 4, .reach = 2, .again = 2 },
};
static void pack_iq3_s(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq3_s *o = block;
	o->d = f16_scale(f->d[h]);
	memset(o->qh, 0, sizeof o->qh);
	for (int j = 0; j < 4; j++) o->scales[j] = (uint8_t)((int)f->ls[8*h + 2*j] | (int)f->ls[8*h + 2*j + 1] << 4);
	for (int k = 0; k < 64; k++) {
		unsigned n = grid_number(&book_iq3_s, t, k%8*4, 8*h + k/8);
		o->qs[k] = (uint8_t)n;
		o->qh[k/8] |= (uint8_t)(n >> 8 << k%8);
	}
	for (int k = 0; k < 32; k++) o->signs[k] = (uint8_t)grid_sign_bits(t, k%4*8, 8*h + k/4, 8);
}
ENCODER_GRID(iq3_s, 32, 8, iq3_s_effort)
#endif
