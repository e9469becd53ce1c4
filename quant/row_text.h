/* SPDX-License-Identifier: MIT
 * row_text.h - row products for instruction sets without digits (digits.h); defines ROW_TABLE. A strip is the columns
 * of a token in order, laid out as a strip of one token in mul.h.
 *
 * Eight rows are processed side by side, so that their sums are added up across lanes together. Meanwhile the next
 * eight are prefetched in the order of the file, as eight streams are more than hardware follows. In addition to
 * bytes.h, an instance gives
 *   isum                        partial sums, int32
 *   i_zero() i_add(a, b)
 *   i_codes16(a, q, x)          a += 16 codes times 16 activations
 *   i_codes32(a, q, x)          32 of them
 *   i_scaled(a, q, sc, x)       32 of them, sc[0] times the first 16 and sc[1] times the others
 *   i_pairs(a, u, v)            a += 16 int16 times 16 int16
 *   i_totals(s, total)          the eight sums of eight isum
 *   x_put(to, q, n)             n activations, a multiple of 16, in the form that the above need, in as many bytes
 *   x_get(x, i)                 the i-th of what x_put wrote */
#include "fused.h"
#include "unpack.h"

enum { ROWS = 8 };

/* Takes ROWS rows from `o` on, repeating the last one for those that are missing. */
static inline size_t take_rows(const char *w, size_t w_stride, size_t o, size_t n_out, const char **row)
{
	size_t n = n_out - o < ROWS ? n_out - o : ROWS;
	for (size_t r = 0; r < ROWS; r++) row[r] = w + (o + (r < n ? r : n - 1))*w_stride;
	return n;
}
static inline void fetch_bytes(const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += 64) __builtin_prefetch(from + i, 0, 2);
}
static inline void add_products(float *y, const float *d, float xd, const int32_t *total)
{
	UNROLL for (int r = 0; r < ROWS; r++) y[r] = fused(d[r]*xd, (float)total[r], y[r]);
}

/* One part of 32 columns of ROWS rows. */
INLINE void part32(struct codes32 (*c)[4], size_t p, const int16_t *x, int part, int has_min, float *y)
{
	isum s[ROWS];
	int32_t total[ROWS];
	float d[ROWS], m[ROWS], sum, xd;
	memcpy(&sum, (const char *)x + mul_strip_sum(32, 1), 4);
	memcpy(&xd, (const char *)x + mul_strip_d(32, 1), 4);
	UNROLL for (int r = 0; r < ROWS; r++) {
		d[r] = c[r][p].d;
		m[r] = c[r][p].m;
		s[r] = part == 16 ? i_codes16(i_zero(), c[r][p].q, x) : i_codes32(i_zero(), c[r][p].q, x);
	}
	i_totals(s, total);
	add_products(y, d, xd, total);
	if (has_min) UNROLL for (int r = 0; r < ROWS; r++) y[r] = fused(m[r]*xd, sum, y[r]);
	if (part != 16) return;
	UNROLL for (int r = 0; r < ROWS; r++) s[r] = i_codes16(i_zero(), c[r][p].q + 16, x + 16);
	i_totals(s, total);
	add_products(y, m, xd, total);          /* m is the d of the second half */
}
INLINE void rows32(size_t n_out, size_t n_in, const char *w, size_t w_stride, const int16_t *act, float *y,
	size_t weights, size_t bytes, int part, int has_min, unpack32_fn *unpack)
{
	for (size_t o = 0; o < n_out; o += ROWS) {
		const int16_t *x = act;
		const char *row[ROWS], *next = mul_past(w, (o + ROWS)*w_stride);
		float acc[ROWS] = { 0 };
		size_t n = take_rows(w, w_stride, o, n_out, row);
		for (size_t i = 0; i < n_in; i += weights, next += ROWS*bytes) {
			struct codes32 c[ROWS][4];
			fetch_bytes(next, ROWS*bytes);
			UNROLL for (int r = 0; r < ROWS; r++, row[r - 1] += bytes) unpack(row[r], c[r]);
			for (size_t p = 0; p < weights/32; p++, x += mul_strip_bytes(32, 1)/sizeof *x)
				part32(c, p, x, part, has_min, acc);
		}
		memcpy(y + o, acc, n*sizeof *y);
	}
}
/* In four chains, as an instruction takes four cycles. */
INLINE isum super(const struct codes256 *c, const int16_t *x)
{
	isum a[4];
	UNROLL for (int j = 0; j < 4; j++) a[j] = i_scaled(i_zero(), c->q + 32*j, c->sc + 2*j, x + 32*j);
	UNROLL for (int j = 4; j < 8; j++) a[j - 4] = i_scaled(a[j - 4], c->q + 32*j, c->sc + 2*j, x + 32*j);
	return i_add(i_add(a[0], a[1]), i_add(a[2], a[3]));
}
INLINE void rows256(size_t n_out, size_t n_in, const char *w, size_t w_stride, const int16_t *act, float *y,
	size_t weights, size_t bytes, int part, int has_min, unpack256_fn *unpack)
{
	(void)part;
	for (size_t o = 0; o < n_out; o += ROWS) {
		const int16_t *x = act;
		const char *row[ROWS], *next = mul_past(w, (o + ROWS)*w_stride);
		float acc[ROWS] = { 0 };
		size_t n = take_rows(w, w_stride, o, n_out, row);
		for (size_t i = 0; i < n_in; i += weights, x += mul_strip_bytes(256, 1)/sizeof *x, next += ROWS*bytes) {
			const int16_t *sums = x + mul_strip_sum(256, 1)/sizeof *x;
			isum s[ROWS], mins[ROWS];
			int32_t total[ROWS];
			float d[ROWS], m[ROWS], xd;
			memcpy(&xd, (const char *)x + mul_strip_d(256, 1), 4);
			fetch_bytes(next, ROWS*bytes);
			for (int r = 0; r < ROWS; r++) {
				struct codes256 c;
				unpack(row[r], &c);
				row[r] += bytes;
				s[r] = super(&c, x);
				d[r] = c.d;
				m[r] = -c.dmin;
				if (has_min) mins[r] = i_pairs(i_zero(), c.mn, sums);
			}
			i_totals(s, total);
			add_products(acc, d, xd, total);
			if (!has_min) continue;
			i_totals(mins, total);
			add_products(acc, m, xd, total);
		}
		memcpy(y + o, acc, n*sizeof *y);
	}
}
#define BLOCK(NAME, name, kind, part, has_min) \
static void row_##name(size_t n_out, size_t n_in, const void *w, size_t w_stride, const void *act, float *y) \
{ \
	rows##kind(n_out, n_in, w, w_stride, act, y, BLOCK_WEIGHTS_##NAME, sizeof(struct name), part, has_min, \
		unpack_##name); \
}
#include "types.inc"
#undef BLOCK

typedef void row_fn(size_t n_out, size_t n_in, const void *w, size_t w_stride, const void *act, float *y);
static row_fn *const row_of[GGU_TYPE_COUNT] = {
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = row_##name,
#include "types.inc"
#undef BLOCK
};
enum { CACHE = 128 << 10 };             /* bytes of rows that several tokens use one after another */

static size_t strip_bytes(size_t block, size_t n_in) { return n_in/block*mul_strip_bytes(block, 1); }
static void pack(size_t block, size_t n_in, const float *x, void *strip)
{
	char *to = strip;
	for (size_t i = 0; i < n_in; i += block, to += mul_strip_bytes(block, 1)) {
		struct narrow q;
		float sum;
		mul_codes->narrow(x + i, 0, 1, (int)block, true, &q);
		sum = (float)(q.sum[0] + q.sum[1]);
		x_put((void *)to, q.q, block);
		if (block == 32) memcpy(to + mul_strip_sum(32, 1), &sum, 4);
		else memcpy(to + mul_strip_sum(256, 1), q.sum, sizeof q.sum);
		memcpy(to + mul_strip_d(block, 1), &q.d, 4);
	}
}
static void unpack(size_t block, size_t n_in, const void *strip, float *x)
{
	const char *from = strip;
	for (size_t i = 0; i < n_in; i += block, from += mul_strip_bytes(block, 1)) {
		float d;
		memcpy(&d, from + mul_strip_d(block, 1), 4);
		for (size_t k = 0; k < block; k++) x[i + k] = d*(float)x_get((const void *)from, k);
	}
}
static void mul(const struct quant_mul *m, enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o,
	void *work)
{
	const size_t bytes = strip_bytes(mul_block(kind), m->n_in);
	size_t step = n_t == 1 || !m->w_stride ? n_o : CACHE/m->w_stride/8*8;
	(void)work;
	if (step < 8) step = 8;
	for (size_t o = o0; o < o0 + n_o; o += step)
		for (size_t t = t0; t < t0 + n_t; t++)
			row_of[m->type](o0 + n_o - o < step ? o0 + n_o - o : step, m->n_in,
				(const char *)m->w + o*m->w_stride, m->w_stride,
				(const char *)m->act + t*bytes, m->y + t*m->y_stride + o);
}
const struct row_table ROW_TABLE = { strip_bytes, pack, unpack, mul };
