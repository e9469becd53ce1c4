/* SPDX-License-Identifier: MIT
 * coded_read.c - compute elements of coded weights; see coded.h.
 *
 * A piece is up to PIECE elements of a row of codes. The scales and zeros that it needs are read with it, and nothing
 * is kept from one piece to the next, so that any thread may read any part. Numbers have at most 8 bits: a table says
 * what each code stands for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../quant/quant.h"
#include "coded.h"

enum { PIECE = CODED_PIECE };
struct scales { float scale[PIECE], zero[PIECE]; };

/* ---- packed numbers ---- */

static uint32_t word_at(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
/* Numbers `column` to column + n - 1 of a row of 32-bit integers; those that are not in order are read by eights. */
static enum ggu_status unpack_across(const struct checkpoint *c, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to, struct ggu_error *err)
{
	const size_t before = k->place ? (size_t)(column%8) : 0, most = k->place ? (before + n + 7)/8*8 : n;
	const uint64_t first = (column - before)/32*k->bits + (column - before)%32*k->bits/32;
	const size_t start = (size_t)((column - before)%32*k->bits%32);
	const unsigned mask = (1u << k->bits) - 1;
	unsigned char raw[PIECE + 64];
	TRY(checkpoint_read(c, &k->in, row*k->width + first, raw, (start + most*k->bits + 31)/32, err));
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
static enum ggu_status unpack_down(const struct checkpoint *c, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to, struct ggu_error *err)
{
	const unsigned shift = (unsigned)(row%32*k->bits%32), mask = (1u << k->bits) - 1;
	const uint64_t line = row/32*k->bits + row%32*k->bits/32;
	const bool more = shift + k->bits > 32;
	unsigned char raw[2][PIECE*4];
	TRY(checkpoint_read(c, &k->in, line*k->width + column, raw[0], n, err));
	if (more) TRY(checkpoint_read(c, &k->in, (line + 1)*k->width + column, raw[1], n, err));
	for (size_t i = 0; i < n; i++) {
		uint64_t u = word_at(raw[0] + 4*i);
		if (more) u |= (uint64_t)word_at(raw[1] + 4*i) << 32;
		to[i] = (uint8_t)(u >> shift & mask);
	}
	return GGU_OK;
}
/* Numbers of four bits, two in a byte */
static enum ggu_status unpack_halves(const struct checkpoint *c, const struct coded_packed *k, uint64_t row,
	uint64_t column, size_t n, uint8_t *to, struct ggu_error *err)
{
	const size_t odd = (size_t)(column%2);
	unsigned char raw[PIECE/2 + 1];
	TRY(checkpoint_read(c, &k->in, row*k->width + column/2, raw, (odd + n + 1)/2, err));
	for (size_t i = 0; i < n; i++) to[i] = raw[(odd + i)/2] >> (odd + i)%2*4 & 15;
	return GGU_OK;
}
static enum ggu_status unpack(const struct checkpoint *c, const struct coded_packed *k, uint64_t row, uint64_t column,
	size_t n, uint8_t *to, struct ggu_error *err)
{
	if (k->down) return unpack_down(c, k, row, column, n, to, err);
	if (k->in.dtype->bytes == 4) return unpack_across(c, k, row, column, n, to, err);
	if (k->bits == 4) return unpack_halves(c, k, row, column, n, to, err);
	return checkpoint_read(c, &k->in, row*k->width + column, to, n, err);
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

static enum ggu_status read_scales(const struct checkpoint *c, const struct source_tensor *t, uint64_t at, size_t n,
	float *to, struct ggu_error *err)
{
	unsigned char raw[PIECE*4];
	TRY(checkpoint_read(c, t, at, raw, n, err));
	if (t->dtype->type != SOURCE_NO_TYPE) quant_decode((uint32_t)t->dtype->type, raw, to, n);
	else for (size_t i = 0; i < n; i++) to[i] = strcmp(t->dtype->name, "F8_E4M3") ? e8m0(raw[i]) : e4m3(raw[i]);
	return GGU_OK;
}
/* The n scales and zeros from column `first` of a row of a matrix on */
static enum ggu_status take_scales(const struct checkpoint *c, const struct coded *k, uint64_t matrix, uint64_t row,
	uint64_t first, size_t n, struct scales *s, struct ggu_error *err)
{
	const uint64_t line = (k->shared ? 0 : matrix*k->scale_rows) + row;
	uint8_t zero[PIECE] = { 0 };
	TRY(read_scales(c, &k->scale, line*k->scale_columns + first, n, s->scale, err));
	if (k->zero.in.name) TRY(unpack(c, &k->zero, row, first, n, zero, err));
	for (size_t i = 0; i < n; i++)
		s->scale[i] = k->divided ? s->scale[i]/k->factor : s->scale[i]*k->factor;
	const bool sign = k->zero.in.name && k->zero.in.dtype->bytes == 1;
	for (size_t i = 0; i < n; i++) s->zero[i] = (float)((sign ? (int8_t)zero[i] : zero[i]) + k->bias);
	return GGU_OK;
}
/* A piece whose scales follow each other, each for a block of columns */
static enum ggu_status piece_of_blocks(const struct checkpoint *c, const struct coded *k, uint64_t matrix, uint64_t row,
	uint64_t column, const uint8_t *code, size_t n, const float *table, float *to, struct ggu_error *err)
{
	const uint64_t first = column/k->block_columns, last = (column + n - 1)/k->block_columns;
	uint64_t left = k->block_columns - column%k->block_columns;
	struct scales s;
	TRY(take_scales(c, k, matrix, row, first, (size_t)(last - first + 1), &s, err));
	if (k->block_columns == 1) {
		for (size_t i = 0; i < n; i++) to[i] = (table[code[i]] - s.zero[i])*s.scale[i];
		return GGU_OK;
	}
	for (size_t i = 0, j = 0; i < n; j++, left = k->block_columns) {
		const float scale = s.scale[j], zero = s.zero[j];
		for (const size_t end = left < n - i ? i + (size_t)left : n; i < end; i++)
			to[i] = (table[code[i]] - zero)*scale;
	}
	return GGU_OK;
}
/* coded_open has checked groups, but the file may have changed. */
static enum ggu_status no_group(const struct coded *k, struct ggu_error *err)
{
	return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, k->group.name, "there is no such group");
}
/* One for whose columns the list of groups says which scale they have */
static enum ggu_status piece_of_groups(const struct checkpoint *c, const struct coded *k, uint64_t matrix, uint64_t row,
	uint64_t column, const uint8_t *code, size_t n, const float *table, float *to, struct ggu_error *err)
{
	int32_t at[PIECE];
	struct scales s;
	TRY(checkpoint_read(c, &k->group, column, at, n, err));
	TRY(take_scales(c, k, matrix, row, 0, (size_t)k->scale_columns, &s, err));
	for (size_t i = 0; i < n; i++) {
		if (at[i] < 0 || (uint64_t)at[i] >= k->scale_columns) return no_group(k, err);
		to[i] = (table[code[i]] - s.zero[at[i]])*s.scale[at[i]];
	}
	return GGU_OK;
}
static enum ggu_status piece(const struct checkpoint *c, const struct coded *k, uint64_t line, uint64_t column,
	size_t n, const float *table, float *to, struct ggu_error *err)
{
	const uint64_t matrix = line/k->rows, row = line%k->rows;
	uint64_t scale_row = row/k->block_rows;
	uint8_t code[PIECE];
	TRY(unpack(c, &k->code, line, column, n, code, err));
	if (k->grouped_rows) {
		int32_t group;
		TRY(checkpoint_read(c, &k->group, row, &group, 1, err));
		if (group < 0 || (uint64_t)group >= k->scale_rows) return no_group(k, err);
		scale_row = (uint64_t)group;
	}
	if (k->grouped_columns) return piece_of_groups(c, k, matrix, scale_row, column, code, n, table, to, err);
	return piece_of_blocks(c, k, matrix, scale_row, column, code, n, table, to, err);
}
enum ggu_status coded_read(const struct checkpoint *source, const struct coded *k, uint64_t from, float *to, size_t n,
	struct ggu_error *err)
{
	float table[256];
	for (unsigned u = 0; u < 256; u++) table[u] = value(k->kind, &k->code.in, u);
	for (size_t some; n; from += some, to += some, n -= some) {
		const uint64_t column = from%k->columns, left = k->columns - column;
		some = n < PIECE ? n : PIECE;
		if (some > left) some = (size_t)left;
		TRY(piece(source, k, from/k->columns, column, some, table, to, err));
	}
	return GGU_OK;
}
