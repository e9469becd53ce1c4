/* SPDX-License-Identifier: MIT
 * attn.c - cutting attention into tasks, and a task's walk over splits and tiles; attn_text.h does the arithmetic.
 *
 * A task is one key-value head (or some of the query heads that share it, where they are many), a stretch of tokens
 * of one sequence, and all splits that these see, joined as they come. With few tokens there are too few such tasks:
 * then each split is a task, writes its sums to `partial`, and merges join them. */
#include <math.h>
#include <string.h>
#include "attn_internal.h"

const struct attn_table *quant_attn_table = &quant_attn_c;

static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t up(size_t a, size_t b) { return (a + b - 1)/b; }
static size_t group(const struct attn_shape *s) { return s->n_head/s->n_kv; }
static size_t v_wide(const struct attn_shape *s) { return up(s->v_dim, ATTN_LANES)*ATTN_LANES; }

/* from..*to - 1 are seen; both grow with pos. */
static size_t range_of(const struct attn *a, const struct attn_rows *r, size_t pos, size_t *to)
{
	size_t w = a->window, from = 0, end = pos + 1;
	if (a->mask == ATTN_NONE) end = r->n_pos;
	else if (w && a->mask == ATTN_WINDOW) from = end > w ? end - w : 0;
	else if (w && a->mask == ATTN_CHUNK) from = pos/w*w;
	else if (a->mask == ATTN_AROUND) {
		from = pos > w/2 ? pos - w/2 : 0;
		end = pos + w/2 + 1;
	}
	*to = least(end, r->n_pos);
	return least(from, *to);
}
/* Splits that some token of r sees: *first and the number. */
static size_t splits_of(const struct attn *a, const struct attn_rows *r, size_t *first)
{
	size_t to, none;
	*first = range_of(a, r, r->pos, &none)/ATTN_SPLIT;
	range_of(a, r, r->pos + r->n - 1, &to);
	return r->n ? most(up(to, ATTN_SPLIT), *first + 1) - *first : 1;
}

/* ---- plan ---- */

/* The sums of a split of a row while they wait: m, l, and a from the next whole vector on. */
static size_t record(const struct attn_shape *s) { return ATTN_LANES + v_wide(s); }
static size_t records_bytes(const struct attn_shape *s, size_t n_tokens, size_t parts)
{
	return n_tokens*s->n_head*parts*record(s)*sizeof(float);
}
size_t attn_partial_bytes(const struct attn_shape *s, size_t n_tokens, size_t n_pos)
{
	return records_bytes(s, n_tokens, up(n_pos, ATTN_SPLIT) + 1);
}

/* Rows of a task: what they need is to fit a core's cache. */
static size_t rows_max(const struct attn_shape *s) { return s->k_dim + s->v_dim <= 512 ? ATTN_ROWS : ATTN_ROWS/2; }
static size_t tasks_of(const struct attn_shape *s, const struct attn_rows *r)
{
	return s->n_kv*up(group(s), r->cut.heads)*up(r->n, r->cut.tokens)*r->cut.parts;
}
/* Rows of a task as many as its buffers take, fewer where threads would stand idle, but enough to reuse what was
 * read. */
static size_t cut_tokens(struct attn *a, size_t n_tasks)
{
	enum { FEWEST = 4*ATTN_GROUP };
	const struct attn_shape *s = &a->shape;
	size_t rows = rows_max(s), across = up(group(s), rows), heads = up(group(s), across), tokens = 0, total = 0;
	for (size_t i = 0; i < a->n_rows; i++) tokens += a->rows[i].n;
	tokens = tokens*s->n_kv*across/n_tasks;
	tokens = least(most(tokens, up(FEWEST, heads)), rows/heads);
	for (size_t i = 0; i < a->n_rows; i++) {
		struct attn_rows *r = a->rows + i;
		r->cut.heads = heads;
		r->cut.tokens = r->n ? up(r->n, up(r->n, tokens)) : 1;
		r->cut.parts = 1;
		total += tasks_of(s, r);
	}
	return total;
}
struct attn_plan attn_plan(struct attn *a, int n_threads)
{
	enum { TASKS = 4 };             /* of a thread, so that all end at about the same time */
	const struct attn_shape *s = &a->shape;
	struct attn_plan p = { 0 };
	bool few = n_threads > 1 && cut_tokens(a, TASKS*(size_t)n_threads) < TASKS*(size_t)n_threads;
	size_t used = 0, first;
	if (n_threads <= 1) cut_tokens(a, 1);
	for (size_t i = 0; i < a->n_rows; i++) {
		struct attn_rows *r = a->rows + i;
		size_t parts = few && r->n ? splits_of(a, r, &first) : 1, bytes = records_bytes(s, r->n, parts);
		r->cut.first_task = p.n_tasks;
		r->cut.first_merge = p.n_merges;
		if (parts > 1 && a->partial && bytes <= a->partial_bytes - used) {
			r->cut.parts = parts;
			r->cut.partial = used;
			used += bytes;
			p.n_merges += r->n*s->n_kv;
		}
		p.n_tasks += tasks_of(s, r);
	}
	return p;
}

/* ---- work ---- */

static size_t lines(size_t bytes) { return up(bytes, 64)*64; }
size_t attn_work_bytes(const struct attn_shape *s)
{
	size_t rows = rows_max(s),
		floats = rows*s->k_dim + (s->k_dim + v_wide(s))*ATTN_BLOCK + rows*(ATTN_BLOCK + 2*v_wide(s));
	return lines(sizeof(struct attn_task)) + 6*64 + floats*sizeof(float);
}
static float *take(char **at, size_t floats)
{
	float *p = (float *)(void *)*at;
	*at += lines(floats*sizeof *p);
	return p;
}
static void lay_out(struct attn_task *t, const struct attn *a)
{
	const struct attn_shape *s = &a->shape;
	char *at = (char *)t + lines(sizeof *t);
	t->a = a;
	t->v_wide = v_wide(s);
	t->k = take(&at, s->k_dim*ATTN_BLOCK);
	t->v = take(&at, t->v_wide*ATTN_BLOCK);
	t->q = take(&at, t->n*s->k_dim);
	t->s = take(&at, t->n*ATTN_BLOCK);
	t->split_a = take(&at, t->n*t->v_wide);
	t->all_a = take(&at, t->n*t->v_wide);
}

/* ---- a task ---- */

static void reset(struct attn_sums *x, size_t n)
{
	memset(x, 0, n*sizeof *x);
	for (size_t r = 0; r < n; r++) x[r].m = -INFINITY;
}

/* The tile at p, by the rows that see any of it: what is seen moves on with the tokens, so these are neighbours. */
static void meet(struct attn_task *t, const struct attn_rows *rows, size_t kv, size_t p)
{
	size_t r0 = 0, r1 = t->n, at = kv*attn_head_bytes(&t->a->shape), next = p + ATTN_BLOCK;
	const char *head = (const char *)rows->block[p/ATTN_BLOCK] + at;
	while (r0 < r1 && t->row[r0].to <= p) r0++;
	while (r0 < r1 && t->row[r1 - 1].from >= least(next, t->row[r1 - 1].to)) r1--;
	if (r0 == r1) return;
	quant_attn_table->tile(t, head,
		next < t->row[t->n - 1].to ? (const char *)rows->block[next/ATTN_BLOCK] + at : NULL, p, r0, r1);
}
static void meet_split(struct attn_task *t, const struct attn_rows *rows, size_t kv, size_t split)
{
	size_t from = most(t->row[0].from/ATTN_BLOCK*ATTN_BLOCK, split*ATTN_SPLIT);
	size_t to = least(t->row[t->n - 1].to, (split + 1)*ATTN_SPLIT);
	reset(t->split, t->n);
	memset(t->split_a, 0, t->n*t->v_wide*sizeof *t->split_a);
	for (size_t p = from; p < to; p += ATTN_BLOCK) meet(t, rows, kv, p);
	for (size_t r = 0; r < t->n; r++) quant_attn_table->end_split(t->split + r);
}

static float *record_of(const struct attn *a, const struct attn_rows *r, size_t token, size_t head, size_t part)
{
	return (float *)(void *)((char *)a->partial + r->cut.partial) + ((token*a->shape.n_head + head)*r->cut.parts + part)*record(&a->shape);
}

/* Rows of tokens t0.. and heads h0..; tokens slowest. */
static void take_rows(struct attn_task *t, const struct attn *a, const struct attn_rows *r, size_t t0, size_t n_t,
	size_t h0, size_t n_h)
{
	const struct attn_shape *s = &a->shape;
	struct attn_row *row = t->row;
	for (size_t i = t0; i < t0 + n_t; i++)
		for (size_t h = h0; h < h0 + n_h; h++, row++) {
			row->q = r->q + i*r->q_stride + h*s->k_dim;
			row->out = r->out + i*r->out_stride + h*s->v_dim;
			row->head = h;
			row->pos = r->pos + i;
			row->from = range_of(a, r, row->pos, &row->to);
		}
	t->n = n_t*n_h;
	lay_out(t, a);
	quant_attn_table->pack_q(t);
}
static void whole(struct attn_task *t, const struct attn_rows *r, size_t kv)
{
	size_t first = t->row[0].from/ATTN_SPLIT, end = up(t->row[t->n - 1].to, ATTN_SPLIT);
	const struct attn *a = t->a;
	reset(t->all, t->n);
	for (size_t s = first; s < end; s++) {
		meet_split(t, r, kv, s);
		for (size_t i = 0; i < t->n; i++)
			quant_attn_table->join(t->all + i, t->all_a + i*t->v_wide, t->split + i,
				t->split_a + i*t->v_wide, t->v_wide);
	}
	for (size_t i = 0; i < t->n; i++)
		quant_attn_table->end(t->all + i, t->all_a + i*t->v_wide, a->sink ? a->sink + t->row[i].head : NULL,
			a->shape.v_dim, t->row[i].out);
}
static void part(struct attn_task *t, const struct attn_rows *r, size_t kv, size_t i)
{
	size_t first;
	splits_of(t->a, r, &first);
	meet_split(t, r, kv, first + i);
	for (size_t k = 0; k < t->n; k++) {
		float *to = record_of(t->a, r, t->row[k].pos - r->pos, t->row[k].head, i);
		to[0] = t->split[k].m;
		to[1] = t->split[k].l[0];
		memcpy(to + ATTN_LANES, t->split_a + k*t->v_wide, t->v_wide*sizeof *to);
	}
}

/* The last of the sequences whose first task, or merge, is not beyond i. */
static const struct attn_rows *rows_of(const struct attn *a, size_t i, bool merge)
{
	size_t lo = 0, hi = a->n_rows;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo)/2;
		if ((merge ? a->rows[mid].cut.first_merge : a->rows[mid].cut.first_task) <= i) lo = mid;
		else hi = mid;
	}
	return a->rows + lo;
}

/* Heads slowest, so that threads read the same keys at about the same time; then the last tokens first, which see
 * most. */
void attn_run(const struct attn *a, size_t task, void *work)
{
	const struct attn_rows *r = rows_of(a, task, false);
	size_t parts = r->cut.parts, stretches = up(r->n, r->cut.tokens), across = up(group(&a->shape), r->cut.heads);
	size_t i = task - r->cut.first_task, head = i/parts/stretches, kv = head/across;
	size_t t0 = (stretches - 1 - i/parts%stretches)*r->cut.tokens, h0 = head%across*r->cut.heads;
	struct attn_task *t = work;
	take_rows(t, a, r, t0, least(r->cut.tokens, r->n - t0), kv*group(&a->shape) + h0,
		least(r->cut.heads, group(&a->shape) - h0));
	if (parts > 1) part(t, r, kv, i%parts);
	else whole(t, r, kv);
}

void attn_merge(const struct attn *a, size_t merge)
{
	const struct attn_rows *r = rows_of(a, merge, true);
	size_t i = merge - r->cut.first_merge, token = i/a->shape.n_kv, n = group(&a->shape), h0 = i%a->shape.n_kv*n;
	for (size_t h = h0; h < h0 + n; h++) {
		struct attn_sums all = { -INFINITY, { 0 } };
		/* the first split's, which takes in the others */
		float *sum = record_of(a, r, token, h, 0) + ATTN_LANES;
		for (size_t k = 0; k < r->cut.parts; k++) {
			const float *from = record_of(a, r, token, h, k);
			struct attn_sums x = { from[0], { from[1] } };
			quant_attn_table->join(&all, sum, &x, from + ATTN_LANES, v_wide(&a->shape));
		}
		quant_attn_table->end(&all, sum, a->sink ? a->sink + h : NULL, a->shape.v_dim,
			r->out + token*r->out_stride + h*a->shape.v_dim);
	}
}

void attn_cost(const struct attn *a, double *bytes, double *macs)
{
	const struct attn_shape *s = &a->shape;
	double position = (double)attn_block_bytes(s)/ATTN_BLOCK;
	*bytes = *macs = 0;
	for (size_t i = 0; i < a->n_rows; i++) {
		const struct attn_rows *r = a->rows + i;
		size_t from, to = 0, first = r->n ? range_of(a, r, r->pos, &to) : 0;
		for (size_t t = 0; t < r->n; t++) {
			from = range_of(a, r, r->pos + t, &to);
			*macs += (double)((to - from)*s->n_head*(s->k_dim + s->v_dim));
		}
		*bytes += position*(double)(to - first);
	}
}
