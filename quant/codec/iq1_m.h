/* SPDX-License-Identifier: MIT
 * iq1_m.h - super-blocks of 16 sub-blocks of 16: weight = d*(2*ls + 1) * (g + delta), two words of -1, 0, 1 of the code
 * book of iq1_s.h, delta 1/8 or -1/8 for each. Byte k of qs: low bits of the number of word k; half k%2 of
 * byte k/2 of qh: its upper three bits, then the sign of delta. scales: four integers, each ls of four
 * sub-blocks in three bits, then four bits of d, an f16, the lowest first. */
#ifdef QUANT_DECODER

static inline void iq1_m_unpack(const struct iq1_m *b, struct codes256 *c)
{
	uint32_t s[4], d = 0;
	for (int i = 0; i < 4; i++) {
		s[i] = b->scales[2*i] | (uint32_t)b->scales[2*i + 1] << 8;
		d |= s[i] >> 12 << 4*i;
	}
	c->d = kern_f16_to_f32((f16)d)*0.125f;
	c->dmin = 0;
	for (int j = 0; j < 16; j++) c->sc[j] = (int16_t)(2*(s[j/4] >> j%4*3 & 7) + 1);
	memset(c->mn, 0, sizeof c->mn);
	for (int k = 0; k < 32; k++) {
		unsigned h = b->qh[k/2] >> k%2*4;
		iq1_codes(c->q + 8*k, grid_iq1[b->qs[k] | (h & 7) << 8], h & 8 ? -1 : 1);
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq1_m = { .n = 16, .word = 8, .base = 3, .level = { -7, 1, 9, 0, -7, 1, 9 }, .line = 2, .shift = -2, .delta = DELTA_WORD,
	.top = 7, .unit = 0.125f, .best = grid_best_iq1, .bias = 1.01f };
static void pack_iq1_m(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq1_m *o = block;
	unsigned d = f16_scale(f->d[0]);
	(void)h;
	memset(o->qh, 0, sizeof o->qh);
	for (int i = 0; i < 4; i++) {
		unsigned s = (d >> 4*i & 15) << 12;
		for (int j = 0; j < 4; j++) s |= (unsigned)f->ls[4*i + j] << 3*j;
		o->scales[2*i] = (uint8_t)s;
		o->scales[2*i + 1] = (uint8_t)(s >> 8);
	}
	for (int k = 0; k < 32; k++) {
		unsigned n = grid_number(&book_iq1_m, rank_iq1, t, k%2*8, k/2);
		o->qs[k] = (uint8_t)n;
		o->qh[k/2] |= (uint8_t)((n >> 8 | (t->code[k/2][k%2*8] >> 6 & 1u) << 3) << k%2*4);
	}
}
ENCODER_GRID(iq1_m, 16, 16, iq1_effort)
#endif
