/* SPDX-License-Identifier: MIT
 * tile.h - a panel times strips, one text for the instruction sets whose registers are lanes of outputs; defines
 * PANEL_TABLE.
 *
 * A tile is VECTORS registers of LANES outputs times TILE_TOKENS tokens: its integer sums stay in registers over a
 * block, its floats lie in acc. Each pair of columns costs VECTORS loads of weights and TILE_TOKENS broadcasts of
 * activations. An instance gives LANES, VECTORS, TILE_TOKENS, interleave() and
 *   vi, vw, vf                  registers of sums, of pairs, of float
 *   i_zero() i_load(p) i_spread(p)      pairs; one for all lanes
 *   i_madd(a, u, v)             a += both products of a pair of int16
 *   f_load(p) f_store(p, a) f_spread(p)
 *   f_product(d, x, s, a)       fma of the rounded d*x with the float of s, or with s, onto a: f_product, f_product_f
 * */
#include "mul.h"

#define UNROLL _Pragma("GCC unroll 32")
#define ALWAYS static inline __attribute__((always_inline))
enum { OUTPUTS = VECTORS*LANES };

/* n pairs of columns, onto zeros */
ALWAYS void sums(size_t n, const char *w, const char *x, vi a[TILE_TOKENS][VECTORS])
{
	vi s[TILE_TOKENS][VECTORS];
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) s[t][r] = i_zero();
	for (size_t k = 0; k < n; k++, w += 4*OUTPUTS, x += 4*TILE_TOKENS) {
		vw u[VECTORS];
		UNROLL for (int r = 0; r < VECTORS; r++) u[r] = i_load(w + 4*LANES*r);
		UNROLL for (int t = 0; t < TILE_TOKENS; t++) {
			vw v = i_spread(x + 4*t);
			UNROLL for (int r = 0; r < VECTORS; r++) s[t][r] = i_madd(s[t][r], u[r], v);
		}
	}
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) a[t][r] = s[t][r];
}
ALWAYS void add(const char *d, const char *dx, vi a[TILE_TOKENS][VECTORS], float *acc)
{
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) {
		float *y = acc + t*OUTPUTS + r*LANES;
		f_store(y, f_product(f_load(d + 4*LANES*r), f_spread(dx + 4*t), a[t][r], f_load(y)));
	}
}
ALWAYS void tile(size_t n_blocks, const char *w, const char *x, float *acc, enum mul_kind kind)
{
	const size_t block = mul_block(kind), d = mul_panel_d(kind, OUTPUTS), m = mul_panel_m(kind, OUTPUTS),
		sum = mul_strip_sum(block, TILE_TOKENS), dx = mul_strip_d(block, TILE_TOKENS);
	for (size_t b = 0; b < n_blocks; b++, w += mul_panel_bytes(kind, OUTPUTS), x += mul_strip_bytes(block,
		TILE_TOKENS)) {
		vi a[TILE_TOKENS][VECTORS];
		sums(kind == MUL_16 ? 8 : block/2, w, x, a);
		add(w + d, x + dx, a, acc);
		if (kind == MUL_16) {
			sums(8, w + 8*4*OUTPUTS, x + 8*4*TILE_TOKENS, a);
			add(w + m, x + dx, a, acc);
		}
		if (kind == MUL_256_MIN) {
			sums(8, w + mul_panel_mn(kind, OUTPUTS), x + sum, a);
			add(w + m, x + dx, a, acc);
		}
		if (kind != MUL_32_MIN) continue;
		UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) {
			float *y = acc + t*OUTPUTS + r*LANES;
			f_store(y, f_product_f(f_load(w + m + 4*LANES*r), f_spread(x + dx + 4*t),
				f_spread(x + sum + 4*t), f_load(y)));
		}
	}
}
#define GEMM(name, kind) \
static void name(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes, float *acc) \
{ \
	for (; n_strips; n_strips--, strips += strip_bytes, acc += TILE_TOKENS*OUTPUTS) tile(n_blocks, panel, strips, acc, kind); \
}
GEMM(gemm_16, MUL_16)
GEMM(gemm_32, MUL_32)
GEMM(gemm_32_min, MUL_32_MIN)
GEMM(gemm_256, MUL_256)
GEMM(gemm_256_min, MUL_256_MIN)

const struct panel_table PANEL_TABLE = { OUTPUTS, TILE_TOKENS, interleave, interleave, interleave, { gemm_16, gemm_32,
	gemm_32_min, gemm_256, gemm_256_min }, NULL };
