/* SPDX-License-Identifier: MIT
 * digits_avx2.c - strips of digits, and the loops over rows, columns and tokens (digits.h has the picture), for all
 * instruction sets of x86. It is compiled for AVX2, which they have in common.
 *
 * A chunk is some blocks of some rows and leaves its sums in struct digit_sums. Then these are transposed, so that
 * lanes are rows, and settled. A chunk takes 25 cycles besides its sums, which favours large chunks. But nothing is
 * prefetched while sums are settled, so chunks of blocks of 32 whose rows are lanes all along are smaller. */
#if defined __x86_64__
#include <immintrin.h>
#include <string.h>
#include "digits.h"
#include "inline.h"
#include "kern.h"
#include "tlb.h"

/* ---- constants ---- */

#define TWICE_16(a, b) { a, b, a, b }
#define ALL_8(a) TWICE_16(a, a)
const struct q3_k_constants quant_q3_k = {
	.half = ALL_8(0x0f0f0f0f0f0f0f0f),
	.pair = ALL_8(0x3333333333333333),
	.even = ALL_8(0x4440444004000400),
	.odd = TWICE_16(0x0404000004040000, 0x4444404044444040),
	.three = ALL_8(0x7070707007070707),
	.first = TWICE_16(0x0504050401000100, 0x0706070603020302),
	.second = TWICE_16(0x0d0c0d0c09080908, 0x0f0e0f0e0b0a0b0a),
	.four = ALL_8(0x0000000400000000),
	.low = TWICE_16(0x0a0806040a080604, 0x0b0907050b090705),
	.up = TWICE_16(0x0e0c0e0c0e0c0e0c, 0x0f0d0f0d0f0d0f0d),
	.up_by = ALL_8(0x0001000400100040),
	.up_bits = ALL_8(0x3030303030303030),
	.bias = ALL_8(0x2020202020202020),
};

/* ---- strips ---- */

size_t digits_strip_bytes(size_t block, size_t n_in)
{
	if (block == 256) return n_in/256*sizeof(struct strip256);
	return (n_in + 255)/256*sizeof(struct strip_run);
}
/* Splits n integers, a multiple of 16; bits: the width of the low digits */
static inline void digits_of(const int16_t *q, size_t n, int bits, int8_t *high, int8_t *low)
{
	const __m256i half = _mm256_set1_epi16((short)(1 << bits >> 1));
	for (size_t i = 0; i < n; i += 16) {
		const __m256i x = _mm256_loadu_si256((const void *)(q + i)),
			h = _mm256_srai_epi16(_mm256_add_epi16(x, half), bits),
			both = _mm256_packs_epi16(h, _mm256_sub_epi16(x, _mm256_slli_epi16(h, bits))),
			apart = _mm256_permute4x64_epi64(both, 0xd8);
		_mm_storeu_si128((void *)(high + i), _mm256_castsi256_si128(apart));
		_mm_storeu_si128((void *)(low + i), _mm256_extracti128_si256(apart, 1));
	}
}
static inline __m128i sixteen(const int8_t *p) { return _mm_load_si128((const void *)p); }
static inline void put_sixteen(int8_t *p, __m128i a) { _mm_store_si128((void *)p, a); }
/* Takes the sixteens of `from` in the order of their numbers. */
static inline void take(const struct digits *from, const uint8_t *order, struct digits *to)
{
	UNROLL for (size_t i = 0; i < 16; i++) {
		put_sixteen(to->high + 16*i, sixteen(from->high + 16*order[i]));
		put_sixteen(to->low + 16*i, sixteen(from->low + 16*order[i]));
	}
}
/* ORDER_HALVES to ORDER_EIGHTS, ORDER_FOURTHS to ORDER_FOURTH_EIGHTS */
static inline void take_eights_of(const int8_t *from, int8_t *to)
{
	for (size_t i = 0; i < 256; i += 64)
		for (size_t k = 0; k < 32; k += 16) {
			const __m128i a = sixteen(from + i + k), b = sixteen(from + i + 32 + k);
			put_sixteen(to + i + k, _mm_unpacklo_epi64(a, b));
			put_sixteen(to + i + 32 + k, _mm_unpackhi_epi64(a, b));
		}
}
static inline void take_eights(const struct digits *from, struct digits *to)
{
	take_eights_of(from->high, to->high);
	take_eights_of(from->low, to->low);
}
/* ORDER_HALVES to ORDER_LANES: transposes the fours of bytes in each quarter of four registers. */
static inline void take_lanes(const int8_t *from, int8_t *to)
{
	for (size_t quarter = 0; quarter < 64; quarter += 16, from += 16, to += 16) {
		const __m128i a = sixteen(from), b = sixteen(from + 128),
			c = sixteen(from + 64), d = sixteen(from + 192),
			e = _mm_unpacklo_epi32(a, b), f = _mm_unpacklo_epi32(c, d),
			g = _mm_unpackhi_epi32(a, b), h = _mm_unpackhi_epi32(c, d);
		put_sixteen(to, _mm_unpacklo_epi64(e, f));
		put_sixteen(to + 64, _mm_unpackhi_epi64(e, f));
		put_sixteen(to + 128, _mm_unpacklo_epi64(g, h));
		put_sixteen(to + 192, _mm_unpackhi_epi64(g, h));
	}
}
/* The even columns of 16, then the odd ones */
static inline __m256i apart(__m256i q)
{
	const __m256i at = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14,
		15));
	return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(q, at), 0xd8);
}
/* The activations for the k-th digits of bytes i to i + 15 of a block of TQ1_0: 32 bytes come first, then 16, then 4
 * with one digit less, then nothing. */
static inline __m256i of_thirds(const int16_t *q, size_t k, size_t i)
{
	const int16_t *last = q + 240 + 4*k;
	if (k == 5 || (k == 4 && i == 48)) return _mm256_setzero_si256();
	if (i < 32) return _mm256_loadu_si256((const void *)(q + 32*k + i));
	if (i < 48) return _mm256_loadu_si256((const void *)(q + 160 + 16*k));
	return _mm256_zextsi128_si256(_mm_loadl_epi64((const void *)last));
}
/* x[k] - 3*x[k + 1], where x[k] are the activations for the k-th digits. Of each 32, the even ones come first. */
static inline void take_thirds(const int16_t *q, int16_t (*to)[64])
{
	for (size_t i = 0; i < 64; i += 32) {
		__m256i a = of_thirds(q, 0, i), b = of_thirds(q, 0, i + 16);
		UNROLL for (size_t k = 0; k < 5; k++) {
			const __m256i three = _mm256_set1_epi16(3),
				c = of_thirds(q, k + 1, i), d = of_thirds(q, k + 1, i + 16),
				x = apart(_mm256_sub_epi16(a, _mm256_mullo_epi16(c, three))),
				y = apart(_mm256_sub_epi16(b, _mm256_mullo_epi16(d, three)));
			_mm256_store_si256((void *)(to[k] + i), _mm256_permute2x128_si256(x, y, 0x20));
			_mm256_store_si256((void *)(to[k] + i + 16), _mm256_permute2x128_si256(x, y, 0x31));
			a = c;
			b = d;
		}
	}
}
/* The even and the odd ones of two sixteens that are 32 apart */
static inline void take_words(const int16_t *q, int16_t (*to)[16])
{
	const __m256i a = apart(_mm256_loadu_si256((const void *)q)),
		b = apart(_mm256_loadu_si256((const void *)(q + 32)));
	_mm256_store_si256((void *)to[0], _mm256_permute2x128_si256(a, b, 0x20));
	_mm256_store_si256((void *)to[1], _mm256_permute2x128_si256(a, b, 0x31));
}
/* Of each 32, the first eights of both sixteens, then the second ones */
static inline void take_code_eights(const int16_t *q, int16_t (*to)[16])
{
	for (size_t i = 0; i < 16; i += 2, q += 32) {
		const __m256i a = _mm256_loadu_si256((const void *)q), b = _mm256_loadu_si256((const void *)(q + 16));
		_mm256_store_si256((void *)to[i], _mm256_permute2x128_si256(a, b, 0x20));
		_mm256_store_si256((void *)to[i + 1], _mm256_permute2x128_si256(a, b, 0x31));
	}
}
/* Sums of the eights of 128 columns */
static inline void take_sums(const int16_t *q, int16_t *to)
{
	__m256i a[8];
	UNROLL for (size_t i = 0; i < 8; i++) a[i] = _mm256_loadu_si256((const void *)(q + 16*i));
	for (size_t n = 4; n; n /= 2)
		UNROLL for (size_t i = 0; i < n; i++) a[i] = _mm256_hadd_epi16(a[2*i], a[2*i + 1]);
	_mm256_store_si256((void *)to, a[0]);
}
/* What enum digits_reads names, after ORDER_PLAIN, ORDER_FOURTHS and ORDER_HALVES, from which some of it is taken */
static void pack_for_64(const struct narrow *q, const uint8_t *fourths, struct strip256 *s)
{
	static const uint8_t pairs[16] = { 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15 };
	_Alignas(64) struct digits up;
	digits_of(q->q, 256, 4, up.high, up.low);
	take(&up, fourths, s->in + ORDER_FOURTHS_UP);
	memcpy(s->in[ORDER_FOURTHS_UP].high, s->in[ORDER_FOURTHS].high, 128);
	memcpy(s->in[ORDER_FOURTHS_UP].low, s->in[ORDER_FOURTHS].low, 128);
	take(s->in, pairs, s->in + ORDER_PAIRS);
}
static void pack_for_32(const struct narrow *q, struct strip256 *s)
{
	take_eights(s->in + ORDER_FOURTHS, s->in + ORDER_FOURTH_EIGHTS);
	take_eights(s->in + ORDER_HALVES, s->in + ORDER_EIGHTS);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 2; k++) take_words(q->q + 64*i + 16*k, s->words + 4*i + 2*k);
}
static void pack_for_books(const struct narrow *q, struct strip256 *s)
{
	take_thirds(q->q, s->thirds);
	take_code_eights(q->q, s->eights);
	for (size_t i = 0; i < 2; i++) take_sums(q->q + 128*i, s->sum8[i]);
}
/* reads: what the tables in use read, of enum digits_reads */
static void pack256(const struct narrow *q, unsigned reads, struct strip256 *s)
{
	static const uint8_t fourths[16] = { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 },
		halves[16] = { 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15 };
	_Alignas(64) struct digits wide;
	digits_of(q->q, 256, 6, s->in[ORDER_PLAIN].high, s->in[ORDER_PLAIN].low);
	digits_of(q->q, 256, 8, wide.high, wide.low);
	take(&wide, fourths, s->in + ORDER_FOURTHS);
	take(s->in, halves, s->in + ORDER_HALVES);
	take_lanes(s->in[ORDER_HALVES].high, s->in[ORDER_LANES].high);
	take_lanes(s->in[ORDER_HALVES].low, s->in[ORDER_LANES].low);
	if (reads & READS_64) pack_for_64(q, fourths, s);
	if (reads & READS_32) pack_for_32(q, s);
	if (reads & READS_BOOKS_32) pack_for_books(q, s);
	memcpy(s->sum, q->sum, sizeof s->sum);
	digits_of(q->sum, 16, 8, s->sum_high, s->sum_low);
	UNROLL for (size_t i = 0; i < 8; i++) {
		s->first[i] = q->sum[2*i];
		s->second[i] = q->sum[2*i + 1];
		s->sum128[i] = 128*(q->sum[2*i] + q->sum[2*i + 1]);
	}
	UNROLL for (size_t i = 0; i < 16; i++) s->less4[i] = q->sum[i/8*8 + i/4%2 + i%2*4 + i/2%2*2]*(i%2 ? -64 : -4);
	s->d = q->d;
}
static void pack32(const struct narrow *q, struct strip_run *s, size_t k)
{
	const size_t at = digits_place(k);
	int8_t high[32], low[32];
	digits_of(q->q, 32, 6, high, low);
	UNROLL for (size_t i = 0; i < 2; i++) {
		memcpy(s->high[i][k], high + 16*i, 16);
		memcpy(s->low[i][k], low + 16*i, 16);
		s->sum[i][at] = s->of[k].sum[i] = q->sum[i];
	}
	s->all[at] = s->of[k].all = q->sum[0] + q->sum[1];
	s->all_float[k] = (float)s->all[at];
	s->d[k] = q->d;
}
/* Packs some blocks at once, as the steps of a block depend on each other. */
void digits_pack(unsigned reads, size_t block, size_t n_in, const float *x, void *strip)
{
	struct narrow q[NARROW_ROWS];
	struct strip256 *s = strip;
	struct strip_run *u = strip;
	if (block == 32 && n_in%256) u[n_in/256] = (struct strip_run){ 0 };
	for (size_t b = 0, some; b < n_in/block; b += some) {
		some = size_least(n_in/block - b, NARROW_ROWS);
		mul_codes->narrow(x + b*block, block, some, (int)block, true, q);
		for (size_t i = 0; i < some; i++)
			if (block == 256) pack256(q + i, reads, s + b + i);
			else pack32(q + i, u + (b + i)/8, (b + i)%8);
	}
}
void digits_unpack(size_t block, size_t n_in, const void *strip, float *x)
{
	const struct strip256 *s = strip;
	const struct strip_run *u = strip;
	for (size_t i = 0; i < n_in; i++, s += i%256 == 0, u += i%256 == 0) {
		const size_t k = i/32%8, half = i/16%2, at = i%16;
		if (block == 256) x[i] = s->d*(float)(64*s->in[0].high[i%256] + s->in[0].low[i%256]);
		else x[i] = u->d[k]*(float)(64*u->high[half][k][at] + u->low[half][k][at]);
	}
}

/* ---- products ---- */

/* While some rows are processed, column by column, the same number of following rows is prefetched from end to end, in
 * the order of memory. Their last ones are used soon after the first, so prefetches are LEAD bytes ahead of that
 * pace. */
enum { LEAD = 4 << 10 };

/* What all chunks of a product have in common, so that they begin without divisions. */
struct job {
	const struct quant_mul *m;
	const struct digits_table *table;
	const struct digits_type *type;
	enum mul_kind kind;
	size_t units, step[3];                  /* a row's blocks, of its type; a chunk's, of 1, 2 and 4 tokens */
	size_t columns, blocks, bytes;          /* of such a block; blocks: of 32 or 256 columns */
	size_t strip, strip_256;                /* bytes of a token; of 256 columns, where chunks begin */
};
/* Some blocks of up to table->rows rows and of n_t tokens, 1, 2 or 4, whose sums are in s. */
struct chunk {
	size_t t0, n_t, o, n_o, unit;
	struct digit_sums *s;
	size_t n_units, n_blocks;
	const char *strip;
};
/* y: the results of earlier columns, for each token */
static void settle(const struct job *j, const struct chunk *c, float (*y)[DIGITS_ROWS])
{
	const struct quant_mul *m = j->m;
	for (size_t t = 0; t < c->n_t; t++) {
		if (!c->unit) memset(y[t], 0, sizeof y[t]);
		j->table->settle(j->type, j->kind, c->s, c->s->s + (t*DIGITS_SUMS >> c->n_t/2), c->n_blocks,
			c->strip + t*j->strip, y[t]);
		if (c->unit + c->n_units >= j->units)
			memcpy(m->y + (c->t0 + t)*m->y_stride + c->o, y[t], c->n_o*sizeof *m->y);
	}
}
/* Rows of blocks of 32 are processed ROWS at a time: the last ones are followed by rows of zeros. */
static void last_rows(digits_fn *sums, struct digits_part part, size_t bytes, struct digit_sums *s)
{
	char copy[DIGITS_ROWS][DIGITS_COLUMNS/32*sizeof(struct q8_0)];
	for (size_t r = 0; r < DIGITS_ROWS; r++)
		if (r < part.n_rows) memcpy(copy[r], part.w + r*part.w_stride, bytes);
		else memset(copy[r], 0, bytes);
	part.w = copy[0];
	part.w_stride = sizeof *copy;
	sums(&part, s);
}
_Static_assert(2*sizeof(struct digit_sums) <= MUL_ROW_WORK, "sums of rows");
static void sum_up(const struct job *j, struct chunk *c, struct tlb *tlb)
{
	const struct quant_mul *m = j->m;
	digits_fn *sums = j->type->sums[c->n_t/2];
	const size_t left = j->units - c->unit, n = size_least(left, j->step[c->n_t/2]), at = c->unit*j->bytes,
		bytes = n*j->bytes;
	const char *w = (const char *)m->w + c->o*m->w_stride + at;
	c->strip = (const char *)m->act + c->t0*j->strip + c->unit*j->columns/256*j->strip_256;
	struct digits_part part = { w, m->w_stride, c->n_o, n, c->strip, j->strip,
		mul_past(w, (j->table->rows - DIGITS_NEARER)*m->w_stride + (j->table->rows - 1)*at + LEAD),
		mul_row_fetch, n < left ? w + bytes : mul_past(w, c->n_o*m->w_stride - at),
		(DIGITS_LATER + bytes - 1)/bytes, (DIGITS_SOON + bytes - 1)/bytes };
	const size_t from = c->o*m->w_stride + j->table->rows*at;
	tlb_look_up(tlb, from, from);
	c->n_units = n;
	c->n_blocks = n*j->blocks;
	if (mul_block(j->kind) == 32 && !j->type->runs && c->n_o < j->table->rows) last_rows(sums, part, bytes, c->s);
	else sums(&part, c->s);
}
/* Prefetches a chunk of a task's first rows, unless the thread's last task has done so. */
static void fetch_first(const struct job *j, size_t o, size_t n_o, size_t unit, size_t step)
{
	const size_t left = j->units - unit, n = size_least(left, step)*j->bytes;
	const char *w = (const char *)j->m->w + o*j->m->w_stride + unit*j->bytes;
	for (size_t r = 0; r < n_o; r++, w += j->m->w_stride)
		for (size_t i = 0; i < n + 63; i += 64) __builtin_prefetch(w + (i < n ? i : n - 1), 0, 2);
}
/* A chunk's sums are settled after the next one's have been computed: what was stored in small pieces is read in large
 * ones, which is fast only once the stores have reached the cache. */
static void mul_all(const struct job *j, size_t t0, size_t n_t, size_t o0, size_t n_o, struct digit_sums *sums)
{
	static _Thread_local const char *fetched_from;  /* the rows that this thread's last task has prefetched */
	const char *w = (const char *)j->m->w;
	const bool first = fetched_from != w + o0*j->m->w_stride;
	struct chunk before = { .s = sums + 1 };
	struct tlb tlb = { w, j->m->n_out*j->m->w_stride, o0*j->m->w_stride };
	_Alignas(64) float y[DIGITS_TOKENS][DIGITS_ROWS];
	fetched_from = w + (o0 + n_o)*j->m->w_stride;
	for (size_t o = o0, rows; o < o0 + n_o; o += rows) {
		rows = o0 + n_o - o < j->table->rows ? o0 + n_o - o : j->table->rows;
		for (size_t t = t0, some; t < t0 + n_t; t += some) {
			some = t0 + n_t - t >= 4 ? 4 : t0 + n_t - t >= 2 ? 2 : 1;
			const size_t step = j->step[some/2];
			if (first && o == o0) fetch_first(j, o, rows, 0, step);
			for (size_t u = 0; u < j->units; u += before.n_units) {
				if (first && o == o0 && u + step < j->units) fetch_first(j, o, rows, u + step, step);
				struct chunk c = { t, some, o, rows, u, before.s == sums ? sums + 1 : sums };
				sum_up(j, &c, &tlb);
				settle(j, &before, y);
				before = c;
			}
		}
	}
	settle(j, &before, y);
}
/* The blocks of each chunk, if a row of n, in runs of `run`, is divided evenly into chunks of at most `most` runs */
static size_t chunk_of(size_t n, size_t run, size_t most)
{
	const size_t runs = (n + run - 1)/run, chunks = size_most((runs + most - 1)/most, 1);
	return (runs + chunks - 1)/chunks*run;
}
void digits_mul(const struct digits_table *books, const struct digits_table *digits, const struct quant_mul *m,
	enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	const struct digits_table *from = books->type[m->type].sums[0] ? books : digits,
		*alone = m->n_tokens == 1 && mul_row_fetch != MUL_TO_L2 ? from->type[m->type].alone : NULL,
		*table = alone ? alone : from;
	const struct ggu_type_info *info = ggu_type_info(m->type);
	const struct digits_type *type = table->type + m->type;
	const size_t block = mul_block(kind), unit = info->block_weights, units = m->n_in/unit,
		run = type->runs ? 256/unit : 1, most = type->runs ? DIGITS_RUNS_MOST/type->runs : table->supers,
		one = type->supers ? type->supers : most, more = size_most(one, most);
	struct job j = {
		.m = m, .table = table, .type = type, .kind = kind,
		.units = units, .step = { one, more/2, more/4 },
		.columns = unit, .blocks = unit/block, .bytes = info->block_bytes,
		.strip = digits_strip_bytes(block, m->n_in), .strip_256 = digits_strip_bytes(block, 256),
	};
	for (size_t i = 0; i < 3; i++)
		j.step[i] = block == 32 && !type->runs ? DIGITS_COLUMNS/unit : chunk_of(units, run, j.step[i]);
	if (j.type->sums[0]) mul_all(&j, t0, n_t, o0, n_o, work);
	else digits_widened(m, kind, j.strip, t0, n_t, o0, n_o);
}
#else
typedef int isa_none;
#endif
