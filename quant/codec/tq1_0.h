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
