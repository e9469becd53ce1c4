/* SPDX-License-Identifier: MIT
 * mul.c - integer products: packs activations, and loops over rows, panels and strips (mul.h has the picture).
 *
 * Up to `few` tokens are row products, by struct row_table. More use panels: the rows of a tile's outputs are
 * unpacked a chunk of columns at a time and multiplied with every strip of up to TOKENS tokens before the next panel
 * takes their place. The panels of a group of outputs follow each other in this way while that chunk of the strips is
 * in L2. Sums stay in the work space until the last chunk is done. Storing a float is exact, and the fmas of an output
 * are in the order of its blocks, however loops are cut. */
#include <string.h>
#include "../libgguf/size.h"
#include "../libgguf/types.h"
#include "mul.h"

enum { TOKENS = 528 };                  /* a multiple of MUL_TOKENS */
_Static_assert(TOKENS%MUL_TOKENS == 0 && MUL_GROUP%MUL_OUTPUTS == 0, "whole tiles");
struct work {
	_Alignas(64) struct wide rows[8];
	_Alignas(64) char panel[MUL_OUTPUTS*(3*MUL_CHUNK + MUL_CHUNK/4)];       /* AMX has three bytes a column */
	_Alignas(64) float acc[];       /* TOKENS times a group */
};
_Static_assert(sizeof(struct work) + TOKENS*MUL_GROUP*sizeof(float) >= MUL_ROW_WORK, "rows take the same space");

const struct codes_table *mul_codes = &quant_codes_c;
const struct row_table *mul_row = &quant_row_c;
const struct panel_table *mul_panel_32 = &quant_panel_c, *mul_panel_256 = &quant_panel_c;
enum mul_fetch mul_row_fetch = MUL_TO_L2;

static const struct panel_table *own_panel(size_t block) { return block == 32 ? mul_panel_32 : mul_panel_256; }
static const struct panel_table *panel_of(size_t block, size_t n_tokens)
{
	const struct panel_table *own = own_panel(block);
	return n_tokens < own->least ? own->below : own;
}
static size_t group_of(const struct panel_table *panel, size_t n_in)
{
	return panel->group && n_in > MUL_SHORT_ROW ? panel->group : MUL_GROUP;
}
size_t mul_work_bytes(size_t n_in)
{
	const size_t group = size_most(group_of(mul_panel_32, n_in), group_of(mul_panel_256, n_in));
	return sizeof(struct work) + TOKENS*group*sizeof(float);
}
size_t mul_most_few(size_t block) { return own_panel(block)->few; }
size_t mul_most_below(size_t block) { return own_panel(block)->least ? own_panel(block)->least - 1 : 0; }
bool mul_few(size_t block, size_t n_tokens) { return n_tokens <= mul_most_few(block); }
size_t mul_act_step(size_t block, size_t n_tokens) { return panel_of(block, n_tokens)->tokens; }
static size_t strip_bytes(const struct panel_table *panel, size_t block)
{
	return mul_strip_bytes(block, panel->tokens) + panel->more_strip;
}
size_t mul_act_bytes(size_t block, size_t n_tokens, size_t n_in)
{
	const struct panel_table *panel = panel_of(block, n_tokens);
	if (mul_few(block, n_tokens)) return n_tokens*mul_row->strip_bytes(block, n_in);
	return size_times(size_parts(n_tokens, panel->tokens), n_in/block*strip_bytes(panel, block));
}
/* Where n_in activations of tokens t.. are from column i on, and the distance to the next strip: strips are stored a
 * chunk of columns after another, in the order in which panels use them. */
struct strips { size_t at, next; };
static struct strips strips_of(size_t block, size_t n_tokens, size_t n_in, size_t t, size_t i)
{
	const struct panel_table *panel = panel_of(block, n_tokens);
	size_t tokens = panel->tokens, n_strips = size_parts(n_tokens, tokens),
		first = i/MUL_CHUNK*MUL_CHUNK, wide = size_least(n_in - first, MUL_CHUNK),
		bytes = strip_bytes(panel, block), next = wide/block*bytes;
	return (struct strips){ first/block*bytes*n_strips + t/tokens*next + (i - first)/block*bytes, next };
}

/* ---- packing ---- */

/* The sums of sixteens as struct panel_table's by_32 has them; returns what those of 32 lack. */
static uint32_t sums_by_32(const int16_t *sum, int16_t *to)
{
	uint32_t lack = 0;
	for (size_t j = 0; j < 8; j++) {
		const int both = sum[2*j] + sum[2*j + 1];
		to[j] = sum[2*j];
		to[8 + j] = (int16_t)both;
		lack |= ((uint32_t)(both - to[8 + j]) >> 16 & 15) << 4*j;
	}
	return lack;
}
static void minima_by_32(int16_t *mn)
{
	int16_t of[16];
	memcpy(of, mn, sizeof of);
	for (size_t j = 0; j < 8; j++) {
		mn[j] = (int16_t)(of[2*j] - of[2*j + 1]);
		mn[8 + j] = of[2*j + 1];
	}
}
static void put_sums(const struct narrow *q, bool by_32, size_t tokens, char *to)
{
	int32_t *sums = (void *)(to + mul_strip_sum(256, tokens));
	uint32_t *lack = (void *)(to + mul_strip_lack(tokens));
	for (size_t t = 0; t < tokens; t++) {
		int16_t some[16];
		if (by_32) lack[t] = sums_by_32(q[t].sum, some);
		for (size_t j = 0; j < 8; j++) memcpy(sums + j*tokens + t, (by_32 ? some : q[t].sum) + 2*j, 4);
	}
}
void mul_strip(interleave_fn *lines, size_t tokens, bool by_32, const struct narrow *q, size_t block, char *to)
{
	const size_t stride = sizeof *q/sizeof *q->q;
	float *sum = (void *)(to + mul_strip_sum(block, tokens)), *d = (void *)(to + mul_strip_d(block, tokens));
	for (size_t t = (tokens - 1)/8*8 + 8; t; t -= 8)
		lines(q[t - 8].q, stride, t - 8, size_least(tokens - (t - 8), 8), tokens, block/2, (void *)to);
	if (block == 32) for (size_t t = 0; t < tokens; t++) sum[t] = (float)(q[t].sum[0] + q[t].sum[1]);
	else put_sums(q, by_32, tokens, to);
	for (size_t t = 0; t < tokens; t++) d[t] = q[t].d;
}
/* Narrows the rows of as many whole strips at a time as `narrow` takes. */
static void pack_strips(size_t block, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from,
	size_t n, char *act)
{
	const struct panel_table *panel = panel_of(block, n_tokens);
	const size_t tokens = panel->tokens, rows = NARROW_ROWS/tokens*tokens;
	struct narrow q[NARROW_ROWS + 8];
	for (size_t t = from; t < from + n; t += rows) {
		const size_t some = size_least(from + n - t, rows), last = size_up(some, tokens) - tokens;
		/* mul_strip reads rows by eights */
		memset(q + some, 0, (last + size_up(tokens, 8) - some)*sizeof *q);
		for (size_t i = 0; i < n_in; i += block) {
			const struct strips s = strips_of(block, n_tokens, n_in, t, i);
			mul_codes->narrow(x + t*x_stride + i, x_stride, some, (int)block, panel->sums, q);
			for (size_t k = 0; k < some; k += tokens)
				panel->strip(q + k, block, act + s.at + k/tokens*s.next);
		}
	}
}
void mul_act_pack(size_t block, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n,
	char *act)
{
	if (!mul_few(block, n_tokens)) pack_strips(block, x, x_stride, n_tokens, n_in, from, n, act);
	else
		for (size_t t = from; t < from + n; t++)
			mul_row->pack(block, n_in, x + t*x_stride, act + t*mul_row->strip_bytes(block, n_in));
}
void mul_act_unpack(size_t block, const char *act, size_t n_tokens, size_t n_in, size_t token, float *x)
{
	const struct panel_table *panel = panel_of(block, n_tokens);
	const size_t tokens = panel->tokens, lane = token%tokens;
	if (mul_few(block, n_tokens)) {
		mul_row->unpack(block, n_in, act + token*mul_row->strip_bytes(block, n_in), x);
		return;
	}
	for (size_t i = 0; i < n_in; i += block) {
		const char *from = act + strips_of(block, n_tokens, n_in, token, i).at;
		float d;
		memcpy(&d, from + mul_strip_d(block, tokens) + 4*lane, 4);
		for (size_t k = 0; k < block; k++) {
			int16_t pair;
			memcpy(&pair, from + 4*(k/2*tokens + lane) + k%2*2, 2);
			x[i + k] = d*(float)(panel->activation ? panel->activation(from, lane, k) : pair);
		}
	}
}

/* ---- products ---- */

enum mul_kind mul_kind_of(uint32_t type)
{
	static const uint8_t kind[GGU_TYPE_COUNT] = {
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = part == 16 ? MUL_16 : \
	part == 32 ? has_min ? MUL_32_MIN : MUL_32 : has_min ? MUL_256_MIN : MUL_256,
#include "types.inc"
#undef BLOCK
	};
	return (enum mul_kind)kind[type];
}

static size_t chunk_of(const struct quant_mul *m, size_t i) { return size_least(m->n_in - i, MUL_CHUNK); }
static size_t bytes_of(const struct quant_mul *m, size_t columns)
{
	const struct ggu_type_info *type = ggu_type_info(m->type);
	return columns/type->block_weights*type->block_bytes;
}
/* Prefetches the chunk of rows o.. from column i on. A panel takes little of each of so many rows that a core does not
 * prefetch what is next. */
static void fetch_rows(const struct quant_mul *m, size_t o, size_t n_o, size_t i)
{
	const size_t n = bytes_of(m, chunk_of(m, i));
	const char *from = (const char *)m->w + o*m->w_stride + bytes_of(m, i);
	for (size_t r = 0; r < n_o; r++, from += m->w_stride) {
		for (size_t k = 0; k < n; k += 64) __builtin_prefetch(from + k);
		__builtin_prefetch(from + n - 1);
	}
}
/* Unpacks n columns of rows r0.. of a panel, row by row. n_o rows begin at `row`; the last is repeated if the tile has
 * more. */
static void take_rows(const struct quant_mul *m, enum mul_kind kind, const char *row, size_t n_o, size_t n, size_t r0,
	struct work *k)
{
	const struct panel_table *panel = panel_of(mul_block(kind), m->n_tokens);
	const size_t width = panel->outputs, some = size_least(width - r0, 8), block = mul_block(kind),
		bytes = mul_panel_bytes(kind, width), stride = sizeof *k->rows/2;
	for (size_t r = 0; r < some; r++)
		mul_codes->widen[m->type](row + size_least(r, n_o - 1)*m->w_stride, n, k->rows + r);
	for (size_t b = 0; b < n/block; b++) {
		char *to = k->panel + b*bytes;
		float *d = (void *)(to + mul_panel_d(kind, width)), *min = (void *)(to + mul_panel_m(kind, width));
		panel->codes(k->rows->w + b*block, stride, r0, some, width, block/2, (void *)to);
		if (kind == MUL_256_MIN && panel->by_32)
			for (size_t r = 0; r < some; r++) minima_by_32(k->rows[r].mn + 16*b);
		if (kind == MUL_256_MIN)
			panel->pairs(k->rows->mn + 16*b, stride, r0, some, width, 8,
				(void *)(to + mul_panel_mn(kind, width)));
		for (size_t r = 0; r < some; r++) d[r0 + r] = k->rows[r].d[b];
		for (size_t r = 0; mul_has_m(kind) && r < some; r++) min[r0 + r] = k->rows[r].m[b];
	}
}
/* Makes a panel of the chunk from column i on of rows o.. (repeating the last row if the tile has more). */
static void make_panel(const struct quant_mul *m, enum mul_kind kind, size_t o, size_t n_o, size_t i, struct work *k)
{
	const struct panel_table *panel = panel_of(mul_block(kind), m->n_tokens);
	fill_fn *fill = panel->fill ? panel->fill[m->type] : NULL;
	const size_t n = chunk_of(m, i);
	for (size_t r0 = 0; r0 < panel->outputs; r0 += 8) {
		const size_t first = size_least(r0, n_o - 1);
		const char *from = (const char *)m->w + bytes_of(m, i) + (o + first)*m->w_stride, *row[8];
		if (r0 + 8 < n_o) fetch_rows(m, o + r0 + 8, size_least(n_o - (r0 + 8), 8), i);
		if (!fill || r0 + 8 > n_o) {
			take_rows(m, kind, from, n_o - first, n, r0, k);
			continue;
		}
		for (size_t r = 0; r < 8; r++) row[r] = from + r*m->w_stride;
		fill(row, n, k->panel + 4*r0);
	}
}

/* Prefetches what the next panel is made from: the next of this group, of the next chunk, or of the next group. */
static void fetch_next_panel(const struct quant_mul *m, size_t group, size_t o, size_t end, size_t i, size_t p,
	size_t outputs)
{
	p += outputs;
	if (p >= size_least(end - o, group)) {
		p = 0;
		i += MUL_CHUNK;
	}
	if (i >= m->n_in) {
		i = 0;
		o += group;
	}
	if (o + p < end) fetch_rows(m, o + p, size_least(end - (o + p), outputs), i);
}
/* Stores what a panel's tiles have not stored in the results themselves: that of tokens that do not fill a strip, and
 * of outputs that do not fill a panel. */
static void put_rest(const struct results *y, const struct panel_table *panel, size_t n_t, size_t n_o)
{
	for (size_t t = y->whole*panel->tokens; t < n_t; t++)
		memcpy(y->to + t*y->stride, y->acc + t*panel->outputs, n_o*sizeof *y->to);
}
static void panels(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, struct work *k)
{
	const enum mul_kind kind = mul_kind_of(m->type);
	const struct panel_table *panel = panel_of(mul_block(kind), m->n_tokens);
	const size_t outputs = panel->outputs, tokens = panel->tokens, block = mul_block(kind),
		n_strips = size_parts(n_t, tokens), tile = tokens*outputs, group = group_of(panel, m->n_in);
	for (size_t o = o0; o < o0 + n_o; o += group) {
		size_t some = size_least(o0 + n_o - o, group);
		for (size_t i = 0; i < m->n_in; i += MUL_CHUNK) {
			const struct strips s = strips_of(block, m->n_tokens, m->n_in, t0, i);
			const bool last = m->n_in - i <= MUL_CHUNK;
			for (size_t p = 0; p < some; p += outputs) {
				const size_t n = size_least(some - p, outputs);
				const struct results y = { k->acc + p/outputs*n_strips*tile, i == 0,
					last && n == outputs ? n_t/tokens : 0, m->y_stride,
					m->y + t0*m->y_stride + o + p };
				make_panel(m, kind, o + p, some - p, i, k);
				fetch_next_panel(m, group, o, o0 + n_o, i, p, outputs);
				panel->gemm[kind](chunk_of(m, i)/block, k->panel, n_strips,
					(const char *)m->act + s.at, s.next, &y);
				if (last) put_rest(&y, panel, n_t, n);
			}
		}
	}
}

void mul_integers(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	const enum mul_kind kind = mul_kind_of(m->type);
	if (m->n_in == 0) {             /* results are stored with the last columns, of which there are none */
		for (size_t t = t0; t < t0 + n_t; t++) memset(m->y + t*m->y_stride + o0, 0, n_o*sizeof *m->y);
		return;
	}
	if (mul_few(mul_block(kind), m->n_tokens)) {
		mul_row->mul(m, kind, t0, n_t, o0, n_o, work);
		return;
	}
	for (size_t t = 0; t < n_t; t += TOKENS) panels(m, t0 + t, size_least(n_t - t, TOKENS), o0, n_o, work);
}
