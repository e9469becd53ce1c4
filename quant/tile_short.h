/* SPDX-License-Identifier: MIT
 * tile_short.h - the part of tile.h for blocks of 32 with 32 registers; defines SHORT_TABLE.
 *
 * A run is short, and putting sums aside would cost more than it gains. So a tile has half the tokens, and its floats
 * stay in registers too; the core itself begins the next run while it finishes one. */
enum { SHORT_TOKENS = TILE_TOKENS/2 };

INLINE void short_run(int n, const char *w, const char *x, const int32_t *own, int half,
	const char *d, const char *dx, vf y[SHORT_TOKENS][VECTORS], enum mul_kind kind)
{
	vi s[SHORT_TOKENS][VECTORS];
	start(SHORT_TOKENS, own, dx, half, s);
	UNROLL for (int k = 0; k < n; k++)
		four(k, own, SHORT_TOKENS, w + 2*4*OUTPUTS*k, x + 2*4*SHORT_TOKENS*k, s);
	UNROLL for (int t = 0; t < SHORT_TOKENS; t++) {
		vf scale = f_spread(dx + 4*t), sum = kind == MUL_32_MIN ? f_spread(dx - 4*SHORT_TOKENS + 4*t) : scale;
		UNROLL for (int r = 0; r < VECTORS; r++)
			y[t][r] = settled(s[t][r], d + 4*LANES*r, scale, sum, y[t][r], kind);
	}
}
INLINE void short_tile(size_t n_blocks, const char *w, const char *x, const int32_t *own, struct path p,
	enum mul_kind kind)
{
	const size_t d = mul_panel_d(kind, OUTPUTS), m = mul_panel_m(kind, OUTPUTS), dx = mul_strip_d(32, SHORT_TOKENS);
	vf y[SHORT_TOKENS][VECTORS];
	UNROLL for (int t = 0; t < SHORT_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++)
		y[t][r] = f_load(p.from + t*OUTPUTS + r*LANES);
	for (; n_blocks; n_blocks--, w += mul_panel_bytes(kind, OUTPUTS), x += mul_strip_bytes(32, SHORT_TOKENS)) {
		short_run(kind == MUL_16 ? 4 : 8, w, x, own, kind == MUL_16, w + d, x + dx, y, kind);
		own += OUTPUTS;
		if (kind != MUL_16) continue;
		short_run(4, w + 8*4*OUTPUTS, x + 8*4*SHORT_TOKENS, own, 2, w + m, x + dx, y, kind);
		own += OUTPUTS;
	}
	UNROLL for (int t = 0; t < SHORT_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++)
		f_store(p.to + (size_t)t*p.stride + r*LANES, y[t][r]);
}
INLINE void short_gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	int32_t own[OWN];
	own_of_panel(n_blocks, panel, kind, own);
	for (size_t i = 0; i < n_strips; i++, strips += strip_bytes)
		short_tile(n_blocks, panel, strips, own, path_of(y, i, SHORT_TOKENS), kind);
}
MUL_GEMM(gemm_16, short_gemm, MUL_16)
MUL_GEMM(gemm_32, short_gemm, MUL_32)
MUL_GEMM(gemm_32_min, short_gemm, MUL_32_MIN)

static void short_strip(const struct narrow *q, size_t block, char *to)
{
	strip_of(SHORT_TOKENS, OWN_IN_STRIPS, q, block, to);
}
const struct panel_table SHORT_TABLE = {
	.outputs = OUTPUTS, .tokens = SHORT_TOKENS, .few = FEW, .codes = interleave, .pairs = interleave,
	.strip = short_strip, .sums = SUMS_OF_ROWS, .fill = FILL,
	.gemm = { gemm_16, gemm_32, gemm_32_min },
};
