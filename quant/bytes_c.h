/* SPDX-License-Identifier: MIT
 * bytes_c.h - the rest of bytes.h for portable C: the definition. */
#include "bytes.h"
#include "kern.h"

static inline b32 b_nibbles(const void *p)
{
	b16 a = b_load16(p);
	return b_two(b_field16(a, 0, 4), b_field16(a, 4, 4));
}
static inline b32 b_mask(uint32_t u)
{
	b32 a = { 0 };
	for (int i = 0; i < 32; i++) a[i] = u >> i & 1 ? 255 : 0;
	return a;
}
static inline b32 b_level(const int8_t *table, b32 i)
{
	b32 a = { 0 };
	for (int k = 0; k < 32; k++) a[k] = (uint8_t)table[i[k]];
	return a;
}
static inline s16 s_bytes(b16 a) { return __builtin_convertvector((c16)a, s16); }
static inline s16 s_pairs(uint64_t a, uint64_t b)
{
	s16 s = { 0 };
	for (int i = 0; i < 8; i++) {
		s[2*i] = (int8_t)(a >> 8*i);
		s[2*i + 1] = (int8_t)(b >> 8*i);
	}
	return s;
}
static inline float f_half(uint16_t h) { return kern_f16_to_f32(h); }
