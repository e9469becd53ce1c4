/* SPDX-License-Identifier: MIT
 * row_dotprod.c - row products with NEON's dot product of bytes: row_text.h in the words of bytes_neon.h. Codes are
 * bytes, and an activation is two digits, 128*hi + lo with lo from -64 to 63. In place of int16, a strip has the high
 * digits of 16 columns and then the low ones. */
#if defined __aarch64__
#include "bytes_neon.h"
#define ROW_TABLE quant_row_dotprod

typedef int32x4_t isum;
static inline isum i_zero(void) { return vdupq_n_s32(0); }
static inline isum i_add(isum a, isum b) { return vaddq_s32(a, b); }
static inline int8x16_t high(const int16_t *x) { return vld1q_s8((const int8_t *)x); }
static inline int8x16_t low(const int16_t *x) { return vld1q_s8((const int8_t *)x + 16); }
/* 128*h + the low digits' products, onto a */
static inline isum i_codes16(isum a, const int8_t *q, const int16_t *x)
{
	int8x16_t c = vld1q_s8(q);
	return vmlaq_n_s32(vdotq_s32(a, c, low(x)), vdotq_s32(i_zero(), c, high(x)), 128);
}
static inline isum i_codes32(isum a, const int8_t *q, const int16_t *x)
{
	int8x16_t c = vld1q_s8(q), d = vld1q_s8(q + 16);
	isum h = vdotq_s32(vdotq_s32(i_zero(), c, high(x)), d, high(x + 16));
	return vmlaq_n_s32(vdotq_s32(vdotq_s32(a, c, low(x)), d, low(x + 16)), h, 128);
}
static inline isum i_scaled16(isum a, const int8_t *q, int16_t sc, const int16_t *x)
{
	int8x16_t c = vld1q_s8(q);
	isum s = vdotq_s32(vshlq_n_s32(vdotq_s32(i_zero(), c, high(x)), 7), c, low(x));
	return vmlaq_n_s32(a, s, sc);
}
static inline isum i_scaled(isum a, const int8_t *q, const int16_t *sc, const int16_t *x)
{
	return i_scaled16(i_scaled16(a, q, sc[0], x), q + 16, sc[1], x + 16);
}
static inline isum i_pairs(isum a, const int16_t *u, const int16_t *v)
{
	for (int i = 0; i < 16; i += 4) a = vmlal_s16(a, vld1_s16(u + i), vld1_s16(v + i));
	return a;
}
static inline void i_totals(const isum *s, int32_t *total)
{
	for (int i = 0; i < 8; i += 4)
		vst1q_s32(total + i, vpaddq_s32(vpaddq_s32(s[i], s[i + 1]), vpaddq_s32(s[i + 2], s[i + 3])));
}
static inline void x_put(int16_t *to, const int16_t *q, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int8_t *p = (int8_t *)to + i/16*32 + i%16;
		int lo = ((q[i] + 64) & 127) - 64;
		p[0] = (int8_t)((q[i] - lo) >> 7);
		p[16] = (int8_t)lo;
	}
}
static inline int x_get(const int16_t *from, size_t i)
{
	const int8_t *p = (const int8_t *)from + i/16*32 + i%16;
	return 128*p[0] + p[16];
}
#include "row_text.h"
#else
typedef int isa_none;
#endif
