/* SPDX-License-Identifier: MIT
 * tile.h - a panel times strips, one text for the instruction sets whose registers are lanes of outputs; defines
 * PANEL_TABLE.
 *
 * A tile is VECTORS registers of LANES outputs times TILE_TOKENS tokens. Its integer sums stay in registers over a run
 * of columns that share a scale; its floats are in acc. Each pair of columns costs VECTORS loads of weights and
 * TILE_TOKENS broadcasts of activations. The sums of a run are put aside and settled during the next run, a token after
 * each step, as the two keep different parts of a core busy. An instance gives LANES, VECTORS, TILE_TOKENS, FEW, FILL
 * and SUMS_OF_ROWS (few, fill and sums of the panel_table), interleave() and
 *   strip_of(tokens, crossed, q, block, to)         as panel_table's strip; `crossed` of four fours are (tile_own.h)
 *   vi, vw, vf                  registers of sums, of pairs, of float
 *   i_zero() i_load(p) i_spread(p)      pairs; one for all lanes
 *   i_madd(a, u, v)             a += both products of a pair of int16
 *   f_zero() f_load(p) f_store(p, a) f_spread(p)
 *   f_product(d, x, s, a)       fma(d*x, s, a) with d*x rounded and s made float; f_product_f: of a float s
 * If it defines SHORT_TABLE, tile_short.h handles blocks of 32; if it defines CROSSED, tile_crossed.h saves half of the
 * products. */
#include "inline.h"
#include "mul.h"

enum { OUTPUTS = VECTORS*LANES };

/* Adds a pair of columns of the tile's outputs times that of some tokens. */
INLINE void step(int tokens, const char *w, const char *x, vi s[][VECTORS])
{
	vw u[VECTORS];
	UNROLL for (int r = 0; r < VECTORS; r++) u[r] = i_load(w + 4*LANES*r);
	UNROLL for (int t = 0; t < tokens; t++) {
		vw v = i_spread(x + 4*t);
		UNROLL for (int r = 0; r < VECTORS; r++) s[t][r] = i_madd(s[t][r], u[r], v);
	}
}
#if defined CROSSED
#include "tile_crossed.h"
#else
#include "tile_plain.h"
#endif

#include "tile_path.h"
#include "tile_minima.h"

/* Where a run's sums go: the first token's y[o] = fma(d[o]*dx, s, y[o]). */
struct place {
	const char *d, *dx;
	struct leg y;
};
struct aside {
	vi s[TILE_TOKENS][VECTORS];
	struct place to;
};

/* y plus the settled sums of a token. x: its scale; sum: that of its activations in a block of 32 */
INLINE vf settled(vi s, const char *d, vf x, vf sum, vf y, enum mul_kind kind)
{
	y = f_product(f_load(d), x, s, y);
	return kind == MUL_32_MIN ? f_product_f(f_load(d + 4*OUTPUTS), x, sum, y) : y;
}
INLINE void settle(vi s[VECTORS], struct place p, int t, enum mul_kind kind)
{
	vf x = f_spread(p.dx + 4*t), sum = kind == MUL_32_MIN ? f_spread(p.dx - 4*TILE_TOKENS + 4*t) : x;
	UNROLL for (int r = 0; r < VECTORS; r++) {
		vf y = f_load(p.y.from + t*OUTPUTS + r*LANES);
		f_store(p.y.to + (size_t)t*p.y.stride + r*LANES,
			settled(s[r], p.d + 4*LANES*r, x, sum, y, kind));
	}
}
/* Sums n fours of columns while the sums put aside are settled, and then puts its own aside. own: the own sums of
 * crossed fours (tile_own.h); NULL: they are not crossed. */
INLINE void run(int n, const char *w, const char *x, const int32_t *own, struct place to, struct aside *a,
	enum mul_kind kind)
{
	/* Nothing is settled after the first four, because the sums put aside are still on their way to memory; after
	 * each other one that is unrolled, `each` tokens are. */
	enum { WAIT = 1, UNROLLED = 8 };
	const int head = n < UNROLLED ? n : UNROLLED, each = (TILE_TOKENS + head - WAIT - 1)/(head - WAIT);
	const struct place before = a->to;
	const bool crossed = own;
	vi s[TILE_TOKENS][VECTORS];
	start(TILE_TOKENS, own, to.dx, 0, s);
	UNROLL for (int k = 0; k < head; k++, w += 2*4*OUTPUTS, x += 2*4*TILE_TOKENS) {
		const int first = (k - WAIT)*each;
		four(k, crossed, TILE_TOKENS, w, x, s);
		UNROLL for (int t = 0; t < TILE_TOKENS; t++)
			if (t >= first && t < first + each) settle(a->s[t], before, t, kind);
	}
	for (int k = head; k < n; k += 4)
		UNROLL for (int i = 0; i < 4; i++, w += 2*4*OUTPUTS, x += 2*4*TILE_TOKENS)
			four(i, crossed, TILE_TOKENS, w, x, s);
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) a->s[t][r] = s[t][r];
	a->to = to;
	/* Keeps the compiler from holding sums or floats in registers, as there are too few. */
	__asm__ volatile("" : : "r"(a) : "memory");
}
/* Multiplies the minima of a super-block and puts the sums aside. */
INLINE void minima(bool same, const char *mn, const char *sum, const char *lack, struct place to, struct aside *a)
{
	if (same) run(MINIMA/2, mn + MINIMA*MINIMA_LINE, sum + MINIMA*MINIMA_SUMS, NULL, to, a, MUL_256_MIN);
	else run(MINIMA, mn, sum, NULL, to, a, MUL_256_MIN);
	if (sums_lack(lack)) add_lacking(mn, lack, a->s);
}
INLINE void tile(size_t n_blocks, const char *w, const char *x, const int32_t *own, bool same, struct path y,
	struct aside *a, enum mul_kind kind)
{
	const size_t block = mul_block(kind), d = mul_panel_d(kind, OUTPUTS), m = mul_panel_m(kind, OUTPUTS),
		dx = mul_strip_d(block, TILE_TOKENS);
	for (; n_blocks; n_blocks--, w += mul_panel_bytes(kind, OUTPUTS), x += mul_strip_bytes(block, TILE_TOKENS)) {
		const bool last = n_blocks == 1;
		const struct place to = { w + d, x + dx, next_leg(&y, last && !two_runs(kind)) },
			to_m = { w + m, x + dx, two_runs(kind) ? next_leg(&y, last) : to.y };
		run(kind == MUL_16 ? 4 : block/4, w, x, kind == MUL_16 ? NULL : own, to, a, kind);
		if (kind == MUL_16) run(4, w + 8*4*OUTPUTS, x + 8*4*TILE_TOKENS, NULL, to_m, a, kind);
		if (kind == MUL_256_MIN)
			minima(same, w + mul_panel_mn(kind, OUTPUTS), x + mul_strip_sum(block, TILE_TOKENS),
				x + mul_strip_lack(TILE_TOKENS), to_m, a);
		if (OWN > 1) own += OUTPUTS;    /* tile_plain.h has no own sums */
	}
}
/* Stores registers: for an initializer compilers emit `rep stos`, which is slow to start. */
INLINE void put_zeros(struct aside *a, float *to)
{
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) UNROLL for (int r = 0; r < VECTORS; r++) {
		a->s[t][r] = i_zero();
		f_store(to + t*OUTPUTS + r*LANES, f_zero());
	}
}
INLINE void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	float nowhere[TILE_TOKENS*OUTPUTS];             /* for the zeros that are aside at first */
	struct aside a;
	const bool same = kind == MUL_256_MIN && same_minima(n_blocks, panel);
	int32_t own[OWN];
	put_zeros(&a, nowhere);
	a.to = (struct place){ panel + mul_panel_d(kind, OUTPUTS), strips + mul_strip_d(mul_block(kind), TILE_TOKENS),
		{ nowhere, nowhere, OUTPUTS } };
	if (kind != MUL_16) own_of_panel(n_blocks, panel, kind, own);
	for (size_t i = 0; i < n_strips; i++, strips += strip_bytes)
		tile(n_blocks, panel, strips, own, same, path_of(y, i, TILE_TOKENS), &a, kind);
	UNROLL for (int t = 0; t < TILE_TOKENS; t++) settle(a.s[t], a.to, t, kind);
}
static void strip(const struct narrow *q, size_t block, char *to)
{
	strip_of(TILE_TOKENS, OWN_IN_STRIPS, q, block, to);
}
MUL_GEMM(gemm_256, gemm, MUL_256)
MUL_GEMM(gemm_256_min, gemm, MUL_256_MIN)
#ifdef SHORT_TABLE
const struct panel_table PANEL_TABLE = {
	.outputs = OUTPUTS, .tokens = TILE_TOKENS, .few = FEW, .codes = interleave, .pairs = interleave, .strip = strip,
	.sums = SUMS_OF_ROWS, .by_32 = true, .fill = FILL,
	.gemm = { [MUL_256] = gemm_256, [MUL_256_MIN] = gemm_256_min },
};
#include "tile_short.h"
#else
MUL_GEMM(gemm_16, gemm, MUL_16)
MUL_GEMM(gemm_32, gemm, MUL_32)
MUL_GEMM(gemm_32_min, gemm, MUL_32_MIN)
const struct panel_table PANEL_TABLE = {
	.outputs = OUTPUTS, .tokens = TILE_TOKENS, .few = FEW, .codes = interleave, .pairs = interleave, .strip = strip,
	.sums = SUMS_OF_ROWS, .by_32 = true, .fill = FILL,
	.gemm = { gemm_16, gemm_32, gemm_32_min, gemm_256, gemm_256_min },
};
#endif
