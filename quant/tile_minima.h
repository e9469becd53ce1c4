/* SPDX-License-Identifier: MIT
 * tile_minima.h - how tile.h and tile_tall.h multiply the minima of super-blocks if panels have them by_32 (struct
 * panel_table). Four lines have the first minimum of each two minus the second, and are multiplied with the sums of
 * every other sixteen columns; four have the second ones, and are multiplied with sums of 32 modulo 2^16. In types
 * whose minima are those of 32 columns, the first four are zeros and left out. */

enum { MINIMA = 4, MINIMA_LINE = 4*OUTPUTS, MINIMA_SUMS = 4*TILE_TOKENS };

static bool same_minima(size_t n_blocks, const char *panel)
{
	int32_t any = 0;
	for (size_t b = 0; b < n_blocks; b++, panel += mul_panel_bytes(MUL_256_MIN, OUTPUTS))
		for (size_t i = 0; i < MINIMA*OUTPUTS; i++)
			any |= mul_word(panel + mul_panel_mn(MUL_256_MIN, OUTPUTS) + 4*i);
	return !any;
}
INLINE bool sums_lack(const char *lack)
{
	int32_t any = 0;
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) any |= mul_word(lack + 4*t);
	return any;
}
/* Adds to s the minima times what their sums lack, in four parts of 2^14 each. Sums seldom lack anything. */
static __attribute__((noinline)) void add_lacking(const char *mn, const char *lack, vi s[TILE_TOKENS][VECTORS])
{
	for (int i = 0; i < MINIMA; i++)
		for (int t = 0; t < TILE_TOKENS; t++) {
			const uint32_t two = (uint32_t)mul_word(lack + 4*t) >> 8*i, first = (two & 15) << 14 & 0xffff,
				pair = first | two >> 4 << 30;
			for (int r = 0; r < VECTORS; r++) {
				const vw u = i_load(mn + (MINIMA + i)*MINIMA_LINE + 4*LANES*r), v = i_spread(&pair);
				for (int part = 0; part < 4; part++) s[t][r] = i_madd(s[t][r], u, v);
			}
		}
}
