/* SPDX-License-Identifier: MIT
 * coded_read.c - compute elements of coded weights; see coded.h.
 *
 * What a box of codes needs of each tensor is a window: a rectangle of what the tensor stores, such as 32-bit integers,
 * read at once if it is as wide as the tensor, else row by row. Reading finds all that can be wrong with a file, so
 * computing cannot fail. It goes by pieces of up to PIECE elements of a row of codes. Numbers have at most 8 bits: a
 * table says what each code stands for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../libgguf/try.h"
#include "../quant/quant.h"
#include "coded.h"

enum { PIECE = CODED_PIECE, BOX = 1 << 16 };
/* Of each of n_rows rows from `row` on, `width` elements as stored, from element `first` on */
struct window { uint64_t row, n_rows, first, width; unsigned char *bytes; };
struct coded_raw {
	const struct coded *k;
	struct window code, scale, bias, zero, group;
};

/* ---- what a box needs ---- */

/* The 32-bit integer with the first bit of number n of a stream */
static uint64_t word_of(uint64_t n, unsigned bits) { return n/32*bits + n%32*bits/32; }
/* Numbers that are not in order are taken by eights. */
static struct window packed_window(const struct coded_packed *k, const struct coded_box *b)
{
	struct window w = { b->line, b->n_lines, b->column, b->n_columns, NULL };
	const uint64_t end = b->column + b->n_columns;
	if (k->down) {
		w.row = word_of(b->line, k->bits);
		w.n_rows = coded_words(b->line + b->n_lines, k->bits) - w.row;
	} else if (k->in.dtype->bytes == 4) {
		w.first = word_of(k->place ? b->column/8*8 : b->column, k->bits);
		w.width = coded_words(k->place ? (end + 7)/8*8 : end, k->bits) - w.first;
	} else if (k->bits == 4) {
		w.first = b->column/2;
		w.width = (end + 1)/2 - w.first;
	}
	return w;
}
static struct window group_window(const struct coded *k, const struct coded_box *b)
{
	if (k->grouped_rows) return (struct window){ 0, 1, b->line, b->n_lines, NULL };
	if (k->grouped_columns) return (struct window){ 0, 1, b->column, b->n_columns, NULL };
	return (struct window){ 0 };
}
static int32_t group_at(const struct window *w, uint64_t i)
{
	int32_t g;
	memcpy(&g, w->bytes + 4*(i - w->first), sizeof g);
	return g;
}
/* The lines of scales, from *line to before *end, of a box. group: as read, or NULL for any that it may have */
static void scale_lines(const struct coded *k, const struct coded_box *b, const struct window *group, uint64_t *line,
	uint64_t *end)
{
	const uint64_t last = b->line + b->n_lines - 1, matrix = b->line/k->rows, last_matrix = last/k->rows;
	*line = 0;
	*end = k->scale_rows;
	if (k->grouped_rows && group) {
		*line = k->scale_rows;
		*end = 0;
		for (uint64_t i = b->line; i <= last; i++) {
			const uint64_t g = (uint64_t)group_at(group, i);
			if (g < *line) *line = g;
			if (g >= *end) *end = g + 1;
		}
	} else if (!k->grouped_rows && (!k->shared || matrix == last_matrix)) {
		*line = b->line%k->rows/k->block_rows + (k->shared ? 0 : matrix*k->scale_rows);
		*end = last%k->rows/k->block_rows + (k->shared ? 0 : last_matrix*k->scale_rows) + 1;
	}
}
static struct coded_box scales_of(const struct coded *k, const struct coded_box *b, const struct window *group)
{
	const uint64_t first = b->column/k->block_columns, last = (b->column + b->n_columns - 1)/k->block_columns;
	uint64_t line, end;
	scale_lines(k, b, group, &line, &end);
	if (k->grouped_columns) return (struct coded_box){ line, end - line, 0, k->scale_columns };
	return (struct coded_box){ line, end - line, first, last + 1 - first };
}
uint64_t coded_raw_bytes(const struct coded *k, const struct coded_box *b)
{
	const struct coded_box s = scales_of(k, b, NULL);
	const struct window none = { 0 }, code = packed_window(&k->code, b), group = group_window(k, b),
		zero = k->zero.in.name ? packed_window(&k->zero, &s) : none;
	const struct { uint64_t rows, width, bytes; } all[] = {
		{ code.n_rows, code.width, k->code.in.dtype->bytes },
		{ s.n_lines, s.n_columns, k->scale.dtype->bytes },
		{ s.n_lines, s.n_columns, k->bias.name ? k->bias.dtype->bytes : 0 },
		{ zero.n_rows, zero.width, zero.width ? k->zero.in.dtype->bytes : 0 },
		{ group.n_rows, group.width, sizeof(int32_t) },
	};
	uint64_t sum = 0, n;
	for (size_t i = 0; i < sizeof all/sizeof *all; i++)
		if (__builtin_mul_overflow(all[i].rows, all[i].width, &n) ||
			__builtin_mul_overflow(n, all[i].bytes, &n) || __builtin_add_overflow(sum, n, &sum))
			return UINT64_MAX;
	return sum;
}

/* ---- reading ---- */

/* across: elements of a row of the tensor */
static enum ggu_status fetch(const struct checkpoint *c, const struct source_tensor *t, uint64_t across,
	struct window *w, struct ggu_error *err)
{
	const size_t bytes = t->dtype->bytes, all = (size_t)(w->n_rows*w->width);
	const size_t run = w->width == across ? all : (size_t)w->width;
	/* with a byte more, as numbers are loaded with the byte after them */
	w->bytes = malloc(all*bytes + 1);
	if (!w->bytes) return ggu_no_memory(err);
	for (size_t done = 0; done < all; done += run)
		TRY(checkpoint_read(c, t, (w->row + done/w->width)*across + w->first, w->bytes + done*bytes, run, err));
	return GGU_OK;
}
/* coded_open has checked groups, but the file may have changed. */
static enum ggu_status fetch_groups(const struct checkpoint *c, const struct coded *k, struct window *w,
	struct ggu_error *err)
{
	const uint64_t most = k->grouped_rows ? k->scale_rows : k->scale_columns;
	TRY(fetch(c, &k->group, k->group.n_weights, w, err));
	for (uint64_t i = w->first; i < w->first + w->width; i++) {
		const int32_t g = group_at(w, i);
		if (g < 0 || (uint64_t)g >= most)
			return ggu_fail(err, GGU_ERR_FORMAT, GGU_NO_OFFSET, k->group.name, "there is no such group");
	}
	return GGU_OK;
}
static enum ggu_status fetch_all(const struct checkpoint *c, const struct coded_box *b, struct coded_raw *r,
	struct ggu_error *err)
{
	const struct coded *k = r->k;
	struct coded_box s;
	r->code = packed_window(&k->code, b);
	TRY(fetch(c, &k->code.in, k->code.width, &r->code, err));
	r->group = group_window(k, b);
	if (r->group.width) TRY(fetch_groups(c, k, &r->group, err));
	s = scales_of(k, b, &r->group);
	r->scale = (struct window){ s.line, s.n_lines, s.column, s.n_columns, NULL };
	TRY(fetch(c, &k->scale, k->scale_columns, &r->scale, err));
	if (k->bias.name) {
		r->bias = (struct window){ s.line, s.n_lines, s.column, s.n_columns, NULL };
		TRY(fetch(c, &k->bias, k->scale_columns, &r->bias, err));
	}
	if (!k->zero.in.name) return GGU_OK;
	r->zero = packed_window(&k->zero, &s);
	return fetch(c, &k->zero.in, k->zero.width, &r->zero, err);
}
enum ggu_status coded_fetch(const struct checkpoint *source, const struct coded *k, const struct coded_box *b,
	struct coded_raw **out, struct ggu_error *err)
{
	struct coded_raw *r = calloc(1, sizeof *r);
	enum ggu_status s;
	if (!r) return ggu_no_memory(err);
	r->k = k;
	s = fetch_all(source, b, r, err);
	if (s) coded_raw_free(r);
	else *out = r;
	return s;
}
void coded_raw_free(struct coded_raw *r)
{
	if (!r) return;
	free(r->code.bytes);
	free(r->scale.bytes);
	free(r->bias.bytes);
	free(r->zero.bytes);
	free(r->group.bytes);
	free(r);
}

/* ---- packed numbers ---- */

/* The number at a bit of a stream. Integers of the file are little-endian, so that a stream of theirs is one of
 * bytes. */
static inline uint8_t number(const unsigned char *stream, size_t bit, unsigned mask)
{
	uint16_t two;
	memcpy(&two, stream + bit/8, sizeof two);
	return (uint8_t)(two >> bit%8 & mask);
}
/* Numbers `column` to column + n - 1 of a row of bytes or of 32-bit integers; if not in order, they have 4 bits */
static void unpack_across(const struct coded_packed *k, const struct window *w, uint64_t row, uint64_t column, size_t n,
	uint8_t *to)
{
	const size_t bytes = k->in.dtype->bytes;
	const unsigned bits = k->bits, mask = (1u << bits) - 1;
	const unsigned char *p = w->bytes + (size_t)((row - w->row)*w->width)*bytes;
	const size_t bit = (size_t)(column*bits - w->first*bytes*8);
	if (k->place) {
		size_t j = (size_t)(column%8);
		p += bit/32*4;
		for (size_t i = 0; i < n; j = 0, p += 4) {
			uint32_t eight;
			memcpy(&eight, p, sizeof eight);
			for (; j < 8 && i < n; j++) to[i++] = eight >> 4*k->place[j] & 15;
		}
	} else if (bits == 8) memcpy(to, p + bit/8, n);
	else if (k->high_first) for (size_t i = 0; i < n; i++) to[i] = number(p, (bit + 4*i) ^ 4, mask);
	else for (size_t i = 0; i < n; i++) to[i] = number(p, bit + i*bits, mask);
}
/* The same of columns, whose numbers may end in the next row of integers */
static void unpack_down(const struct coded_packed *k, const struct window *w, uint64_t row, uint64_t column, size_t n,
	uint8_t *to)
{
	const unsigned shift = (unsigned)(row%32*k->bits%32), mask = (1u << k->bits) - 1;
	const unsigned char *p = w->bytes +
		(size_t)((word_of(row, k->bits) - w->row)*w->width + (column - w->first))*sizeof(uint32_t);
	const unsigned char *next = p + (size_t)w->width*sizeof(uint32_t);
	const bool more = shift + k->bits > 32;
	for (size_t i = 0; i < n; i++) {
		uint32_t u, v;
		memcpy(&u, p + i*sizeof u, sizeof u);
		u >>= shift;
		if (more) {
			memcpy(&v, next + i*sizeof v, sizeof v);
			u |= v << (32 - shift);
		}
		to[i] = (uint8_t)(u & mask);
	}
}
static void unpack(const struct coded_packed *k, const struct window *w, uint64_t row, uint64_t column, size_t n,
	uint8_t *to)
{
	if (k->down) unpack_down(k, w, row, column, n, to);
	else unpack_across(k, w, row, column, n, to);
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
static float value(const struct coded *k, unsigned u)
{
	switch (k->kind) {
	case CODED_E4M3: return e4m3(u);
	case CODED_E5M2: return e5m2(u);
	case CODED_E2M1: return e2m1(u & 15);
	case CODED_MAPPED: return k->map->level[u & 15];
	default: return strcmp(k->code.in.dtype->name, "I8") ? (float)u : (float)(int8_t)u;
	}
}

/* ---- weights ---- */

static void scales_of_codes(const struct coded_map *m, const unsigned char *raw, uint64_t first, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++) {
		const float of_block = m->scale_level[raw[i]]*m->factor[(first + i)/m->block];
		to[i] = of_block + m->offset;
	}
}
static const unsigned char *number_at(const struct window *w, uint64_t line, uint64_t column, unsigned bytes)
{
	return w->bytes + (size_t)((line - w->row)*w->width + (column - w->first))*bytes;
}
/* Scales `first` to first + n - 1 of a line */
static void load_scales(const struct coded_raw *r, uint64_t line, uint64_t first, size_t n, float *to)
{
	const struct coded *k = r->k;
	const struct source_dtype *d = k->scale.dtype;
	const unsigned char *raw = number_at(&r->scale, line, first, d->bytes);
	if (k->map && k->map->block) scales_of_codes(k->map, raw, first, n, to);
	else if (d->type != SOURCE_NO_TYPE) quant_decode((uint32_t)d->type, raw, to, n);
	else {
		const bool e4 = !strcmp(d->name, "F8_E4M3");
		for (size_t i = 0; i < n; i++) to[i] = e4 ? e4m3(raw[i]) : e8m0(raw[i]);
	}
	for (size_t i = 0; i < n; i++) to[i] = k->divided ? to[i]/k->factor : to[i]*k->factor;
}
/* The same of zeros, or biases. Weights that have zeros are a single matrix. */
static void load_zeros(const struct coded_raw *r, uint64_t line, uint64_t first, size_t n, float *to)
{
	const struct coded *k = r->k;
	uint8_t zero[PIECE];
	if (k->bias.name) {
		const struct source_dtype *d = k->bias.dtype;
		quant_decode((uint32_t)d->type, number_at(&r->bias, line, first, d->bytes), to, n);
		return;
	}
	if (!k->zero.in.name) {
		for (size_t i = 0; i < n; i++) to[i] = (float)k->lack;
		return;
	}
	unpack(&k->zero, &r->zero, line, first, n, zero);
	if (k->zero.in.dtype->bytes == 1) for (size_t i = 0; i < n; i++) to[i] = (float)((int8_t)zero[i] + k->lack);
	else for (size_t i = 0; i < n; i++) to[i] = (float)(zero[i] + k->lack);
}
/* Sees that the reader has n scales and zeros from column `first` of a line of scales on. */
static void take_scales(struct coded_reader *r, uint64_t line, uint64_t first, size_t n)
{
	if (line == r->line && first >= r->first && first + n <= r->first + r->n) return;
	load_scales(r->raw, line, first, n, r->scale);
	load_zeros(r->raw, line, first, n, r->zero);
	r->line = line;
	r->first = first;
	r->n = n;
}

struct piece { uint64_t column; size_t n; const uint8_t *code; float *to; };
/* What codes stand for, without a table where the compiler can convert several at once */
static void look_up(const struct coded_reader *r, const struct piece *p)
{
	const struct coded *k = r->raw->k;
	if (k->kind == CODED_INTEGER && k->code.in.dtype->bytes == 4)
		for (size_t i = 0; i < p->n; i++) p->to[i] = (float)p->code[i];
	else for (size_t i = 0; i < p->n; i++) p->to[i] = r->table[p->code[i]];
}
static inline float scaled(float code, float scale, float zero, bool biased)
{
	return biased ? code*scale + zero : (code - zero)*scale;
}
/* A piece whose scales follow each other, each for a block of columns */
static void piece_of_blocks(struct coded_reader *r, const struct piece *p, uint64_t line)
{
	const uint64_t width = r->raw->k->block_columns, first = p->column/width,
		last = (p->column + p->n - 1)/width;
	const bool biased = r->raw->k->bias.name;
	const float *scale, *zero;
	uint64_t left = width - p->column%width;
	take_scales(r, line, first, (size_t)(last - first + 1));
	scale = r->scale + (first - r->first);
	zero = r->zero + (first - r->first);
	if (width == 1) {
		look_up(r, p);
		for (size_t i = 0; i < p->n; i++) p->to[i] = scaled(p->to[i], scale[i], zero[i], biased);
		return;
	}
	for (size_t i = 0; i < p->n; scale++, zero++, left = width)
		for (const size_t end = left < p->n - i ? i + (size_t)left : p->n; i < end; i++)
			p->to[i] = scaled(r->table[p->code[i]], *scale, *zero, biased);
}
/* One for whose columns the list of groups says which scale they have */
static void piece_of_groups(struct coded_reader *r, const struct piece *p, uint64_t line)
{
	take_scales(r, line, 0, (size_t)r->raw->k->scale_columns);
	for (size_t i = 0; i < p->n; i++) {
		const int32_t g = group_at(&r->raw->group, p->column + i);
		p->to[i] = (r->table[p->code[i]] - r->zero[g])*r->scale[g];
	}
}
static uint64_t scale_line(const struct coded_raw *r, uint64_t line)
{
	const struct coded *k = r->k;
	if (k->grouped_rows) return (uint64_t)group_at(&r->group, line);
	return line%k->rows/k->block_rows + (k->shared ? 0 : line/k->rows*k->scale_rows);
}
void coded_reader_init(struct coded_reader *r, const struct coded_raw *raw)
{
	r->raw = raw;
	r->line = 0;
	r->first = 0;
	r->n = 0;
	for (unsigned u = 0; u < 256; u++) r->table[u] = value(raw->k, u);
}
void coded_compute(struct coded_reader *r, uint64_t from, float *to, size_t n)
{
	const struct coded *k = r->raw->k;
	uint8_t code[PIECE];
	for (struct piece p = { .code = code, .to = to }; n; from += p.n, p.to += p.n, n -= p.n) {
		const uint64_t line = from/k->columns;
		p.column = from%k->columns;
		p.n = n < PIECE ? n : PIECE;
		if (p.n > k->columns - p.column) p.n = (size_t)(k->columns - p.column);
		unpack(&k->code, &r->raw->code, line, p.column, p.n, code);
		if (k->grouped_columns) piece_of_groups(r, &p, scale_line(r->raw, line));
		else piece_of_blocks(r, &p, scale_line(r->raw, line));
	}
}

enum ggu_status coded_read(const struct checkpoint *source, const struct coded *k, uint64_t from, float *to, size_t n,
	struct ggu_error *err)
{
	for (size_t some; n; from += some, to += some, n -= some) {
		struct coded_box b = { from/k->columns, 1, from%k->columns, k->columns - from%k->columns };
		struct coded_raw *raw = NULL;
		struct coded_reader r;          /* as large as its arrays, and a call may be for few elements */
		if (b.n_columns > n) b.n_columns = n;
		if (b.n_columns > BOX) b.n_columns = BOX;
		if (b.n_columns == k->columns) b.n_lines = (n < BOX ? n : BOX)/k->columns;
		some = (size_t)(b.n_lines*b.n_columns);
		TRY(coded_fetch(source, k, &b, &raw, err));
		coded_reader_init(&r, raw);
		coded_compute(&r, from, to, some);
		coded_raw_free(raw);
	}
	return GGU_OK;
}
