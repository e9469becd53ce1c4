/* SPDX-License-Identifier: MIT
 * enc_half.h - rounds floats to f16 and bf16 in lanes, ties to even, exactly as quant_f32_to_f16 and
 * quant_f32_to_bf16 do. */
#ifndef QUANT_ENC_HALF_H
#define QUANT_ENC_HALF_H
#include "quant.h"
#include "enc_lane.h"

/* a where u is at least lo, else b; u and lo below 2^31 */
static inline ri ri_from(ri u, int32_t lo, ri a, ri b) { return ri_if(ri_lt(u, ri_dup(lo)), b, a); }

static inline ri half_f16(rf x)
{
	ri u = (ri)x & 0x7fffffff, s = ((ri)x >> 16) & 0x8000, r;
	ri sub = (ri)((rf)u + 0.5f) - 0x3f000000;       /* below 2^-14 the adder rounds at 2^-24 */
	ri up = (ri)((ru)u + 0xfff + (((ru)u >> 13) & 1) - 0x38000000);
	r = ri_from(u, 0x38800000, up >> 13, sub);
	r = ri_from(u, 0x477ff000, ri_dup(0x7c00), r);
	r = ri_from(u, 0x7f800001, ((u >> 13) & 0x3ff) | 0x7e00, r);
	return r | s;
}
static inline ri half_bf16(rf x)
{
	ri v = (ri)x, u = v & 0x7fffffff, r = ((v >> 16) & 0xffff);
	ri up = (ri)(((ru)v + 0x7fff + (((ru)v >> 16) & 1)) >> 16);
	return ri_from(u, 0x7f800001, r | 64, up);
}
/* Stores n floats as rounded by half_f16 or half_bf16. */
static inline void put_halves(void *dst, const float *x, size_t n, ri (*half)(rf))
{
	unsigned char *p = dst;
	size_t i = 0;
	for (; i + REG <= n; i += REG) {
		rh h = __builtin_convertvector(half(r_floats(x + i)), rh);
		memcpy(p + 2*i, &h, sizeof h);
	}
	if (i < n) {
		float rest[REG] = { 0 };
		memcpy(rest, x + i, (n - i)*sizeof *x);
		rh h = __builtin_convertvector(half(r_floats(rest)), rh);
		memcpy(p + 2*i, &h, 2*(n - i));
	}
}
#endif
