/* SPDX-License-Identifier: MIT
 * panel_neon.c - panels with NEON: 8 outputs times 6 tokens. A sum is two registers, each of both products of two
 * outputs' pairs; they are added together at the end of a block. */
#if defined __aarch64__
#include <arm_neon.h>
#include "interleave_neon.h"
#define PANEL_TABLE quant_panel_neon

typedef struct { int32x4_t low, high; } vi;
typedef int16x8_t vw;
typedef float32x4_t vf;
enum { LANES = 4, VECTORS = 2, TILE_TOKENS = 6, FEW = 8 };
static inline vi i_zero(void) { return (vi){ vdupq_n_s32(0), vdupq_n_s32(0) }; }
static inline vw i_load(const void *p) { return vreinterpretq_s16_s32(vld1q_s32(p)); }
static inline vw i_spread(const void *p) { return vreinterpretq_s16_s32(vld1q_dup_s32(p)); }
static inline vi i_madd(vi a, vw u, vw v)
{
	return (vi){ vmlal_s16(a.low, vget_low_s16(u), vget_low_s16(v)), vmlal_high_s16(a.high, u, v) };
}
static inline vf f_zero(void) { return vdupq_n_f32(0); }
static inline vf f_load(const void *p) { return vld1q_f32(p); }
static inline void f_store(float *p, vf a) { vst1q_f32(p, a); }
static inline vf f_spread(const void *p) { return vld1q_dup_f32(p); }
static inline vf f_product_f(vf d, vf x, vf s, vf a) { return vfmaq_f32(a, vmulq_f32(d, x), s); }
static inline vf f_product(vf d, vf x, vi s, vf a)
{
	return f_product_f(d, x, vcvtq_f32_s32(vpaddq_s32(s.low, s.high)), a);
}
#include "tile.h"
#else
typedef int isa_none;
#endif
