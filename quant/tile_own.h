/* SPDX-License-Identifier: MIT
 * tile_own.h - what tile_crossed.h's products have too much: sums for each output of a panel's block and each token of
 * a strip's, and what a run of crossed fours begins with. */
enum { OWN = MUL_CHUNK/32*OUTPUTS };
#define OWN_OF_STRIP own_of_strip

ALWAYS void start(int tokens, const int32_t *own, const char *x, vi s[][VECTORS])
{
	UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int r = 0; r < VECTORS; r++)
		s[t][r] = own ? i_less(i_load(own + LANES*r), i_spread(x + 4*t)) : i_zero();
}
/* What lines add by themselves, `line` bytes from one to the next, in n fours. */
ALWAYS vi own_of(const char *p, size_t line, size_t n)
{
	vi a = i_zero();
	for (size_t k = 0; k < n; k++, p += 2*line) if (k%4 < CROSSED) a = i_madd(a, i_load(p), i_load(p + line));
	return a;
}
ALWAYS void own_of_panel(size_t n_blocks, const char *panel, enum mul_kind kind, int32_t *own)
{
	for (size_t b = 0; b < n_blocks; b++, panel += mul_panel_bytes(kind, OUTPUTS))
		for (int r = 0; r < VECTORS; r++, own += LANES) {
			vi a = i_less(i_zero(), own_of(panel + 4*LANES*r, 4*OUTPUTS, mul_block(kind)/4));
			memcpy(own, &a, sizeof a);
		}
}
/* A register has as many lanes as a line tokens, or more; what is read behind the last line is the strip's, too. */
static void own_of_strip(size_t block, size_t tokens, const char *strip, int32_t *to)
{
	vi a = own_of(strip, 4*tokens, block/4);
	memcpy(to, &a, 4*tokens);
}
