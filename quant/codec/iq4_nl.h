/* SPDX-License-Identifier: MIT
 * iq4_nl.h - blocks of 32: weight = d*level, one of sixteen uneven levels.
 *
 *   qs        byte i: code i in the low half, code i + 16 in the high half */
#ifdef QUANT_DECODER

static const int8_t iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static inline void iq4_nl_unpack(const struct iq4_nl *b, struct codes32 *c)
{
	c->d = f_half(b->d);
	c->m = 0;
	b_store(c->q, b_level(iq4_levels, b_nibbles(b->qs)));
}
#endif
#ifdef QUANT_ENCODER

static const float iq4_starts[] = {
	124, -126.4f, 133.6f, -111, 113.2f, -134.8f, -119.4f, 106, 128.8f, 139.6f, 119.2f, -130.6f, -105.4f, -140.4f,
	-115.2f, -123.6f, 89.2f, 109.6f, -94.2f, 115.6f, 126.4f, 100, 136, -84.4f, 131.2f, -146, 140.8f, -99.8f,
	-108.2f, -129.2f, -137.6f, 121.6f, 85.6f, -120.8f, -132, -87.2f, 102.4f, -113.8f, 110.8f, -158.6f,
};
static const struct uneven iq4_uneven = {
	.half = -4.5f, .quarter = { -57, 45.5f }, .eighth = { -93.5f, -28.5f, 19, 79 },
	.mid = { -115.5f, -74, -42, -16, 7, 31.5f, 61, 101 },
	.even = { -127, -83, -49, -22, 1, 25, 53, 89 }, .odd = { -104, -65, -35, -10, 13, 38, 69, 113 },
};
static const struct levels levels_iq4_nl = { .n = 32, .uneven = &iq4_uneven, .start = iq4_starts };
static const struct levels_effort iq4_nl_effort[] = {
	{ .starts = 2, .iters = 0 },
	{ .starts = 4, .iters = 0 },
	{ .starts = 8, .iters = 1 },
	{ .starts = 16, .iters = 1 },
	{ .starts = 24, .iters = 2 },
	{ .starts = 32, .iters = 2 },
	{ .starts = 40, .iters = 2 },
	{ .starts = 40, .iters = 3 },
	{ .starts = 40, .iters = 5 },
};
static void pack_iq4_nl(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct iq4_nl *o = block;
	o->d = f16_scale(f->d[h]);
	put_nibbles(o->qs, t->code[h], t->code[h] + 16);
}
ENCODER(iq4_nl, 32, 1, levels_blocks(&levels_iq4_nl, &iq4_nl_effort[how->row], t, f),
	.exact = true, .levels = &levels_iq4_nl, .scales = scales_block)
#endif
