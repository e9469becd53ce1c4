/* SPDX-License-Identifier: MIT
 * tile_plain.h - the part of tile.h for cores that multiply as fast as they add: no columns are crossed. */
enum { OWN = 1, OWN_IN_STRIPS = 0 };
INLINE void start(int tokens, const int32_t *own, const char *dx, int half, vi s[][VECTORS])
{
	(void)own; (void)dx; (void)half;
	UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int r = 0; r < VECTORS; r++) s[t][r] = i_zero();
}
INLINE void four(int k, bool crossed, int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	(void)k; (void)crossed;
	step(tokens, w, x, s);
	step(tokens, w + 4*OUTPUTS, x + 4*tokens, s);
}
INLINE void own_of_panel(size_t n_blocks, const char *panel, enum mul_kind kind, int32_t *own)
{
	(void)n_blocks; (void)panel; (void)kind;
	own[0] = 0;
}
