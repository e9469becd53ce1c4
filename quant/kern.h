/* SPDX-License-Identifier: MIT
 * kern.h - private to quant/: what the codec files provide, and halves as floats.
 *
 * A codec unpacks a block to signed codes with integer or float scales (struct codes32, struct codes256). codes_text.h,
 * row_text.h and mul.c do the rest for every type: decoding and products. (x86 also unpacks elsewhere: README.md.) */
#ifndef QUANT_KERN_H
#define QUANT_KERN_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../libgguf/types.h"
#include "blocks.h"

/* weight = d*q + m; for blocks of 16, m is the d of the second half */
struct codes32  { float d, m; int8_t q[32]; };
struct codes256 {                                       /* weight = (d*sc)*q - dmin*mn, sc and mn one per 16 */
	float d, dmin;
	int8_t q[256];
	int16_t sc[16], mn[16];
};

static inline float kern_f32_bits(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline float kern_bf16_to_f32(uint16_t h) { return kern_f32_bits((uint32_t)h << 16); }
static inline float kern_f16_to_f32(uint16_t h)
{
	uint32_t s = (uint32_t)(h & 0x8000) << 16, m = h & 0x7fff, r;
	float f = (float)m*0x1p-24f;            /* a subnormal half, exact */
	if (m >= 0x7c00) return kern_f32_bits(s | 0x7f800000 | (m & 0x3ff) << 13);
	if (m >= 0x400) return kern_f32_bits(s | ((m << 13) + 0x38000000));
	memcpy(&r, &f, 4);
	return kern_f32_bits(r | s);
}

/* d of IQ1_M from its scales, four integers of 16 bits: the upper four bits of each, the lowest first. iq1_m_fill does
 * the same for eight rows at a time. */
static inline uint16_t kern_iq1_m_d(uint64_t s)
{
	return (uint16_t)((s >> 12 & 15) | (s >> 24 & 0xf0) | (s >> 36 & 0xf00) | (s >> 48 & 0xf000));
}
#endif
