/* SPDX-License-Identifier: MIT
 * enc_half.h - floats to 16 bits by lanes, ties to even, exactly as quant_f32_to_f16 and quant_f32_to_bf16. */
#ifndef QUANT_ENC_HALF_H
#define QUANT_ENC_HALF_H
#include "quant.h"
#include "enc_lane.h"

/* a where u is at least lo, else b; u and lo below 2^31 */
static inline vi vi_from(vi u, int32_t lo, vi a, vi b) { return vi_sel(vi_lt(u, vi_dup(lo)), b, a); }

static inline vi half_f16(vf x)
{
	vi u = (vi)x & 0x7fffffff, s = ((vi)x >> 16) & 0x8000, r;
	vi sub = (vi)((vf)u + 0.5f) - 0x3f000000;       /* below 2^-14 the adder rounds at 2^-24 */
	vi up = (vi)((vu)u + 0xfff + (((vu)u >> 13) & 1) - 0x38000000);
	r = vi_from(u, 0x38800000, up >> 13, sub);
	r = vi_from(u, 0x477ff000, vi_dup(0x7c00), r);
	r = vi_from(u, 0x7f800001, ((u >> 13) & 0x3ff) | 0x7e00, r);
	return r | s;
}
static inline vi half_bf16(vf x)
{
	vi v = (vi)x, u = v & 0x7fffffff, r = ((v >> 16) & 0xffff);
	vi up = (vi)(((vu)v + 0x7fff + (((vu)v >> 16) & 1)) >> 16);
	return vi_from(u, 0x7f800001, r | 64, up);
}
/* n results of one of these */
static inline void put_halves(void *dst, const float *x, size_t n, vi (*half)(vf))
{
	typedef uint16_t vh __attribute__((vector_size(2*VL)));
	unsigned char *p = dst;
	size_t i = 0;
	for (; i + VL <= n; i += VL) {
		vh h = __builtin_convertvector(half(vf_load(x + i)), vh);
		memcpy(p + 2*i, &h, sizeof h);
	}
	if (i < n) {
		float rest[VL] = { 0 };
		memcpy(rest, x + i, (n - i)*sizeof *x);
		vh h = __builtin_convertvector(half(vf_load(rest)), vh);
		memcpy(p + 2*i, &h, 2*(n - i));
	}
}
#endif
