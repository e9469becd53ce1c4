/* SPDX-License-Identifier: MIT
 * tile_own.h - the own sums, the surplus of crossed products (tile_crossed.h): for each output of a panel's block
 * and each token of a strip's block; and the start of a run of crossed fours. */
enum { OWN = MUL_CHUNK/16*OUTPUTS, OWN_IN_STRIPS = CROSSED };

/* dx: a strip's scales, followed by the lines of its tokens' own sums. half: of a block, 1 or 2; 0: the whole block */
INLINE void start(int tokens, const int32_t *own, const char *dx, int half, vi s[][VECTORS])
{
	UNROLL for (int t = 0; t < tokens; t++) {
		const char *all = dx + 4*tokens + 4*t, *first = all + 4*tokens;
		vi x = half == 1 ? i_spread(first) : i_spread(all);
		if (half == 2) x = i_minus(x, i_spread(first));
		UNROLL for (int r = 0; r < VECTORS; r++) s[t][r] = own ? i_minus(i_load(own + LANES*r), x) : i_zero();
	}
}
/* Minus the own sums of n fours of lines, which are `line` bytes apart; n is a multiple of 4. CROSSED sums are added up
 * in parallel. */
INLINE vi minus_own_of(const char *p, size_t line, size_t n)
{
	vi a[CROSSED], all = i_zero();
	UNROLL for (int i = 0; i < CROSSED; i++) a[i] = i_zero();
	for (size_t k = 0; k < n; k += 4, p += 8*line)
		UNROLL for (size_t i = 0; i < CROSSED; i++)
			a[i] = i_madd(a[i], i_load(p + 2*line*i), i_load(p + 2*line*i + line));
	UNROLL for (int i = 0; i < CROSSED; i++) all = i_minus(all, a[i]);
	return all;
}
/* Minus the own sums of a panel's blocks, or, of blocks of 16, those of their halves */
INLINE void own_of_panel(size_t n_blocks, const char *panel, enum mul_kind kind, int32_t *own)
{
	const size_t runs = kind == MUL_16 ? 2 : 1, n = mul_block(kind)/4/runs;
	for (size_t i = 0; i < n_blocks*runs; i++) {
		const char *w = panel + i/runs*mul_panel_bytes(kind, OUTPUTS) + i%runs*n*2*4*OUTPUTS;
		for (int r = 0; r < VECTORS; r++, own += LANES) {
			const vi a = minus_own_of(w + 4*LANES*r, 4*OUTPUTS, n);
			memcpy(own, &a, sizeof a);
		}
	}
}
