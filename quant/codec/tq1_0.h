/* SPDX-License-Identifier: MIT
 * tq1_0.h - super-blocks of 256: weight = d*(t - 1), t a digit of base 3. A byte holds five digits as a fraction of
 * 256: multiplied by 3^k modulo 256, its first digit is digit k. qs: five digits of 32 bytes, element 32k + i; then
 * of 16 bytes, element 160 + 16k + i. qh: four digits of 4 bytes, element 240 + 4k + i. */
#ifdef QUANT_DECODER

static inline void tq1_digits(int8_t *q, const uint8_t *src, int n, int digits)
{
	static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
	for (int k = 0; k < digits; k++)
		for (int i = 0; i < n; i++) q[n*k + i] = (int8_t)(((uint8_t)(src[i]*power[k])*3 >> 8) - 1);
}
static inline void tq1_0_unpack(const struct tq1_0 *b, struct codes256 *c)
{
	c->d = kern_f16_to_f32(b->d);
	c->dmin = 0;
	for (int j = 0; j < 16; j++) c->sc[j] = 1, c->mn[j] = 0;
	tq1_digits(c->q, b->qs, 32, 5);
	tq1_digits(c->q + 160, b->qs + 32, 16, 5);
	tq1_digits(c->q + 240, b->qh, 4, 4);
}
#endif
#ifdef QUANT_ENCODER

static const float ternary_starts[] = {
	2.1f, 2.9f, 1.5f, 3.8f, 2.5f, 1.2f, 3.3f, 5, 1.8f, 7, 4.4f, 10, 1.05f, 16, 26, 45, 6, 1.35f, 8.5f, 13, 20, 2.3f, 2.7f, 33,
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
/* n bytes of `digits` digits, of elements from `at`; rounding up makes the fraction name its digits */
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
	.levels = &levels_ternary, .scales = scales_block)
#endif
