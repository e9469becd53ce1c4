/* SPDX-License-Identifier: MIT
 * panel_amx.c - panels of super-blocks with AMX's tiles (amx.h).
 *
 * AMX multiplies bytes. An activation (at most 2032) is two digits, 128*hi + lo with lo from -64 to 63, and so is the
 * integer of a weight (code*sc, at most 4096). Four products of digits are three, by Karatsuba's method: with the bytes
 * both = hi + lo, which are at most 96,
 *     sum of w*x = 16384*HH + 128*(BB - HH - LL) + LL
 *     where HH = sum of hi*hi', LL = sum of lo*lo', BB = sum of both*both'
 * are sums in int32, all exact. In place of the pairs of mul.h, a panel and a strip have the bytes hi, then lo; the
 * bytes `both` are behind the rest. Minima are pairs, and are multiplied by AVX-512.
 *
 * Two strips are multiplied at once with both halves of a panel, digit by digit: four tiles of sums, and as many loads
 * as products. The sums of a digit are stored during the first products of the next. Those of a square (two strips) are
 * settled during eight of the twelve steps of the next square, a token after each instruction of tiles; HH is stored
 * before that is over, hence it has two places. Panels stay in L1 while strips are read from L2 with a hint not to keep
 * them. Results are fetched for writing a square ahead: otherwise their stores wait for L2 one after another. */
#if defined __x86_64__
#include "amx.h"

enum {
	LEAST = 48,                     /* 40 tokens take AVX-512 0.85 to 0.95 of the time, 49 0.92 to 1.08 */
	BLOCK = 256, TILE = N*ROW, STEPS = BLOCK/ROW, DIGITS = 3,
	W_LOW = BLOCK*OUTPUTS, X_LOW = BLOCK*N,
};
/* Where the bytes `both` begin in a panel and in a strip */
INLINE size_t w_both(void) { return mul_panel_bytes(MUL_256_MIN, OUTPUTS); }
INLINE size_t x_both(void) { return mul_strip_bytes(BLOCK, N); }
_Static_assert((int)MUL_CHUNK == (int)BLOCK, "a panel is one super-block wide");
/* The tiles: of sums by strip and half of the outputs, of activations by strip, of weights by half. The intrinsics want
 * the digits themselves. */
#define S00 0
#define S01 1
#define S10 2
#define S11 3
#define X0 4
#define X1 5
#define W0 6
#define W1 7
static const struct tiles shape = TILES(ROW);

/* ---- operands ---- */

static inline void digits(const int16_t *q, int8_t *hi, int8_t *lo, int8_t *both)
{
	for (int i = 0; i < BLOCK; i++) {
		const int l = ((q[i] + 64) & 127) - 64, h = (q[i] - l) >> 7;
		hi[i] = (int8_t)h;
		lo[i] = (int8_t)l;
		both[i] = (int8_t)(h + l);
	}
}
static void weights(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	_Alignas(64) int8_t hi[8][BLOCK], lo[8][BLOCK], both[8][BLOCK];
	(void)n_rows; (void)width; (void)n;
	for (size_t r = 0; r < 8; r++) digits(rows + r*stride, hi[r], lo[r], both[r]);
	put_lines(hi[0], BLOCK, BLOCK, first, (char *)to);
	put_lines(lo[0], BLOCK, BLOCK, first, (char *)to + W_LOW);
	put_lines(both[0], BLOCK, BLOCK, first, (char *)to + w_both());
}
static void activations(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to)
{
	(void)width; (void)n;
	for (size_t r = 0; r < n_rows; r++) {
		int8_t hi[BLOCK], lo[BLOCK], both[BLOCK], *p = (int8_t *)to + (first + r)*ROW;
		digits(rows + r*stride, hi, lo, both);
		for (size_t c = 0; c < BLOCK; c += ROW, p += TILE) {
			memcpy(p, hi + c, ROW);
			memcpy(p + X_LOW, lo + c, ROW);
			memcpy(p + x_both(), both + c, ROW);
		}
	}
}
static int activation(const char *strip, size_t token, size_t i)
{
	const char *p = strip + i/ROW*TILE + token*ROW + i%ROW;
	return 128*(int8_t)p[0] + (int8_t)p[X_LOW];
}
static void strip(const struct narrow *q, size_t block, char *to) { mul_strip(activations, N, true, q, block, to); }

/* ---- floats ---- */

/* Two strips, or one, times a panel */
struct square {
	const char *w, *x[2];
	struct leg y[2];
	sums *s[DIGITS];                /* of each digit: [2*strip + half of the outputs] */
	bool same;                      /* minima are those of 32 columns (tile_minima.h) */
	bool lack[2];                   /* does a sum of the strip lack something? */
};

INLINE __m512i pair_at(const char *sum, int pair, int token)
{
	return _mm512_castps_si512(spread(sum + 4*(pair*N + token)));
}
/* The minima times what a token's sums of 32 columns lack: multiples of 2^16, in four bits each */
static __attribute__((noinline)) __m512i lacking(const char *mn, const char *p)
{
	const int32_t lack = mul_word(p);
	__m512i a = _mm512_setzero_si512();
	for (int j = 0; j < 4; j++) {
		const uint32_t first = (uint32_t)lack >> 8*j << 28, second = (uint32_t)lack >> (8*j + 4) << 28;
		const int32_t pair = (int32_t)(((uint32_t)((int32_t)first >> 28) & 0xffff) |
			(uint32_t)((int32_t)second >> 28) << 16);
		a = _mm512_dpwssd_epi32(a, _mm512_loadu_si512(mn + LINE*(4 + j)), _mm512_set1_epi32(pair));
	}
	return _mm512_slli_epi32(a, 16);
}
/* The sum of a token's activations times the minima of some outputs */
INLINE __m512i minima(const struct square *q, int strip, const char *mn, int token)
{
	const char *x = q->x[strip], *sum = x + mul_strip_sum(BLOCK, N);
	__m512i a = _mm512_setzero_si512(), b = a;
	UNROLL for (int j = 4; j < 8; j++)
		a = _mm512_dpwssd_epi32(a, _mm512_loadu_si512(mn + LINE*j), pair_at(sum, j, token));
	if (q->lack[strip]) a = _mm512_add_epi32(a, lacking(mn, x + mul_strip_lack(N) + 4*token));
	if (q->same) return a;
	UNROLL for (int j = 0; j < 4; j++)
		b = _mm512_dpwssd_epi32(b, _mm512_loadu_si512(mn + LINE*j), pair_at(sum, j, token));
	return _mm512_add_epi32(a, b);
}
INLINE void settle(const struct square *q, int strip, int half, int token, enum mul_kind kind)
{
	const char *w = q->w + LINE/2*half;
	const float *from = q->y[strip].from + N*half + OUTPUTS*token;
	const size_t stride = q->y[strip].stride;
	float *to = q->y[strip].to + N*half + stride*(size_t)token;
	const int32_t *const s[DIGITS] = { q->s[0][2*strip + half], q->s[1][2*strip + half], q->s[2][2*strip + half] };
	const __m512i hi = sum_at(s[0], token), lo = sum_at(s[1], token), both = sum_at(s[2], token),
		between = _mm512_sub_epi32(both, _mm512_add_epi32(hi, lo)),
		upper = _mm512_add_epi32(_mm512_slli_epi32(hi, 7), between),
		all = _mm512_add_epi32(_mm512_slli_epi32(upper, 7), lo);
	const __m512 d = _mm512_loadu_ps(w + mul_panel_d(kind, OUTPUTS)),
		dx = spread(q->x[strip] + mul_strip_d(BLOCK, N) + 4*token);
	__m512 y = product(d, dx, _mm512_cvtepi32_ps(all), _mm512_loadu_ps(from));
	__builtin_prefetch(mul_past((const void *)to, 2*N*stride*sizeof *to), 1);
	if (kind == MUL_256_MIN) {
		const __m512i a = minima(q, strip, w + mul_panel_mn(kind, OUTPUTS), token);
		y = product(_mm512_loadu_ps(w + mul_panel_m(kind, OUTPUTS)), dx, _mm512_cvtepi32_ps(a), y);
	}
	_mm512_storeu_ps(to, y);
}
/* Settles n of the eight results, from i on, that part `part` of eight has of a square: both halves of four tokens. */
INLINE void settle_some(const struct square *q, int part, int i, int n, enum mul_kind kind)
{
	UNROLL for (int k = i; k < i + n; k++) settle(q, part/4, k%2, part%4*4 + k/2, kind);
	apart();
}

/* ---- products ---- */

/* Stores a tile of the digit before, and begins one of this. */
#define TURN(tile, s) do { _tile_stored(tile, (s)[tile], ROW); _tile_zero(tile); } while (0)
/* Multiplies a digit. turned: where the sums go that are in the tiles now. before: the square to be settled, or NULL;
 * first: the step of twelve that this digit begins with. A part is settled before its step stores what it reads. */
INLINE void multiply(const char *w, const char *x0, const char *x1, bool two, sums *turned,
	const struct square *before, int first, enum mul_kind kind)
{
	UNROLL for (int c = 0; c < STEPS; c++, w += N*LINE, x0 += TILE, x1 += TILE) {
		const int part = first + c - 1;
		const bool settles = before && part >= 0 && part < 8;
		_tile_stream_loadd(X0, x0, ROW);
		if (settles) settle_some(before, part, 0, 1, kind);
		_tile_loadd(W0, w, LINE);
		if (settles) settle_some(before, part, 1, 1, kind);
		if (c == 0) TURN(S00, turned);
		_tile_dpbssd(S00, X0, W0);
		if (settles) settle_some(before, part, 2, 1, kind);
		_tile_loadd(W1, w + LINE/2, LINE);
		if (settles) settle_some(before, part, 3, 1, kind);
		if (c == 0) TURN(S01, turned);
		_tile_dpbssd(S01, X0, W1);
		if (settles) settle_some(before, part, 4, 2, kind);
		if (two) _tile_stream_loadd(X1, x1, ROW);
		if (settles) settle_some(before, part, 6, 2, kind);
		if (c == 0) TURN(S10, turned);
		if (two) _tile_dpbssd(S10, X1, W0);
		if (c == 0) TURN(S11, turned);
		if (two) _tile_dpbssd(S11, X1, W1);
	}
}
INLINE void multiply_square(const struct square *q, bool two, const struct square *before, enum mul_kind kind)
{
	multiply(q->w, q->x[0], q->x[1], two, q->s[2], before, 0, kind);
	multiply(q->w + W_LOW, q->x[0] + X_LOW, q->x[1] + X_LOW, two, q->s[0], before, STEPS, kind);
	multiply(q->w + w_both(), q->x[0] + x_both(), q->x[1] + x_both(), two, q->s[1], before, 2*STEPS, kind);
}
static bool same_minima(const char *panel)
{
	__m512i any = _mm512_setzero_si512();
	for (size_t i = 0; i < 4*LINE; i += ROW)
		any = _mm512_or_si512(any, _mm512_loadu_si512(panel + mul_panel_mn(MUL_256_MIN, OUTPUTS) + i));
	return !_mm512_test_epi32_mask(any, any);
}
static bool lacks(const char *strip)
{
	const __m512i lack = _mm512_loadu_si512(strip + mul_strip_lack(N));
	return _mm512_test_epi32_mask(lack, lack);
}
/* A chunk is one super-block. */
INLINE void gemm(size_t n_blocks, const char *panel, size_t n_strips, const char *x, size_t strip_bytes,
	const struct results *y, enum mul_kind kind)
{
	_Alignas(64) sums hi[2][4], lo[4], both[4];
	struct square squares[2];
	const struct square *before = NULL;
	const bool same = kind == MUL_256_MIN && same_minima(panel);
	(void)n_blocks;
	_tile_loadconfig(&shape);
	for (size_t i = 0; i < n_strips; i += 2, x += 2*strip_bytes) {
		const bool two = n_strips - i > 1;
		const char *x1 = two ? x + strip_bytes : x;
		struct path p0 = path_of(y, i, N), p1 = path_of(y, i + two, N);
		struct square *q = squares + i/2%2;
		*q = (struct square){ panel, { x, x1 }, { next_leg(&p0, true), next_leg(&p1, true) },
			{ hi[i/2%2], lo, both }, same, { false, false } };
		for (int k = 0; kind == MUL_256_MIN && k < 2; k++) q->lack[k] = lacks(q->x[k]);
		if (!before) multiply_square(q, two, NULL, kind);
		else if (two) multiply_square(q, true, before, kind);
		else multiply_square(q, false, before, kind);
		before = q;
	}
	_tile_stored(S00, both[S00], ROW); _tile_stored(S01, both[S01], ROW);
	_tile_stored(S10, both[S10], ROW); _tile_stored(S11, both[S11], ROW);
	for (int part = 0; before && part < (n_strips%2 ? 4 : 8); part++) settle_some(before, part, 0, 8, kind);
	_tile_release();
}
MUL_GEMM(gemm_256, gemm, MUL_256)
MUL_GEMM(gemm_256_min, gemm, MUL_256_MIN)
const struct panel_table quant_panel_amx = {
	.outputs = OUTPUTS, .tokens = N, .group = GROUP, .few = FEW, .least = LEAST, .below = &quant_panel_avx512,
	.codes = weights, .pairs = interleave,
	.strip = strip, .sums = true, .more_strip = BLOCK*N, .activation = activation, .by_32 = true,
	.fill = quant_fill_amx,
	.gemm = { [MUL_256] = gemm_256, [MUL_256_MIN] = gemm_256_min },
};
#else
typedef int isa_none;
#endif
