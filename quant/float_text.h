/* SPDX-License-Identifier: MIT
 * float_text.h - floats for one instruction set, one text for all; defines the table FLOAT_TABLE.
 *
 * The tile's outputs are WIDE registers, its sums fill most of the registers there are. */
#include "float.h"
#include "lane_math.h"

#define UNROLL _Pragma("GCC unroll 32")
#define INLINE static inline __attribute__((always_inline))
#if defined __AVX512F__
enum { WIDE = 2, TOKENS = 12, ROWS = 4, COLS = 4 };
#elif defined __AVX2__
enum { WIDE = 2, TOKENS = 6, ROWS = 2, COLS = 3 };
#else
enum { WIDE = 4, TOKENS = 6, ROWS = 2, COLS = 3 };
#endif
enum { OUTPUTS = WIDE*REG, PARTS = FLOAT_LANES/REG };   /* registers of sixteen lanes */

/* ---- halves to floats ---- */

INLINE size_t width_of(enum float_type type) { return type == FLOAT_F32 ? 4 : 2; }
INLINE rf wide(enum float_type type, const char *p)
{
	return type == FLOAT_F32 ? r_floats((const float *)(const void *)p) : type == FLOAT_F16 ? r_f16(p) : r_bf16(p);
}
INLINE float wide_one(enum float_type type, const char *p)
{
	float f;
	uint16_t h;
	memcpy(&h, p, sizeof h);
	if (type != FLOAT_F32) return type == FLOAT_F16 ? kern_f16_to_f32(h) : kern_bf16_to_f32(h);
	memcpy(&f, p, sizeof f);
	return f;
}
static void decode_f32(const void *src, float *dst, size_t n) { memcpy(dst, src, n*sizeof *dst); }

/* ---- a row times a few tokens: lanes are columns ---- */

/* lane l += lane l + 8, then + 4, + 2, + 1 */
static inline float tree_of(const float *a)
{
#if defined __AVX2__
	__m256 h = _mm256_add_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8));
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
#else
	return v_tree(v_load(a));
#endif
}
enum { FEW = 8 };               /* tokens, at most */
/* n columns, whole sixteens, of some rows and the tokens from `first` on, onto the lanes of each; x is that of
 * `first` */
INLINE void few(enum float_type type, int n_rows, int n_tokens, size_t n, const char *w, size_t w_stride,
	const float *x, size_t x_stride, float lanes[][FEW][FLOAT_LANES], size_t first)
{
	rf a[ROWS*COLS*PARTS];
	UNROLL for (int r = 0; r < n_rows; r++) UNROLL for (int t = 0; t < n_tokens; t++)
		UNROLL for (int p = 0; p < PARTS; p++)
			a[(r*n_tokens + t)*PARTS + p] = r_floats(lanes[r][first + (size_t)t] + p*REG);
	for (size_t i = 0; i < n; i += FLOAT_LANES)
		UNROLL for (size_t p = 0; p < PARTS; p++)
			UNROLL for (int r = 0; r < n_rows; r++) {
				rf u = wide(type, w + (size_t)r*w_stride + (i + p*REG)*width_of(type)),
					*s = a + (size_t)(r*n_tokens)*PARTS + p;
				UNROLL for (int t = 0; t < n_tokens; t++)
					s[t*PARTS] = r_fma(u, r_floats(x + (size_t)t*x_stride + i + p*REG), s[t*PARTS]);
			}
	UNROLL for (int r = 0; r < n_rows; r++) UNROLL for (int t = 0; t < n_tokens; t++)
		UNROLL for (int p = 0; p < PARTS; p++)
			r_put(lanes[r][first + (size_t)t] + p*REG, a[(r*n_tokens + t)*PARTS + p]);
}
/* One or two tokens meet a row at a time, so that a memory is read in order. More would wait for their own columns:
 * they meet ROWS rows, and columns in chunks that stay in L1. */
INLINE void group(enum float_type type, int n_rows, size_t n_in, const char *w, size_t w_stride, size_t n_tokens,
	const float *x, size_t x_stride, float *y, size_t y_stride)
{
	_Alignas(64) float lanes[ROWS][FEW][FLOAT_LANES] = { { { 0 } } };
	size_t whole = n_in/FLOAT_LANES*FLOAT_LANES, chunk = n_tokens <= 2 ? whole : FLOAT_CHUNK/4,
		bytes = width_of(type);
	for (size_t i = 0; i < whole; i += chunk) {
		size_t n = whole - i < chunk ? whole - i : chunk;
		for (size_t t = 0, passes = (n_tokens + COLS - 1)/COLS, some; passes; passes--, t += some) {
			const char *from = w + i*bytes;
			const float *xt = x + t*x_stride + i;
			some = (n_tokens - t)/passes;
			if (some == 1) few(type, n_rows, 1, n, from, w_stride, xt, x_stride, lanes, t);
			else if (some == 2) few(type, n_rows, 2, n, from, w_stride, xt, x_stride, lanes, t);
			else if (some == 3) few(type, n_rows, 3, n, from, w_stride, xt, x_stride, lanes, t);
			else few(type, n_rows, COLS, n, from, w_stride, xt, x_stride, lanes, t);
		}
	}
	for (size_t t = 0; t < n_tokens; t++)
		for (size_t r = 0; r < (size_t)n_rows; r++) {
			float *l = lanes[r][t];
			for (size_t k = whole; k < n_in; k++) l[k - whole] =
				fmaf(wide_one(type, w + r*w_stride + k*bytes), x[t*x_stride + k], l[k - whole]);
			y[t*y_stride + r] = tree_of(l);
		}
}
INLINE void rows(enum float_type type, size_t n_out, size_t n_in, const char *w, size_t w_stride, size_t n_tokens,
	const float *x, size_t x_stride, float *y, size_t y_stride)
{
	for (; n_tokens > 2 && n_out >= ROWS; n_out -= ROWS, w += ROWS*w_stride, y += ROWS)
		group(type, ROWS, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
	for (; n_out; n_out--, w += w_stride, y++)
		group(type, 1, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
}

/* ---- the tile: lanes are outputs ---- */

static void gemm(size_t n, const float *panel, const float *strip, const float *next, float *acc, bool begin,
	int merges)
{
	rf a[TOKENS*WIDE], zero = { 0 };
	if (begin) UNROLL for (int k = 0; k < TOKENS*WIDE; k++) a[k] = zero;
	else UNROLL for (int k = 0; k < TOKENS*WIDE; k++) a[k] = r_floats(acc + k*REG);
	for (; n; n--, panel += OUTPUTS, strip += TOKENS, next += TOKENS) {
		rf w[WIDE];
		__builtin_prefetch(next);
		UNROLL for (int c = 0; c < WIDE; c++) w[c] = r_floats(panel + c*REG);
		UNROLL for (int t = 0; t < TOKENS; t++) {
			rf x = r_dup(strip[t]);
			UNROLL for (int c = 0; c < WIDE; c++) a[t*WIDE + c] = r_fma(w[c], x, a[t*WIDE + c]);
		}
	}
	for (; merges; merges--) {
		acc -= TOKENS*OUTPUTS;
		UNROLL for (int k = 0; k < TOKENS*WIDE; k++) a[k] += r_floats(acc + k*REG);
	}
	UNROLL for (int k = 0; k < TOKENS*WIDE; k++) r_put(acc + k*REG, a[k]);
}
static void tree(float *sums, size_t stride, size_t n)
{
	for (size_t i = 0; i < n; i += REG) {
		rf a[FLOAT_LANES];
		UNROLL for (size_t l = 0; l < FLOAT_LANES; l++) a[l] = r_floats(sums + l*stride + i);
		UNROLL for (int h = 8; h; h /= 2) UNROLL for (int l = 0; l < h; l++) a[l] += a[l + h];
		r_put(sums + i, a[0]);
	}
}

/* ---- rows to phases ---- */

#if defined __AVX2__
/* Eight columns of eight rows, column c to to[c*phase] */
INLINE void turn_8(enum float_type type, const char *const *from, size_t phase, float *to)
{
	__m256 a[8], b[8];
	UNROLL for (int r = 0; r < 8; r++)
		a[r] = type == FLOAT_F32 ? _mm256_loadu_ps((const float *)(const void *)from[r]) :
			type == FLOAT_F16 ? _mm256_cvtph_ps(_mm_loadu_si128((const void *)from[r])) :
			(__m256)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from[r])), 16);
	UNROLL for (int r = 0; r < 8; r += 2) {
		b[r] = _mm256_unpacklo_ps(a[r], a[r + 1]);
		b[r + 1] = _mm256_unpackhi_ps(a[r], a[r + 1]);
	}
	UNROLL for (int r = 0; r < 8; r += 4) {
		a[r] = _mm256_shuffle_ps(b[r], b[r + 2], 0x44);
		a[r + 1] = _mm256_shuffle_ps(b[r], b[r + 2], 0xee);
		a[r + 2] = _mm256_shuffle_ps(b[r + 1], b[r + 3], 0x44);
		a[r + 3] = _mm256_shuffle_ps(b[r + 1], b[r + 3], 0xee);
	}
	UNROLL for (int c = 0; c < 4; c++) {
		_mm256_storeu_ps(to + (size_t)c*phase, _mm256_permute2f128_ps(a[c], a[c + 4], 0x20));
		_mm256_storeu_ps(to + (size_t)(c + 4)*phase, _mm256_permute2f128_ps(a[c], a[c + 4], 0x31));
	}
}
#else
INLINE void turn_8(enum float_type type, const char *const *from, size_t phase, float *to)
{
	for (size_t r = 0; r < 8; r++)
		for (size_t c = 0; c < 8; c++) to[c*phase + r] = wide_one(type, from[r] + c*width_of(type));
}
#endif
INLINE void turn(enum float_type type, const char *w, size_t stride, size_t n_rows, size_t n, size_t width,
	size_t phase, float *to)
{
	const char *from[8];
	size_t bytes = width_of(type), i = 0;
	for (size_t r = 0; r < 8; r++) from[r] = w + (r < n_rows ? r : n_rows - 1)*stride;
	for (; i + 8 <= n; i += 8) {
		turn_8(type, from, phase, to + i%FLOAT_LANES*phase + i/FLOAT_LANES*width);
		for (size_t r = 0; r < 8; r++) from[r] += 8*bytes;
	}
	for (size_t k = 0; i + k < n; k++)
		for (size_t r = 0; r < 8; r++)
			to[(i + k)%FLOAT_LANES*phase + (i + k)/FLOAT_LANES*width + r] = wide_one(type,
				from[r] + k*bytes);
}

#define TYPE(name, type) \
static void rows_##name(size_t n_out, size_t n_in, const char *w, size_t w_stride, size_t n_tokens, const float *x, \
	size_t x_stride, float *y, size_t y_stride) \
{ \
	rows(type, n_out, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride); \
} \
static void turn_##name(const char *w, size_t stride, size_t n_rows, size_t n, size_t width, size_t phase, float *to) \
{ \
	turn(type, w, stride, n_rows, n, width, phase, to); \
}
/* With the payload of NaN, which products may change */
#define DECODE(name, type, WIDE_EXACTLY) \
static void decode_##name(const void *src, float *dst, size_t n) \
{ \
	const char *s = src; \
	size_t i = 0; \
	for (; i + REG <= n; i += REG) r_put(dst + i, WIDE_EXACTLY(s + 2*i)); \
	for (; i < n; i++) dst[i] = wide_one(type, s + 2*i); \
}
TYPE(f32, FLOAT_F32)
TYPE(f16, FLOAT_F16)
TYPE(bf16, FLOAT_BF16)
DECODE(f16, FLOAT_F16, r_f16_exact)
DECODE(bf16, FLOAT_BF16, r_bf16)

const struct float_table FLOAT_TABLE = {
	OUTPUTS, TOKENS, { decode_f32, decode_f16, decode_bf16 },
	{ rows_f32, rows_f16, rows_bf16 }, { turn_f32, turn_f16, turn_bf16 }, gemm, tree,
};
