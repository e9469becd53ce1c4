/* SPDX-License-Identifier: MIT
 * iq1_s.h - super-blocks of 8 sub-blocks of 32: weight = d*(2*ls + 1) * (g + delta), with ls of 3 bits.
 * g: four words of -1, 0 and 1 of the code book; delta: 1/8 or -1/8.
 *
 *   qs        byte k: the lower eight bits of the number of word k
 *   qh        an integer for each sub-block: the upper three bits of four numbers, then ls, then the sign of delta */
#ifdef QUANT_DECODER

/* Codes 8*(g + delta), where g has the digits 0, 1, 2 for -1, 0, 1, and bytes of `delta` are 8*delta. */
static inline b32 iq1_codes(w4 digits, w4 delta) { return b_minus((b32)(digits << 3), 8) + (b32)delta; }
static inline void iq1_s_unpack(const struct iq1_s *b, struct codes256 *c)
{
	uint64_t ls = 0;
	c->d = f_half(b->d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 8; j++) {
		const uint8_t *k = b->qs + 4*j;
		unsigned h = b->qh[j];
		w4 g = { grid_iq1[k[0] | (h << 8 & 0x700)], grid_iq1[k[1] | (h << 5 & 0x700)],
			grid_iq1[k[2] | (h << 2 & 0x700)], grid_iq1[k[3] | (h >> 1 & 0x700)] };
		ls |= (uint64_t)(h >> 12 & 7) << 8*j;
		w4 delta = (w4){ 0 } + (h & 0x8000 ? UINT64_MAX : 0x0101010101010101);
		b_store(c->q + 32*j, iq1_codes(g, delta));
	}
	s_store(c->sc, 2*s_pairs(ls, ls) + 1);
	s_store(c->mn, s_zero());
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq1_s = { .n = 32, .word = 8, .base = 3, .level = { -7, 1, 9, 0, -7, 1, 9 }, .line = 2,
	.shift = -2, .delta = DELTA_LANE,
	.top = 7, .unit = 0.125f, .best = grid_best_iq1, .rank = rank_iq1, .bias = 1.01f };
/* for iq1_m too */
static const struct grid_effort iq1_effort[] = {
	{ .starts = 1, .iters = 1, .first = 13.0f, .step = 3.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 2, .iters = 1, .first = 13.0f, .step = 4.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 3, .iters = 1, .first = 12.0f, .step = 3.0f, .walks = 1, .reach = 0, .again = 0, .free = true },
	{ .starts = 2, .iters = 1, .first = 13.0f, .step = 4.0f, .walks = 1, .reach = 0, .again = 0, .both = true,
		.free = true },
	{ .starts = 3, .iters = 1, .first = 12.0f, .step = 3.0f, .walks = 1, .reach = 0, .again = 0, .both = true,
		.free = true },
	{ .starts = 3, .iters = 1, .first = 12.0f, .step = 3.0f, .walks = 1, .reach = 1, .again = 0, .both = true,
		.free = true },
	{ .starts = 3, .iters = 1, .first = 12.0f, .step = 3.0f, .walks = 2, .reach = 1, .again = 1, .both = true },
	{ .starts = 6, .iters = 2, .first = 12.0f, .step = 1.5f, .walks = 3, .reach = 2, .again = 2, .both = true },
	{ .starts = 8, .iters = 2, .first = 11.0f, .step = 1.1f, .walks = 4, .reach = 2, .again = 2, .both = true },
};
static void pack_iq1_s(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq1_s *o = block;
	o->d = f16_scale(f->d[h]);
	for (int j = 0; j < 8; j++) {
		int l = 8*h + j;
		unsigned tail = (unsigned)f->ls[l] << 12 | (unsigned)(t->code[l][0] >> 6 & 1) << 15;
		for (int k = 0; k < 4; k++) {
			unsigned n = grid_number(&book_iq1_s, t, 8*k, l);
			o->qs[4*j + k] = (uint8_t)n;
			tail |= n >> 8 << 3*k;
		}
		o->qh[j] = (uint16_t)tail;
	}
}
ENCODER_GRID(iq1_s, 32, 8, iq1_effort)
#endif
