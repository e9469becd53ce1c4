/* SPDX-License-Identifier: MIT
 * tile_bytes.h - a panel times strips for instruction sets of AArch64 that multiply bytes: what they share, and blocks
 * of 32, whose codes are bytes themselves; defines BYTES_TABLE.
 *
 * An activation is two digits, 128*hi + lo with lo from -64 to 63, each of which is multiplied with a code: the exact
 * sum is 128*sum(c*hi) + sum(c*lo). In place of the pairs of mul.h,
 *
 *   eight columns of a panel      |r0: k0..k7|r1: k0..k7| .. |r7: k0..k7|                       bytes
 *   eight columns of a strip      |t0: hi of k0..k7| .. |t5: hi|t0: lo of k0..k7| .. |t5: lo|   bytes
 *
 * so that sixteen bytes are eight columns of two outputs or of two tokens. Sums, scales and results are in squares of
 * two tokens times two outputs: |t0 r0|t0 r1|t1 r0|t1 r1|. A tile is six tokens times eight outputs, four at a time:
 * three squares by two. An instance gives
 *   vx                          eight columns of two tokens, in the form that s_madd needs: x_load(p)
 *   vs                          the sums of a square, int32: s_zero()
 *   s_madd(a, x, w)             a += the square of x and of sixteen bytes of weights
 *   s_total(a)                  the square */
#include <arm_neon.h>
#include "inline.h"
#include "interleave_neon.h"

enum { OUTPUTS = 8, TOKENS = 6, PART = 4, ACROSS = PART/2, DOWN = TOKENS/2, STEP = 8, FEW = 8 };

/* ---- digits ---- */

/* Stores the digits of eight integers, q = 128*hi + lo. */
INLINE void put_digits(int16x8_t q, int8_t *hi, int8_t *lo)
{
	int16x8_t l = vsubq_s16(vandq_s16(vaddq_s16(q, vdupq_n_s16(64)), vdupq_n_s16(127)), vdupq_n_s16(64));
	vst1_s8(hi, vmovn_s16(vshrq_n_s16(vsubq_s16(q, l), 7)));
	vst1_s8(lo, vmovn_s16(l));
}
static void digits(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	int8_t *p = (int8_t *)to + first*STEP;
	for (size_t k = 0; k < 2*n; k += STEP, p += 2*STEP*width)
		for (size_t r = 0; r < n_rows; r++)
			put_digits(vld1q_s16(rows + r*stride + k), p + r*STEP, p + (width + r)*STEP);
}
static int activation(const char *strip, size_t token, size_t i)
{
	const int8_t *p = (const int8_t *)strip + i/STEP*2*STEP*TOKENS + token*STEP + i%STEP;
	return 128*p[0] + p[STEP*TOKENS];
}
static void codes(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	int8_t *p = (int8_t *)to + first*STEP;
	for (size_t k = 0; k < 2*n; k += STEP, p += STEP*width)
		for (size_t r = 0; r < n_rows; r++) vst1_s8(p + r*STEP, vmovn_s16(vld1q_s16(rows + r*stride + k)));
}

/* ---- squares ---- */

INLINE const int8_t *bytes_at(const char *p) { return (const int8_t *)p; }
INLINE const float *floats_at(const char *p) { return (const float *)(const void *)p; }
/* numbers of two outputs, for both tokens; of two tokens, for both outputs */
INLINE float32x4_t of_outputs(const char *p) { return vreinterpretq_f32_u64(vld1q_dup_u64((const void *)p)); }
INLINE float32x4_t of_tokens(const char *p)
{
	return vcombine_f32(vld1_dup_f32(floats_at(p)), vld1_dup_f32(floats_at(p) + 1));
}
INLINE void get_results(const float *acc, float32x4_t y[DOWN][ACROSS])
{
	UNROLL for (int t = 0; t < DOWN; t++) UNROLL for (int o = 0; o < ACROSS; o++)
		y[t][o] = vcombine_f32(vld1_f32(acc + 2*t*OUTPUTS + 2*o), vld1_f32(acc + (2*t + 1)*OUTPUTS + 2*o));
}
INLINE void put_results(float *acc, float32x4_t y[DOWN][ACROSS])
{
	UNROLL for (int t = 0; t < DOWN; t++) UNROLL for (int o = 0; o < ACROSS; o++) {
		vst1_f32(acc + 2*t*OUTPUTS + 2*o, vget_low_f32(y[t][o]));
		vst1_f32(acc + (2*t + 1)*OUTPUTS + 2*o, vget_high_f32(y[t][o]));
	}
}
/* y += d*dx*s, the product of the scales rounded */
INLINE float32x4_t product(float32x4_t d, float32x4_t dx, float32x4_t s, float32x4_t y)
{
	return vfmaq_f32(y, vmulq_f32(d, dx), s);
}
INLINE int32x4_t joined(int32x4_t hi, int32x4_t lo) { return vaddq_s32(vshlq_n_s32(hi, 7), lo); }

/* ---- blocks of 32 ---- */

/* n columns of PART outputs whose d are at d; the tokens' are at dx, after the sums of their integers. */
INLINE void run(size_t n, const char *w, const char *x, const char *d, const char *m, const char *dx,
	float32x4_t y[DOWN][ACROSS], enum mul_kind kind)
{
	vs hi[DOWN][ACROSS], lo[DOWN][ACROSS];
	UNROLL for (int t = 0; t < DOWN; t++) UNROLL for (int o = 0; o < ACROSS; o++) hi[t][o] = lo[t][o] = s_zero();
	for (size_t k = 0; k < n; k += STEP, w += STEP*OUTPUTS, x += 2*STEP*TOKENS)
		UNROLL for (int t = 0; t < DOWN; t++) {
			vx high = x_load(x + 16*t), low = x_load(x + STEP*TOKENS + 16*t);
			UNROLL for (int o = 0; o < ACROSS; o++) {
				int8x16_t u = vld1q_s8(bytes_at(w + 16*o));
				hi[t][o] = s_madd(hi[t][o], high, u);
				lo[t][o] = s_madd(lo[t][o], low, u);
			}
		}
	UNROLL for (int t = 0; t < DOWN; t++) {
		float32x4_t scale = of_tokens(dx + 8*t);
		UNROLL for (int o = 0; o < ACROSS; o++) {
			float32x4_t s = vcvtq_f32_s32(joined(s_total(hi[t][o]), s_total(lo[t][o])));
			y[t][o] = product(of_outputs(d + 8*o), scale, s, y[t][o]);
			if (kind != MUL_32_MIN) continue;
			s = of_tokens(dx - 4*TOKENS + 8*t);
			y[t][o] = product(of_outputs(m + 8*o), scale, s, y[t][o]);
		}
	}
}
INLINE void tile(size_t n_blocks, const char *panel, const char *x, float *acc, size_t part, enum mul_kind kind)
{
	const char *w = panel + STEP*part, *d = panel + mul_panel_d(kind, OUTPUTS) + 4*part,
		*m = panel + mul_panel_m(kind, OUTPUTS) + 4*part;
	const size_t panel_bytes = mul_panel_bytes(kind, OUTPUTS), strip_bytes = mul_strip_bytes(32, TOKENS),
		dx = mul_strip_d(32, TOKENS);
	float32x4_t y[DOWN][ACROSS];
	get_results(acc + part, y);
	for (; n_blocks; n_blocks--, w += panel_bytes, d += panel_bytes, m += panel_bytes, x += strip_bytes) {
		run(kind == MUL_16 ? 16 : 32, w, x, d, m, x + dx, y, kind);
		if (kind == MUL_16) run(16, w + 16*OUTPUTS, x + 32*TOKENS, m, m, x + dx, y, kind);
	}
	put_results(acc + part, y);
}
INLINE void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	for (size_t i = 0; i < n_strips; i++, strips += strip_bytes) {
		float *acc = mul_results(y, i, TOKENS*OUTPUTS);
		for (size_t part = 0; part < OUTPUTS; part += PART) tile(n_blocks, panel, strips, acc, part, kind);
		mul_results_done(y, i, TOKENS, OUTPUTS);
	}
}
MUL_GEMM(gemm_16, gemm, MUL_16)
MUL_GEMM(gemm_32, gemm, MUL_32)
MUL_GEMM(gemm_32_min, gemm, MUL_32_MIN)
static void strip(const struct narrow *q, size_t block, char *to) { mul_strip(digits, TOKENS, false, q, block, to); }
const struct panel_table BYTES_TABLE = {
	.outputs = OUTPUTS, .tokens = TOKENS, .few = FEW, .codes = codes, .pairs = interleave, .strip = strip,
	.sums = true, .activation = activation,
	.gemm = { gemm_16, gemm_32, gemm_32_min },
};
