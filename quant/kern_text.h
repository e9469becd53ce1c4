/* SPDX-License-Identifier: MIT
 * kern_text.h - decode and multiply floats, one text for all instruction sets; defines the table KERN_TABLE. */
#include "../libgguf/types.h"
#include "lane16.h"
#include "kern.h"

/* The tiles' loops are unrolled so that their sums stay in registers. */
#define UNROLL _Pragma("GCC unroll 32")

static void decode_f32(const void *src, float *dst, size_t n) { memcpy(dst, src, n*sizeof *dst); }
static inline ri wide_bf16(const void *src) { return r_widen(src) << 16; }
/* kern_f16_to_f32 without branches */
static inline ri wide_f16(const void *src)
{
	ri h = r_widen(src), m = h & 0x7fff, below = m < 0x400;
	ri sub = (ri)(__builtin_convertvector(m, rf)*0x1p-24f);
	ri r = (m << 13) + 0x38000000 + ((m >= 0x7c00) & 0x38000000);
	return (sub & below) | (r & ~below) | (-(h >> 15) & INT32_MIN);
}
#define DECODE_HALF(name) \
static void decode_##name(const void *src, float *dst, size_t n) \
{ \
	size_t i = 0; \
	uint16_t h; \
	for (; i + REG <= n; i += REG) { \
		ri u = wide_##name((const char *)src + 2*i); \
		memcpy(dst + i, &u, sizeof u); \
	} \
	for (; i < n; i++) { \
		memcpy(&h, (const char *)src + 2*i, 2); \
		dst[i] = kern_##name##_to_f32(h); \
	} \
}
DECODE_HALF(f16)
DECODE_HALF(bf16)
static void decode_f64(const void *src, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double d;
		memcpy(&d, (const char *)src + 8*i, 8);
		dst[i] = (float)d;
	}
}

#if defined __AVX512F__
enum { FROWS = 4, FCOLS = 5 };
#elif defined __AVX2__
enum { FROWS = 2, FCOLS = 3 };
#else
enum { FROWS = 2, FCOLS = 2 };
#endif

/* The lanes of FROWS x FCOLS outputs over n columns (a multiple of 16), kept in s between chunks. */
static inline void float_tile(size_t n, const float *w, size_t w_stride, const float *const *x, t16 *s)
{
	t16 a[FROWS*FCOLS];
	UNROLL for (int k = 0; k < FROWS*FCOLS; k++) a[k] = s[k];
	for (size_t i = 0; i < n; i += 16) {
		t16 u[FROWS];
		UNROLL for (int r = 0; r < FROWS; r++) u[r] = t_load(w + (size_t)r*w_stride + i);
		UNROLL for (int c = 0; c < FCOLS; c++) {
			t16 v = t_load(x[c] + i);
			UNROLL for (int r = 0; r < FROWS; r++) a[c*FROWS + r] = t_fma(u[r], v, a[c*FROWS + r]);
		}
	}
	UNROLL for (int k = 0; k < FROWS*FCOLS; k++) s[k] = a[k];
}

/* What is left of a row after its whole vectors, then the tree. */
static inline float float_end(t16 s, const float *w, const float *x, size_t n)
{
	float l[16];
	t_store(l, s);
	for (size_t i = 0; i < n; i++) l[i] = fmaf(w[i], x[i], l[i]);
	return v_tree(v_load(l));
}

/* Rows are widened by `decode` a group at a time, all columns, if they fit the work space; a group of rows meets
 * all tokens, in blocks whose activations stay in cache. */
static inline void mul_float(size_t n_tokens, size_t n_out, size_t n_in, const char *w, size_t w_stride, const float *x, float *y, size_t y_stride,
	float *wide, void (*decode)(const void *, float *, size_t), size_t width)
{
	const size_t most = KERN_WORK_BYTES/sizeof(float)/FROWS, step = most/16*16, whole = n_in/16*16;
	for (size_t o = 0; o < n_out; o += FROWS) {
		size_t rows = n_out - o < FROWS ? n_out - o : FROWS;
		bool fits = n_in <= step;
		for (size_t r = 0; fits && r < FROWS; r++) decode(w + (o + (r < rows ? r : 0))*w_stride, wide + r*n_in, n_in);
		for (size_t t = 0; t < n_tokens; t += FCOLS) {
			size_t cols = n_tokens - t < FCOLS ? n_tokens - t : FCOLS;
			const float *xs[FCOLS];
			t16 s[FROWS*FCOLS];
			float rest[FROWS][16];
			for (int k = 0; k < FROWS*FCOLS; k++) s[k] = t_dup(0);
			for (size_t c = 0; c < FCOLS; c++) xs[c] = x + (t + (c < cols ? c : 0))*n_in;
			if (fits) float_tile(whole, wide, n_in, xs, s);
			for (size_t i = 0; !fits && i < whole; i += step) {
				size_t n = whole - i < step ? whole - i : step;
				const float *part[FCOLS];
				for (size_t r = 0; r < FROWS; r++) decode(w + (o + (r < rows ? r : 0))*w_stride + i*width, wide + r*n, n);
				for (size_t c = 0; c < FCOLS; c++) part[c] = xs[c] + i;
				float_tile(n, wide, n, part, s);
			}
			for (size_t r = 0; r < rows; r++) decode(w + (o + r)*w_stride + whole*width, rest[r], n_in - whole);
			for (size_t c = 0; c < cols; c++)
				for (size_t r = 0; r < rows; r++)
					y[(t + c)*y_stride + o + r] = float_end(s[c*FROWS + r], rest[r], xs[c] + whole, n_in - whole);
		}
	}
}
#define FLOAT(name, width) \
static void mul_##name(size_t n_tokens, size_t n_out, size_t n_in, const void *w, size_t w_stride, const void *act, float *y, size_t y_stride, void *work) \
{ \
	mul_float(n_tokens, n_out, n_in, w, w_stride, act, y, y_stride, work, decode_##name, width); \
}
FLOAT(f32, 4)
FLOAT(f16, 2)
FLOAT(bf16, 2)

/* by ggml's type id */
const struct kern KERN_TABLE[GGU_TYPE_COUNT] = {
	[GGU_TYPE_F32] = { decode_f32, mul_f32 }, [GGU_TYPE_F16] = { decode_f16, mul_f16 },
	[GGU_TYPE_BF16] = { decode_bf16, mul_bf16 }, [GGU_TYPE_F64] = { decode_f64, NULL },
};
