/* SPDX-License-Identifier: MIT
 * panel_i8mm.c - panels with i8mm, which multiplies two rows of eight bytes with two others: a square of tile_bytes.h
 * at once. The integers of super-blocks (code*sc, at most 4096) are two digits like those of activations:
 *     16384*sum(hi*hi') + 128*sum(hi*lo' + lo*hi') + sum(lo*lo')          in three sums of int32
 * so that a step of a panel is that of a strip, of outputs. Minima are pairs. */
#if defined __aarch64__
#include <arm_neon.h>
#define BYTES_TABLE quant_panel_i8mm_32

typedef int8x16_t vx;
typedef int32x4_t vs;
static inline vx x_load(const char *p) { return vld1q_s8((const int8_t *)p); }
static inline vs s_zero(void) { return vdupq_n_s32(0); }
static inline vs s_madd(vs a, vx x, int8x16_t w) { return vmmlaq_s32(a, x, w); }
static inline int32x4_t s_total(vs a) { return a; }
#include "tile_bytes.h"

enum { BLOCK = 256 };
struct square { vs hh, hl, ll; };

/* Four products of digits of eight columns. */
INLINE void step(const char *w, const char *x, struct square s[DOWN][ACROSS])
{
	int8x16_t high[ACROSS], low[ACROSS];
	UNROLL for (int o = 0; o < ACROSS; o++) {
		high[o] = x_load(w + 16*o);
		low[o] = x_load(w + STEP*OUTPUTS + 16*o);
	}
	UNROLL for (int t = 0; t < DOWN; t++) {
		vx xh = x_load(x + 16*t), xl = x_load(x + STEP*TOKENS + 16*t);
		UNROLL for (int o = 0; o < ACROSS; o++) {
			struct square *a = &s[t][o];
			a->hh = s_madd(a->hh, xh, high[o]);
			a->hl = s_madd(a->hl, xh, low[o]);
			a->ll = s_madd(a->ll, xl, low[o]);
			a->hl = s_madd(a->hl, xl, high[o]);
		}
	}
}
/* Minima of PART outputs times the sums of a token's sixteens. */
INLINE int32x4_t minima(const char *mn, const char *sum)
{
	int32x4_t low = vdupq_n_s32(0), high = low;
	for (size_t j = 0; j < 8; j++) {
		int16x8_t u = vreinterpretq_s16_s32(vld1q_s32((const void *)(mn + 4*OUTPUTS*j))),
			v = vreinterpretq_s16_s32(vld1q_dup_s32((const void *)(sum + 4*TOKENS*j)));
		low = vmlal_s16(low, vget_low_s16(u), vget_low_s16(v));
		high = vmlal_high_s16(high, u, v);
	}
	return vpaddq_s32(low, high);
}
INLINE void add_minima(const char *mn, const char *m, const char *sum, const char *dx, float32x4_t y[DOWN][ACROSS])
{
	UNROLL for (int t = 0; t < DOWN; t++) {
		float32x4_t scale = of_tokens(dx + 8*t), first = vcvtq_f32_s32(minima(mn, sum + 8*t)),
			second = vcvtq_f32_s32(minima(mn, sum + 8*t + 4));
		float32x4_t s[ACROSS] = { vcombine_f32(vget_low_f32(first), vget_low_f32(second)),
			vcombine_f32(vget_high_f32(first), vget_high_f32(second)) };
		UNROLL for (int o = 0; o < ACROSS; o++) y[t][o] = product(of_outputs(m + 8*o), scale, s[o], y[t][o]);
	}
}
INLINE void super(const char *panel, const char *x, float *acc, size_t part, enum mul_kind kind)
{
	const char *w = panel + STEP*part, *d = panel + mul_panel_d(kind, OUTPUTS) + 4*part,
		*dx = x + mul_strip_d(BLOCK, TOKENS);
	struct square s[DOWN][ACROSS];
	float32x4_t y[DOWN][ACROSS];
	UNROLL for (int t = 0; t < DOWN; t++) UNROLL for (int o = 0; o < ACROSS; o++)
		s[t][o] = (struct square){ s_zero(), s_zero(), s_zero() };
	for (size_t k = 0; k < BLOCK/STEP; k++) step(w + 2*STEP*OUTPUTS*k, x + 2*STEP*TOKENS*k, s);
	get_results(acc + part, y);
	UNROLL for (int t = 0; t < DOWN; t++) {
		float32x4_t scale = of_tokens(dx + 8*t);
		UNROLL for (int o = 0; o < ACROSS; o++)
			y[t][o] = product(of_outputs(d + 8*o), scale,
				vcvtq_f32_s32(joined(joined(s[t][o].hh, s[t][o].hl), s[t][o].ll)), y[t][o]);
	}
	if (kind == MUL_256_MIN)
		add_minima(panel + mul_panel_mn(kind, OUTPUTS) + 4*part, panel + mul_panel_m(kind, OUTPUTS) + 4*part,
			x + mul_strip_sum(BLOCK, TOKENS), dx, y);
	put_results(acc + part, y);
}
INLINE void super_gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	for (size_t i = 0; i < n_strips; i++, strips += strip_bytes) {
		float *acc = mul_results(y, i, TOKENS*OUTPUTS);
		for (size_t part = 0; part < OUTPUTS; part += PART)
			for (size_t b = 0; b < n_blocks; b++)
				super(panel + b*mul_panel_bytes(kind, OUTPUTS),
					strips + b*mul_strip_bytes(BLOCK, TOKENS), acc, part, kind);
		mul_results_done(y, i, TOKENS, OUTPUTS);
	}
}
MUL_GEMM(gemm_256, super_gemm, MUL_256)
MUL_GEMM(gemm_256_min, super_gemm, MUL_256_MIN)
const struct panel_table quant_panel_i8mm = {
	.outputs = OUTPUTS, .tokens = TOKENS, .few = FEW, .codes = digits, .pairs = interleave, .strip = strip,
	.sums = true, .activation = activation,
	.gemm = { [MUL_256] = gemm_256, [MUL_256_MIN] = gemm_256_min },
};
#else
typedef int isa_none;
#endif
