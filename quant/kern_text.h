/* SPDX-License-Identifier: MIT
 * kern_text.h - decode, pack and multiply, one text for all instruction sets; defines the table KERN_TABLE.
 *
 * Multiplying walks chunks of CHUNK columns. Per chunk the activations of up to TOKENS tokens and the weights of
 * ROWS rows are widened to int16, scales multiplied in (|code*sc| <= 4096, |q*xs| <= 2032), so that the exact sum
 * of a block is a plain product of int16 vectors; a tile of ROWS x COLS sums shares its loads. The float of an
 * output lives in y between blocks' tiles and chunks: storing it is exact, and the order of its fma's is that of
 * the blocks, whatever the tiles were. */
#include "../libgguf/ggu.h"
#include "lane16.h"
#include "kern.h"
#include "grids.h"
#define QUANT_DECODER
#include "codec/all.h"

/* The tiles' loops are unrolled so that their sums stay in registers. */
#define UNROLL _Pragma("GCC unroll 32")
enum { CHUNK = 2048, TOKENS = 256, ROWS = 4, COLS = 2, TILE = ROWS*COLS };

/* ---- the vocabulary beside lane16.h: products of int16 ---- */

/* a += sums of pairs of products of 32 int16 */
#if defined __AVX512VNNI__
typedef __m512i isum;
static inline isum i_zero(void) { return _mm512_setzero_si512(); }
static inline isum i_madd(isum a, const int16_t *w, const int16_t *x) { return _mm512_dpwssd_epi32(a, _mm512_loadu_si512(w), _mm512_loadu_si512(x)); }
static inline __m256i i_half(isum a) { return _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1)); }
#elif defined __AVX2__
typedef __m256i isum;
static inline isum i_zero(void) { return _mm256_setzero_si256(); }
static inline isum i_madd(isum a, const int16_t *w, const int16_t *x)
{
	a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_loadu_si256((const void *)w), _mm256_loadu_si256((const void *)x)));
	return _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_loadu_si256((const void *)(w + 16)), _mm256_loadu_si256((const void *)(x + 16))));
}
static inline __m256i i_half(isum a) { return a; }
#elif defined LANE_NEON
typedef struct { int32x4_t v[4]; } isum;
static inline isum i_zero(void) { int32x4_t z = vdupq_n_s32(0); return (isum){ { z, z, z, z } }; }
static inline isum i_madd(isum a, const int16_t *w, const int16_t *x)
{
	UNROLL for (int i = 0; i < 4; i++) {
		int16x8_t u = vld1q_s16(w + 8*i), v = vld1q_s16(x + 8*i);
		a.v[i] = vmlal_s16(vmlal_high_s16(a.v[i], u, v), vget_low_s16(u), vget_low_s16(v));
	}
	return a;
}
#else
typedef struct { int32_t v[16]; } isum;
static inline isum i_zero(void) { return (isum){ { 0 } }; }
static inline isum i_madd(isum a, const int16_t *w, const int16_t *x)
{
	for (int i = 0; i < 16; i++) a.v[i] += w[2*i]*x[2*i] + w[2*i + 1]*x[2*i + 1];
	return a;
}
#endif
/* The sums of TILE vectors. Order does not matter: integers, and their total fits. */
static inline void i_sums(const isum *a, int32_t *sum)
{
#if defined __AVX2__
	__m256i h[8];
	UNROLL for (int i = 0; i < 8; i++) h[i] = i_half(a[i]);
	UNROLL for (int i = 0; i < 4; i++) h[i] = _mm256_hadd_epi32(h[2*i], h[2*i + 1]);
	h[0] = _mm256_hadd_epi32(h[0], h[1]);
	h[1] = _mm256_hadd_epi32(h[2], h[3]);
	_mm256_storeu_si256((void *)sum, _mm256_add_epi32(_mm256_permute2x128_si256(h[0], h[1], 0x20), _mm256_permute2x128_si256(h[0], h[1], 0x31)));
#elif defined LANE_NEON
	for (int k = 0; k < TILE; k++) sum[k] = vaddvq_s32(vaddq_s32(vaddq_s32(a[k].v[0], a[k].v[1]), vaddq_s32(a[k].v[2], a[k].v[3])));
#else
	for (int k = 0; k < TILE; k++) {
		uint32_t s = 0;
		for (int i = 0; i < 16; i++) s += (uint32_t)a[k].v[i];
		sum[k] = (int32_t)s;
	}
#endif
}

/* ---- packing activations ---- */

static const float tiny = 0x1p-96f;

/* amax of n numbers; *bad is set if one is not finite */
static inline float amax_of(const float *x, int n, int32_t *bad)
{
	float m = 0;
	int32_t b = 0;
	for (int i = 0; i < n; i++) {
		float a = fabsf(x[i]);
		b |= !(a < INFINITY);
		m = a > m ? a : m;
	}
	*bad |= b;
	return m;
}
/* q = x/d to the nearest, ties to even: adding 1.5 * 2^23 leaves no room for a fraction */
static inline void codes_of(const float *x, float inverse, int8_t *q)
{
	for (int i = 0; i < 32; i++) {
		float v = (x[i]*inverse + 12582912.0f) - 12582912.0f;
		v = v > 127 ? 127 : v < -127 ? -127 : v;
		q[i] = (int8_t)(int)v;
	}
}

static void pack32(const float *x, size_t n, void *act)
{
	struct x32 *o = act;
	for (size_t b = 0; b < n/32; b++, x += 32, o++) {
		int32_t bad = 0, sum = 0;
		float amax = amax_of(x, 32, &bad);
		memset(o, 0, sizeof *o);
		if (bad) o->d = NAN;
		if (bad || amax < tiny) continue;
		o->d = amax/127;
		codes_of(x, 1/o->d, o->q);
		for (int i = 0; i < 32; i++) sum += o->q[i];
		o->sum = sum;
	}
}

static void pack256(const float *x, size_t n, void *act)
{
	struct x256 *o = act;
	for (size_t b = 0; b < n/256; b++, x += 256, o++) {
		int32_t bad = 0;
		float part[8], amax = 0;
		for (int j = 0; j < 8; j++) {
			part[j] = amax_of(x + 32*j, 32, &bad);
			amax = part[j] > amax ? part[j] : amax;
		}
		memset(o, 0, sizeof *o);
		memset(o->xs, 1, 8);
		if (bad) o->d = NAN;
		if (bad || amax < tiny) continue;
		o->d = amax/(127*16);
		for (int j = 0; j < 8; j++) {
			float s = ceilf(16*part[j]/amax);
			o->xs[j] = (uint8_t)(s < 1 ? 1 : s > 16 ? 16 : s);
			codes_of(x + 32*j, 1/(o->d*(float)o->xs[j]), o->q + 32*j);
		}
		for (int j = 0; j < 16; j++) {
			int sum = 0;
			for (int i = 0; i < 16; i++) sum += o->q[16*j + i];
			o->sum[j] = (int16_t)(sum*o->xs[j/2]);
		}
	}
}

static void pack_floats(const float *x, size_t n, void *act) { memcpy(act, x, n*sizeof *x); }

/* ---- multiplying: what a chunk of rows and tokens looks like ---- */

enum { MAX_BLOCKS = CHUNK/32 };
struct rows {                           /* ROWS rows of a chunk */
	int16_t q[ROWS][CHUNK];         /* codes, times sc for super-blocks */
	float d[MAX_BLOCKS][ROWS], m[MAX_BLOCKS][ROWS];
	int16_t mn[CHUNK/256][ROWS][16];
};
struct tokens {                         /* one token of a chunk */
	int16_t q[CHUNK];               /* q, times xs for super-blocks */
	float d[MAX_BLOCKS];
	int32_t sum[MAX_BLOCKS];        /* blocks of 32 */
	int16_t sums[CHUNK/256][16];
};
struct work { struct rows w; struct tokens x[TOKENS]; };
_Static_assert(sizeof(struct work) <= KERN_WORK_BYTES, "work");

static void take_x32(const struct x32 *a, size_t n, struct tokens *x)
{
	for (size_t b = 0; b < n; b++) {
		for (int i = 0; i < 32; i++) x->q[32*b + (size_t)i] = a[b].q[i];
		x->d[b] = a[b].d;
		x->sum[b] = a[b].sum;
	}
}
static void take_x256(const struct x256 *a, size_t n, struct tokens *x)
{
	for (size_t b = 0; b < n; b++) {
		for (int j = 0; j < 8; j++)
			for (int i = 0; i < 32; i++) x->q[256*b + (size_t)(32*j + i)] = (int16_t)(a[b].q[32*j + i]*a[b].xs[j]);
		memcpy(x->sums[b], a[b].sum, sizeof a[b].sum);
		x->d[b] = a[b].d;
	}
}
/* Halves of 16 at slots of 32: the codes beside the second 16 of a slot are zeros. */
static void take_x16(const struct x32 *a, size_t n, struct tokens *x)
{
	for (size_t b = 0; b < 2*n; b++) {
		for (int i = 0; i < 32; i++) x->q[32*b + (size_t)i] = a[b/2].q[(b%2*16 + (size_t)i)%32];
		x->d[b] = a[b/2].d;
		x->sum[b] = 0;
	}
}
static inline void take_codes32(const struct codes32 *c, size_t b, int r, struct rows *w)
{
	for (int i = 0; i < 32; i++) w->q[r][32*b + (size_t)i] = c->q[i];
	w->d[b][r] = c->d;
	w->m[b][r] = c->m;
}
static inline void take_codes256(const struct codes256 *c, size_t b, int r, struct rows *w)
{
	for (int j = 0; j < 16; j++)
		for (int i = 0; i < 16; i++) w->q[r][256*b + (size_t)(16*j + i)] = (int16_t)(c->q[16*j + i]*c->sc[j]);
	memcpy(w->mn[b][r], c->mn, sizeof c->mn);
	w->d[b][r] = c->d;
	w->m[b][r] = c->dmin;
}

/* acc[c*ROWS + r] of COLS tokens over the blocks of a chunk, `weights` elements each */
static inline void tile(size_t n_blocks, int weights, int has_min, const struct rows *w, const struct tokens *const *x, float *acc)
{
	for (size_t b = 0; b < n_blocks; b++) {
		isum s[TILE];
		int32_t sum[TILE];
		UNROLL for (int k = 0; k < TILE; k++) s[k] = i_zero();
		for (int i = 0; i < weights; i += 32)
			UNROLL for (int c = 0; c < COLS; c++)
				UNROLL for (int r = 0; r < ROWS; r++)
					s[c*ROWS + r] = i_madd(s[c*ROWS + r], w->q[r] + b*(size_t)weights + i, x[c]->q + b*(size_t)weights + i);
		i_sums(s, sum);
		for (int k = 0; k < TILE; k++) acc[k] = fmaf(w->d[b][k%ROWS]*x[k/ROWS]->d[b], (float)sum[k], acc[k]);
		if (!has_min) continue;
		for (int k = 0; k < TILE; k++) {
			if (weights == 32) {
				acc[k] = fmaf(w->m[b][k%ROWS]*x[k/ROWS]->d[b], (float)x[k/ROWS]->sum[b], acc[k]);
				continue;
			}
			sum[k] = 0;
			for (int i = 0; i < 16; i++) sum[k] += w->mn[b][k%ROWS][i]*x[k/ROWS]->sums[b][i];
			acc[k] = fmaf(-(w->m[b][k%ROWS]*x[k/ROWS]->d[b]), (float)sum[k], acc[k]);
		}
	}
}

/* ROWS rows (n of them real) times n_tokens tokens, for one chunk; y is that of the first row. */
static inline void row_group(size_t n_tokens, size_t n, size_t n_blocks, int weights, int has_min, const struct work *k, float *y, size_t y_stride, int first)
{
	for (size_t t = 0; t < n_tokens; t += COLS) {
		const struct tokens *x[COLS];
		float acc[TILE] = { 0 };
		size_t cols = n_tokens - t < COLS ? n_tokens - t : COLS;
		for (size_t c = 0; c < COLS; c++) x[c] = k->x + t + (c < cols ? c : 0);
		for (size_t c = 0; c < cols && !first; c++)
			for (size_t r = 0; r < n; r++) acc[c*ROWS + r] = y[(t + c)*y_stride + r];
		tile(n_blocks, weights, has_min, &k->w, x, acc);
		for (size_t c = 0; c < cols; c++)
			for (size_t r = 0; r < n; r++) y[(t + c)*y_stride + r] = acc[c*ROWS + r];
	}
}

/* The loops over tokens, chunks and rows. A block of the file is `weights` elements in `parts` codes of `slots` each;
 * activations come `slots` to an xblock. TAKE_W and TAKE_X widen. */
#define DRIVER(name, weights, parts, slots, has_min, xblock, codes, TAKE_W, TAKE_X) \
static void mul_##name(size_t n_tokens, size_t n_out, size_t n_in, const void *wv, size_t w_stride, const void *act, float *y, size_t y_stride, void *work) \
{ \
	const size_t step = CHUNK/(parts*slots), x_blocks = weights/slots; \
	struct work *k = work; \
	size_t blocks = n_in/weights; \
	for (size_t t0 = 0; t0 < n_tokens; t0 += TOKENS) { \
		size_t nt = n_tokens - t0 < TOKENS ? n_tokens - t0 : TOKENS; \
		for (size_t b0 = 0; b0 < blocks; b0 += step) { \
			size_t nb = blocks - b0 < step ? blocks - b0 : step; \
			for (size_t t = 0; t < nt; t++) \
				TAKE_X((const struct xblock *)act + ((t0 + t)*blocks + b0)*x_blocks, nb*x_blocks, k->x + t); \
			for (size_t o = 0; o < n_out; o += ROWS) { \
				size_t n = n_out - o < ROWS ? n_out - o : ROWS; \
				for (size_t r = 0; r < ROWS; r++) { \
					const struct name *w = (const void *)((const char *)wv + (o + (r < n ? r : 0))*w_stride); \
					for (size_t b = 0; b < nb; b++) { \
						struct codes c[parts]; \
						name##_unpack(w + b0 + b, c); \
						for (size_t p = 0; p < parts; p++) TAKE_W(c + p, b*parts + p, (int)r, &k->w); \
					} \
				} \
				row_group(nt, n, nb*parts, slots, has_min, k, y + t0*y_stride + o, y_stride, !b0); \
			} \
		} \
	} \
} \
static void decode_##name(const void *src, float *dst, size_t n) \
{ \
	const struct name *s = src; \
	for (size_t b = 0; b < n/weights; b++) { \
		struct codes c[parts]; \
		name##_unpack(s + b, c); \
		for (size_t p = 0; p < parts; p++, dst += weights/parts) spread_##codes(c + p, weights/parts, has_min, dst); \
	} \
}
static inline void spread_codes32(const struct codes32 *c, int n, int has_m, float *to)
{
	for (int i = 0; i < n; i++) to[i] = has_m ? c->d*(float)c->q[i] + c->m : c->d*(float)c->q[i];
}
static inline void spread_codes256(const struct codes256 *c, int n, int has_min, float *to)
{
	for (int j = 0; j < n/16; j++) {
		float d = c->d*(float)c->sc[j], m = c->dmin*(float)c->mn[j];
		for (int i = 0; i < 16; i++) to[16*j + i] = has_min ? d*(float)c->q[16*j + i] - m : d*(float)c->q[16*j + i];
	}
}
#define BLOCK(NAME, name, kind, part, has_min) \
DRIVER(name, BLOCK_WEIGHTS_##NAME, (BLOCK_WEIGHTS_##NAME/part), kind, has_min, x##kind, codes##kind, take_codes##kind, take_x##part)
#include "types.inc"
#undef BLOCK

/* ---- floats ---- */

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
	[GGU_TYPE_F32] = { decode_f32, mul_f32, pack_floats, 1, 4 }, [GGU_TYPE_F16] = { decode_f16, mul_f16, pack_floats, 1, 4 },
	[GGU_TYPE_BF16] = { decode_bf16, mul_bf16, pack_floats, 1, 4 }, [GGU_TYPE_F64] = { decode_f64, NULL, NULL, 0, 0 },
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = { decode_##name, mul_##name, pack##kind, kind, sizeof(struct x##kind) },
#include "types.inc"
#undef BLOCK
};
