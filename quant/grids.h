/* SPDX-License-Identifier: MIT
 * grids.h - private to quant/: the code books of the IQ types.
 *
 * grid_NAME[k]: word k, a byte for each of 8 (IQ3: 4) magnitudes, the first lowest; grid_iq1 holds 0, 1, 2 for
 * -1, 0, 1. brief_NAME[k]: the same word as numbers of levels, two bits each, the first lowest; halved_NAME[h][k]: the
 * same of its first or second half, in IQ3 three bits each. rank_NAME finds a word's number: see grid_number. Source:
 * ggml-common.h of ggml, 2026-08, as facts of the format; grids.c is made by scripts/gen-grids. */
#ifndef QUANT_GRIDS_H
#define QUANT_GRIDS_H
#include <stdint.h>

/* A second half: bit f of `has` is set if it goes with first half f; base: the number of its first word */
struct grid_rank { uint64_t has[2]; uint16_t base; };
extern const uint64_t grid_iq2_xxs[256], grid_iq2_xs[512], grid_iq2_s[1024], grid_iq1[2048];
extern const uint32_t grid_iq3_xxs[256], grid_iq3_s[512];
extern _Alignas(64) const uint16_t brief_iq1[2048];
extern _Alignas(64) const uint8_t halved_iq2_xxs[2][256], halved_iq2_xs[2][512], halved_iq2_s[2][1024],
	halved_iq3_xxs[2][256], halved_iq3_s[2][512];
/* The five digits of a byte of TQ1_0, two bits each: the first three, and the last two */
extern _Alignas(64) const uint8_t digits_tq1[2][256];
extern const struct grid_rank rank_iq2_xxs[81], rank_iq2_xs[81], rank_iq2_s[81], rank_iq1[81], rank_iq3_xxs[64],
	rank_iq3_s[64];

/* Puts four times seven signs, 28 bits, into four bytes. */
static inline uint32_t grid_sevens(uint32_t u)
{
	return (u & 0x7f) | (u << 1 & 0x7f00) | (u << 2 & 0x7f0000) | (u << 3 & 0x7f000000);
}
/* Adds to the seven signs in each of four bytes the eighth, which makes the number of minuses even. */
static inline uint32_t grid_even(uint32_t s)
{
	uint32_t p = s ^ s >> 4;
	p ^= p >> 2;
	p ^= p >> 1;
	return s | (p & 0x01010101) << 7;
}
#endif
