/* SPDX-License-Identifier: MIT
 * tq1_0.h - super-blocks of 256: weight = d*(t - 1), with t a digit of base 3. A byte has five digits as a fraction of
 * 256: the first digit of the byte times 3^k, modulo 256, is digit k.
 *
 *   qs        32 bytes of five digits: digit k of byte i is element 32k + i; then 16 of five: element 160 + 16k + i
 *   qh        4 bytes of four digits: element 240 + 4k + i */
#ifdef QUANT_DECODER

/* One digit of each of 32 bytes: which one is given by a power of 3 for each two bytes. */
static inline b32 tq1_digits(b32 x, s16u power)
{
	s16u even = (s16u)x & 255, odd = (s16u)x >> 8;
	even = (even*power & 255)*3 >> 8;
	odd = (odd*power & 255)*3 >> 8;
	return b_minus((b32)(even | odd << 8), 1);
}
static inline void tq1_0_unpack(const struct tq1_0 *b, struct codes256 *c)
{
	static const uint16_t power[5] = { 1, 3, 9, 27, 81 };
	const s16u last = { 1, 1, 3, 3, 9, 9, 27, 27 };
	b32 x = b_load(b->qs), y = b_two(b_load16(b->qs + 32), (b16){ 0 });
	uint32_t u = u32_of(b->qh);
	c->d = f_half(b->d);
	c->dmin = 0;
	s_store(c->sc, s_all(1));
	s_store(c->mn, s_zero());
	for (int k = 0; k < 5; k++) b_store(c->q + 32*k, tq1_digits(x, (s16u){ 0 } + power[k]));
	for (int k = 0; k < 5; k++) b_store_low(c->q + 160 + 16*k, tq1_digits(y, (s16u){ 0 } + power[k]));
	b_store_low(c->q + 240, tq1_digits((b32)(h8){ u, u, u, u }, last));
}
#endif
#ifdef QUANT_ENCODER

static const float ternary_starts[] = {
	2.1f, 2.9f, 1.5f, 3.8f, 2.5f, 1.2f, 3.3f, 5, 1.8f, 7, 4.4f, 10, 1.05f, 16, 26, 45, 6, 1.35f, 8.5f, 13, 20, 2.3f,
	2.7f, 33,
};
static const struct levels levels_ternary = { .n = 16, .lo = -1, .hi = 1, .start = ternary_starts };
static const struct levels_effort ternary_effort[] = {
	{ .starts = 4, .iters = 0 },
	{ .starts = 8, .iters = 0 },
	{ .starts = 10, .iters = 1 },
	{ .starts = 12, .iters = 1 },
	{ .starts = 14, .iters = 2 },
	{ .starts = 16, .iters = 2 },
	{ .starts = 20, .iters = 3 },
	{ .starts = 24, .iters = 4 },
	{ .starts = 24, .iters = 6 },
};
/* Packs n bytes of `digits` digits each, from element `at` on. The fraction is rounded up, so that it yields its
 * digits. */
static inline void tq1_bytes(uint8_t *dst, const struct tile *t, int at, int n, int digits)
{
	for (int i = 0; i < n; i++) {
		int v = 0;
		for (int k = 0; k < 5; k++) {
			int e = at + n*k + i;
			v = 3*v + (k < digits ? t->code[e/16][e%16] : 0);
		}
		dst[i] = (uint8_t)((v*256 + 242)/243);
	}
}
static void pack_tq1_0(void *block, const struct tile *t, const struct fitted *f, int h)
{
	struct tq1_0 *o = block;
	(void)h;                        /* a unit fills the tile */
	o->d = f16_scale(f->d[0]);
	tq1_bytes(o->qs, t, 0, 32, 5);
	tq1_bytes(o->qs + 32, t, 160, 16, 5);
	tq1_bytes(o->qh, t, 240, 4, 4);
}
ENCODER(tq1_0, 16, 16, levels_units(&levels_ternary, &ternary_effort[how->row], how->lift, t, 16, f),
	.exact = true, .levels = &levels_ternary, .scales = scales_block)
#endif
