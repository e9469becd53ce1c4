/* SPDX-License-Identifier: MIT
 * coded_read.c - compute elements of coded weights; see coded.h.
 *
 * A piece is up to PIECE elements of a row of codes. The scales and zeros that it needs are read with it, unless those
 * of the piece before serve again, as they do for the rows of a block. Nothing is kept from one call to the next, so
 * that any thread may read any part. Numbers have at most 8 bits: a table says what each code stands for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../quant/quant.h"
#include "coded.h"

enum { PIECE = CODED_PIECE };
/* Of columns first to first + n - 1 of a line of the matrices of scales and zeros */
struct scales { uint64_t line, first; size_t n; float scale[PIECE], zero[PIECE]; };
struct reading {
	const struct checkpoint *c;
	const struct coded *k;
	struct ggu_error *err;
	float table[256];
	bool many;                      /* rows: each piece of a row comes again in the next */
	struct scales s;                /* those read last */
};
struct piece { uint64_t matrix, row, column; size_t n; uint8_t code[PIECE]; float *to; };

/* ---- packed numbers ---- */

static uint32_t word_at(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
/* Numbers `column` to column + n - 1 of a row of 32-bit integers; those that are not in order are read by eights. */
static enum ggu_status unpack_across(const struct reading *r, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to)
{
	const size_t before = k->place ? (size_t)(column%8) : 0, most = k->place ? (before + n + 7)/8*8 : n;
	const uint64_t first = (column - before)/32*k->bits + (column - before)%32*k->bits/32;
	const size_t start = (size_t)((column - before)%32*k->bits%32);
	const unsigned mask = (1u << k->bits) - 1;
	unsigned char raw[PIECE + 64];
	TRY(checkpoint_read(r->c, &k->in, row*k->width + first, raw, (start + most*k->bits + 31)/32, r->err));
	for (size_t i = 0; i < n; i++) {
		const size_t in = k->place ? (before + i)/8*8 + k->place[(before + i)%8] : i, at = start + in*k->bits;
		const unsigned char *p = raw + at/32*4;
		uint64_t u = word_at(p);
		if (at%32 + k->bits > 32) u |= (uint64_t)word_at(p + 4) << 32;
		to[i] = (uint8_t)(u >> at%32 & mask);
	}
	return GGU_OK;
}
/* The same of columns, whose numbers may end in the next row of integers */
static enum ggu_status unpack_down(const struct reading *r, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to)
{
	const unsigned shift = (unsigned)(row%32*k->bits%32), mask = (1u << k->bits) - 1;
	const uint64_t line = row/32*k->bits + row%32*k->bits/32;
	const bool more = shift + k->bits > 32;
	unsigned char raw[2][PIECE*4];
	TRY(checkpoint_read(r->c, &k->in, line*k->width + column, raw[0], n, r->err));
	if (more) TRY(checkpoint_read(r->c, &k->in, (line + 1)*k->width + column, raw[1], n, r->err));
	for (size_t i = 0; i < n; i++) {
		uint64_t u = word_at(raw[0] + 4*i);
		if (more) u |= (uint64_t)word_at(raw[1] + 4*i) << 32;
		to[i] = (uint8_t)(u >> shift & mask);
	}
	return GGU_OK;
}
/* Numbers of four bits, two in a byte */
static enum ggu_status unpack_halves(const struct reading *r, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to)
{
	const size_t odd = (size_t)(column%2);
	unsigned char raw[PIECE/2 + 1];
	TRY(checkpoint_read(r->c, &k->in, row*k->width + column/2, raw, (odd + n + 1)/2, r->err));
	for (size_t i = 0; i < n; i++) to[i] = raw[(odd + i)/2] >> (odd + i)%2*4 & 15;
	return GGU_OK;
}
static enum ggu_status unpack(const struct reading *r, const struct coded_packed *k, uint64_t row, uint64_t column,
	size_t n, uint8_t *to)
{
	if (k->down) return unpack_down(r, k, row, column, n, to);
	if (k->in.dtype->bytes == 4) return unpack_across(r, k, row, column, n, to);
	if (k->bits == 4) return unpack_halves(r, k, row, column, n, to);
	return checkpoint_read(r->c, &k->in, row*k->width + column, to, n, r->err);
}

/* ---- what numbers stand for ---- */

static float of_bits(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
/* Exponent and mantissa where a float has its own: the product corrects the exponent, also of subnormals. */
static float e4m3(unsigned u)
{
	const float x = of_bits((u & 127) << 20)*0x1p120f;
	return (u & 127) == 127 ? NAN : u & 128 ? -x : x;
}
/* The upper byte of a half */
static float e5m2(unsigned u)
{
	const uint16_t half = (uint16_t)(u << 8);
	float x;
	quant_decode(GGU_TYPE_F16, &half, &x, 1);
	return x;
}
static float e8m0(unsigned u) { return u == 255 ? NAN : ldexpf(1, (int)u - 127); }
static float e2m1(unsigned u)
{
	static const float levels[8] = { 0, .5f, 1, 1.5f, 2, 3, 4, 6 };
	return u & 8 ? -levels[u & 7] : levels[u & 7];
}
static float value(enum coded_kind kind, const struct source_tensor *t, unsigned u)
{
	switch (kind) {
	case CODED_E4M3: return e4m3(u);
	case CODED_E5M2: return e5m2(u);
	case CODED_E2M1: return e2m1(u & 15);
	default: return strcmp(t->dtype->name, "I8") ? (float)u : (float)(int8_t)u;
	}
}

/* ---- weights ---- */

static enum ggu_status read_scales(const struct reading *r, uint64_t at, size_t n, float *to)
{
	const struct source_tensor *t = &r->k->scale;
	unsigned char raw[PIECE*4];
	TRY(checkpoint_read(r->c, t, at, raw, n, r->err));
	if (t->dtype->type != SOURCE_NO_TYPE) quant_decode((uint32_t)t->dtype->type, raw, to, n);
	else for (size_t i = 0; i < n; i++) to[i] = strcmp(t->dtype->name, "F8_E4M3") ? e8m0(raw[i]) : e4m3(raw[i]);
	return GGU_OK;
}
/* Puts n scales and zeros from column `first` of a row of scales on into r->s, or all if that serves more rows. */
static enum ggu_status take_scales(struct reading *r, uint64_t matrix, uint64_t row, uint64_t first, size_t n)
{
	const struct coded *k = r->k;
	const uint64_t line = (k->shared ? 0 : matrix*k->scale_rows) + row;
	const bool sign = k->zero.in.name && k->zero.in.dtype->bytes == 1;
	struct scales *s = &r->s;
	uint8_t zero[PIECE] = { 0 };
	if (s->n && line == s->line && first >= s->first && first + n <= s->first + s->n) return GGU_OK;
	if (r->many && k->scale_columns <= PIECE) {
		first = 0;
		n = (size_t)k->scale_columns;
	}
	s->n = 0;
	TRY(read_scales(r, line*k->scale_columns + first, n, s->scale));
	if (k->zero.in.name) TRY(unpack(r, &k->zero, row, first, n, zero));
	for (size_t i = 0; i < n; i++)
		s->scale[i] = k->divided ? s->scale[i]/k->factor : s->scale[i]*k->factor;
	for (size_t i = 0; i < n; i++) s->zero[i] = (float)((sign ? (int8_t)zero[i] : zero[i]) + k->bias);
	s->line = line;
	s->first = first;
	s->n = n;
	return GGU_OK;
}
/* A piece whose scales follow each other, each for a block of columns */
static enum ggu_status piece_of_blocks(struct reading *r, const struct piece *p, uint64_t scale_row)
{
	const uint64_t width = r->k->block_columns, first = p->column/width, last = (p->column + p->n - 1)/width;
	const float *scale, *zero;
	uint64_t left = width - p->column%width;
	TRY(take_scales(r, p->matrix, scale_row, first, (size_t)(last - first + 1)));
	scale = r->s.scale + (first - r->s.first);
	zero = r->s.zero + (first - r->s.first);
	if (width == 1) {
		for (size_t i = 0; i < p->n; i++) p->to[i] = (r->table[p->code[i]] - zero[i])*scale[i];
		return GGU_OK;
	}
	for (size_t i = 0; i < p->n; scale++, zero++, left = width)
		for (const size_t end = left < p->n - i ? i + (size_t)left : p->n; i < end; i++)
			p->to[i] = (r->table[p->code[i]] - *zero)**scale;
	return GGU_OK;
}
/* coded_open has checked groups, but the file may have changed. */
static enum ggu_status no_group(const struct reading *r)
{
	return ggu_fail(r->err, GGU_ERR_FORMAT, GGU_NO_OFFSET, r->k->group.name, "there is no such group");
}
/* One for whose columns the list of groups says which scale they have */
static enum ggu_status piece_of_groups(struct reading *r, const struct piece *p, uint64_t scale_row)
{
	int32_t at[PIECE];
	TRY(checkpoint_read(r->c, &r->k->group, p->column, at, p->n, r->err));
	TRY(take_scales(r, p->matrix, scale_row, 0, (size_t)r->k->scale_columns));
	for (size_t i = 0; i < p->n; i++) {
		if (at[i] < 0 || (uint64_t)at[i] >= r->k->scale_columns) return no_group(r);
		p->to[i] = (r->table[p->code[i]] - r->s.zero[at[i]])*r->s.scale[at[i]];
	}
	return GGU_OK;
}
static enum ggu_status compute(struct reading *r, const struct piece *p)
{
	const struct coded *k = r->k;
	uint64_t scale_row = p->row/k->block_rows;
	if (k->grouped_rows) {
		int32_t group;
		TRY(checkpoint_read(r->c, &k->group, p->row, &group, 1, r->err));
		if (group < 0 || (uint64_t)group >= k->scale_rows) return no_group(r);
		scale_row = (uint64_t)group;
	}
	return k->grouped_columns ? piece_of_groups(r, p, scale_row) : piece_of_blocks(r, p, scale_row);
}
enum ggu_status coded_read(const struct checkpoint *source, const struct coded *k, uint64_t from, float *to, size_t n,
	struct ggu_error *err)
{
	struct reading r;               /* as large as its arrays, and a call may be for few elements */
	struct piece p;
	r.c = source;
	r.k = k;
	r.err = err;
	r.many = n > k->columns;
	r.s.n = 0;
	p.to = to;
	for (unsigned u = 0; u < 256; u++) r.table[u] = value(k->kind, &k->code.in, u);
	for (; n; from += p.n, p.to += p.n, n -= p.n) {
		const uint64_t line = from/k->columns;
		p.matrix = line/k->rows;
		p.row = line%k->rows;
		p.column = from%k->columns;
		p.n = n < PIECE ? n : PIECE;
		if (p.n > k->columns - p.column) p.n = (size_t)(k->columns - p.column);
		TRY(unpack(&r, &k->code, line, p.column, p.n, p.code));
		TRY(compute(&r, &p));
	}
	return GGU_OK;
}
