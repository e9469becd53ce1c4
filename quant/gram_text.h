/* SPDX-License-Identifier: MIT
 * gram_text.h - columns to codes, and their products, one text for all instruction sets; defines the table GRAM_TABLE.
 * An instance (gram_ISA.c) first includes one of lane.h's vocabularies, and gives
 *   IN_WORD                     codes of a word: 4, of eight bits, or 2, of sixteen
 *   LIFT                        what is added to codes of columns: 128 if r_words takes them as unsigned, or 0
 *   TALL, WIDE                  rows of a tile, of one panel; its registers of columns, of one or two panels
 *   ri r_words(sum, a, b)       sum += the products of each lane's codes, a of columns, b of a row */
#include "../libgguf/size.h"
#include "gram_internal.h"
#include "inline.h"

enum { BITS = 32/IN_WORD, PARTS = GRAM_PACKED/REG };

/* The first word of column i. */
static inline int32_t *column(const struct gram_panels *p, size_t i)
{
	return p->words + i/GRAM_COLUMNS*GRAM_COLUMNS*p->n_words + i%GRAM_COLUMNS;
}

/* ---- columns to codes ---- */

/* The n numbers from p on times `by`, followed by zeros */
static inline rf inputs(const float *p, size_t n, rf by)
{
	return (n >= REG ? r_floats(p) : n ? r_part(p, n) : (rf){ 0 })*by;
}
static inline size_t beyond(size_t n, size_t k) { return n > k ? n - k : 0; }

/* The bits of magnitudes, as integers, have the same order, with NaN above all. */
static inline void greatest(const struct gram *g, size_t first, size_t n, ri *most)
{
	for (size_t t = 0; t < g->n_tokens; t++) {
		const float *x = g->x + t*g->stride + first;
		const rf by = r_dup_at(g->by + t);
		UNROLL for (size_t p = 0; p < PARTS; p++)
			most[p] = ri_max(most[p], (ri)r_abs(inputs(x + p*REG, beyond(n, p*REG), by)));
	}
}
#define LEAST 0x1p-96f
static inline void codes(const struct gram *g, size_t first, size_t n, const rf *to_code, const ri *live,
	const struct gram_panels *panels, ri *sum)
{
	for (size_t t = 0, at = 0; t < g->n_tokens; t += IN_WORD, at += GRAM_COLUMNS) {
		ri w[PARTS] = { { 0 } };
		UNROLL for (size_t k = 0; k < IN_WORD; k++) {
			const float *x = g->x + (t + k)*g->stride + first;
			if (t + k == g->n_tokens) break;
			const rf by = r_dup_at(g->by + t + k);
			UNROLL for (size_t p = 0; p < PARTS; p++) {
				rf v = inputs(x + p*REG, beyond(n, p*REG), by);
				ri c = r_nearest(v*to_code[p]) & live[p];
				sum[p] += c;
				w[p] |= (ri)((ru)c << (32 - BITS) >> (32 - BITS*(int)(k + 1)));
			}
		}
		UNROLL for (size_t p = 0; p < PARTS; p++) memcpy(column(panels, first + p*REG) + at, w + p, sizeof *w);
	}
}
static inline void pack_some(const struct gram *g, size_t first, size_t n, const struct gram_panels *p)
{
	ri most[PARTS] = { { 0 } }, live[PARTS], sum[PARTS] = { { 0 } };
	rf to_code[PARTS];
	greatest(g, first, n, most);
	UNROLL for (size_t k = 0; k < PARTS; k++) {
		const rf top = (rf)most[k];
		live[k] = (top >= LEAST) & (top < INFINITY);
		to_code[k] = 127.0f/r_sel(live[k], top, r_dup(1));
		r_put(p->scale + first + k*REG, r_sel(live[k], top/127.0f, r_sel(top < LEAST, (rf){ 0 }, r_dup(NAN))));
	}
	codes(g, first, n, to_code, live, p, sum);
	memcpy(p->sum + first, sum, sizeof sum);
}
static void pack(const struct gram *g, size_t first, const struct gram_panels *p)
{
	const size_t n = g->n - first;
	if (n >= GRAM_PACKED) pack_some(g, first, GRAM_PACKED, p);
	else pack_some(g, first, n, p);
}

/* ---- products ---- */

/* to[l] += sum[l]*scale_j[l]*scale_i */
static inline rf added(rf to, ri sum, const float *scale_j, rf scale_i)
{
	return r_fma(r_int(sum)*r_floats(scale_j), scale_i, to);
}
/* Adds a row's registers of sums, of which the first n numbers are in the triangle, to it. */
static void end_part(const ri *sum, const float *scale_j, float scale_i, float *to, size_t n)
{
	for (; n; n -= size_least(n, REG), sum++, scale_j += REG, to += REG)
		r_put_part(to, added(r_part(to, size_least(n, REG)), *sum, scale_j, r_dup(scale_i)),
			size_least(n, REG));
}
/* Multiplies TALL rows, from i on, with the columns from j on that are not beyond the diagonal. */
static inline void tile(const struct gram *g, const struct gram_panels *p, size_t i, size_t j)
{
	const int32_t *row = column(p, i), *col[WIDE];
	const float *scale = p->scale + i;
	float *to[TALL];
	ri sum[TALL][WIDE];
	UNROLL for (size_t w = 0; w < WIDE; w++) col[w] = column(p, j + w*REG);
	UNROLL for (size_t r = 0; r < TALL; r++) {
		to[r] = g->to + (i + r < g->n ? (i + r)*(i + r + 1)/2 + j : 0);
		UNROLL for (size_t w = 0; w < WIDE; w++) {
			sum[r][w] = (ri){ 0 } - LIFT*p->sum[i + r];
			__builtin_prefetch(to[r] + w*REG, 1);
		}
	}
	for (size_t k = 0; k < p->n_words; k++, row += GRAM_COLUMNS) {
		ri c[WIDE];
		UNROLL for (size_t w = 0; w < WIDE; w++)
			c[w] = (ri)((ru)r_load(col[w] + k*GRAM_COLUMNS) ^ LIFT*0x01010101u);
		UNROLL for (size_t r = 0; r < TALL; r++) {
			const ri x = (ri){ 0 } + row[r];
			UNROLL for (size_t w = 0; w < WIDE; w++) sum[r][w] = r_words(sum[r][w], c[w], x);
		}
	}
	if (i + TALL <= g->n && j + WIDE*REG <= i + 1)
		UNROLL for (size_t r = 0; r < TALL; r++)
			UNROLL for (size_t w = 0; w < WIDE; w++)
				r_put(to[r] + w*REG, added(r_floats(to[r] + w*REG), sum[r][w], p->scale + j + w*REG,
					r_dup(scale[r])));
	else {
		ri all[TALL][WIDE];
		memcpy(all, sum, sizeof all);
		for (size_t r = 0; r < TALL && i + r < g->n; r++)
			if (j <= i + r)
				end_part(all[r], p->scale + j, scale[r], to[r], size_least(i + r + 1 - j, WIDE*REG));
	}
}
static void add(const struct gram *g, const struct gram_panels *p, size_t first, size_t n)
{
	for (size_t j = 0; j < first + n; j += WIDE*REG)
		for (size_t i = first; i < first + n && i < g->n; i += TALL) if (j < i + TALL) tile(g, p, i, j);
}

const struct gram_table GRAM_TABLE = { IN_WORD, pack, add };
