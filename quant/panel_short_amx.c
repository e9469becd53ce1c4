/* SPDX-License-Identifier: MIT
 * panel_short_amx.c - panels of blocks of 32 columns with AMX's tiles (amx.h).
 *
 * AMX multiplies bytes. The code c of a weight is one; an activation (at most 2032) is two digits, 16*hi + lo with lo
 * from -8 to 7, and so hi is at most 127:
 *     sum of c*x = 16*(sum of c*hi) + sum of c*lo
 * A token's row in a strip has the 32 digits lo, then the 32 digits hi. In place of the pairs of mul.h, a panel has
 * eight lines of codes, then eight lines of 16*c, or its lower byte. If all codes of a panel have four bits, from -8 to
 * 7 or from 0 to 15, the latter are bytes too, and one product of 64 columns takes the place of two of 32.
 *
 * A run (a block, or half of one) is short: its sums are stored while the next is multiplied, and settled during the
 * one after that, a few tokens after each instruction of tiles. So runs are one after another without a gap, through
 * all strips and both halves of the panel. The floats of a tile stay in registers. Sums of two runs lie within 4 KB. */
#if defined __x86_64__
#include "amx.h"

enum {
	LEAST = 25,                     /* 24 tokens take AVX-512 0.7 to 0.95 of the time, 32 0.95 to 1.25 */
	BLOCK = 32,
	SOME = 4,                       /* tokens that are settled at once */
};
/* The tiles: of sums of lo and of hi (or of both) of one run and of the next; of activations and of weights. The
 * intrinsics want the digits themselves. */
#define X 4
#define W 6
static const struct tiles shape_64 = TILES(64), shape_32 = TILES(32), shape_16 = TILES(16);

/* ---- operands ---- */

static void weights(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	_Alignas(64) int8_t code[8][2*BLOCK];
	(void)n_rows; (void)width; (void)n;
	for (size_t r = 0; r < 8; r++)
		for (size_t i = 0; i < BLOCK; i++) {
			code[r][i] = (int8_t)rows[r*stride + i];
			code[r][BLOCK + i] = (int8_t)(uint8_t)(16*rows[r*stride + i]);
		}
	put_lines(code[0], 2*BLOCK, 2*BLOCK, first, (char *)to);
}
static void activations(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	int8_t *p = (int8_t *)to + first*ROW;
	(void)width; (void)n;
	for (size_t r = 0; r < n_rows; r++, p += ROW)
		for (size_t i = 0; i < BLOCK; i++) {
			const int q = rows[r*stride + i], lo = ((q + 8) & 15) - 8;
			p[i] = (int8_t)lo;
			p[BLOCK + i] = (int8_t)((q - lo) >> 4);
		}
}
static int activation(const char *strip, size_t token, size_t i)
{
	const char *p = strip + token*ROW + i;
	return 16*(int8_t)p[BLOCK] + (int8_t)p[0];
}
static void strip(const struct narrow *q, size_t block, char *to) { mul_strip(activations, N, false, q, block, to); }

/* What is known of all codes of a panel */
enum codes { BYTES, SIGNED_4, UNSIGNED_4 };
static enum codes codes_of(size_t n_blocks, const char *panel, enum mul_kind kind)
{
	__m512i least = _mm512_setzero_si512(), most = least;
	for (size_t b = 0; b < n_blocks; b++, panel += mul_panel_bytes(kind, OUTPUTS))
		for (size_t i = 0; i < BLOCK*OUTPUTS; i += ROW) {
			const __m512i c = _mm512_loadu_si512(panel + i);
			least = _mm512_min_epi8(least, c);
			most = _mm512_max_epi8(most, c);
		}
	if (_mm512_cmpgt_epi8_mask(most, _mm512_set1_epi8(15)) || _mm512_cmplt_epi8_mask(least, _mm512_set1_epi8(-8)))
		return BYTES;
	if (!_mm512_cmpgt_epi8_mask(most, _mm512_set1_epi8(7))) return SIGNED_4;
	return _mm512_cmplt_epi8_mask(least, _mm512_setzero_si512()) ? BYTES : UNSIGNED_4;
}

/* ---- runs ---- */

struct run {
	const char *w, *x, *d, *m, *sum, *dx;
	const float *from;              /* of the first run of a tile, or NULL */
	float *to;                      /* of its last, or NULL */
	size_t stride;                  /* of `to` */
};
/* The runs of all tiles in order: those of a strip with one half of the outputs, then with the other half */
struct runs {
	const char *panel, *x;
	size_t strip_bytes, n_strips, n; /* n: of a tile */
	const struct results *y;
	size_t strip, half, i;          /* the next one */
	struct leg leg;
};
/* After the last come those of the last strip again. */
INLINE struct run next_run(struct runs *r, enum mul_kind kind)
{
	const size_t each = kind == MUL_16 ? 2 : 1, part = r->i%each;
	const char *w = r->panel + LINE/2*r->half + r->i/each*mul_panel_bytes(kind, OUTPUTS),
		*x = r->x + r->i/each*mul_strip_bytes(BLOCK, N), *m = w + mul_panel_m(kind, OUTPUTS),
		*d = part ? m : w + mul_panel_d(kind, OUTPUTS);
	struct run run = { w + part*(BLOCK/8)*LINE, x + part*(BLOCK/2), d, m, x + mul_strip_sum(BLOCK, N),
		x + mul_strip_d(BLOCK, N) };
	if (r->i == 0) {
		struct path p = path_of(r->y, r->strip, N);
		r->leg = next_leg(&p, true);
		run.from = r->leg.from + N*r->half;
		/* stores would wait for L2 or memory one after another */
		for (size_t t = 0; t < N; t++) __builtin_prefetch(r->leg.to + N*r->half + r->leg.stride*t, 1);
	}
	if (++r->i < r->n) return run;
	run.to = r->leg.to + N*r->half;
	run.stride = r->leg.stride;
	r->i = 0;
	r->half = !r->half;
	if (r->half == 0 && r->strip + 1 < r->n_strips) {
		r->strip++;
		r->x += r->strip_bytes;
	}
	return run;
}
/* Settles SOME tokens, from t on. */
INLINE void settle(const struct run *r, sums s[2], int t, __m512 y[N], enum mul_kind kind, enum codes codes)
{
	const __m512 d = _mm512_loadu_ps(r->d), m = kind == MUL_32_MIN ? _mm512_loadu_ps(r->m) : d;
	if (t == 0 && r->from) UNROLL for (int i = 0; i < N; i++) y[i] = _mm512_loadu_ps(r->from + OUTPUTS*i);
	UNROLL for (int i = t; i < t + SOME; i++) {
		const __m512 dx = spread(r->dx + 4*i);
		__m512i all = sum_at(s[0], i);
		if (codes == BYTES) all = _mm512_add_epi32(_mm512_slli_epi32(sum_at(s[1], i), 4), all);
		y[i] = product(d, dx, _mm512_cvtepi32_ps(all), y[i]);
		if (kind == MUL_32_MIN) y[i] = product(m, dx, spread(r->sum + 4*i), y[i]);
	}
	if (t + SOME == N && r->to)
		UNROLL for (int i = 0; i < N; i++) _mm512_storeu_ps(r->to + r->stride*(size_t)i, y[i]);
	apart();
}
/* Multiplies run r, sums in tiles A and B; stores those of the run before, from tiles C and D, in `stored`; settles the
 * run before that from `settled`. */
#define STEP(A, B, C, D, r, stored, before, settled) do { \
	_tile_loadd(W, (r).w, LINE); \
	_tile_loadd(X, (r).x, ROW); \
	settle(before, settled, 0*SOME, floats, kind, codes); \
	_tile_zero(A); \
	if (codes == UNSIGNED_4) _tile_dpbsud(A, X, W); \
	else _tile_dpbssd(A, X, W); \
	_tile_stored(C, (stored)[0], ROW); \
	settle(before, settled, 1*SOME, floats, kind, codes); \
	if (codes == BYTES) _tile_loadd(X, (r).x + BLOCK, ROW); \
	settle(before, settled, 2*SOME, floats, kind, codes); \
	if (codes == BYTES) { \
		_tile_zero(B); \
		_tile_dpbssd(B, X, W); \
		_tile_stored(D, (stored)[1], ROW); \
	} \
	settle(before, settled, 3*SOME, floats, kind, codes); \
} while (0)
/* Scales of the runs before the first. Other bytes may be subnormal floats, which take a hundred times as long. */
static const _Alignas(ROW) char none[ROW];
INLINE void multiply(struct runs runs, enum mul_kind kind, enum codes codes)
{
	const size_t n = 2*runs.n_strips*runs.n;
	_Alignas(64) sums s[2][2];
	__m512 floats[N];
	struct run a, b;                /* those before */
	a = b = (struct run){ .d = none, .m = none, .sum = none, .dx = none };
	UNROLL for (int t = 0; t < N; t++) {
		floats[t] = _mm512_setzero_ps();
		_mm512_store_si512(s[0][0] + N*t, _mm512_setzero_si512());
		_mm512_store_si512(s[0][1] + N*t, _mm512_setzero_si512());
	}
	_tile_loadconfig(codes != BYTES ? &shape_64 : kind == MUL_16 ? &shape_16 : &shape_32);
	for (size_t i = 0; i < n + 2; i += 2) {
		const struct run c = next_run(&runs, kind);
		STEP(0, 1, 2, 3, c, s[1], &a, s[0]);
		a = c;
		const struct run d = next_run(&runs, kind);
		STEP(2, 3, 0, 1, d, s[0], &b, s[1]);
		b = d;
	}
	_tile_release();
}
INLINE void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *x, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	const struct runs runs = { panel, x, strip_bytes, n_strips, kind == MUL_16 ? 2*n_blocks : n_blocks, y };
	const enum codes codes = kind == MUL_16 ? BYTES : codes_of(n_blocks, panel, kind);
	if (!n_strips) return;
	if (codes == SIGNED_4) multiply(runs, kind, SIGNED_4);
	else if (codes == UNSIGNED_4) multiply(runs, kind, UNSIGNED_4);
	else multiply(runs, kind, BYTES);
}
MUL_GEMM(gemm_16, gemm, MUL_16)
MUL_GEMM(gemm_32, gemm, MUL_32)
MUL_GEMM(gemm_32_min, gemm, MUL_32_MIN)
const struct panel_table quant_panel_amx_32 = {
	.outputs = OUTPUTS, .tokens = N, .group = GROUP, .few = FEW, .least = LEAST, .below = &quant_panel_avx512_32,
	.codes = weights, .pairs = interleave, .strip = strip, .sums = true, .activation = activation,
	.fill = quant_fill_amx, .gemm = { gemm_16, gemm_32, gemm_32_min },
};
#else
typedef int isa_none;
#endif
