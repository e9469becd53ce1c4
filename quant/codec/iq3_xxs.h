/* SPDX-License-Identifier: MIT
 * iq3_xxs.h - super-blocks of 8 sub-blocks of 32: weight = d*(ls + 1/2)/2 * g, with ls of 4 bits.
 * g: eight words of the code book, of four weights each, with signs.
 *
 *   qs        byte k, k < 64: the number of word k; then 32 bits for each sub-block: 7 signs of each 8 weights, the
 *             eighth making the number of minuses even, then ls */
#ifdef QUANT_DECODER

static inline void iq3_xxs_unpack(const struct iq3_xxs *b, struct codes256 *c)
{
	const uint32_t *word = grid_iq3_xxs;
	uint64_t ls = 0;
	c->d = f_half(b->d)*0.25f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		const uint8_t *k = b->qs + 8*j;
		uint32_t tail = u32_of(b->qs + 64 + 4*j);
		h8 g = { word[k[0]], word[k[1]], word[k[2]], word[k[3]], word[k[4]], word[k[5]], word[k[6]],
			word[k[7]] };
		ls |= (uint64_t)(tail >> 28) << 8*j;
		b_store(c->q + 32*j, b_signed((b32)g, b_mask(grid_even(grid_sevens(tail)))));
	}
	s_store(c->sc, 2*s_pairs(ls, ls) + 1);
	s_store(c->mn, s_zero());
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq3_xxs = { .n = 32, .word = 4, .base = 8, .level = { 4, 12, 20, 28, 36, 44, 52, 62 },
	.line = 6, .even = 1,
	.top = 15, .unit = 0.25f, .best = grid_best_iq3_xxs, .rank = rank_iq3_xxs, .bias = 1, .flat = 30 };
static const struct grid_effort iq3_xxs_effort[] = {
	{ .starts = 2, .iters = 1, .first = 50.0f, .step = 11.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 48.0f, .step = 8.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 48.0f, .step = 8.0f, .walks = 1, .reach = 1, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 53.0f, .step = 11.0f, .walks = 1, .reach = 0, .again = 0 },
	{ .starts = 3, .iters = 1, .first = 53.0f, .step = 11.0f, .walks = 1, .reach = 1, .again = 0 },
	{ .starts = 4, .iters = 1, .first = 53.0f, .step = 7.333f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 5, .iters = 2, .first = 53.0f, .step = 5.5f, .walks = 2, .reach = 1, .again = 1 },
	{ .starts = 6, .iters = 2, .first = 53.0f, .step = 4.4f, .walks = 3, .reach = 2, .again = 2 },
	{ .starts = 8, .iters = 2, .first = 53.0f, .step = 3.143f, .walks = 4, .reach = 2, .again = 2 },
};
static void pack_iq3_xxs(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq3_xxs *o = block;
	o->d = f16_scale(f->d[h]);
	for (int j = 0; j < 8; j++) {
		int l = 8*h + j;
		uint32_t tail = (uint32_t)f->ls[l] << 28;
		for (int k = 0; k < 8; k++)
			o->qs[8*j + k] = (uint8_t)grid_number(&book_iq3_xxs, t, 4*k, l);
		for (int k = 0; k < 4; k++) tail |= grid_sign_bits(t, 8*k, l, 7) << 7*k;
		for (int i = 0; i < 4; i++) o->qs[64 + 4*j + i] = (uint8_t)(tail >> 8*i);
	}
}
ENCODER_GRID(iq3_xxs, 32, 8, iq3_xxs_effort)
#endif
