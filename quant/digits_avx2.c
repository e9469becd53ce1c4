/* SPDX-License-Identifier: MIT
 * digits_avx2.c - strips of digits, and the loops over rows, columns and tokens (digits.h has the picture).
 *
 * Up to DIGITS_COLUMNS columns of DIGITS_ROWS rows, one row after another, leave their sums in struct digit_sums;
 * then these are turned, so that lanes are rows, and scaled in the order of the blocks. */
#if defined __x86_64__
#include <immintrin.h>
#include <math.h>
#include <string.h>
#include "digits.h"
#include "kern.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
enum { ROWS = DIGITS_ROWS };

/* ---- strips ---- */

static size_t strip_bytes(size_t block, size_t n_in)
{
	if (block == 256) return n_in/256*sizeof(struct strip256);
	return (n_in + DIGITS_UNIT - 1)/DIGITS_UNIT*sizeof(struct strip32);
}
static void digits_of(const int16_t *q, size_t n, int8_t *high, int8_t *low)
{
	for (size_t i = 0; i < n; i++) {
		int h = (q[i] + 32) >> 6;
		high[i] = (int8_t)h;
		low[i] = (int8_t)(q[i] - 64*h);
	}
}
static void pack256(const struct narrow *q, struct strip256 *s)
{
	static const uint8_t order[DIGITS_ORDERS][16] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
		{ 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 },
		{ 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15 },
		{ 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15 },
	};
	digits_of(q->q, 256, s->in[0].high, s->in[0].low);
	for (size_t o = 1; o < DIGITS_ORDERS; o++)
		for (size_t i = 0; i < 16; i++) {
			memcpy(s->in[o].high + 16*i, s->in[0].high + 16*order[o][i], 16);
			memcpy(s->in[o].low + 16*i, s->in[0].low + 16*order[o][i], 16);
		}
	memcpy(s->sum, q->sum, sizeof s->sum);
	for (size_t i = 0; i < 8; i++) {
		int32_t sum = q->sum[2*i] + q->sum[2*i + 1];
		s->first[i] = q->sum[2*i];
		s->second[i] = q->sum[2*i + 1];
		s->sum127[i] = 127*sum;
		s->sum128[i] = 128*sum;
	}
	s->d = q->d;
}
static void pack(size_t block, size_t n_in, const float *x, void *strip)
{
	struct narrow q;
	struct strip256 *s = strip;
	struct strip32 *u = strip;
	for (size_t i = 0; block == 256 && i < n_in; i += 256, s++) {
		mul_codes->narrow(x + i, 256, &q);
		pack256(&q, s);
	}
	if (block == 256) return;
	memset(u, 0, strip_bytes(32, n_in));
	for (size_t i = 0; i < n_in; i += 32) {
		struct strip32 *to = u + i/DIGITS_UNIT;
		size_t b = i%DIGITS_UNIT/32;
		mul_codes->narrow(x + i, 32, &q);
		for (size_t h = 0; h < 2; h++) {
			digits_of(q.q + 16*h, 16, to->high + 64*h + 16*b, to->low + 64*h + 16*b);
			to->sum[b][h] = q.sum[h];
		}
		to->d[b] = q.d;
	}
}
static void unpack(size_t block, size_t n_in, const void *strip, float *x)
{
	const struct strip256 *s = strip;
	const struct strip32 *u = strip;
	for (size_t i = 0; i < n_in; i++) {
		const struct strip256 *a = s + i/256;
		const struct strip32 *b = u + i/DIGITS_UNIT;
		size_t k = i%32/16*64 + i%DIGITS_UNIT/32*16 + i%16;
		if (block == 256) x[i] = a->d*(float)(64*a->in[0].high[i%256] + a->in[0].low[i%256]);
		else x[i] = b->d[i%DIGITS_UNIT/32]*(float)(64*b->high[k] + b->low[k]);
	}
}

/* ---- sums, eight rows side by side ---- */

static inline __m256i load(const int32_t *p) { return _mm256_load_si256((const void *)p); }
static inline __m256i halves32(__m256i a, __m256i b)
{
	return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
static inline __m256i halves64(__m256i a, __m256i b)
{
	return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
/* In each half, the sums over the lanes of four registers' same half */
static inline __m256i four(const int32_t *p, size_t stride)
{
	return halves64(halves32(load(p), load(p + stride)), halves32(load(p + 2*stride), load(p + 3*stride)));
}
static inline __m256i eight(const int32_t *p)
{
	__m256i a = four(p, 8), b = four(p + 32, 8);
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
static inline __m256 add(__m256 y, __m256 d, float xd, __m256 sum)
{
	return _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(xd)), sum, y);
}
struct two { __m256 d, m; };
/* Eight pairs of halves, d below */
INLINE struct two pairs(__m256i a)
{
	__m256i p = _mm256_packus_epi32(_mm256_and_si256(a, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(a, 16));
	p = _mm256_permute4x64_epi64(p, 0xd8);
	return (struct two){ _mm256_cvtph_ps(_mm256_castsi256_si128(p)),
		_mm256_cvtph_ps(_mm256_extracti128_si256(p, 1)) };
}

/* Sums of the minima of eight rows, eight each, times those of activations */
INLINE __m256i minima(const uint8_t *m, const struct strip256 *x)
{
	const __m256i first = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)x->first)),
		second = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)x->second));
	__m256i s[4];
	UNROLL for (int i = 0; i < 4; i++) {
		__m256i w = _mm256_cvtepu8_epi16(_mm_load_si128((const void *)(m + 16*i)));
		s[i] = _mm256_add_epi32(_mm256_madd_epi16(w, first), _mm256_madd_epi16(w, second));
	}
	s[0] = halves64(halves32(s[0], s[1]), halves32(s[2], s[3]));
	return _mm256_permutevar8x32_epi32(s[0], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
/* The same of sixteen each, in the upper halves of bytes */
INLINE __m256i minima16(const uint8_t *m, const struct strip256 *x)
{
	_Alignas(32) int32_t s[8*8];
	UNROLL for (int r = 0; r < 8; r++) {
		__m256i w = _mm256_srli_epi16(_mm256_cvtepu8_epi16(_mm_load_si128((const void *)(m + 16*r))), 4);
		_mm256_store_si256((void *)(s + 8*r), _mm256_madd_epi16(w, _mm256_loadu_si256((const void *)x->sum)));
	}
	return eight(s);
}
/* n super-blocks of token t onto y */
INLINE __m256 finish256(const struct digit_sums *s, size_t t, size_t n, const struct strip256 *x,
	enum digits_scale scale, __m256 factor, __m256 y)
{
	for (size_t b = 0; b < n; b++) {
		__m256 sum = _mm256_cvtepi32_ps(eight(s->s[t] + b*ROWS*8));
		if (scale == DIGITS_FLOAT) y = add(y, _mm256_load_ps(s->d.f[0] + b*ROWS), x[b].d, sum);
		else if (scale == DIGITS_HALF) {
			__m256 d = _mm256_cvtph_ps(_mm_load_si128((const void *)(s->d.half + b*ROWS)));
			y = add(y, _mm256_mul_ps(d, factor), x[b].d, sum);
		} else {
			struct two d = pairs(_mm256_load_si256((const void *)(s->d.pair + b*ROWS)));
			y = add(y, d.d, x[b].d, sum);
			y = add(y, _mm256_xor_ps(d.m, _mm256_set1_ps(-0.0f)), x[b].d,
				_mm256_cvtepi32_ps(scale == DIGITS_PAIR_16 ? minima16(s->m + b*ROWS*16, x + b) :
					minima(s->m + b*ROWS*8, x + b)));
		}
	}
	return y;
}
/* Two blocks of a unit */
INLINE void two_blocks(const int32_t *p, __m256i *sum)
{
	__m256i a = four(p, 16), b = four(p + 64, 16);
	sum[0] = _mm256_permute2x128_si256(a, b, 0x20);
	sum[1] = _mm256_permute2x128_si256(a, b, 0x31);
}
/* As floats, without what the bias added */
INLINE __m256 unbiased(__m256i a, int bias, int32_t sum)
{
	__m256i more = _mm256_mullo_epi32(_mm256_set1_epi32(sum), _mm256_set1_epi32(bias));
	return _mm256_cvtepi32_ps(_mm256_sub_epi32(a, more));
}
/* Four of each of eight rows: column i to to[i] */
INLINE void turn(const void *p, __m256i *to)
{
	const __m128i *row = p;
	__m256i a[4], b[4];
	UNROLL for (int r = 0; r < 4; r++)
		a[r] = _mm256_set_m128i(_mm_load_si128(row + r + 4), _mm_load_si128(row + r));
	b[0] = _mm256_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm256_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm256_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm256_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm256_unpacklo_epi64(b[0], b[2]);
	to[1] = _mm256_unpackhi_epi64(b[0], b[2]);
	to[2] = _mm256_unpacklo_epi64(b[1], b[3]);
	to[3] = _mm256_unpackhi_epi64(b[1], b[3]);
}
/* The same of halves */
INLINE void turn_halves(const uint16_t *p, __m256 *to)
{
	const __m128i by = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
	__m128i a[4], b[4];
	UNROLL for (int r = 0; r < 4; r++) a[r] = _mm_shuffle_epi8(_mm_load_si128((const __m128i *)p + r), by);
	b[0] = _mm_unpacklo_epi32(a[0], a[1]);
	b[1] = _mm_unpackhi_epi32(a[0], a[1]);
	b[2] = _mm_unpacklo_epi32(a[2], a[3]);
	b[3] = _mm_unpackhi_epi32(a[2], a[3]);
	to[0] = _mm256_cvtph_ps(_mm_unpacklo_epi64(b[0], b[2]));
	to[1] = _mm256_cvtph_ps(_mm_unpackhi_epi64(b[0], b[2]));
	to[2] = _mm256_cvtph_ps(_mm_unpacklo_epi64(b[1], b[3]));
	to[3] = _mm256_cvtph_ps(_mm_unpackhi_epi64(b[1], b[3]));
}
/* d of a unit's blocks, and m where there is one */
INLINE void scales_of_unit(const struct digit_sums *s, size_t at, int part, enum digits_scale scale, struct two *to)
{
	__m256i d[4], m[4];
	__m256 h[4];
	if (scale == DIGITS_HALF) {
		turn_halves(s->d.half + at, h);
		UNROLL for (int i = 0; i < 4; i++) to[i].d = h[i];
		return;
	}
	turn(s->d.f[0] + at, d);
	if (part == 16) turn(s->d.f[1] + at, m);
	UNROLL for (int i = 0; i < 4; i++) {
		if (scale == DIGITS_PAIR) to[i] = pairs(d[i]);
		else to[i].d = _mm256_castsi256_ps(d[i]);
		if (part == 16) to[i].m = _mm256_castsi256_ps(m[i]);
	}
}
/* n blocks of 32 of token t onto y */
INLINE __m256 finish32(const struct digit_sums *s, size_t t, size_t n, const struct strip32 *strip, int part,
	enum digits_scale scale, int bias, __m256 y)
{
	const size_t half = ROWS*16, unit = part == 16 ? 2*half : half;
	for (size_t q = 0; q < n; q += 4) {
		const struct strip32 *x = strip + q/4;
		const int32_t *p = s->s[t] + q/4*unit;
		struct two d[4];
		__m256i first[4], second[4];
		scales_of_unit(s, q*ROWS, part, scale, d);
		two_blocks(p, first);
		two_blocks(p + 8, first + 2);
		if (part == 16) {
			two_blocks(p + half, second);
			two_blocks(p + half + 8, second + 2);
		}
		UNROLL for (size_t i = 0; i < 4; i++) {
			const int32_t *sum = x->sum[i];
			float xd = x->d[i];
			if (q + i >= n) break;
			y = add(y, d[i].d, xd, unbiased(first[i], bias, part == 16 ? sum[0] : sum[0] + sum[1]));
			if (part == 16) y = add(y, d[i].m, xd, unbiased(second[i], bias, sum[1]));
			if (scale == DIGITS_PAIR) y = add(y, d[i].m, xd, _mm256_set1_ps((float)(sum[0] + sum[1])));
		}
	}
	return y;
}

/* ---- products ---- */

struct job {
	const struct quant_mul *m;
	const struct digits_type *type;
	enum mul_kind kind;
	size_t weights, bytes;                  /* of a block */
	size_t unit, strip_unit;                /* columns: 256 or 128; bytes of a strip for them */
	size_t strip;                           /* bytes of a token */
};
/* Some columns of up to ROWS rows and of n_t tokens, 1, 2 or 4, whose sums are in s. */
struct chunk {
	size_t t0, n_t, o, n_o, from, n;
	const char *strip;
	struct digit_sums *s;
};
static __m256 finish(const struct job *j, const struct chunk *c, size_t t, __m256 y)
{
	const struct digit_sums *s = c->s;
	const void *x = c->strip + t*j->strip;
	const size_t n = c->n/mul_block(j->kind);
	const int bias = j->type->bias;
	const __m256 factor = _mm256_set1_ps(j->type->factor);
	if (j->kind == MUL_16) return finish32(s, t, n, x, 16, DIGITS_FLOAT, bias, y);
	if (mul_block(j->kind) == 32) switch (j->type->scale) {
	case DIGITS_HALF: return finish32(s, t, n, x, 32, DIGITS_HALF, bias, y);
	case DIGITS_PAIR: return finish32(s, t, n, x, 32, DIGITS_PAIR, 0, y);
	default: return finish32(s, t, n, x, 32, DIGITS_FLOAT, bias, y);
	}
	switch (j->type->scale) {
	case DIGITS_HALF: return finish256(s, t, n, x, DIGITS_HALF, factor, y);
	case DIGITS_PAIR: return finish256(s, t, n, x, DIGITS_PAIR, factor, y);
	case DIGITS_PAIR_16: return finish256(s, t, n, x, DIGITS_PAIR_16, factor, y);
	default: return finish256(s, t, n, x, DIGITS_FLOAT, factor, y);
	}
}
/* y: of the columns before, [n_t] */
static void settle(const struct job *j, const struct chunk *c, __m256 *y)
{
	const struct quant_mul *m = j->m;
	for (size_t t = 0; t < c->n_t; t++) {
		float out[ROWS];
		y[t] = finish(j, c, t, c->from ? y[t] : _mm256_setzero_ps());
		if (c->from + c->n < m->n_in) continue;
		_mm256_storeu_ps(out, y[t]);
		memcpy(m->y + (c->t0 + t)*m->y_stride + c->o, out, c->n_o*sizeof *out);
	}
}
/* The columns of some rows that do not fill a unit: these are copied, for no more of a row may be read. */
static void last_columns(digits_fn *sums, struct digits_part part, size_t bytes, struct digit_sums *s)
{
	char copy[ROWS][DIGITS_UNIT/32*sizeof(struct q8_0)] = { { 0 } };
	for (size_t r = 0; r < part.n_rows; r++) memcpy(copy[r], part.w + r*part.w_stride, bytes);
	part.w = copy[0];
	part.w_stride = sizeof *copy;
	part.n = 1;
	sums(&part, s);
}
_Static_assert(2*sizeof(struct digit_sums) <= MUL_ROW_WORK, "sums of rows");
/* The sums of a chunk, and of how many columns. */
static void sum_up(const struct job *j, struct chunk *c)
{
	const struct quant_mul *m = j->m;
	digits_fn *sums = j->type->sums[c->n_t/2];
	const size_t left = m->n_in - c->from, bytes = c->from/j->weights*j->bytes;
	const char *w = (const char *)m->w + c->o*m->w_stride;
	struct digits_part part = { w + bytes, m->w_stride, c->n_o, 0, NULL, j->strip,
		w + ROWS*(m->w_stride + bytes) };
	c->n = left < DIGITS_COLUMNS ? left : DIGITS_COLUMNS;
	c->strip = (const char *)m->act + c->t0*j->strip + c->from/j->unit*j->strip_unit;
	part.n = c->n/j->unit;
	part.strip = c->strip;
	if (part.n) {
		c->n = part.n*j->unit;
		sums(&part, c->s);
	} else last_columns(sums, part, c->n/j->weights*j->bytes, c->s);
}
/* A chunk's sums become floats when the next one's have been summed up: what was stored in small pieces is read in
 * large ones, for which those have to be in cache, not under way to it. */
static void mul(const struct digits_table *table, const struct quant_mul *m, enum mul_kind kind, size_t t0, size_t n_t,
	size_t o0, size_t n_o, struct digit_sums *sums)
{
	const struct ggu_type_info *info = ggu_type_info(m->type);
	const size_t block = mul_block(kind), unit = block == 256 ? 256 : DIGITS_UNIT;
	const struct job j = { m, table->type + m->type, kind, info->block_weights, info->block_bytes, unit,
		strip_bytes(block, unit), strip_bytes(block, m->n_in) };
	struct chunk before = { .s = sums + 1 };
	__m256 y[DIGITS_TOKENS];
	for (size_t o = o0; o < o0 + n_o; o += ROWS)
		for (size_t t = t0, some; t < t0 + n_t; t += some) {
			some = t0 + n_t - t >= 4 ? 4 : t0 + n_t - t >= 2 ? 2 : 1;
			for (size_t i = 0; i < m->n_in; i += before.n) {
				struct chunk c = { t, some, o, o0 + n_o - o < ROWS ? o0 + n_o - o : ROWS, i,
					.s = before.s == sums ? sums + 1 : sums };
				sum_up(&j, &c);
				settle(&j, &before, y);
				before = c;
			}
		}
	settle(&j, &before, y);
}
#define TABLE(isa) \
static void mul_##isa(const struct quant_mul *m, enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o, \
	void *work) \
{ mul(&quant_digits_##isa, m, kind, t0, n_t, o0, n_o, work); } \
const struct row_table quant_row_##isa = { strip_bytes, pack, unpack, mul_##isa };
TABLE(avx2)
TABLE(avxvnni)
TABLE(avx512)
#else
typedef int isa_none;
#endif
