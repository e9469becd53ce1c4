/* SPDX-License-Identifier: MIT
 * grids.h - private to quant/: the code books of the IQ types.
 *
 * grid_NAME[k]: word k, a byte for each of 8 (IQ3: 4) magnitudes, the first lowest; grid_iq1 holds 0, 1, 2 for
 * -1, 0, 1. rank_NAME finds the number of a word: see grid_number. Source: ggml-common.h of ggml, 2026-08, as facts
 * of the format; grids.c is made by scripts/gen-grids. */
#ifndef QUANT_GRIDS_H
#define QUANT_GRIDS_H
#include <stdint.h>

struct grid_rank { uint64_t has[2]; uint16_t base; };   /* of a second half: bit f of has: goes with first half f; its first word */
extern const uint64_t grid_iq2_xxs[256], grid_iq2_xs[512], grid_iq2_s[1024], grid_iq1[2048];
extern const uint32_t grid_iq3_xxs[256], grid_iq3_s[512];
extern const struct grid_rank rank_iq2_xxs[81], rank_iq2_xs[81], rank_iq2_s[81], rank_iq1[81], rank_iq3_xxs[64], rank_iq3_s[64];

/* 8 bytes, 255 where a bit of s is set */
static inline uint64_t grid_mask(unsigned s)
{
	uint64_t m = (s*0x0101010101010101u) & 0x8040201008040201u;
	return ((m + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u)*255;
}
/* Magnitudes g, none of them 0, to signed bytes: negative where a bit of s is set. */
static inline uint64_t grid_signed(uint64_t g, unsigned s)
{
	uint64_t m = grid_mask(s);
	return (g ^ m) + (m & 0x0101010101010101u);
}
/* Seven signs and the eighth, which makes their number even. */
static inline unsigned grid_even(unsigned s)
{
	return s | (0x6996u >> ((s ^ s >> 4) & 15) & 1) << 7;
}
#endif
