/* SPDX-License-Identifier: MIT
 * test_multiply.c - packing activations and multiplying, every type on every instruction set, against a slow path
 * that keeps exact 64-bit sums.
 *
 * A product must have the slow path's bits: the integer sums are then exact and the fma's in the contract's order.
 * Sizes: all pairs of token and output counts around the edges of tiles, all row lengths up to several blocks, those
 * around the edges of chunks; outputs cut between two calls at a random place. Inputs: activations whose signs are
 * those of the weights, which make sums as long as they get; scales and activations of every strange kind. Rows lie
 * at any alignment, activations, outputs and weights between guard pages, and what lies between rows stays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../quant/quant.h"
#include "../lib/kerntest.h"
#include "../lib/slow.h"

static const size_t edges[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 33 };
enum { EDGES = sizeof edges/sizeof *edges };
static int64_t widest;                  /* integer sum met for the type under way */

/* One call's operands. Strides are above the rows' lengths by a hole. */
struct product {
	const struct ggu_type_info *t;
	size_t n_tokens, n_out, n_in;
	size_t w_row, w_stride, w_bytes, skew, act_row, act_bytes, y_stride, y_bytes;
	uint8_t *w, *act;
	float *x, *y, *want;
};

static struct product product_new(const struct ggu_type_info *t, size_t n_tokens, size_t n_out, size_t n_in)
{
	struct product p = { .t = t, .n_tokens = n_tokens, .n_out = n_out, .n_in = n_in };
	p.w_row = n_in/t->block_weights*t->block_bytes;
	p.w_stride = p.w_row + kt_below(4);
	p.skew = kt_below(4);
	p.w_bytes = (n_out - 1)*p.w_stride + p.w_row + p.skew;
	p.act_row = quant_act_bytes(quant_act_of(t->id), 1, n_in);
	p.act_bytes = n_tokens*p.act_row;
	p.y_stride = n_out + kt_below(3);
	p.y_bytes = 4*((n_tokens - 1)*p.y_stride + n_out);
	p.w = (uint8_t *)kt_buffer(p.w_bytes) + p.skew;
	p.act = kt_buffer(p.act_bytes);
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
	kt_free(p->x, 4*p->n_tokens*p->n_in);
	kt_free(p->y, p->y_bytes);
	kt_free(p->want, p->y_bytes);
}
static void *zeroed(size_t n)
{
	void *p = calloc(n ? n : 1, 1);
	if (!p) abort();
	return p;
}

/* Activations of the first output's signs: every term of the first token's first sum is positive. */
static void follow_signs(struct product *p)
{
	for (size_t i = 0; i < p->n_in; i++) {
		float w = 0;
		slow_decode(p->t->id, p->w, i, &w);
		p->x[i] = w < 0 ? -1.5f : 1.5f;
	}
}
static void pack(struct product *p, const char *isa)
{
	uint8_t *slow = zeroed(p->act_bytes);
	quant_act_pack(quant_act_of(p->t->id), p->x, p->n_in, p->n_tokens, p->n_in, 0, p->n_tokens, p->act);
	for (size_t k = 0; k < p->n_tokens; k++) {
		const float *x = p->x + k*p->n_in;
		if (p->t->kind == GGU_KIND_BLOCK) slow_pack(p->t->id, x, p->n_in, slow + k*p->act_row);
		else memcpy(slow + k*p->act_row, x, p->act_row);
	}
	if (memcmp(slow, p->act, p->act_bytes)) kt_fail("%s packs %zu tokens of %zu unlike the slow path", isa, p->n_tokens, p->n_in);
	free(slow);
}
static void slow_outputs(struct product *p)
{
	struct slow_weight *row = zeroed(p->n_in*sizeof *row);
	float *wide = zeroed(p->n_in*sizeof *wide);
	for (size_t o = 0; o < p->n_out; o++) {
		for (size_t i = 0; i < p->n_in; i++) {
			slow_decode(p->t->id, p->w + o*p->w_stride, i, wide + i);
			slow_weight(p->t->id, p->w + o*p->w_stride, i, row + i);
		}
		for (size_t k = 0; k < p->n_tokens; k++) {
			const void *act = p->act + k*p->act_row;
			p->want[k*p->y_stride + o] = p->t->kind == GGU_KIND_BLOCK ? slow_product(p->t->id, row, p->n_in, act, &widest)
				: slow_float_product(wide, act, p->n_in);
		}
	}
	free(row); free(wide);
}

static void multiply(const struct ggu_type_info *t, const char *isa, size_t n_tokens, size_t n_out, size_t n_in, enum kt_blocks blocks, enum kt_floats floats)
{
	static void *work;
	struct product p = product_new(t, n_tokens, n_out, n_in);
	struct quant_mul m;
	size_t cut = 1 + kt_below(n_out), at;
	if (!work && posix_memalign(&work, 64, quant_mul_work_bytes())) abort();
	memset(work, 0xff, 4096);
	for (size_t o = 0; o < n_out; o++) kt_fill_blocks(t, p.w + o*p.w_stride, n_in/t->block_weights, blocks);
	kt_fill_floats(p.x, n_tokens*n_in, floats);
	if (floats == KT_SIGNS) follow_signs(&p);
	quant_select(isa, NULL);
	pack(&p, isa);
	m = (struct quant_mul){ t->id, n_tokens, n_out, n_in, p.w, p.w_stride, p.act, p.y, p.y_stride };
	quant_mul(&m, 0, n_tokens, 0, cut, work);
	if (cut < n_out) quant_mul(&m, 0, n_tokens, cut, n_out - cut, work);
	slow_outputs(&p);
	if (!kt_same(p.y, p.want, p.y_bytes/4, &at))
		kt_fail("%zu tokens, %zu outputs (cut at %zu), %zu inputs: y[%zu][%zu] = %a, not %a; blocks: %s, activations: %s", n_tokens, n_out, cut, n_in,
			at/p.y_stride, at%p.y_stride, p.y[at], p.want[at], kt_blocks_name[blocks], kt_floats_name[floats]);
	product_free(&p);
}

/* Unpacking gives back d*xs*q. */
static void check_unpack(const struct ggu_type_info *t, const char *isa)
{
	size_t n = 4*(t->block_weights == 1 ? 5 : t->block_weights), bytes = quant_act_bytes(quant_act_of(t->id), 1, n);
	float *x = kt_buffer(4*n), *y = kt_buffer(4*n), top = 0;
	void *act = kt_buffer(bytes);
	quant_select(isa, NULL);
	kt_fill_floats(x, n, KT_MIXED);
	quant_act_pack(quant_act_of(t->id), x, n, 1, n, 0, 1, act);
	quant_act_unpack(quant_act_of(t->id), act, 1, n, 0, y);
	for (size_t i = 0; i < n; i++) top = fmaxf(top, fabsf(x[i]));
	for (size_t i = 0; i < n; i++)
		if (t->kind == GGU_KIND_BLOCK ? fabsf(y[i] - x[i]) > top*0.5001f/127 : x[i] != y[i]) kt_fail("%a is kept as %a, the largest is %a", x[i], y[i], top);
	kt_free(x, 4*n); kt_free(y, 4*n); kt_free(act, bytes);
}

static void check_type(const struct ggu_type_info *t, const char *isa)
{
	size_t unit = t->block_weights, chunk = 2048;
	kt_name("%s %s multiplies at every edge of a tile", t->name, isa);
	for (size_t i = 0; i < EDGES; i++)
		for (size_t k = 0; k < EDGES && !kt_failed(); k++)
			multiply(t, isa, edges[i], edges[k], unit == 1 ? 1 + kt_below(67) : unit*(1 + kt_below(unit < 256 ? 4 : 2)), KT_RANDOM, KT_MIXED);
	kt_result();
	kt_name("%s %s multiplies rows of every length", t->name, isa);
	for (size_t n = 1; n <= (unit == 1 ? 67 : 20) && !kt_failed(); n++) multiply(t, isa, 3, 5, n*unit, KT_RANDOM, KT_MIXED);
	for (size_t n = chunk - unit; n <= chunk + unit && !kt_failed(); n += unit) multiply(t, isa, 1 + kt_below(3), 1 + kt_below(5), n, KT_RANDOM, KT_MIXED);
	multiply(t, isa, 1, 1, 2*chunk + unit, KT_RANDOM, KT_MIXED);
	for (size_t n = 255; n <= 257 && !kt_failed(); n++) multiply(t, isa, n, 1 + kt_below(2), unit, KT_RANDOM, KT_MIXED);
	kt_result();
	kt_name("%s %s multiplies the largest, the smallest and the strangest", t->name, isa);
	widest = 0;
	for (int blocks = 0; blocks < KT_BLOCKS; blocks++)
		for (int floats = 0; floats < KT_FLOATS && !kt_failed(); floats++)
			multiply(t, isa, 1 + kt_below(3), 1 + kt_below(6), unit*(1 + kt_below(unit == 1 ? 67 : 4)), blocks, floats);
	if (widest > INT32_MAX) kt_fail("a sum of %lld does not fit", (long long)widest);
	if (t->id == GGU_TYPE_Q6_K && widest != 2130706432) kt_fail("the longest sum met is %lld, not that of quant/act.h", (long long)widest);
	check_unpack(t, isa);
	kt_result();
}

int main(int argc, char **argv)
{
	kt_begin(argc, argv);
	for (const char *const *isa = quant_available(); *isa; isa++)
		for (uint32_t id = 0; id < GGU_TYPE_COUNT; id++)
			if (ggu_type_info(id) && quant_can_multiply(id)) check_type(ggu_type_info(id), *isa);
	return kt_end();
}
