/* SPDX-License-Identifier: MIT
 * iq1_m.h - super-blocks of 16 sub-blocks of 16: weight = d*(2*ls + 1) * (g + delta), with ls of 3 bits.
 * g: two words of -1, 0 and 1 of iq1_s.h's code book, each with a delta of 1/8 or -1/8.
 *
 *   qs        byte k: the lower eight bits of the number of word k
 *   qh        half k%2 of byte k/2: the upper three bits of that number, then the sign of delta
 *   scales    four integers of 16 bits: each has ls of four sub-blocks, then four bits of d, an f16, lowest first */
#ifdef QUANT_DECODER

/* Four numbers of three bits, each to a byte. */
static inline uint32_t iq1_m_scales(uint32_t s)
{
	return (s & 7) | (s << 5 & 0x700) | (s << 10 & 0x70000) | (s << 15 & 0x7000000);
}
static inline void iq1_m_unpack(const struct iq1_m *b, struct codes256 *c)
{
	uint64_t s = u64_of(b->scales);
	h4 ls = { iq1_m_scales((uint32_t)s), iq1_m_scales((uint32_t)(s >> 16)), iq1_m_scales((uint32_t)(s >> 32)),
		iq1_m_scales((uint32_t)(s >> 48)) };
	c->d = f_half(kern_iq1_m_d(s))*0.125f;
	c->dmin = 0;
	s_store(c->sc, 2*s_bytes((b16)ls) + 1);
	s_store(c->mn, s_zero());
	for (int j = 0; j < 8; j++) {
		const uint8_t *k = b->qs + 4*j;
		unsigned h = b->qh[2*j] | (unsigned)b->qh[2*j + 1] << 8;
		w4 g = { grid_iq1[k[0] | (h << 8 & 0x700)], grid_iq1[k[1] | (h << 4 & 0x700)],
			grid_iq1[k[2] | (h & 0x700)], grid_iq1[k[3] | (h >> 4 & 0x700)] };
		w4 minus = { h & 0x8 ? 0xfe : 0, h & 0x80 ? 0xfe : 0, h & 0x800 ? 0xfe : 0, h & 0x8000 ? 0xfe : 0 };
		b_store(c->q + 32*j, iq1_codes(g, minus*0x0101010101010101 + 0x0101010101010101));
	}
}
#endif
#ifdef QUANT_ENCODER

static const struct grid book_iq1_m = { .n = 16, .word = 8, .base = 3, .level = { -7, 1, 9, 0, -7, 1, 9 }, .line = 2,
	.shift = -2, .delta = DELTA_WORD,
	.top = 7, .unit = 0.125f, .best = grid_best_iq1, .rank = rank_iq1, .bias = 1.01f };
static void pack_iq1_m(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq1_m *o = block;
	unsigned d = f16_scale(f->d[0]);
	(void)h;                        /* a unit fills the tile */
	memset(o->qh, 0, sizeof o->qh);
	for (int i = 0; i < 4; i++) {
		unsigned s = (d >> 4*i & 15) << 12;
		for (int j = 0; j < 4; j++) s |= (unsigned)f->ls[4*i + j] << 3*j;
		o->scales[2*i] = (uint8_t)s;
		o->scales[2*i + 1] = (uint8_t)(s >> 8);
	}
	for (int k = 0; k < 32; k++) {
		unsigned n = grid_number(&book_iq1_m, t, k%2*8, k/2);
		o->qs[k] = (uint8_t)n;
		o->qh[k/2] |= (uint8_t)((n >> 8 | (t->code[k/2][k%2*8] >> 6 & 1u) << 3) << k%2*4);
	}
}
ENCODER_GRID(iq1_m, 16, 16, iq1_effort)
#endif
