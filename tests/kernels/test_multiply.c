/* SPDX-License-Identifier: MIT
 * test_multiply.c - packing activations and multiplying, every type on every instruction set, against a slow path
 * that keeps exact 64-bit sums.
 *
 * A product must have the slow path's bits: the integer sums are then exact and the fma's in the contract's order.
 * Sizes: all pairs of token and output counts around the edges of tiles, all row lengths up to several blocks, those
 * around the edges of chunks; outputs and tokens cut between calls at random places. Inputs: activations whose signs
 * are those of the weights, which make sums as long as they get; scales and activations of every strange kind. Rows lie
 * at any alignment, activations, outputs and weights between guard pages, and what lies between rows stays. */
#include <stdlib.h>
#include <string.h>
#include "../../libgguf/types.h"
#include "../../quant/digits.h"
#include "../../quant/quant.h"
#include "../lib/kerntest.h"
#include "../lib/slow.h"

static const size_t edges[] = { 1, 2, 3, 7, 8, 9, 12, 13, 16, 17, 33 };
enum { EDGES = sizeof edges/sizeof *edges };
static int64_t widest;                  /* the largest integer sum met for the current type */

/* The operands of one call. There is a gap after each row, so strides exceed the rows' lengths. */
struct product {
	const struct ggu_type_info *t;
	size_t n_tokens, n_out, n_in;
	size_t w_row, w_stride, w_bytes, skew, act_bytes, y_stride, y_bytes;
	uint8_t *w, *act;
	struct slow_act *slow;          /* [n_tokens][n_in] */
	float *x, *y, *want;
};

static void *zeroed(size_t n)
{
	void *p = calloc(n ? n : 1, 1);
	if (!p) abort();
	return p;
}

static struct product product_new(const struct ggu_type_info *t, size_t n_tokens, size_t n_out, size_t n_in)
{
	struct product p = { .t = t, .n_tokens = n_tokens, .n_out = n_out, .n_in = n_in };
	p.w_row = n_in/t->block_weights*t->block_bytes;
	p.w_stride = p.w_row + kt_below(4);
	p.skew = kt_below(4);
	p.w_bytes = (n_out - 1)*p.w_stride + p.w_row + p.skew;
	p.act_bytes = quant_act_bytes(quant_act_of(t->id), n_tokens, n_in);
	p.y_stride = n_out + kt_below(3);
	p.y_bytes = 4*((n_tokens - 1)*p.y_stride + n_out);
	p.w = (uint8_t *)kt_buffer(p.w_bytes) + p.skew;
	p.act = kt_buffer(p.act_bytes);
	p.slow = zeroed(n_tokens*n_in*sizeof *p.slow);
	p.x = kt_buffer(4*n_tokens*n_in);
	p.y = kt_buffer(p.y_bytes);
	p.want = kt_buffer(p.y_bytes);
	memset(p.y, 0xff, p.y_bytes);
	memset(p.want, 0xff, p.y_bytes);
	return p;
}
static void product_free(struct product *p)
{
	kt_free(p->w - p->skew, p->w_bytes);
	kt_free(p->act, p->act_bytes);
	free(p->slow);
	kt_free(p->x, 4*p->n_tokens*p->n_in);
	kt_free(p->y, p->y_bytes);
	kt_free(p->want, p->y_bytes);
}
/* Activations with the signs of the first output's weights: every term of the first token's first sum is positive. */
static void follow_signs(struct product *p)
{
	for (size_t i = 0; i < p->n_in; i++) {
		float w = 0;
		slow_decode(p->t->id, p->w, i, &w);
		p->x[i] = w < 0 ? -1.5f : 1.5f;
	}
}
/* Ways to fill p.x in addition to enum kt_floats. */
enum { ALIKE = KT_FLOATS };
/* Each 32 columns are one number or its negative, or random, so that some sums of 32 do not fit 16 bits. */
static void alike_by_32(float *x, size_t n)
{
	float v = 0;
	for (size_t i = 0; i < n; i++) {
		if (i%32 == 0) v = (float)((int)kt_below(3) - 1)*1.5f;
		x[i] = v != 0 ? v : kt_uniform();
	}
}
/* Packs tokens in several calls, as threads do, and checks what unpacking gives. */
static void pack(struct product *p, const char *isa)
{
	const enum quant_act form = quant_act_of(p->t->id);
	const size_t step = quant_act_step(form, p->n_tokens), some = step*(1 + kt_below(3));
	float *kept = zeroed(p->n_in*sizeof *kept);
	for (size_t t = 0; t < p->n_tokens; t += some)
		quant_act_pack(form, p->x, p->n_in, p->n_tokens, p->n_in, t, p->n_tokens - t < some ? p->n_tokens - t :
			some, p->act);
	for (size_t t = 0; t < p->n_tokens; t++) {
		const float *x = p->x + t*p->n_in;
		struct slow_act *slow = p->slow + t*p->n_in;
		if (p->t->kind == GGU_KIND_BLOCK) slow_pack(p->t->id, x, p->n_in, slow);
		quant_act_unpack(form, p->act, p->n_tokens, p->n_in, t, kept);
		for (size_t i = 0; i < p->n_in; i++) {
			float want = p->t->kind == GGU_KIND_BLOCK ? slow[i].d*(float)slow[i].q : x[i];
			if (!kt_same(kept + i, &want, 1, NULL))
				kt_fail("%s packs x[%zu][%zu] = %a of %zu tokens as %a, not %a", isa, t, i, x[i],
					p->n_tokens, kept[i], want);
		}
	}
	free(kept);
}
static void slow_outputs(struct product *p)
{
	const bool is_block = p->t->kind == GGU_KIND_BLOCK;
	struct slow_weight *row = zeroed(p->n_in*sizeof *row);
	float *wide = zeroed(p->n_in*sizeof *wide);
	for (size_t o = 0; o < p->n_out; o++) {
		const uint8_t *w = p->w + o*p->w_stride;
		for (size_t i = 0; i < p->n_in; i++)
			if (is_block) slow_weight(p->t->id, w, i, row + i);
			else slow_decode(p->t->id, w, i, wide + i);
		for (size_t k = 0; k < p->n_tokens; k++)
			p->want[k*p->y_stride + o] = is_block ? slow_product(p->t->id, row, p->n_in,
				p->slow + k*p->n_in, &widest) : slow_float_product(wide, p->x + k*p->n_in, p->n_in);
	}
	free(row); free(wide);
}

static void multiply_once(const struct ggu_type_info *t, const char *isa, size_t n_tokens, size_t n_out, size_t n_in,
	enum kt_blocks blocks, int floats)
{
	struct product p = product_new(t, n_tokens, n_out, n_in);
	const size_t work_bytes = quant_mul_work_bytes(n_in);
	void *work = kt_buffer(work_bytes);
	struct quant_mul m;
	size_t cut = 1 + kt_below(n_out), later, at;
	memset(work, 0xff, 4096);
	for (size_t o = 0; o < n_out; o++) kt_fill_blocks(t, p.w + o*p.w_stride, n_in/t->block_weights, blocks);
	if (floats == ALIKE) alike_by_32(p.x, n_tokens*n_in);
	else kt_fill_floats(p.x, n_tokens*n_in, (enum kt_floats)floats);
	if (floats == KT_SIGNS) follow_signs(&p);
	pack(&p, isa);
	m = (struct quant_mul){ t->id, n_tokens, n_out, n_in, p.w, p.w_stride, p.act, p.y, p.y_stride };
	later = kt_below(2) ? n_tokens : quant_act_step(quant_act_of(t->id), n_tokens)*(1 + kt_below(2));
	if (later > n_tokens) later = n_tokens;
	quant_mul(&m, 0, later, 0, cut, work);
	if (cut < n_out) quant_mul(&m, 0, later, cut, n_out - cut, work);
	if (later < n_tokens) quant_mul(&m, later, n_tokens - later, 0, n_out, work);
	slow_outputs(&p);
	if (!kt_same(p.y, p.want, p.y_bytes/4, &at))
		kt_fail("%zu tokens, %zu outputs (cut at %zu), %zu inputs: y[%zu][%zu] = %a, not %a; blocks: %s, "
			"activations: %s", n_tokens, n_out, cut, n_in,
			at/p.y_stride, at%p.y_stride, p.y[at], p.want[at], kt_blocks_name[blocks],
				floats == ALIKE ? "alike" : kt_floats_name[floats]);
	kt_free(work, work_bytes);
	product_free(&p);
}
/* If the set has panels for so many tokens only that these may be fewer, then with as many more, too. */
static void multiply(const struct ggu_type_info *t, const char *isa, size_t n_tokens, size_t n_out, size_t n_in,
	enum kt_blocks blocks, int floats)
{
	const enum quant_act form = quant_act_of(t->id);
	const size_t below = form == QUANT_ACT_FLOAT ? 0 : mul_most_below(form == QUANT_ACT_32 ? 32 : 256);
	multiply_once(t, isa, n_tokens, n_out, n_in, blocks, floats);
	if (below && !kt_failed()) multiply_once(t, isa, below + n_tokens, n_out, n_in, blocks, floats);
}

#if defined __x86_64__
/* Multiplies a type as if x86 had no row product for it (digits_widened.c). */
static void check_widened(const struct ggu_type_info *t, const char *isa)
{
	quant_select(isa, NULL);
	const enum mul_kind kind = mul_kind_of(t->id);
	const size_t few = (mul_block(kind) == 32 ? mul_panel_32 : mul_panel_256)->few;
	kt_name("%s %s multiplies rows by unpacking alone", t->name, isa);
	for (int i = 0; i < KT_BLOCKS*KT_FLOATS && !kt_failed(); i++) {
		struct product p = product_new(t, 1 + kt_below(few), 1 + kt_below(9),
			t->block_weights*(1 + kt_below(20)));
		const struct quant_mul m = { t->id, p.n_tokens, p.n_out, p.n_in, p.w, p.w_stride, p.act, p.y,
			p.y_stride };
		size_t at;
		for (size_t o = 0; o < p.n_out; o++)
			kt_fill_blocks(t, p.w + o*p.w_stride, p.n_in/t->block_weights, (enum kt_blocks)(i/KT_FLOATS));
		kt_fill_floats(p.x, p.n_tokens*p.n_in, (enum kt_floats)(i%KT_FLOATS));
		pack(&p, isa);
		digits_widened(&m, kind, mul_row->strip_bytes(mul_block(kind), p.n_in), 0, p.n_tokens, 0, p.n_out);
		slow_outputs(&p);
		if (!kt_same(p.y, p.want, p.y_bytes/4, &at))
			kt_fail("%zu inputs: y[%zu][%zu] = %a, not %a", p.n_in, at/p.y_stride, at%p.y_stride, p.y[at],
				p.want[at]);
		product_free(&p);
	}
	kt_result();
}
#endif

/* Rows of several chunks of 256 columns, with tokens around strips of 6, 12 and 16; then more outputs than a group of
 * short rows has, and than one of long rows (struct panel_table). */
static void check_chunks(const struct ggu_type_info *t, const char *isa)
{
	static const size_t tokens[] = { 9, 12, 13, 17, 49, 96 };
	const size_t unit = t->block_weights, whole = unit == 1 ? 256 : 256/unit;
	const size_t blocks[] = { whole, whole + 1, 2*whole + 1, 3*whole, 4*whole - 1, 11008/unit };
	for (size_t i = 0; i < sizeof blocks/sizeof *blocks && !kt_failed(); i++)
		multiply(t, isa, tokens[kt_below(6)], 1 + kt_below(blocks[i]*unit < 4096 ? 70 : 3), blocks[i]*unit,
			KT_RANDOM, KT_MIXED);
	if (!kt_failed()) multiply(t, isa, 9, 129 + kt_below(33), 512, KT_RANDOM, KT_MIXED);
	if (!kt_failed()) multiply(t, isa, 9 + kt_below(9), 257 + kt_below(33), 1280, KT_RANDOM, KT_MIXED);
	/* all the room that there is for sums */
	if (!kt_failed() && (t->id == GGU_TYPE_Q4_K || t->id == GGU_TYPE_Q4_0))
		multiply(t, isa, 528, 256, 1280, KT_RANDOM, KT_MIXED);
}
/* The longest sums that panels can have, and sums of 32 of either sign that do not fit 16 bits. */
static void check_longest(const struct ggu_type_info *t, const char *isa)
{
	static const enum kt_blocks blocks[] = { KT_RANDOM, KT_LONGEST, KT_TOP };
	static const int floats[] = { ALIKE, KT_PLUS, KT_MINUS };
	for (size_t i = 0; i < 9 && !kt_failed(); i++)
		multiply(t, isa, 9 + kt_below(20), 1 + kt_below(40), t->block_weights == 1 ? 1 + kt_below(67) :
			t->block_weights*(1 + kt_below(3)), blocks[i/3], floats[i%3]);
}

static void check_type(const struct ggu_type_info *t, const char *isa)
{
	size_t unit = t->block_weights, chunk = unit == 1 ? 2048 : 512;
	quant_select(isa, NULL);
	kt_name("%s %s multiplies at every edge of a tile", t->name, isa);
	for (size_t i = 0; i < EDGES; i++)
		for (size_t k = 0; k < EDGES && !kt_failed(); k++)
			multiply(t, isa, edges[i], edges[k], unit == 1 ? 1 + kt_below(67) :
				unit*(1 + kt_below(unit < 256 ? 4 : 2)), KT_RANDOM, KT_MIXED);
	kt_result();
	kt_name("%s %s multiplies rows of every length", t->name, isa);
	for (size_t n = 0; n <= (unit == 1 ? 67 : 20) && !kt_failed(); n++)
		multiply(t, isa, 3, 5, n*unit, KT_RANDOM, KT_MIXED);
	multiply(t, isa, 9, 5, 0, KT_RANDOM, KT_MIXED);
	for (size_t n = chunk - unit; n <= chunk + unit && !kt_failed(); n += unit)
		multiply(t, isa, 1 + kt_below(3), 1 + kt_below(5), n, KT_RANDOM, KT_MIXED);
	multiply(t, isa, 1, 1, 2*chunk + unit, KT_RANDOM, KT_MIXED);
	multiply(t, isa, 1 + kt_below(7), 1 + kt_below(9), 11008, KT_RANDOM, KT_MIXED);
	/* floats: with few tokens, 512 columns at a time; panels 2048, of up to 264 tokens, in strips of up to 12 whose
	 * second half may lack a token */
	static const size_t lengths[] = { 511, 513, 1025, 2047, 2049, 4100 }, tokens[] = { 4, 8, 13, 43, 264, 265 };
	for (size_t i = 0; i < 36 && unit == 1 && !kt_failed(); i++)
		if (i < 24 || i%6 > 2)
			multiply(t, isa, tokens[i/6], i < 24 ? 1 + kt_below(35) : 2, lengths[i%6], KT_RANDOM, KT_MIXED);
	/* one token: rows of up to 3072 columns one after another, longer ones 4 or 8 side by side */
	static const size_t alone[] = { 255, 257, 3072, 3088, 3091, 4100 }, outputs[] = { 3, 4, 8, 19 };
	for (size_t i = 0; i < 24 && unit == 1 && !kt_failed(); i++)
		multiply(t, isa, 1, outputs[i/6], alone[i%6], KT_RANDOM, KT_MIXED);
	for (size_t n = 527; n <= 530 && !kt_failed(); n++)
		multiply(t, isa, n, 1 + kt_below(2), unit, KT_RANDOM, KT_MIXED);
	kt_result();
	kt_name("%s %s multiplies many tokens with rows of several chunks", t->name, isa);
	check_chunks(t, isa);
	kt_result();
	kt_name("%s %s multiplies the largest, the smallest and the strangest", t->name, isa);
	widest = 0;
	for (int blocks = 0; blocks < KT_BLOCKS; blocks++)
		for (int floats = 0; floats < KT_FLOATS && !kt_failed(); floats++)
			multiply(t, isa, 1 + kt_below(3), 1 + kt_below(6), unit*(1 + kt_below(unit == 1 ? 67 : 4)),
				blocks, floats);
	if (widest > INT32_MAX) kt_fail("a sum of %lld does not fit", (long long)widest);
	check_longest(t, isa);
	if (t->id == GGU_TYPE_Q6_K && widest != 2130706432)
		kt_fail("the longest sum met is %lld, not that of quant.h", (long long)widest);
	kt_result();
}

/* Cuts into tasks of some tokens and outputs, for any shape and any number of threads. */
static void check_cuts(const struct ggu_type_info *t)
{
	static const size_t tokens[] = { 1, 2, 8, 9, 12, 47, 48, 49, 97, 512 };
	static const size_t outputs[] = { 1, 31, 32, 128, 1024, 70000 };
	static const int threads[] = { 1, 2, 3, 16, 64, 1000 };
	kt_name("%s is cut for any number of threads", t->name);
	for (size_t i = 0; i < 10*6*6 && !kt_failed(); i++) {
		struct quant_mul m = { .type = t->id, .n_tokens = tokens[i%10], .n_out = outputs[i/10%6],
			.n_in = t->block_weights, .w_stride = t->block_bytes };
		const size_t step = quant_act_step(quant_act_of(t->id), m.n_tokens);
		const int n = threads[i/60];
		size_t n_t, n_o;
		quant_mul_cut(&m, n, &n_t, &n_o);
		if (!n_o || !n_t || (n_t < m.n_tokens && n_t%step))
			kt_fail("%zu tokens, %zu outputs, %d threads: tasks of %zu tokens and %zu outputs", m.n_tokens,
				m.n_out, n, n_t, n_o);
	}
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
		if (ggu_type_info(id) && quant_can_multiply(id)) check_cuts(ggu_type_info(id));
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
			if (ggu_type_info(id) && quant_can_multiply(id)) check_type(ggu_type_info(id), *isa);
#if defined __x86_64__
	for (uint32_t id = 0; id < GGU_TYPE_COUNT && quant_available()[1]; id++)
		if (ggu_type_info(id) && ggu_type_info(id)->kind == GGU_KIND_BLOCK && quant_can_multiply(id))
			check_widened(ggu_type_info(id), quant_available()[1]);
#endif
	return kt_end();
}
