/* SPDX-License-Identifier: MIT
 * row_neon.c - row products with NEON: row_text.h in the words of bytes_neon.h. */
#if defined __aarch64__
#include "bytes_neon.h"
#define ROW_TABLE quant_row_neon

typedef int32x4_t isum;
static inline isum i_zero(void) { return vdupq_n_s32(0); }
static inline isum i_add(isum a, isum b) { return vaddq_s32(a, b); }
static inline isum i_madd(isum a, int16x8_t u, const int16_t *x)
{
	int16x8_t v = vld1q_s16(x);
	return vmlal_high_s16(vmlal_s16(a, vget_low_s16(u), vget_low_s16(v)), u, v);
}
static inline isum i_codes16(isum a, const int8_t *q, const int16_t *x)
{
	int8x16_t c = vld1q_s8(q);
	return i_madd(i_madd(a, vmovl_s8(vget_low_s8(c)), x), vmovl_high_s8(c), x + 8);
}
static inline isum i_codes32(isum a, const int8_t *q, const int16_t *x)
{
	return i_codes16(i_codes16(a, q, x), q + 16, x + 16);
}
static inline isum i_scaled16(isum a, const int8_t *q, int16_t sc, const int16_t *x)
{
	int8x16_t c = vld1q_s8(q);
	return i_madd(i_madd(a, vmulq_n_s16(vmovl_s8(vget_low_s8(c)), sc), x), vmulq_n_s16(vmovl_high_s8(c), sc),
		x + 8);
}
static inline isum i_scaled(isum a, const int8_t *q, const int16_t *sc, const int16_t *x)
{
	return i_scaled16(i_scaled16(a, q, sc[0], x), q + 16, sc[1], x + 16);
}
static inline isum i_pairs(isum a, const int16_t *u, const int16_t *v)
{
	return i_madd(i_madd(a, vld1q_s16(u), v), vld1q_s16(u + 8), v + 8);
}
static inline void i_totals(const isum *s, int32_t *total)
{
	for (int i = 0; i < 8; i += 4)
		vst1q_s32(total + i, vpaddq_s32(vpaddq_s32(s[i], s[i + 1]), vpaddq_s32(s[i + 2], s[i + 3])));
}
static inline void x_put(int16_t *to, const int16_t *q, size_t n) { memcpy(to, q, n*sizeof *q); }
static inline int x_get(const int16_t *from, size_t i) { return from[i]; }
#include "row_text.h"
#else
typedef int isa_none;
#endif
