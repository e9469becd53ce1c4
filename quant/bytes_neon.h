/* SPDX-License-Identifier: MIT
 * bytes_neon.h - the rest of bytes.h for NEON. */
#include <arm_neon.h>
#include "bytes.h"

static inline b32 b_nibbles(const void *p)
{
	uint8x16_t a = vld1q_u8(p);
	return b_two((b16)vandq_u8(a, vdupq_n_u8(15)), (b16)vshrq_n_u8(a, 4));
}
static inline b16 b_mask16(uint32_t u)
{
	static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	return (b16)vtstq_u8(vcombine_u8(vdup_n_u8((uint8_t)u), vdup_n_u8((uint8_t)(u >> 8))), vld1q_u8(bits));
}
static inline b32 b_mask(uint32_t u) { return b_two(b_mask16(u), b_mask16(u >> 16)); }
static inline b32 b_level(const int8_t *table, b32 i)
{
	int8x16_t t = vld1q_s8(table);
	uint8x16_t half[2];
	memcpy(half, &i, 32);
	return b_two((b16)vqtbl1q_s8(t, half[0]), (b16)vqtbl1q_s8(t, half[1]));
}
static inline s16 s_bytes(b16 a) { return __builtin_convertvector((c16)a, s16); }
static inline s16 s_pairs(uint64_t a, uint64_t b)
{
	int8x16_t z = vreinterpretq_s8_u8(vcombine_u8(vcreate_u8(a), vcreate_u8(b)));
	int8x16_t both = vzip1q_s8(z, vextq_s8(z, z, 8));
	int16x8_t half[2] = { vmovl_s8(vget_low_s8(both)), vmovl_high_s8(both) };
	s16 s;
	memcpy(&s, half, 32);
	return s;
}
static inline float f_half(uint16_t h)
{
	float16x4_t v = vreinterpret_f16_u16(vdup_n_u16(h));
	return vgetq_lane_f32(vcvt_f32_f16(v), 0);
}
