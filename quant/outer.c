/* SPDX-License-Identifier: MIT
 * outer.c - sums of outer products over tokens, by float_mul.
 *
 * Rows of a are packed as activations, once. A task has OUTPUTS rows of b, which are its weights, and multiplies them
 * with those of a, ROWS at a time, which stay in L2. In a triangle it skips the tiles before its own rows. */
#include <stdlib.h>
#include "../libgguf/size.h"
#include "float.h"
#include "outer.h"
#include "vec.h"

enum { OUTPUTS = 32, ROWS = 240 };

struct worker { float y[ROWS*OUTPUTS]; };
struct work {
	const struct outer *o;
	char *act;                      /* of each ROWS rows of a */
	size_t act_bytes;
	struct worker *worker;          /* [workers] */
	char *mul;                      /* [workers] */
};

static size_t rows_of(const struct outer *o, size_t first) { return size_least(o->n_a - first, ROWS); }
static void pack_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	const struct outer *o = w->o;
	const size_t step = quant_act_step(QUANT_ACT_FLOAT, ROWS), tasks = size_parts(ROWS, step),
		first = task/tasks*ROWS, from = task%tasks*step;
	(void)worker;
	if (first + from >= o->n_a) return;
	(o->rows ? float_act_pack : float_columns_pack)(o->a + first*(o->rows ? o->a_stride : 1), o->a_stride,
		rows_of(o, first), o->n, from, size_least(rows_of(o, first) - from, step),
		(void *)(w->act + first/ROWS*w->act_bytes));
}
/* Computes n columns, from `from` on, of rows first + t0 to first + n_t - 1 of `to`. */
static void add(const struct outer *o, size_t first, size_t t0, size_t n_t, size_t from, size_t n, const float *y)
{
	for (size_t t = t0; t < n_t; t++) vec_add(o->to + (first + t)*o->n_b + from, y + t*OUTPUTS, n);
}
static void add_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	const struct outer *o = w->o;
	const size_t from = task*OUTPUTS, n = size_least(o->n_b - from, OUTPUTS),
		tile = quant_float_table->tokens, begin = o->form == OUTER_WHOLE ? 0 : from;
	float *y = w->worker[worker].y;
	for (size_t first = begin/ROWS*ROWS; first < o->n_a; first += ROWS) {
		const size_t rows = rows_of(o, first), t0 = first < begin ? (begin - first)/tile*tile : 0;
		const struct quant_mul m = { .type = GGU_TYPE_F32, .n_tokens = rows, .n_out = n, .n_in = o->n,
			.w = o->b + from*(o->rows ? o->b_stride : 1),
			.w_stride = o->rows ? o->b_stride*sizeof *o->b : o->b_stride,
			.act = w->act + first/ROWS*w->act_bytes, .y = y, .y_stride = OUTPUTS };
		(o->rows ? float_mul : float_columns_mul)(&m, t0, rows - t0, 0, n,
			w->mul + (size_t)worker*float_work_bytes(o->n));
		add(o, first, t0, rows, from, n, y);
	}
}
static void *room(size_t n, size_t bytes)
{
	return bytes <= (SIZE_MAX - 63)/n ? aligned_alloc(64, size_up(n*bytes, 64)) : NULL;
}
enum ggu_status outer_add(const struct outer *o, struct ggu_pool *pool)
{
	const size_t workers = (size_t)ggu_pool_size(pool), panels = size_parts(o->n_a, ROWS),
		step = quant_act_step(QUANT_ACT_FLOAT, ROWS);
	if (!o->n_a || !o->n_b || !o->n) return GGU_OK;
	struct work w = { .o = o,
		.act_bytes = size_up(float_columns_bytes(size_least(o->n_a, ROWS), o->n), 64) };
	enum ggu_status s = GGU_ERR_NOMEM;
	w.act = room(panels, w.act_bytes);
	w.worker = room(workers, sizeof *w.worker);
	w.mul = room(workers, float_work_bytes(o->n));
	if (w.act && w.worker && w.mul) {
		ggu_pool_run(pool, panels*(size_parts(ROWS, step)), pack_task, &w);
		ggu_pool_run(pool, size_parts(o->n_b, OUTPUTS), add_task, &w);
		s = GGU_OK;
	}
	free(w.act); free(w.worker); free(w.mul);
	return s;
}
