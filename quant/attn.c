/* SPDX-License-Identifier: MIT
 * attn.c - cuts attention into tasks, and walks over the splits and tiles of a task; attn_text.h does the arithmetic.
 *
 * A task is one key-value head (or some of the query heads that share it, if they are many), a stretch of tokens of one
 * sequence, and all splits that these see, joined in order. With few tokens there are too few such tasks: then each
 * split is a task that writes its sums to `partial`, and merges join them. Few tokens do little work with what they
 * read, so memory is the limit: then a task has several key-value heads, and reads blocks in their order in memory. */
#include <math.h>
#include <string.h>
#include "../libgguf/size.h"
#include "attn_internal.h"

const struct attn_table *quant_attn_table = &quant_attn_c;

static size_t group(const struct attn_shape *s) { return s->n_head/s->n_kv; }
static size_t k_wide(const struct attn_shape *s) { return size_up(s->k_dim, ATTN_LANES); }
static size_t v_wide(const struct attn_shape *s) { return size_up(s->v_dim, ATTN_LANES); }

/* A token at pos sees the positions from the returned one to *to - 1; both ends grow with pos. */
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
	*to = size_least(end, r->n_pos);
	return size_least(from, *to);
}
/* The splits that some token of r sees: sets *first, and returns their number. */
static size_t splits_of(const struct attn *a, const struct attn_rows *r, size_t *first)
{
	size_t to, none;
	*first = range_of(a, r, r->pos, &none)/ATTN_SPLIT;
	range_of(a, r, r->pos + r->n - 1, &to);
	return r->n ? size_most(size_parts(to, ATTN_SPLIT), *first + 1) - *first : 1;
}

/* ---- plan ---- */

/* Floats of a record in `partial`, the sums of a row's split that wait to be merged: m, l, and a from the next whole
 * vector on. */
static size_t record(const struct attn_shape *s) { return ATTN_LANES + v_wide(s); }
static size_t records_bytes(const struct attn_shape *s, size_t n_tokens, size_t parts)
{
	return n_tokens*s->n_head*parts*record(s)*sizeof(float);
}

/* Up to FEW_ROWS rows do little with what they read. ROOM: the floats that fit the cache of a core, which limit the
 * rows of a task. */
enum { FEW_ROWS = 2*ATTN_GROUP, ROOM = 96 << 10 };
static size_t rows_max(const struct attn_shape *s)
{
	return size_most(size_least(ROOM/(s->k_dim + ATTN_BLOCK + 2*v_wide(s)), ATTN_ROWS), ATTN_GROUP);
}
static size_t tasks_of(const struct attn_shape *s, const struct attn_rows *r)
{
	return size_parts(s->n_kv, r->cut.kv)*size_parts(group(s), r->cut.heads)*size_parts(r->n, r->cut.tokens)
		*r->cut.parts;
}
/* Gives a task as many rows as its buffers hold, or fewer if threads would be idle otherwise, but enough to reuse what
 * was read. Returns the number of tasks. */
static size_t cut_tokens(struct attn *a, size_t n_tasks)
{
	enum { FEWEST = 4*ATTN_GROUP };
	const struct attn_shape *s = &a->shape;
	size_t rows = rows_max(s), across = size_parts(group(s), rows), heads = size_parts(group(s), across),
		tokens = 0, total = 0;
	for (size_t i = 0; i < a->n_rows; i++) tokens += a->rows[i].n;
	tokens = tokens*s->n_kv*across/n_tasks;
	tokens = size_least(size_most(tokens, size_parts(FEWEST, heads)), rows/heads);
	for (size_t i = 0; i < a->n_rows; i++) {
		struct attn_rows *r = a->rows + i;
		r->cut.heads = heads;
		r->cut.tokens = r->n ? size_parts(r->n, size_parts(r->n, tokens)) : 1;
		r->cut.kv = r->cut.parts = 1;
		total += tasks_of(s, r);
	}
	return total;
}
/* The key-value heads of a task: several with few rows, but only so many that n_tasks of the `total` are left. */
static size_t heads_together(const struct attn_shape *s, const struct attn_rows *r, size_t total, size_t n_tasks)
{
	size_t n = rows_max(s)/(r->cut.heads*r->cut.tokens);
	if (r->cut.heads < group(s) || r->n*r->cut.heads > FEW_ROWS) return 1;
	n = size_least(size_least(n, total/n_tasks), s->n_kv);
	return n ? size_parts(s->n_kv, size_parts(s->n_kv, n)) : 1;
}
static size_t tasks_wanted(int n_threads)
{
	enum { TASKS = 4 };             /* for each thread, so that all end at about the same time */
	return n_threads > 1 ? TASKS*(size_t)n_threads : 1;
}
static size_t parts_of(const struct attn *a, const struct attn_rows *r)
{
	size_t first;
	return r->n ? splits_of(a, r, &first) : 1;
}
size_t attn_partial_bytes(struct attn *a, int n_threads)
{
	size_t want = tasks_wanted(n_threads), bytes = 0;
	if (cut_tokens(a, want) >= want) return 0;
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t parts = parts_of(a, a->rows + i);
		if (parts > 1) bytes += records_bytes(&a->shape, a->rows[i].n, parts);
	}
	return bytes;
}
size_t attn_partial_most(const struct attn_shape *s, size_t n_tokens, size_t n_pos, int n_threads)
{
	/* more tokens make enough tasks */
	size_t n = size_least(size_least(n_tokens, n_pos), tasks_wanted(n_threads)*ATTN_ROWS), bytes = 0;
	for (; n && !bytes; n--) {
		struct attn_rows r = { .n = n, .pos = n_pos - n, .n_pos = n_pos };
		bytes = attn_partial_bytes(&(struct attn){ .shape = *s, .mask = ATTN_CAUSAL, .rows = &r, .n_rows = 1 },
			n_threads);
	}
	return bytes;
}
struct attn_plan attn_plan(struct attn *a, int n_threads)
{
	const struct attn_shape *s = &a->shape;
	struct attn_plan p = { 0 };
	size_t want = tasks_wanted(n_threads), total = cut_tokens(a, want), used = 0;
	for (size_t i = 0; i < a->n_rows; i++) {
		struct attn_rows *r = a->rows + i;
		size_t parts = total < want ? parts_of(a, r) : 1, bytes = records_bytes(s, r->n, parts);
		r->cut.first_task = p.n_tasks;
		r->cut.first_merge = p.n_merges;
		if (parts > 1 && a->partial && bytes <= a->partial_bytes - used) {
			r->cut.parts = parts;
			r->cut.partial = used;
			used += bytes;
			p.n_merges += r->n*s->n_kv;
		}
		if (r->n) r->cut.kv = heads_together(s, r, total*r->cut.parts, want);
		p.n_tasks += tasks_of(s, r);
	}
	return p;
}

/* ---- work ---- */

/* Floats for a row's sums of mins, which only some types have */
static size_t minima(const struct attn_shape *s) { return s->v_dim/32*ATTN_LANES; }
static size_t lines(size_t bytes) { return size_up(bytes, 64); }
size_t attn_work_bytes(const struct attn_shape *s)
{
	size_t rows = rows_max(s), a = 2*v_wide(s) + minima(s),
		floats = rows*k_wide(s) + (k_wide(s) + v_wide(s))*ATTN_BLOCK + rows*(ATTN_BLOCK + a);
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
	t->k_wide = k_wide(s);
	t->v_wide = v_wide(s);
	t->head_bytes = attn_head_bytes(s);
	t->k_bytes = attn_row_bytes(s->k_type, s->k_dim)*ATTN_BLOCK;
	t->v_bytes = s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim);
	t->a_wide = v_wide(s) + (!s->v_in_k && s->v_type == GGU_TYPE_Q5_1 ? minima(s) : 0);
	t->k = take(&at, t->k_wide*ATTN_BLOCK);
	t->v = take(&at, t->v_wide*ATTN_BLOCK);
	t->q = take(&at, t->n*t->k_wide);
	t->s = take(&at, t->n*ATTN_BLOCK);
	t->split_a = take(&at, t->n*t->a_wide);
	t->all_a = take(&at, t->n*t->v_wide);
}

/* ---- a task ---- */

static void reset(struct attn_sums *x, size_t n)
{
	memset(x, 0, n*sizeof *x);
	for (size_t r = 0; r < n; r++) x[r].m = -INFINITY;
}

/* Processes the tile at p of the task's head i for the rows that see any of it, which are adjacent since later tokens
 * see later positions. The next tile is that of the next head, or of the next block. */
static void do_tile(struct attn_task *t, const struct attn_rows *rows, size_t i, size_t p)
{
	size_t r0 = i*t->head_rows, r1 = r0 + t->head_rows, next = p + ATTN_BLOCK;
	const char *head = (const char *)rows->block[p/ATTN_BLOCK] + (t->kv + i)*t->head_bytes, *after = NULL;
	t->first = r0;
	while (r0 < r1 && t->row[r0].to <= p) r0++;
	while (r0 < r1 && t->row[r1 - 1].from >= size_least(next, t->row[r1 - 1].to)) r1--;
	if (r0 == r1) return;
	if (i + 1 < t->n/t->head_rows) after = head + t->head_bytes;
	else if (next < t->row[t->n - 1].to) after = (const char *)rows->block[next/ATTN_BLOCK] + t->kv*t->head_bytes;
	quant_attn_table->tile(t, head, after, p, r0, r1);
}
static void do_split(struct attn_task *t, const struct attn_rows *rows, size_t split)
{
	size_t from = size_most(t->row[0].from/ATTN_BLOCK*ATTN_BLOCK, split*ATTN_SPLIT);
	size_t to = size_least(t->row[t->n - 1].to, (split + 1)*ATTN_SPLIT);
	reset(t->split, t->n);
	for (size_t r = 0; r < t->n + ATTN_LANES; r++) t->m[r] = -INFINITY;
	memset(t->split_a, 0, t->n*t->a_wide*sizeof *t->split_a);
	for (size_t p = from; p < to; p += ATTN_BLOCK)
		for (size_t i = 0; i < t->n/t->head_rows; i++) do_tile(t, rows, i, p);
	for (size_t r = 0; r < t->n; r++) quant_attn_table->end_split(t, r);
}

static float *record_of(const struct attn *a, const struct attn_rows *r, size_t token, size_t head, size_t part)
{
	float *first = (float *)(void *)((char *)a->partial + r->cut.partial);
	return first + ((token*a->shape.n_head + head)*r->cut.parts + part)*record(&a->shape);
}

/* A task's key-value heads, the query heads of each, and tokens. */
struct share { size_t kv, n_kv, head, n_heads, token, n_tokens, part; };

static void take_rows(struct attn_task *t, const struct attn *a, const struct attn_rows *r, const struct share *x)
{
	const struct attn_shape *s = &a->shape;
	struct attn_row *row = t->row;
	for (size_t kv = x->kv; kv < x->kv + x->n_kv; kv++)
		for (size_t i = x->token; i < x->token + x->n_tokens; i++)
			for (size_t k = 0; k < x->n_heads; k++, row++) {
				size_t h = kv*group(s) + x->head + k;
				row->q = r->q + i*r->q_stride + h*s->k_dim;
				row->out = r->out + i*r->out_stride + h*s->v_dim;
				row->head = h;
				row->pos = r->pos + i;
				row->from = range_of(a, r, row->pos, &row->to);
				/* queries are far apart, so a core does not prefetch them */
				for (size_t j = 0; j < s->k_dim; j += 16) __builtin_prefetch(row->q + j);
			}
	t->kv = x->kv;
	t->head_rows = x->n_tokens*x->n_heads;
	t->n = x->n_kv*t->head_rows;
	t->group = t->head_rows <= quant_attn_table->most ? t->head_rows :
		size_parts(t->head_rows, size_parts(t->head_rows, ATTN_GROUP));
	lay_out(t, a);
	quant_attn_table->pack_q(t);
}
static void whole(struct attn_task *t, const struct attn_rows *r)
{
	size_t first = t->row[0].from/ATTN_SPLIT, end = size_parts(t->row[t->n - 1].to, ATTN_SPLIT);
	const struct attn *a = t->a;
	reset(t->all, t->n);
	for (size_t s = first; s < end; s++) {
		do_split(t, r, s);
		for (size_t i = 0; i < t->n; i++)
			quant_attn_table->join(t->all + i, t->all_a + i*t->v_wide, t->split + i,
				t->split_a + i*t->a_wide, t->v_wide);
	}
	for (size_t i = 0; i < t->n; i++)
		quant_attn_table->end(t->all + i, t->all_a + i*t->v_wide, a->sink ? a->sink + t->row[i].head : NULL,
			a->shape.v_dim, t->row[i].out);
}
static void part(struct attn_task *t, const struct attn_rows *r, size_t i)
{
	size_t first;
	splits_of(t->a, r, &first);
	do_split(t, r, first + i);
	for (size_t k = 0; k < t->n; k++) {
		float *to = record_of(t->a, r, t->row[k].pos - r->pos, t->row[k].head, i);
		to[0] = t->split[k].m;
		to[1] = t->split[k].l[0];
		memcpy(to + ATTN_LANES, t->split_a + k*t->a_wide, t->v_wide*sizeof *to);
	}
}

/* The last sequence whose first task, or merge, is not after i. */
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

/* Heads vary slowest, so that threads read the same keys at about the same time; then the last tokens, which see most,
 * come first. If splits are cut, they vary slowest, so that reads are sequential. */
static struct share share_of(const struct attn *a, const struct attn_rows *r, size_t i)
{
	const struct attn_shape *s = &a->shape;
	size_t stretches = size_parts(r->n, r->cut.tokens), by_query = size_parts(group(s), r->cut.heads),
		heads = size_parts(s->n_kv, r->cut.kv)*by_query, stretch, head;
	struct share x = { .part = 0 };
	if (r->cut.parts > 1) {
		head = i%heads;
		stretch = i/heads%stretches;
		x.part = i/heads/stretches;
	} else {
		stretch = i%stretches;
		head = i/stretches;
	}
	x.kv = head/by_query*r->cut.kv;
	x.n_kv = size_least(r->cut.kv, s->n_kv - x.kv);
	x.head = head%by_query*r->cut.heads;
	x.n_heads = size_least(r->cut.heads, group(s) - x.head);
	x.token = (stretches - 1 - stretch)*r->cut.tokens;
	x.n_tokens = size_least(r->cut.tokens, r->n - x.token);
	return x;
}
void attn_run(const struct attn *a, size_t task, void *work)
{
	const struct attn_rows *r = rows_of(a, task, false);
	struct share x = share_of(a, r, task - r->cut.first_task);
	struct attn_task *t = work;
	take_rows(t, a, r, &x);
	if (r->cut.parts > 1) part(t, r, x.part);
	else whole(t, r);
}

void attn_merge(const struct attn *a, size_t merge)
{
	const struct attn_rows *r = rows_of(a, merge, true);
	size_t i = merge - r->cut.first_merge, token = i/a->shape.n_kv, n = group(&a->shape), h0 = i%a->shape.n_kv*n;
	for (size_t h = h0; h < h0 + n; h++) {
		struct attn_sums all = { -INFINITY, { 0 } };
		/* the record of the first split, to which the others are joined in place */
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
