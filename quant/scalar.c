/* SPDX-License-Identifier: MIT
 * scalar.c - half floats, one at a time: the functions of kern.h under public names, and the rounding of float to
 * half. */
#include "kern.h"
#include "quant.h"

float quant_f16_to_f32(uint16_t h) { return kern_f16_to_f32(h); }
float quant_bf16_to_f32(uint16_t h) { return kern_bf16_to_f32(h); }

uint16_t quant_f32_to_f16(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	uint32_t s = u >> 16 & 0x8000, a = u & 0x7fffffff;
	/* as F16C does, and so ggml on most CPUs */
	if (a > 0x7f800000) return (uint16_t)(s | 0x7e00 | (a >> 13 & 0x3ff));
	if (a >= 0x477ff000) return (uint16_t)(s | 0x7c00);     /* 65520 and more round to infinity */
	if (a < 0x38800000) {                                   /* subnormal: the adder rounds to multiples of 2^-24 */
		float t = kern_f32_bits(a) + 0.5f;
		memcpy(&a, &t, 4);
		return (uint16_t)(s | (a - 0x3f000000));
	}
	a += 0xfff + (a >> 13 & 1);
	return (uint16_t)(s | (a - 0x38000000) >> 13);
}

uint16_t quant_f32_to_bf16(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 64);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
