/* SPDX-License-Identifier: MIT
 * tile_tall.h - a panel times strips, as tile.h, for 16 registers and cores that are limited by loads; defines
 * PANEL_TABLE.
 *
 * A tile is many registers of outputs times few tokens. The activations of the current four columns stay in registers,
 * and so does a token's scale while the sums of a run are settled, at once, register after register: an output's scale
 * is loaded once for all tokens, and nothing is put aside. All fours are crossed (tile_crossed.h), except in blocks of
 * 16, whose two starts cost more. In addition to what tile.h and tile_crossed.h need, an instance gives
 *   i_keep(u)                   u, in a register, so that what several products share is loaded once
 *   i_plus_at(u, p)             u plus the pairs at p, as an operand in memory */
#include "inline.h"
#include "mul.h"

enum { OUTPUTS = VECTORS*LANES };
#include "tile_own.h"
#include "tile_minima.h"

/* Broadcasts a line of pairs of some tokens. */
INLINE void spread(const char *x, vw u[TILE_TOKENS])
{
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) u[t] = i_keep(i_spread(x + 4*t));
}
/* One of the two lines of weights is read for each token again, an instruction less for each of its registers. With
 * both, a core would wait for loads. */
INLINE void cross(const char *w, const char *x, vi s[TILE_TOKENS][VECTORS])
{
	vw first[TILE_TOKENS], second[TILE_TOKENS];
	spread(x, first);
	spread(x + 4*TILE_TOKENS, second);
	UNROLL for (int r = 0; r < VECTORS; r++) {
		vw u = i_keep(i_load(w + 4*LANES*r));
		UNROLL for (int t = 0; t < TILE_TOKENS; t++)
			s[t][r] = i_madd(s[t][r], i_plus(u, second[t]), i_plus_at(first[t], w + 4*OUTPUTS + 4*LANES*r));
	}
}
INLINE void step(const char *w, const char *x, vi s[TILE_TOKENS][VECTORS])
{
	vw v[TILE_TOKENS];
	spread(x, v);
	UNROLL for (int r = 0; r < VECTORS; r++) {
		vw u = i_keep(i_load(w + 4*LANES*r));
		UNROLL for (int t = 0; t < TILE_TOKENS; t++) s[t][r] = i_madd(s[t][r], u, v[t]);
	}
}
/* Settles the sums of a run in y[token][output]; d and dx are the scales of outputs and of tokens. */
INLINE void settle(vi s[TILE_TOKENS][VECTORS], const char *d, const char *dx, float *y, enum mul_kind kind)
{
	vf x[TILE_TOKENS], sum[TILE_TOKENS];
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) x[t] = f_spread(dx + 4*t);
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) sum[t] = f_spread(dx - 4*TILE_TOKENS + 4*t);
	UNROLL for (int r = 0; r < VECTORS; r++) {
		vf scale = f_load(d + 4*LANES*r), m = kind == MUL_32_MIN ? f_load(d + 4*OUTPUTS + 4*LANES*r) : scale;
		UNROLL for (int t = 0; t < TILE_TOKENS; t++) {
			float *to = y + t*OUTPUTS + r*LANES;
			vf a = f_product(scale, x[t], s[t][r], f_load(to));
			f_store(to, kind == MUL_32_MIN ? f_product_f(m, x[t], sum[t], a) : a);
		}
	}
}
/* Sums and settles n fours of columns, crossed if `own` is not NULL. */
INLINE void run(int n, const char *w, const char *x, const int32_t *own, const char *d, const char *dx, float *y,
	enum mul_kind kind)
{
	const int some = n < 8 ? n : 8;
	vi s[TILE_TOKENS][VECTORS];
	start(TILE_TOKENS, own, dx, 0, s);
	for (int k = 0; k < n; k += some)
		UNROLL for (int i = 0; i < some; i++, w += 2*4*OUTPUTS, x += 2*4*TILE_TOKENS) {
			if (own) {
				cross(w, x, s);
				continue;
			}
			step(w, x, s);
			step(w + 4*OUTPUTS, x + 4*TILE_TOKENS, s);
		}
	settle(s, d, dx, y, kind);
	/* Keeps the compiler from beginning the next run earlier, which would need more registers. */
	__asm__ volatile("" : : : "memory");
}

INLINE void minima(bool same, const char *mn, const char *sum, const char *lack, const char *m, const char *dx,
	float *y)
{
	vi s[TILE_TOKENS][VECTORS];
	start(TILE_TOKENS, NULL, dx, 0, s);
	if (!same) UNROLL for (int i = 0; i < MINIMA; i++) step(mn + i*MINIMA_LINE, sum + i*MINIMA_SUMS, s);
	UNROLL for (int i = MINIMA; i < 2*MINIMA; i++) step(mn + i*MINIMA_LINE, sum + i*MINIMA_SUMS, s);
	if (sums_lack(lack)) {
		vi all[TILE_TOKENS][VECTORS];   /* in memory, so that s need not be */
		memcpy(all, s, sizeof all);
		add_lacking(mn, lack, all);
		memcpy(s, all, sizeof all);
	}
	settle(s, m, dx, y, MUL_256_MIN);
	__asm__ volatile("" : : : "memory");    /* as in run */
}
INLINE void tile(size_t n_blocks, const char *w, const char *x, const int32_t *own, bool same, float *y,
	enum mul_kind kind)
{
	const size_t block = mul_block(kind), d = mul_panel_d(kind, OUTPUTS), m = mul_panel_m(kind, OUTPUTS),
		dx = mul_strip_d(block, TILE_TOKENS);
	for (; n_blocks; n_blocks--, w += mul_panel_bytes(kind, OUTPUTS), x += mul_strip_bytes(block, TILE_TOKENS)) {
		run(kind == MUL_16 ? 4 : block/4, w, x, kind == MUL_16 ? NULL : own, w + d, x + dx, y, kind);
		if (kind == MUL_16) run(4, w + 8*4*OUTPUTS, x + 8*4*TILE_TOKENS, NULL, w + m, x + dx, y, kind);
		if (kind == MUL_256_MIN)
			minima(same, w + mul_panel_mn(kind, OUTPUTS), x + mul_strip_sum(block, TILE_TOKENS),
				x + mul_strip_lack(TILE_TOKENS), w + m, x + dx, y);
		own += OUTPUTS;
	}
}
/* As mul_results and mul_results_done, whose memset and memcpy, or what compilers make of them, take longer. */
INLINE float *take(const struct results *y, size_t strip)
{
	float *acc = y->acc + strip*TILE_TOKENS*OUTPUTS;
	if (y->begin)
		UNROLL for (int i = 0; i < TILE_TOKENS*VECTORS; i++) f_store(acc + i*LANES, f_zero());
	return acc;
}
/* Prefetches where `put` will store: each token's results are in lines of their own, far away. */
INLINE void fetch_results(const struct results *y, size_t strip)
{
	if (strip >= y->whole) return;
	UNROLL for (size_t t = 0; t < TILE_TOKENS; t++) UNROLL for (size_t i = 0; i < OUTPUTS; i += 16)
		__builtin_prefetch(y->to + (strip*TILE_TOKENS + t)*y->stride + i, 1);
}
INLINE void put(const struct results *y, size_t strip, const float *acc)
{
	float *to = y->to + strip*TILE_TOKENS*y->stride;
	if (strip < y->whole)
		UNROLL for (int t = 0; t < TILE_TOKENS; t++, to += y->stride) UNROLL for (int r = 0; r < VECTORS; r++)
			f_store(to + r*LANES, f_load(acc + t*OUTPUTS + r*LANES));
}
INLINE void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	const bool same = kind == MUL_256_MIN && same_minima(n_blocks, panel);
	int32_t own[OWN];
	if (kind != MUL_16) own_of_panel(n_blocks, panel, kind, own);
	for (size_t i = 0; i < n_strips; i++, strips += strip_bytes) {
		float *acc = take(y, i);
		fetch_results(y, i);
		tile(n_blocks, panel, strips, own, same, acc, kind);
		put(y, i, acc);
	}
}
MUL_GEMM(gemm_16, gemm, MUL_16)
MUL_GEMM(gemm_32, gemm, MUL_32)
MUL_GEMM(gemm_32_min, gemm, MUL_32_MIN)
MUL_GEMM(gemm_256, gemm, MUL_256)
MUL_GEMM(gemm_256_min, gemm, MUL_256_MIN)
static void strip(const struct narrow *q, size_t block, char *to)
{
	strip_of(TILE_TOKENS, OWN_IN_STRIPS, q, block, to);
}
const struct panel_table PANEL_TABLE = {
	.outputs = OUTPUTS, .tokens = TILE_TOKENS, .few = FEW, .codes = interleave, .pairs = interleave, .strip = strip,
	.sums = SUMS_OF_ROWS, .by_32 = true, .fill = FILL,
	.gemm = { gemm_16, gemm_32, gemm_32_min, gemm_256, gemm_256_min },
};
