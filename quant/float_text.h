/* SPDX-License-Identifier: MIT
 * float_text.h - floats for one instruction set, one text for all; defines the table FLOAT_TABLE. An instance
 * (float_ISA.c) first includes one of lane.h's vocabularies, and gives
 *   WIDE, TOKENS                the tile: registers of outputs, tokens; its sums fill most of the available registers
 *   TOGETHER                    phases that share a tile's registers if it is finished at once: 1, 2
 *   ROWS, COLS                  rows, and at most so many tokens, that are multiplied at a time with few tokens
 *   FEW_TOKENS                  the most tokens that count as few
 *   transpose_8(type, from, phase, to)  eight columns of eight rows; float_transpose_x86.h or float_transpose_c.h */
#include "../libgguf/size.h"
#include "float.h"
#include "inline.h"

enum { OUTPUTS = WIDE*REG, PARTS = FLOAT_LANES/REG };   /* registers of sixteen lanes */
_Static_assert(COLS == 3 || COLS == 4, "passes of two, three or COLS tokens");

/* ---- halves to floats ---- */

INLINE rf wide(enum float_type type, const char *p)
{
	return type == FLOAT_F32 ? r_floats((const float *)(const void *)p) : type == FLOAT_F16 ? r_f16(p) : r_bf16(p);
}
static void decode_f32(const void *src, float *dst, size_t n) { memcpy(dst, src, n*sizeof *dst); }

/* ---- a row times a few tokens: lanes are columns ---- */

/* Of runs: the columns, the rows */
enum { RUN = 512, RUN_ROWS = 4 };
/* How many bytes prefetches are ahead of the rows, and how often each line is prefetched if a core drops some
 * (cpu_drops_prefetches) */
enum { LEAD = 4 << 10, TIMES = 3, RUN_LEAD = 16 << 10, RUN_TIMES = 2 };
/* One token, F32: how many bytes of a row are prefetched before they are read; up to how many columns a row is read on
 * its own, as activations then stay in L1; how many longer rows are read side by side */
enum { AHEAD = 1 << 10, SHORT = 3072, LONG_ROWS = PARTS > 2 ? 4 : 8 };
enum { MOST_ROWS = ROWS*COLS > LONG_ROWS ? ROWS*COLS : LONG_ROWS };     /* times tokens */
typedef float lanes[FLOAT_ROW_TOKENS][FLOAT_LANES];                     /* of a row */
/* Adds n columns, a multiple of 16, of some rows times the tokens from `first` on to the lanes of each; x is that of
 * `first`. Prefetches as many bytes from `next` on, `times` times: those, the ones a row nearer, and so on; or, with
 * times 0, what is as far ahead of each row as `next` is of the first. */
INLINE void few(enum float_type type, int n_rows, int n_tokens, size_t n, const char *w, size_t w_stride,
	const char *next, size_t times, const float *x, size_t x_stride, lanes *sums, size_t first)
{
	const size_t bytes = float_width(type);
	rf a[MOST_ROWS*PARTS];
	UNROLL for (int r = 0; r < n_rows; r++) UNROLL for (int t = 0; t < n_tokens; t++)
		UNROLL for (int p = 0; p < PARTS; p++)
			a[(r*n_tokens + t)*PARTS + p] = r_floats(sums[r][first + (size_t)t] + p*REG);
	for (size_t i = 0; i < n; i += FLOAT_LANES) {
		if (!times) UNROLL for (size_t r = 0; r < (size_t)n_rows; r++)
			__builtin_prefetch(next + r*w_stride + i*bytes, 0, 2);
		UNROLL for (size_t k = 0; k < (size_t)n_rows*FLOAT_LANES*bytes; k += 64)
			UNROLL for (size_t near = 0; near < times; near++)
				__builtin_prefetch(next + (size_t)n_rows*i*bytes + k - near*w_stride, 0, 2);
		UNROLL for (size_t p = 0; p < PARTS; p++)
			UNROLL for (int r = 0; r < n_rows; r++) {
				rf u = wide(type, w + (size_t)r*w_stride + (i + p*REG)*bytes),
					*s = a + (size_t)(r*n_tokens)*PARTS + p;
				UNROLL for (int t = 0; t < n_tokens; t++)
					s[t*PARTS] = r_fma(u, r_floats(x + (size_t)t*x_stride + i + p*REG), s[t*PARTS]);
			}
	}
	UNROLL for (int r = 0; r < n_rows; r++) UNROLL for (int t = 0; t < n_tokens; t++)
		UNROLL for (int p = 0; p < PARTS; p++)
			r_put(sums[r][first + (size_t)t] + p*REG, a[(r*n_tokens + t)*PARTS + p]);
}
INLINE void clear(lanes *sums, size_t n_rows, size_t n_tokens)
{
	for (size_t r = 0; r < n_rows; r++) memset(sums[r], 0, n_tokens*sizeof *sums[r]);
}
/* Adds the columns after the last sixteen, and stores the sums of n_rows rows. */
INLINE void finish(enum float_type type, size_t n_rows, size_t n_in, const char *w, size_t w_stride, size_t n_tokens,
	const float *x, size_t x_stride, lanes *sums, float *y, size_t y_stride)
{
	const size_t whole = n_in/FLOAT_LANES*FLOAT_LANES, bytes = float_width(type);
	for (size_t t = 0; t < n_tokens; t++)
		for (size_t r = 0; r < n_rows; r++) {
			float *l = sums[r][t];
			for (size_t k = whole; k < n_in; k++) l[k - whole] =
				fused(float_at(type, w + r*w_stride + k*bytes), x[t*x_stride + k], l[k - whole]);
			y[t*y_stride + r] = r_tree(l);
		}
}
/* Up to RUN_ROWS rows of halves times one or two tokens, by runs of columns of one row after another, which are read
 * from memory faster than four rows side by side. While a row waits for its sums, a core begins with the next one's. */
INLINE void by_runs(enum float_type type, size_t times, size_t n_rows, size_t n_in, const char *w, size_t w_stride,
	size_t n_tokens, const float *x, size_t x_stride, float *y, size_t y_stride)
{
	_Alignas(64) lanes sums[RUN_ROWS];
	const size_t whole = n_in/FLOAT_LANES*FLOAT_LANES, bytes = float_width(type);
	clear(sums, n_rows, n_tokens);
	for (size_t i = 0, n; i < whole; i += n) {
		const char *next = w + n_rows*(w_stride + i*bytes) + RUN_LEAD;
		n = whole - i < RUN ? whole - i : RUN;
		for (size_t r = 0; r < n_rows; r++, next += n*bytes) {
			const char *from = w + r*w_stride + i*bytes;
			if (n_tokens == 1) few(type, 1, 1, n, from, w_stride, next, times, x + i, x_stride, sums + r,
				0);
			else few(type, 1, 2, n, from, w_stride, next, times, x + i, x_stride, sums + r, 0);
		}
	}
	finish(type, n_rows, n_in, w, w_stride, n_tokens, x, x_stride, sums, y, y_stride);
}
/* ROWS rows side by side times two or more tokens, so that none waits for its own sums; the next rows are prefetched in
 * the order of memory. Two tokens read their rows from end to end; more use columns in chunks that stay in L1. */
INLINE void by_sides(enum float_type type, size_t times, int n_rows, size_t n_in, const char *w, size_t w_stride,
	size_t n_tokens, const float *x, size_t x_stride, float *y, size_t y_stride)
{
	_Alignas(64) lanes sums[ROWS];
	const size_t whole = n_in/FLOAT_LANES*FLOAT_LANES, chunk = n_tokens <= 2 ? whole : FLOAT_CHUNK/4,
		bytes = float_width(type);
	clear(sums, (size_t)n_rows, n_tokens);
	for (size_t i = 0; i < whole; i += chunk) {
		size_t n = whole - i < chunk ? whole - i : chunk;
		for (size_t t = 0, passes = size_parts(n_tokens, COLS), some; passes; passes--, t += some) {
			const char *from = w + i*bytes, *next = w + (size_t)n_rows*(w_stride + i*bytes) + LEAD;
			const float *xt = x + t*x_stride + i;
			some = (n_tokens - t)/passes;
			if (some == 2) few(type, n_rows, 2, n, from, w_stride, next, times, xt, x_stride,
				sums, t);
			else if (some == 3) few(type, n_rows, 3, n, from, w_stride, next, times, xt, x_stride,
				sums, t);
			else few(type, n_rows, COLS, n, from, w_stride, next, times, xt, x_stride,
				sums, t);
		}
	}
	finish(type, (size_t)n_rows, n_in, w, w_stride, n_tokens, x, x_stride, sums, y, y_stride);
}
/* Up to LONG_ROWS rows times one token, from end to end, and prefetched shortly before they are read. Rows up to SHORT
 * columns are read one after another, in the order of memory; with longer ones, activations would be read from L2 for
 * each row, so all rows are read side by side. What is prefetched after the end of a row is the beginning of the row
 * that is read next. */
INLINE void by_streams(enum float_type type, size_t n_rows, size_t n_in, const char *w, size_t w_stride,
	const float *x, float *y)
{
	_Alignas(64) lanes sums[LONG_ROWS];
	const size_t whole = n_in/FLOAT_LANES*FLOAT_LANES, bytes = float_width(type), ahead = AHEAD/bytes,
		n = whole > ahead ? whole - ahead : 0;
	const char *rest = w + n*bytes;
	clear(sums, n_rows, 1);
	if (n_in > SHORT && n_rows == LONG_ROWS) {
		few(type, LONG_ROWS, 1, n, w, w_stride, w + AHEAD, 0, x, 0, sums, 0);
		few(type, LONG_ROWS, 1, whole - n, rest, w_stride, rest + AHEAD + (LONG_ROWS - 1)*w_stride, 0,
			x + n, 0, sums, 0);
	} else for (size_t r = 0; r < n_rows; r++)
		few(type, 1, 1, whole, w + r*w_stride, w_stride, w + r*w_stride + AHEAD, 0, x, 0, sums + r, 0);
	finish(type, n_rows, n_in, w, w_stride, 1, x, 0, sums, y, 0);
}
INLINE void rows_fetching(enum float_type type, bool again, size_t n_out, size_t n_in, const char *w, size_t w_stride,
	size_t n_tokens, const float *x, size_t x_stride, float *y, size_t y_stride)
{
	const size_t run_times = again ? RUN_TIMES : 1, times = again ? TIMES : 1;
	if (type == FLOAT_F32 && n_tokens == 1) {
		for (size_t o = 0; o < n_out; o += LONG_ROWS)
			by_streams(type, n_out - o < LONG_ROWS ? n_out - o : LONG_ROWS, n_in, w + o*w_stride, w_stride,
				x, y + o);
		return;
	}
	if (type != FLOAT_F32 && n_tokens <= 2) {
		for (size_t o = 0, some; o < n_out; o += some) {
			some = n_out - o < RUN_ROWS ? n_out - o : RUN_ROWS;
			by_runs(type, run_times, some, n_in, w + o*w_stride, w_stride, n_tokens, x, x_stride, y + o,
				y_stride);
		}
		return;
	}
	for (; n_out >= ROWS; n_out -= ROWS, w += ROWS*w_stride, y += ROWS)
		by_sides(type, times, ROWS, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
	for (; n_out; n_out--, w += w_stride, y++)
		by_sides(type, times, 1, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
}
INLINE void rows(enum float_type type, size_t n_out, size_t n_in, const char *w, size_t w_stride, size_t n_tokens,
	const float *x, size_t x_stride, float *y, size_t y_stride)
{
	if (float_fetches_again)
		rows_fetching(type, true, n_out, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
	else rows_fetching(type, false, n_out, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride);
}

/* ---- the tile: lanes are outputs ---- */

/* A strip is computed in shares, and those without a token are left out. */
enum { SHARE = TOKENS/TOGETHER, TILE = TOKENS*OUTPUTS };

/* Adds a line of a phase to the sums of `tokens` tokens. */
INLINE void line(int tokens, const float *panel, const float *strip, rf *a)
{
	rf w[WIDE];
	UNROLL for (int c = 0; c < WIDE; c++) w[c] = r_floats(panel + c*REG);
	UNROLL for (int t = 0; t < tokens; t++) {
		rf x = r_dup_at(strip + t);
		UNROLL for (int c = 0; c < WIDE; c++) a[t*WIDE + c] = r_fma(w[c], x, a[t*WIDE + c]);
	}
}
INLINE void gemm_of(int tokens, size_t n, const float *panel, const float *strip, const float *next, float *acc,
	bool begin)
{
	rf a[TOKENS*WIDE], zero = { 0 };
	UNROLL for (int k = 0; k < tokens*WIDE; k++) a[k] = begin ? zero : r_floats(acc + k*REG);
	TWICE for (; n; n--, panel += OUTPUTS, strip += TOKENS, next += TOKENS) {
		__builtin_prefetch(next);
		line(tokens, panel, strip, a);
	}
	UNROLL for (int k = 0; k < tokens*WIDE; k++) r_put(acc + k*REG, a[k]);
	if (begin) UNROLL for (int k = tokens*WIDE; k < TOKENS*WIDE; k++) r_put(acc + k*REG, zero);
}
static void gemm(size_t tokens, size_t n, const float *panel, const float *strip, const float *next, float *acc,
	bool begin)
{
	if (tokens > SHARE) gemm_of(TOKENS, n, panel, strip, next, acc, begin);
	else gemm_of(SHARE, n, panel, strip, next, acc, begin);
}

/* The order of phases. With it the tree over them is a stack, whose two upper sums become one whenever they have the
 * same height; it stays in L1. */
static const size_t order[FLOAT_LANES] = { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 };
/* The merges after the last phase */
enum { LAST = TOGETHER == 1 ? 4 : 3 };
/* The sum of TOGETHER phases that are equally far apart, for SHARE tokens from `first` on, plus those in the `merges`
 * tiles before `to`, the last one first. panel, strip: of the first of these phases; lines: of all of them, of which
 * the first ones have those that are left over. With few columns, storing sums and adding them up takes much of the
 * time, so what is added up in registers is not stored, and the result is stored where it is wanted. */
INLINE void phases(int merges, const struct float_phases *o, size_t lines, const float *panel, const float *strip,
	const float *next, size_t first, float *to)
{
	rf a[TOKENS*WIDE], zero = { 0 };
	const float *p[TOGETHER], *x[TOGETHER];
	UNROLL for (int k = 0; k < TOKENS*WIDE; k++) a[k] = zero;
	UNROLL for (size_t s = 0; s < TOGETHER; s++) {
		p[s] = panel + s*FLOAT_LANES/TOGETHER*o->panel_phase;
		x[s] = strip + s*FLOAT_LANES/TOGETHER*o->strip_phase;
	}
	TWICE for (size_t n = lines/TOGETHER; n; n--, next += TOKENS) {
		__builtin_prefetch(next);
		UNROLL for (size_t s = 0; s < TOGETHER; s++) {
			line(SHARE, p[s], x[s], a + s*SHARE*WIDE);
			p[s] += OUTPUTS;
			x[s] += TOKENS;
		}
	}
	UNROLL for (size_t s = 0; s < TOGETHER; s++)
		if (s < lines%TOGETHER) line(SHARE, p[s], x[s], a + s*SHARE*WIDE);
	UNROLL for (int k = SHARE*WIDE; k < TOKENS*WIDE; k++) a[k - SHARE*WIDE] += a[k];
	UNROLL for (int i = 0; i < merges; i++) {
		to -= TILE;
		UNROLL for (int k = 0; k < SHARE*WIDE; k++) a[k] += r_floats(to + k*REG);
	}
	if (merges == LAST) UNROLL for (int k = 0; k < SHARE*WIDE; k++)
		r_put(o->to + (first + (size_t)(k/WIDE))*o->to_stride + k%WIDE*REG, a[k]);
	else UNROLL for (int k = 0; k < SHARE*WIDE; k++) r_put(to + k*REG, a[k]);
}
/* One for each number of merges: a core does not foresee how often a loop over them runs. */
#define PHASES(merges) \
static __attribute__((noinline)) void phases_##merges(const struct float_phases *o, size_t lines, const float *panel, \
	const float *strip, const float *next, size_t first, float *to) \
{ \
	phases(merges, o, lines, panel, strip, next, first, to); \
}
PHASES(0)
PHASES(1)
PHASES(2)
PHASES(3)
PHASES(4)
INLINE int trailing_ones(size_t i) { return !(i & 1) ? 0 : !(i & 2) ? 1 : !(i & 4) ? 2 : !(i & 8) ? 3 : 4; }
static void gemm_all(const struct float_phases *o, const float *next, float *sums)
{
	static void (*const by_merges[])(const struct float_phases *, size_t, const float *, const float *,
		const float *, size_t, float *) = { phases_0, phases_1, phases_2, phases_3, phases_4 };
	const size_t rest = o->n%FLOAT_LANES;
	size_t height = 0;
	UNROLL for (size_t at = 0; at < FLOAT_LANES; at += TOGETHER) {
		const size_t after = at + TOGETHER;
		const int merges = trailing_ones(at/TOGETHER);
		size_t lines = o->n/FLOAT_LANES*TOGETHER;
		UNROLL for (size_t s = 0; s < TOGETHER; s++) lines += order[at + s] < rest;
		for (size_t s = 0; s*SHARE < o->tokens; s++)
			by_merges[merges](o, lines, o->panel + order[at]*o->panel_phase,
				o->strip + order[at]*o->strip_phase + s*SHARE,
				after < FLOAT_LANES ? o->strip + order[after + s]*o->strip_phase :
					next + order[s]*o->strip_phase,
				s*SHARE, sums + height*TILE + s*SHARE*OUTPUTS);
		height += 1 - (size_t)merges;
	}
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

INLINE void transpose(enum float_type type, const char *w, size_t stride, size_t n_rows, size_t n, size_t width,
	size_t phase, float *to)
{
	const char *from[8];
	size_t bytes = float_width(type), i = 0;
	for (size_t r = 0; r < 8; r++) from[r] = w + (r < n_rows ? r : n_rows - 1)*stride;
	for (; i + 8 <= n; i += 8) {
		/* the next eight rows, a line of each in turn */
		UNROLL for (size_t r = 0; r < bytes; r++)
			__builtin_prefetch(from[(i/8*bytes + r)%8] + 8*stride, 0, 2);
		transpose_8(type, from, phase, to + i%FLOAT_LANES*phase + i/FLOAT_LANES*width);
		for (size_t r = 0; r < 8; r++) from[r] += 8*bytes;
	}
	for (size_t k = 0; i + k < n; k++)
		for (size_t r = 0; r < 8; r++)
			to[(i + k)%FLOAT_LANES*phase + (i + k)/FLOAT_LANES*width + r] = float_at(type,
				from[r] + k*bytes);
}

#define TYPE(name, type) \
static void rows_##name(size_t n_out, size_t n_in, const char *w, size_t w_stride, size_t n_tokens, const float *x, \
	size_t x_stride, float *y, size_t y_stride) \
{ \
	rows(type, n_out, n_in, w, w_stride, n_tokens, x, x_stride, y, y_stride); \
} \
static void transpose_##name(const char *w, size_t stride, size_t n_rows, size_t n, size_t width, size_t phase, \
	float *to) \
{ \
	transpose(type, w, stride, n_rows, n, width, phase, to); \
}
/* Keeps the payload of NaN, which products may change */
#define DECODE(name, type, WIDE_EXACTLY) \
static void decode_##name(const void *src, float *dst, size_t n) \
{ \
	const char *s = src; \
	size_t i = 0; \
	for (; i + REG <= n; i += REG) r_put(dst + i, WIDE_EXACTLY(s + 2*i)); \
	for (; i < n; i++) dst[i] = float_at(type, s + 2*i); \
}
TYPE(f32, FLOAT_F32)
TYPE(f16, FLOAT_F16)
TYPE(bf16, FLOAT_BF16)
DECODE(f16, FLOAT_F16, r_f16_exact)
DECODE(bf16, FLOAT_BF16, r_bf16)

const struct float_table FLOAT_TABLE = {
	OUTPUTS, TOKENS, FEW_TOKENS, { decode_f32, decode_f16, decode_bf16 },
	{ rows_f32, rows_f16, rows_bf16 }, { transpose_f32, transpose_f16, transpose_bf16 }, gemm, gemm_all, tree,
};
