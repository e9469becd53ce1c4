/* SPDX-License-Identifier: MIT
 * bytes.h - the vocabulary of the codec files: vectors of 16 and 32 bytes, in GNU's vector extensions. A type's letter
 * is the width of a lane, its number says how many there are: b bytes, c signed bytes, s 16 bits, h 32 bits (half of a
 * word), w 64 bits (a word). A word's first letter says on what it works.
 *
 * What these cannot express well is in bytes_c.h, which defines it, and in bytes_avx2.h and bytes_neon.h: an instance
 * includes one of the three.
 *   b32 b_nibbles(p)        16 bytes: their lower halves, then their upper halves
 *   b32 b_mask(u)           255 where a bit of u is set, the lowest first
 *   b32 b_level(table, i)   table[i[k]], i below 16
 *   s16 s_bytes(a)          16 signed bytes as integers
 *   s16 s_pairs(a, b)       the bytes of a and b in turn, as 16 signed integers
 *   float f_half(h)         a half as a float, exact */
#ifndef QUANT_BYTES_H
#define QUANT_BYTES_H
#include <stdint.h>
#include <string.h>

typedef uint8_t b32 __attribute__((vector_size(32), may_alias));
typedef uint8_t b16 __attribute__((vector_size(16), may_alias));
typedef uint8_t b8 __attribute__((vector_size(8), may_alias));
typedef int8_t c16 __attribute__((vector_size(16), may_alias));
typedef int16_t s16 __attribute__((vector_size(32), may_alias));
typedef uint16_t s16u __attribute__((vector_size(32), may_alias));
typedef uint16_t s8u __attribute__((vector_size(16), may_alias));
typedef uint64_t w2 __attribute__((vector_size(16), may_alias));
typedef uint64_t w4 __attribute__((vector_size(32), may_alias));
typedef uint32_t h4 __attribute__((vector_size(16), may_alias));
typedef uint32_t h8 __attribute__((vector_size(32), may_alias));

static inline b32 b_load(const void *p) { b32 a; memcpy(&a, p, 32); return a; }
static inline b16 b_load16(const void *p) { b16 a; memcpy(&a, p, 16); return a; }
static inline b32 b_two(b16 lo, b16 hi)
{
	w2 l = (w2)lo, h = (w2)hi;
	return (b32)(w4){ l[0], l[1], h[0], h[1] };
}
static inline void b_store(void *p, b32 a) { memcpy(p, &a, 32); }
static inline void s_store(int16_t *p, s16 a) { memcpy(p, &a, 32); }
static inline void b_store_low(void *p, b32 a) { memcpy(p, &a, 16); }
static inline uint32_t u32_of(const void *p) { uint32_t u; memcpy(&u, p, 4); return u; }
static inline uint64_t u64_of(const void *p) { uint64_t u; memcpy(&u, p, 8); return u; }

/* The n bits of each byte that begin at bit `from`, moved to bit `to`. */
static inline b32 b_field(b32 a, int from, int n, int to)
{
	uint8_t mask = (uint8_t)(((1 << n) - 1) << to);
	s16u w = (s16u)a;
	return (b32)(from > to ? w >> (from - to) : w << (to - from)) & mask;
}
static inline b16 b_field16(b16 a, int from, int n)
{
	uint8_t mask = (uint8_t)((1 << n) - 1);
	return (b16)((s8u)a >> from) & mask;
}
static inline b32 b_minus(b32 a, uint8_t n) { return a - n; }
static inline s16 s_all(int16_t a) { return (s16){ 0 } + a; }
static inline s16 s_zero(void) { return (s16){ 0 }; }
/* 8 bytes as unsigned integers */
static inline h8 h_bytes(uint64_t a)
{
	b8 b;
	memcpy(&b, &a, 8);
	return __builtin_convertvector(b, h8);
}
/* Numbers of 4 or 2 bits, the lowest first, in bytes. */
static inline uint64_t spread4(uint64_t x)
{
	x = (x | x << 16) & 0x0000ffff0000ffff;
	x = (x | x << 8) & 0x00ff00ff00ff00ff;
	return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}
static inline uint64_t spread2(uint64_t x)
{
	x = (x | x << 24) & 0x000000ff000000ff;
	x = (x | x << 12) & 0x000f000f000f000f;
	return (x | x << 6) & 0x0303030303030303;
}
/* a where a bit of the mask is clear, -a where it is set */
static inline b32 b_signed(b32 a, b32 mask) { return (a ^ mask) - mask; }

#endif
