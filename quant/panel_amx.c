/* SPDX-License-Identifier: MIT
 * panel_amx.c - panels of super-blocks with AMX's tiles: 16 outputs times 16 tokens.
 *
 * AMX multiplies bytes. Integers of weights (code*sc, at most 4096) and of activations (at most 2032) are split into
 * two digits, 128*hi + lo with lo from -64 to 63, and their product is four products of digits, all exact:
 *     16384*sum(hi*hi') + 128*sum(hi*lo' + lo*hi') + sum(lo*lo')          in three tiles of int32
 * In place of the pairs of mul.h, 64 columns of a panel are a tile of each digit, 16 lines of four columns of 16
 * outputs; 64 columns of a strip a tile of each digit, 16 tokens of 64 columns. Minima are pairs and multiplied by
 * AVX-512. Every call configures the tiles of its thread and releases them. */
#if defined __x86_64__
#include <string.h>
#include "interleave_x86.h"

enum { N = 16, TILE = 1024, COLUMNS = 64, BLOCK = 256 };
/* Tiles of sums, activations, weights: the intrinsics want the digits themselves. */
#define HH 0
#define HL 1
#define LL 2
#define XH 3
#define XL 4
#define WH 5
#define WL 6

static inline void digits(const int16_t *q, int8_t *hi, int8_t *lo)
{
	for (int i = 0; i < BLOCK; i++) {
		int l = ((q[i] + 64) & 127) - 64;
		hi[i] = (int8_t)((q[i] - l) >> 7);
		lo[i] = (int8_t)l;
	}
}
static void weights(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	_Alignas(64) int8_t hi[8][BLOCK], lo[8][BLOCK];
	(void)n_rows; (void)n;
	for (size_t r = 0; r < 8; r++) digits(rows + r*stride, hi[r], lo[r]);
	for (size_t c = 0; c < BLOCK; c += COLUMNS, to += 2*TILE/4) {
		interleave((const void *)(hi[0] + c), BLOCK/2, first, 8, width, COLUMNS/4, to);
		interleave((const void *)(lo[0] + c), BLOCK/2, first, 8, width, COLUMNS/4, to + TILE/4);
	}
}
static void activations(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	(void)width; (void)n;
	for (size_t r = 0; r < n_rows; r++) {
		int8_t hi[BLOCK], lo[BLOCK];
		char *p = (char *)to + (first + r)*COLUMNS;
		digits(rows + r*stride, hi, lo);
		for (size_t c = 0; c < BLOCK; c += COLUMNS, p += 2*TILE) {
			memcpy(p, hi + c, COLUMNS);
			memcpy(p + TILE, lo + c, COLUMNS);
		}
	}
}
static int activation(const char *strip, size_t token, size_t i)
{
	const char *p = strip + i/COLUMNS*2*TILE + token*COLUMNS + i%COLUMNS;
	return 128*(int8_t)p[0] + (int8_t)p[TILE];
}

/* Constant data: GCC 12 takes _tile_loadconfig to read 8 bytes of the 64, and leaves out stores to the others. */
static const struct { uint8_t palette, start, zero[14]; uint16_t row_bytes[16]; uint8_t rows[16]; } seven_tiles = {
	.palette = 1, .row_bytes = { COLUMNS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, COLUMNS },
	.rows = { N, N, N, N, N, N, N },
};
static inline __m512i total(const int32_t *hh, const int32_t *hl, const int32_t *ll)
{
	__m512i a = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(hh), 7), _mm512_load_si512(hl));
	return _mm512_add_epi32(_mm512_slli_epi32(a, 7), _mm512_load_si512(ll));
}
static inline __m512 spread(const char *p) { return _mm512_broadcastss_ps(_mm_load_ss((const void *)p)); }
static inline __m512 product(const char *d, __m512 x, __m512i s, __m512 y)
{
	return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_loadu_ps(d), x), _mm512_cvtepi32_ps(s), y);
}
static inline void tile(size_t n_blocks, const char *w, const char *x, float *acc, enum mul_kind kind)
{
	const size_t d = mul_panel_d(kind, N), m = mul_panel_m(kind, N), mn = mul_panel_mn(kind, N),
		sum = mul_strip_sum(BLOCK, N), dx = mul_strip_d(BLOCK, N);
	_Alignas(64) int32_t s[3][N*N];
	for (size_t b = 0; b < n_blocks; b++, w += mul_panel_bytes(kind, N), x += mul_strip_bytes(BLOCK, N)) {
		_tile_zero(HH); _tile_zero(HL); _tile_zero(LL);
		for (size_t c = 0; c < BLOCK/COLUMNS*2*TILE; c += 2*TILE) {
			_tile_loadd(XH, x + c, COLUMNS); _tile_loadd(WH, w + c, COLUMNS);
			_tile_loadd(XL, x + c + TILE, COLUMNS); _tile_loadd(WL, w + c + TILE, COLUMNS);
			_tile_dpbssd(HH, XH, WH);
			_tile_dpbssd(HL, XH, WL);
			_tile_dpbssd(LL, XL, WL);
			_tile_dpbssd(HL, XL, WH);
		}
		_tile_stored(HH, s[0], COLUMNS); _tile_stored(HL, s[1], COLUMNS); _tile_stored(LL, s[2], COLUMNS);
		for (size_t t = 0; t < N; t++) {
			__m512 y = _mm512_loadu_ps(acc + N*t), xd = spread(x + dx + 4*t);
			y = product(w + d, xd, total(s[0] + N*t, s[1] + N*t, s[2] + N*t), y);
			if (kind == MUL_256_MIN) {
				__m512i a = _mm512_setzero_si512();
				for (size_t j = 0; j < 8; j++)
					a = _mm512_dpwssd_epi32(a, _mm512_loadu_si512(w + mn + 64*j),
						_mm512_castps_si512(spread(x + sum + 4*(j*N + t))));
				y = product(w + m, xd, a, y);
			}
			_mm512_storeu_ps(acc + N*t, y);
		}
	}
}
static inline void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	float *acc, enum mul_kind kind)
{
	_tile_loadconfig(&seven_tiles);
	for (; n_strips; n_strips--, strips += strip_bytes, acc += N*N) tile(n_blocks, panel, strips, acc, kind);
	_tile_release();
}
static void gemm_256(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	float *acc)
{
	gemm(n_blocks, panel, n_strips, strips, strip_bytes, acc, MUL_256);
}
static void gemm_256_min(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	float *acc)
{
	gemm(n_blocks, panel, n_strips, strips, strip_bytes, acc, MUL_256_MIN);
}

const struct panel_table quant_panel_amx = { N, N, weights, activations, interleave, { [MUL_256] = gemm_256,
	[MUL_256_MIN] = gemm_256_min }, activation, NULL };
#else
typedef int isa_none;
#endif
