/* SPDX-License-Identifier: MIT
 * panel_amx.c - panels with AMX's tiles: 16 outputs times 16 tokens.
 *
 * AMX multiplies bytes. An activation (at most 2032) is split into two digits, 128*hi + lo with lo from -64 to 63. So
 * is the integer of a super-block's weight (code*sc, at most 4096); the code of a block of 32 is a byte itself. The
 * sum of their products is one of sums of products of bytes, each in a tile of int32 and all exact:
 *     16384*sum(hi*hi') + 128*(sum(hi*lo') + sum(lo*hi')) + sum(lo*lo')       super-blocks
 *     128*sum(hi*c) + sum(lo*c)                                               blocks of 32
 * In place of the pairs of mul.h, a panel has a tile of each digit, whose lines are four columns of 16 outputs; a strip
 * has a tile of each digit too, whose lines are the columns of a token. A tile has 64 columns of a super-block, or 32
 * of a block of 32, or 16 if the type has scales of 16. Minima are pairs, and are multiplied by AVX-512.
 *
 * A tdpbssd may follow another after 16 cycles, but its sums are there after 52 (Sapphire Rapids, by Intel's
 * optimization manual). Hence a super-block's four sums have four tiles, though two are added in the end, and sums of
 * the next tile are begun before those of the last become floats. A load waits for an earlier store whose address
 * differs from its own by 4 KB: sums of a super-block are stored when those before have been read, and of two blocks of
 * 32 they lie within 4 KB. Every call configures the tiles of its thread and releases them. */
#if defined __x86_64__
#include <string.h>
#include "inline.h"
#include "interleave_x86.h"

enum { N = 16, FEW = 8, LINE = 64, TILE = N*LINE, COLUMNS = 64, BLOCK = 256, SHORT = 32, SHORT_TILE = N*SHORT };
/* The tiles of sums, activations, weights: the intrinsics want the digits themselves. Blocks of 32 have the sums HH and
 * LH, of codes in place of high digits, and no WL. */
#define HH 0
#define LH 1
#define HL 2
#define LL 3
#define XH 4
#define XL 5
#define WH 6
#define WL 7

/* Constant data: GCC 12 takes _tile_loadconfig to read 8 bytes of the 64, and leaves out stores to the others. */
struct tiles { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; };
#define TILES(columns) { .palette = 1, \
	.row_bytes = { LINE, LINE, LINE, LINE, columns, columns, LINE, LINE }, \
	.rows = { N, N, N, N, N, N, (columns)/4, (columns)/4 } }
static const struct tiles tiles_64 = TILES(64), tiles_32 = TILES(32), tiles_16 = TILES(16);

/* ---- operands ---- */

static inline void digits(const int16_t *q, int n, int8_t *hi, int8_t *lo)
{
	for (int i = 0; i < n; i++) {
		int l = ((q[i] + 64) & 127) - 64;
		hi[i] = (int8_t)((q[i] - l) >> 7);
		lo[i] = (int8_t)l;
	}
}
/* Copies the columns of eight rows of bytes, `stride` bytes apart, to the lines of a tile. */
static void lines(const int8_t *rows, size_t stride, size_t columns, size_t first, int8_t *tile)
{
	interleave((const void *)rows, stride/2, first, 8, N, columns/4, (void *)tile);
}
static void weights(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	_Alignas(64) int8_t hi[8][BLOCK], lo[8][BLOCK];
	int8_t *tile = (void *)to;
	(void)n_rows; (void)width; (void)n;
	for (size_t r = 0; r < 8; r++) digits(rows + r*stride, BLOCK, hi[r], lo[r]);
	for (size_t c = 0; c < BLOCK; c += COLUMNS, tile += 2*TILE) {
		lines(hi[0] + c, BLOCK, COLUMNS, first, tile);
		lines(lo[0] + c, BLOCK, COLUMNS, first, tile + TILE);
	}
}
static void codes(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n, int32_t *to)
{
	_Alignas(64) int8_t code[8][SHORT];
	(void)n_rows; (void)width; (void)n;
	for (size_t r = 0; r < 8; r++)
		for (size_t i = 0; i < SHORT; i++) code[r][i] = (int8_t)rows[r*stride + i];
	lines(code[0], SHORT, SHORT, first, (void *)to);
}
static void activations(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	(void)width; (void)n;
	for (size_t r = 0; r < n_rows; r++) {
		int8_t hi[BLOCK], lo[BLOCK], *p = (int8_t *)to + (first + r)*COLUMNS;
		digits(rows + r*stride, BLOCK, hi, lo);
		for (size_t c = 0; c < BLOCK; c += COLUMNS, p += 2*TILE) {
			memcpy(p, hi + c, COLUMNS);
			memcpy(p + TILE, lo + c, COLUMNS);
		}
	}
}
static void short_activations(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	int8_t *p = (int8_t *)to + first*SHORT;
	(void)width; (void)n;
	for (size_t r = 0; r < n_rows; r++, p += SHORT) digits(rows + r*stride, SHORT, p, p + SHORT_TILE);
}
static int activation(const char *strip, size_t token, size_t i)
{
	const char *p = strip + i/COLUMNS*2*TILE + token*COLUMNS + i%COLUMNS;
	return 128*(int8_t)p[0] + (int8_t)p[TILE];
}
static int short_activation(const char *strip, size_t token, size_t i)
{
	const char *p = strip + token*SHORT + i;
	return 128*(int8_t)p[0] + (int8_t)p[SHORT_TILE];
}

/* ---- floats ---- */

typedef int32_t sums[4][N*N];           /* of a tile, as the tiles of their names */

static inline __m512i sum_at(sums s, int tile, size_t token) { return _mm512_load_si512(s[tile] + N*token); }
static inline __m512i joined(__m512i hi, __m512i lo) { return _mm512_add_epi32(_mm512_slli_epi32(hi, 7), lo); }
static inline __m512 spread(const char *p) { return _mm512_broadcastss_ps(_mm_load_ss((const void *)p)); }
/* y += d*x*s, the product of the scales rounded */
static inline __m512 product(__m512 d, __m512 x, __m512 s, __m512 y)
{
	return _mm512_fmadd_ps(_mm512_mul_ps(d, x), s, y);
}

/* ---- super-blocks ---- */

static inline void multiply(const char *w, const char *x)
{
	_tile_zero(HH); _tile_zero(HL); _tile_zero(LH); _tile_zero(LL);
	for (size_t c = 0; c < BLOCK/COLUMNS*2*TILE; c += 2*TILE) {
		_tile_loadd(XH, x + c, COLUMNS); _tile_loadd(WH, w + c, LINE);
		_tile_loadd(XL, x + c + TILE, COLUMNS); _tile_loadd(WL, w + c + TILE, LINE);
		_tile_dpbssd(HH, XH, WH);
		_tile_dpbssd(HL, XH, WL);
		_tile_dpbssd(LH, XL, WH);
		_tile_dpbssd(LL, XL, WL);
	}
}
static inline void put(sums s)
{
	_tile_stored(HH, s[HH], LINE); _tile_stored(HL, s[HL], LINE);
	_tile_stored(LH, s[LH], LINE); _tile_stored(LL, s[LL], LINE);
}
static inline void settle(const char *w, const char *x, sums s, float *acc, enum mul_kind kind)
{
	const char *mn = w + mul_panel_mn(kind, N), *sum = x + mul_strip_sum(BLOCK, N), *dx = x + mul_strip_d(BLOCK, N);
	const __m512 d = _mm512_loadu_ps(w + mul_panel_d(kind, N)),
		m = kind == MUL_256_MIN ? _mm512_loadu_ps(w + mul_panel_m(kind, N)) : d;
	__m512i minima[8];
	if (kind == MUL_256_MIN) UNROLL for (size_t j = 0; j < 8; j++) minima[j] = _mm512_loadu_si512(mn + LINE*j);
	for (size_t t = 0; t < N; t++, acc += N) {
		const __m512i between = _mm512_add_epi32(sum_at(s, HL, t), sum_at(s, LH, t)),
			all = joined(joined(sum_at(s, HH, t), between), sum_at(s, LL, t));
		__m512 y = product(d, spread(dx + 4*t), _mm512_cvtepi32_ps(all), _mm512_loadu_ps(acc));
		if (kind == MUL_256_MIN) {
			__m512i a = _mm512_setzero_si512();
			UNROLL for (size_t j = 0; j < 8; j++)
				a = _mm512_dpwssd_epi32(a, minima[j], _mm512_castps_si512(spread(sum + 4*(j*N + t))));
			y = product(m, spread(dx + 4*t), _mm512_cvtepi32_ps(a), y);
		}
		_mm512_storeu_ps(acc, y);
	}
}
_Static_assert((int)MUL_CHUNK == (int)BLOCK, "a panel is one super-block wide");
/* A chunk is one super-block. */
static inline void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *x, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	_Alignas(64) sums s;
	(void)n_blocks;
	_tile_loadconfig(&tiles_64);
	if (n_strips) multiply(panel, x);
	for (size_t t = 0; t < n_strips; t++, x += strip_bytes) {
		put(s);
		if (t + 1 < n_strips) multiply(panel, x + strip_bytes);
		settle(panel, x, s, mul_results(y, t, N*N), kind);
		mul_results_done(y, t, N, N);
	}
	_tile_release();
}
MUL_GEMM(gemm_256, gemm, MUL_256)
MUL_GEMM(gemm_256_min, gemm, MUL_256_MIN)

/* ---- blocks of 32 ---- */

/* A run of columns that share their scales: a block, or half of one */
struct run { const char *w, *x, *d, *m, *sum, *dx; };

static inline struct run run_at(const char *panel, const char *strip, size_t i, enum mul_kind kind)
{
	const size_t runs = kind == MUL_16 ? 2 : 1, half = i%runs;
	const char *w = panel + i/runs*mul_panel_bytes(kind, N), *x = strip + i/runs*mul_strip_bytes(SHORT, N),
		*m = w + mul_panel_m(kind, N), *d = half ? m : w + mul_panel_d(kind, N);
	return (struct run){ w + half*(SHORT/8)*LINE, x + half*(SHORT/2), d, m, x + mul_strip_sum(SHORT, N),
		x + mul_strip_d(SHORT, N) };
}
static inline void short_multiply(struct run r, sums s)
{
	_tile_zero(HH); _tile_zero(LH);
	_tile_loadd(XH, r.x, SHORT); _tile_loadd(XL, r.x + SHORT_TILE, SHORT); _tile_loadd(WH, r.w, LINE);
	_tile_dpbssd(HH, XH, WH);
	_tile_dpbssd(LH, XL, WH);
	_tile_stored(HH, s[HH], LINE); _tile_stored(LH, s[LH], LINE);
}
static inline void short_settle(struct run r, sums s, __m512 y[N], enum mul_kind kind)
{
	const __m512 d = _mm512_loadu_ps(r.d), m = kind == MUL_32_MIN ? _mm512_loadu_ps(r.m) : d;
	UNROLL for (size_t t = 0; t < N; t++) {
		const __m512 dx = spread(r.dx + 4*t);
		y[t] = product(d, dx, _mm512_cvtepi32_ps(joined(sum_at(s, HH, t), sum_at(s, LH, t))), y[t]);
		if (kind == MUL_32_MIN) y[t] = product(m, dx, spread(r.sum + 4*t), y[t]);
	}
}
static inline void short_gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *x, size_t strip_bytes,
	const struct results *to, enum mul_kind kind)
{
	const size_t n = n_blocks*(kind == MUL_16 ? 2 : 1);
	_Alignas(64) sums s;            /* two tiles of one run, two of the next */
	_tile_loadconfig(kind == MUL_16 ? &tiles_16 : &tiles_32);
	for (size_t strip = 0; strip < n_strips; strip++, x += strip_bytes) {
		float *acc = mul_results(to, strip, N*N);
		__m512 y[N];
		UNROLL for (size_t t = 0; t < N; t++) y[t] = _mm512_loadu_ps(acc + N*t);
		short_multiply(run_at(panel, x, 0, kind), s);
		for (size_t i = 0; i < n; i++) {
			if (i + 1 < n) short_multiply(run_at(panel, x, i + 1, kind), s + 2*((i + 1)%2));
			short_settle(run_at(panel, x, i, kind), s + 2*(i%2), y, kind);
		}
		UNROLL for (size_t t = 0; t < N; t++) _mm512_storeu_ps(acc + N*t, y[t]);
		mul_results_done(to, strip, N, N);
	}
	_tile_release();
}
MUL_GEMM(gemm_16, short_gemm, MUL_16)
MUL_GEMM(gemm_32, short_gemm, MUL_32)
MUL_GEMM(gemm_32_min, short_gemm, MUL_32_MIN)

static void strip(const struct narrow *q, size_t block, char *to)
{
	mul_strip(activations, N, false, q, block, to);
}
static void short_strip(const struct narrow *q, size_t block, char *to)
{
	mul_strip(short_activations, N, false, q, block, to);
}
const struct panel_table quant_panel_amx = {
	.outputs = N, .tokens = N, .few = FEW, .codes = weights, .pairs = interleave, .strip = strip, .sums = true,
	.activation = activation, .fill = quant_fill_amx,
	.gemm = { [MUL_256] = gemm_256, [MUL_256_MIN] = gemm_256_min },
};
const struct panel_table quant_panel_amx_32 = {
	.outputs = N, .tokens = N, .few = FEW, .codes = codes, .pairs = interleave, .strip = short_strip, .sums = true,
	.activation = short_activation, .fill = quant_fill_amx,
	.gemm = { gemm_16, gemm_32, gemm_32_min },
};
#else
typedef int isa_none;
#endif
