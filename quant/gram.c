/* SPDX-License-Identifier: MIT
 * gram.c - see gram.h. Inputs are turned, so that tokens are what is summed over; then columns are weights (Q8_0) and
 * activations of the same product, of whose tiles those on and below the diagonal are made. */
#include <stdlib.h>
#include <string.h>
#include "enc.h"
#include "float.h"
#include "gram.h"
#include "vec.h"

/* A tile: so many rows, packed together, by so many columns. A tile of rows is met from the second cache by all
 * columns, which are unpacked once for it; narrow ones leave out more of what lies beyond the diagonal. */
enum { ROWS = 384, COLUMNS = 32, TURN = 48, BLOCK = 32 };
/* Rows of turned inputs begin in different sets of a cache. */
enum { TURNED = GRAM_TOKENS + 16 };
#define CODES GGU_TYPE_Q8_0

struct work {
	const struct gram *g;
	size_t tokens;                  /* whole blocks */
	float *turned;                  /* [n][TURNED] */
	char *codes;                    /* [n][code_bytes] */
	char *act;                      /* of each ROWS columns */
	float *y;                       /* [workers][ROWS][COLUMNS] */
	char *mul;                      /* [workers][quant_mul_work_bytes] */
	size_t code_bytes, act_bytes;
};
static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t aligned(size_t bytes) { return (bytes + 63)/64*64; }
static size_t rows_of(const struct gram *g, size_t first) { return least(g->n - first, ROWS); }

/* TURN columns; ROWS is a multiple of it, and it is one of quant_act_step. */
static void turn_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	const struct gram *g = w->g;
	const size_t from = task*TURN, n = least(g->n - from, TURN), first = from/ROWS*ROWS;
	float *to = w->turned + from*TURNED;
	(void)worker;
	for (size_t t = 0; t < g->n_tokens; t += 8)
		quant_float_table->turn[FLOAT_F32]((const char *)(g->x + t*g->stride + from), g->stride*sizeof *g->x,
			g->n_tokens - t, n, FLOAT_LANES*TURNED, TURNED, to + t);
	for (size_t i = 0; i < n; i++) {
		vec_mul(to + i*TURNED, g->by, g->n_tokens);
		for (size_t t = g->n_tokens; t < w->tokens; t++) to[i*TURNED + t] = 0;
		/* as quant_encode does, but for a look at each block whether it was decoded from one */
		quant_enc_table->fn[CODES](w->codes + (from + i)*w->code_bytes, to + i*TURNED, NULL, 1, w->tokens,
			&(struct how){ 0 });
	}
	quant_act_pack(quant_act_of(CODES), w->turned + first*TURNED, TURNED, rows_of(g, first), w->tokens,
		from - first, n, w->act + first/ROWS*w->act_bytes);
}
/* The tile of rows from `first` and columns from `from` on, but for rows before these columns. */
static void add_tile(const struct work *w, size_t first, size_t from, int worker)
{
	const size_t rows = rows_of(w->g, first), n = least(first + rows - from, COLUMNS),
		t0 = from > first ? (from - first)/TURN*TURN : 0;
	float *y = w->y + (size_t)worker*ROWS*COLUMNS;
	const struct quant_mul m = { .type = CODES, .n_tokens = rows, .n_out = n, .n_in = w->tokens,
		.w = w->codes + from*w->code_bytes, .w_stride = w->code_bytes,
		.act = w->act + first/ROWS*w->act_bytes, .y = y, .y_stride = COLUMNS };
	quant_mul(&m, t0, rows - t0, 0, n, w->mul + (size_t)worker*aligned(quant_mul_work_bytes()));
	for (size_t i = first > from ? first : from; i < first + rows; i++)
		vec_add(w->g->to + i*(i + 1)/2 + from, y + (i - first)*COLUMNS, least(i + 1 - from, n));
}
static size_t tiles_of(const struct gram *g, size_t first) { return (first + rows_of(g, first) + COLUMNS - 1)/COLUMNS; }
static void add_task(void *ctx, size_t task, int worker)
{
	const struct work *w = ctx;
	size_t first = 0;
	for (size_t n; task >= (n = tiles_of(w->g, first)); first += ROWS) task -= n;
	add_tile(w, first, task*COLUMNS, worker);
}

static void run(struct ggu_pool *pool, size_t n, void (*fn)(void *, size_t, int), void *ctx)
{
	if (pool) ggu_pool_run(pool, n, fn, ctx);
	else for (size_t i = 0; i < n; i++) fn(ctx, i, 0);
}
/* The parts of w in memory at `base`, if there is one; how many bytes they take. */
static size_t parts(struct work *w, size_t workers, char *base)
{
	const size_t n = w->g->n, mul = aligned(quant_mul_work_bytes());
	size_t at[5], end = 0;
	w->code_bytes = w->tokens/BLOCK*ggu_type_info(CODES)->block_bytes;
	w->act_bytes = aligned(quant_act_bytes(quant_act_of(CODES), least(n, ROWS), w->tokens));
	const size_t part[] = { n*TURNED*sizeof *w->turned, n*w->code_bytes, (n + ROWS - 1)/ROWS*w->act_bytes,
		workers*ROWS*COLUMNS*sizeof *w->y, workers*mul };
	for (int i = 0; i < 5; i++) {
		at[i] = end;
		end += aligned(part[i]);
	}
	if (!base) return end;
	w->turned = (void *)(base + at[0]);
	w->codes = base + at[1];
	w->act = base + at[2];
	w->y = (void *)(base + at[3]);
	w->mul = base + at[4];
	return end;
}
void gram_room_free(struct gram_room *r)
{
	free(r->p);
	*r = (struct gram_room){ 0 };
}
enum ggu_status gram_add(const struct gram *g, struct gram_room *room, struct ggu_pool *pool)
{
	struct work w = { .g = g, .tokens = (g->n_tokens + BLOCK - 1)/BLOCK*BLOCK };
	const size_t workers = pool ? (size_t)ggu_pool_size(pool) : 1, bytes = parts(&w, workers, NULL);
	size_t tasks = 0;
	if (!g->n || !g->n_tokens) return GGU_OK;
	if (room->bytes < bytes) {
		gram_room_free(room);
		room->p = aligned_alloc(64, bytes);
		if (!room->p) return GGU_ERR_NOMEM;
		room->bytes = bytes;
	}
	parts(&w, workers, room->p);
	run(pool, (g->n + TURN - 1)/TURN, turn_task, &w);
	for (size_t first = 0; first < g->n; first += ROWS) tasks += tiles_of(g, first);
	run(pool, tasks, add_task, &w);
	return GGU_OK;
}
