/* SPDX-License-Identifier: MIT
 * digits_widened.c - rows of a type that neither digits_text.h nor books_text.h handles: widened as for panels, a chunk
 * of a row at a time, and multiplied in C with digits in their plain order. */
#if defined __x86_64__
#include "../libgguf/size.h"
#include "fused.h"
#include "digits.h"

static int32_t products(const int16_t *w, const int8_t *high, const int8_t *low, size_t n)
{
	uint32_t s = 0;         /* may wrap around on the way; the total fits */
	for (size_t i = 0; i < n; i++) s += (uint32_t)(w[i]*(64*high[i] + low[i]));
	return (int32_t)s;
}
static float super(const struct wide *w, const struct strip256 *x, bool has_min, float y)
{
	int32_t min = 0;
	y = fused(w->d[0]*x->d, (float)products(w->w, x->in[ORDER_PLAIN].high, x->in[ORDER_PLAIN].low, 256), y);
	if (!has_min) return y;         /* mn is not set */
	for (size_t i = 0; i < 16; i++) min += w->mn[i]*x->sum[i];
	return fused(w->m[0]*x->d, (float)min, y);
}
/* Block b of 32 columns, the k-th of a run */
static float unit(const struct wide *w, size_t b, const struct strip_run *x, size_t k, enum mul_kind kind, float y)
{
	const int16_t *c = w->w + 32*b;
	const int32_t first = products(c, x->high[0][k], x->low[0][k], 16),
		second = products(c + 16, x->high[1][k], x->low[1][k], 16);
	if (kind == MUL_16) {
		y = fused(w->d[b]*x->d[k], (float)first, y);
		return fused(w->m[b]*x->d[k], (float)second, y);
	}
	y = fused(w->d[b]*x->d[k], (float)(first + second), y);
	return kind == MUL_32_MIN ? fused(w->m[b]*x->d[k], x->all_float[k], y) : y;
}
static void row(const struct quant_mul *m, enum mul_kind kind, size_t strip, size_t t0, size_t n_t, size_t o)
{
	const struct ggu_type_info *type = ggu_type_info(m->type);
	const char *from = (const char *)m->w + o*m->w_stride;
	struct wide w;
	for (size_t t = t0; t < t0 + n_t; t++) m->y[t*m->y_stride + o] = 0;
	for (size_t i = 0, n; i < m->n_in; i += n) {
		n = size_least(m->n_in - i, MUL_CHUNK);
		mul_codes->widen[m->type](from + i/type->block_weights*type->block_bytes, n, &w);
		for (size_t t = t0; t < t0 + n_t; t++) {
			const void *x = (const char *)m->act + t*strip;
			float *y = m->y + t*m->y_stride + o;
			if (mul_block(kind) == 256)
				*y = super(&w, (const struct strip256 *)x + i/256, mul_has_m(kind), *y);
			else for (size_t b = 0; b < n/32; b++)
				*y = unit(&w, b, (const struct strip_run *)x + (i/32 + b)/8, (i/32 + b)%8, kind, *y);
		}
	}
}
void digits_widened(const struct quant_mul *m, enum mul_kind kind, size_t strip, size_t t0, size_t n_t, size_t o0,
	size_t n_o)
{
	for (size_t o = o0; o < o0 + n_o; o++) row(m, kind, strip, t0, n_t, o);
}
#else
typedef int isa_none;
#endif
