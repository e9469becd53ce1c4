/* SPDX-License-Identifier: MIT
 * attn_text.h - what attention does with one tile: one text for all instruction sets, which defines the table
 * ATTN_TABLE. An instance (attn_ISA.c) first includes one of lane.h's vocabularies, and defines
 *   WIDE_1 .. WIDE_6            how many registers of lanes are used at a time with so many rows
 *   REGS                        the most registers of sums: rows times WIDE_ROWS
 *   EIGHT                       optional: there are WIDE_7 and WIDE_8 too
 *   ri r_pairs(a, b, sum)       sum += both products of each pair of int16
 *
 * A tile is scores (score_tile_codes, score_tile_numbers), the weights that they become (weigh_rows), and sums over
 * values (mix_tile_codes, mix_tile_numbers). attn_outer.h has the products of the first and the last; attn_wide.h makes
 * floats of what is not read in the cache's form. */
#include "../libgguf/size.h"
#include "attn_internal.h"
#include "mul.h"
#include "lane_math.h"
#include "attn_outer.h"
#include "attn_wide.h"

static enum form form_of(uint32_t type)
{
	switch (type) {
	case GGU_TYPE_F16: return HALVES;
	case GGU_TYPE_BF16: return BFLOATS;
	case GGU_TYPE_Q8_0: return CODES_8;
	case GGU_TYPE_Q4_0: return CODES_4;
	case GGU_TYPE_Q5_1: return CODES_5;
	case GGU_TYPE_I16: return CODES_16;
	default: return FLOATS;
	}
}

static void pack_floats(const struct attn_row *row, size_t rows, size_t dim, float *q)
{
	const float *x[ATTN_MOST];
	for (size_t r = 0; r < rows; r++) x[r] = row[r].q;
	for (size_t i = 0; i < dim; i++, q += rows) for (size_t r = 0; r < rows; r++) q[r] = x[r][i];
}
static void pack_codes(const struct attn_row *row, size_t rows, size_t dim, int32_t *q)
{
	for (size_t i = 0; i < dim; i += 32, q += QUERY*rows)
		for (size_t r = 0; r < rows; r++) {
			struct narrow x;
			int32_t pair[PAIRS];
			mul_codes->narrow(row[r].q + i, 0, 1, 32, true, &x);
			memcpy(pair, x.q, sizeof pair);
			for (size_t k = 0; k < PAIRS; k++) q[k*rows + r] = pair[k];
			memcpy(q + PAIRS*rows + r, &x.d, sizeof x.d);
			q[(PAIRS + 1)*rows + r] = x.sum[0] + x.sum[1];
		}
}
/* A register of n numbers from number i on; zeros follow the last one. */
static inline rf some(const float *x, size_t i, size_t n)
{
	return i + REG <= n ? r_floats(x + i) : r_part(x + size_least(i, n), n - size_least(i, n));
}
static float integers(const float *x, size_t n, int16_t *q)
{
	ri top = { 0 };
	rf inverse;
	float d;
	for (size_t i = 0; i < n; i += REG) top = ri_max(top, (ri)some(x, i, n) & INT32_MAX);
	d = scale_of(greatest_of(top), ATTN_AMAX);
	inverse = r_dup(1/d);
	if (!(d > 0)) memset(q, 0, ATTN_SHARE*sizeof *q);
	else for (size_t i = 0; i < n || i%ATTN_LANES; i += 2*(size_t)REG)
		r_put_shorts(q + i, r_nearest(some(x, i, n)*inverse), r_nearest(some(x, i + REG, n)*inverse));
	return d;
}
static void pack_integers(const struct attn_row *row, size_t rows, size_t dim, int32_t *q)
{
	for (size_t i = 0, n; i < dim; i += n) {
		n = size_least(dim - i, ATTN_SHARE);
		size_t pairs = size_up(n, ATTN_LANES)/2;
		for (size_t r = 0; r < rows; r++) {
			int16_t x[ATTN_SHARE];
			float d = integers(row[r].q + i, n, x);
			for (size_t k = 0; k < pairs; k++) memcpy(q + k*rows + r, x + 2*k, sizeof *q);
			memcpy(q + pairs*rows + r, &d, sizeof d);
		}
		q += (pairs + 1)*rows;
	}
}
static void pack_q(struct attn_task *t)
{
	size_t dim = t->a->shape.k_dim;
	enum form form = form_of(t->a->shape.k_type);
	for (size_t head = 0; head < t->n; head += t->head_rows)
		for (size_t g = 0; g < t->head_rows; g += t->group) {
			size_t rows = size_least(t->head_rows - g, t->group), at = head + g;
			float *q = t->q + at*t->k_wide;
			if (form == CODES_16) pack_integers(t->row + at, rows, dim, (int32_t *)(void *)q);
			else if (form >= CODES_8) pack_codes(t->row + at, rows, dim, (int32_t *)(void *)q);
			else pack_floats(t->row + at, rows, dim, q);
		}
}

/* ---- scores to weights ---- */

static void add_bias(const struct attn *a, const struct attn_row *row, size_t p, float *s)
{
	if (a->bias_kind == ATTN_ALIBI) {
		for (size_t i = 0; i < ATTN_BLOCK; i++) {
			float away = (float)(p + i < row->pos ? row->pos - p - i : p + i - row->pos);
			s[i] = fused(-a->bias[row->head], away, s[i]);
		}
	} else if (a->bias_kind == ATTN_RELATIVE) {
		const float *bias = a->bias + row->head*(2*a->reach + 1) + a->reach;
		for (size_t i = 0; i < ATTN_BLOCK; i++) {
			ptrdiff_t d = (ptrdiff_t)(p + i) - (ptrdiff_t)row->pos, reach = (ptrdiff_t)a->reach;
			s[i] += bias[d < -reach ? -reach : d > reach ? reach : d];
		}
	}
}
enum { LANE_REGS = ATTN_LANES/REG };    /* registers of a row's sums of weights */
/* The positions of the tile at p that a row sees, counted within the tile: from first_of to end_of - 1 */
static inline size_t first_of(const struct attn_row *row, size_t p) { return size_most(row->from, p) - p; }
static inline size_t end_of(const struct attn_row *row, size_t p) { return size_least(row->to - p, ATTN_BLOCK); }

static inline float *scores(const struct attn_task *t, size_t r) { return t->s + r*ATTN_BLOCK; }

/* Is the scale all that is applied to scores? Then they are left unscaled until they become weights, as the scale does
 * not change their order. */
static inline bool plain(const struct attn *a) { return a->scale > 0 && !(a->softcap > 0) && !a->bias_kind; }
static inline bool sees_all(const struct attn_row *row, size_t p)
{
	return first_of(row, p) == 0 && end_of(row, p) == ATTN_BLOCK;
}
/* Prepares scores for the softmax: -inf for positions of the tile at p that are not seen. */
static inline void finish_scores(const struct attn *a, const struct attn_row *row, size_t p, float *s)
{
	size_t lo = first_of(row, p), hi = end_of(row, p);
	rf cap = r_dup(a->softcap), scale = r_dup(a->scale);
	ri at = { 0 };
	for (size_t i = 0; i < ATTN_BLOCK; i += REG) {
		rf x = r_floats(s + i)*scale;
		if (a->softcap > 0) x = cap*r_tanh(x/cap);
		r_put(s + i, x);
	}
	add_bias(a, row, p, s);
	for (int i = 0; i < REG; i++) at[i] = i - (int)lo;
	for (size_t i = 0; i < ATTN_BLOCK && !sees_all(row, p); i += REG, at += REG)
		r_put(s + i, r_sel((at >= 0) & (at < (int)(hi - lo)), r_floats(s + i), r_dup(-INFINITY)));
}
static inline float exp_below(float x) { return r_exp_below(r_dup(x))[0]; }

/* A register of which one lane is the largest score */
static inline rf top_of(const float *s)
{
	rf top = r_dup(-INFINITY);
	UNROLL for (int i = 0; i < TILE; i++) top = r_max(r_floats(s + i*REG), top);
	return top;
}
/* Turns scores times a factor into weights relative to the largest score `base`. The sums so far are scaled by f, and
 * those of this tile are added. */
static inline void weigh(struct attn_task *t, size_t r, float factor, const float *base, const float *f)
{
	float *s = scores(t, r), *l = t->split[r].l, *a = t->split_a + r*t->a_wide;
	rf by = r_dup_at(f), top = r_dup_at(base), sum[LANE_REGS] = { { 0 } };
	UNROLL for (int i = 0; i < TILE; i += FOUR) {
		rf w[FOUR];
		UNROLL for (int k = 0; k < FOUR; k++) w[k] = r_floats(s + (i + k)*REG)*r_dup(factor) - top;
		r_exps_below(w);
		UNROLL for (int k = 0; k < FOUR; k++) {
			r_put(s + (i + k)*REG, w[k]);
			sum[(i + k)%LANE_REGS] += w[k];
		}
	}
	UNROLL for (int i = 0; i < LANE_REGS; i++) r_put(l + i*REG, r_fma(r_floats(l + i*REG), by, sum[i]));
	if (*f != 1) for (size_t j = 0; j < t->a_wide; j += REG) r_put(a + j, r_floats(a + j)*by);
}
/* Turns the scores of rows from..to - 1 into weights. Each stage handles AT_ONCE rows before the next one begins, as
 * the steps for one row wait for each other. The factor of the sums is 1 if the largest score has not changed. */
static inline void weigh_rows(struct attn_task *t, size_t p, size_t from, size_t to)
{
	for (size_t n; from < to; from += n) {
		_Alignas(64) float base[REG], f[REG];
		rf top[AT_ONCE], old = r_floats(t->m + from), m;
		bool as_is = plain(t->a);
		n = size_least(to - from, AT_ONCE);
		for (size_t r = from; r < from + n; r++) as_is = as_is && sees_all(t->row + r, p);
		for (size_t r = from; r < from + n && !as_is; r++) finish_scores(t->a, t->row + r, p, scores(t, r));
		UNROLL for (size_t r = 0; r < AT_ONCE; r++)
			top[r] = r < n ? top_of(scores(t, from + r)) : r_dup(-INFINITY);
		m = r_greatests(top)*r_dup(as_is ? t->a->scale : 1);
		m = r_sel(m > old, m, old);
		r_put(base, r_sel(m == -INFINITY, (rf){ 0 }, m));
		r_put(f, r_sel(m > old, r_exp_below(old - m), r_dup(1)));
		memcpy(t->m + from, &m, AT_ONCE*sizeof *t->m);
		for (size_t r = 0; r < n; r++) weigh(t, from + r, as_is ? t->a->scale : 1, base + r, f + r);
	}
}

/* ---- a tile ---- */

/* A part of the next tile that is prefetched piece by piece while this one is computed. */
struct ahead { const char *at; size_t left, piece; };
static inline struct ahead ahead_of(const char *next, size_t bytes, size_t pieces)
{
	return (struct ahead){ next, next ? bytes : 0, size_up(bytes/pieces, 64) };
}
static inline void fetch_piece(struct ahead *h)
{
	size_t n = size_least(h->piece, h->left);
	for (size_t i = 0; i < n; i += 64) __builtin_prefetch(h->at + i, 0, 2);
	h->at += n;
	h->left -= n;
}

/* A tile of a head: its values; those of the following tile, or NULL; its first position; the head's first row, and the
 * rows r0..r1 - 1, which see any of it. */
struct tile { const char *v, *next; size_t p, first, r0, r1; };
/* The groups of the rows that see a tile: where the first begins, how many there are, and where the one that begins at
 * g ends */
static inline size_t first_group(const struct attn_task *t, const struct tile *o)
{
	size_t g = o->first;
	while (g + t->group <= o->r0) g += t->group;
	return g;
}
static inline size_t groups(const struct attn_task *t, const struct tile *o)
{
	return size_parts(o->r1 - first_group(t, o), t->group);
}
static inline size_t group_end(const struct attn_task *t, const struct tile *o, size_t g)
{
	return size_least(g + t->group, o->first + t->head_rows);
}

/* The positions of a tile for which a group of rows needs scores: those that its last row sees, or all, if the next
 * tile is prefetched meanwhile. */
static inline size_t scored(const struct attn_task *t, const struct tile *o, size_t g, ptrdiff_t next)
{
	return next ? ATTN_BLOCK : end_of(t->row + group_end(t, o, g) - 1, o->p);
}

/* Adds weighted values from..to - 1 for rows r..r + n - 1, which see all of them. */
static inline void mix_seen(struct attn_task *t, const struct values *v, size_t r, size_t n, size_t from, size_t to)
{
	if (from < to) mix_of[v->form][n](from, to, scores(t, r), v, t->v_wide, t->a_wide, t->split_a + r*t->a_wide);
}
/* Adds weighted values at..end - 1 of a tile for rows r..r + n - 1, which see different ones: those that all of the
 * rows see are added for all of them together, the others row by row. */
static void mix_rows_seen(struct attn_task *t, const struct values *v, size_t p, size_t at, size_t end, size_t r,
	size_t n)
{
	size_t lo = size_most(at, first_of(t->row + r + n - 1, p)),
		hi = size_most(lo, size_least(end, end_of(t->row + r, p)));
	for (size_t i = r; i < r + n && lo > at; i++)
		mix_seen(t, v, i, 1, size_most(first_of(t->row + i, p), at),
			size_least(end_of(t->row + i, p), size_least(lo, end)));
	mix_seen(t, v, r, n, lo, size_least(hi, end));
	for (size_t i = r; i < r + n && hi < end; i++) mix_seen(t, v, i, 1, hi, size_least(end_of(t->row + i, p), end));
}
/* Adds weighted mins to their sixteen sums for each 32 dimensions, which follow the row's sums over values. */
static void add_minima(struct attn_task *t, const struct tile *o, size_t block_bytes, size_t r)
{
	int lo = (int)first_of(t->row + r, o->p), hi = (int)end_of(t->row + r, o->p);
	const char *base = o->v;
	const float *weights = scores(t, r);
	float *sum = t->split_a + r*t->a_wide + t->v_wide;
	for (size_t b = 0; b < t->a->shape.v_dim/32; b++, base += block_bytes, sum += ATTN_LANES) {
		ri at = { 0 };
		for (int i = 0; i < REG; i++) at[i] = i;
		for (int i = 0; i < TILE; i++, at += REG) {
			float *to = sum + i%LANE_REGS*REG;
			rf old = r_floats(to), w = r_floats(weights + i*REG);
			r_put(to, r_sel((at >= lo) & (at < hi), r_fma(w, r_f16(base + ROW + 2*i*REG), old), old));
		}
	}
}

/* With few rows, keys and values are read in the cache's own form where that is possible, even though each group of
 * rows then widens them anew. Where they have to be widened first all the same, so many dimensions of keys and
 * positions of values are handled at a time that they stay in L1. */
enum { FEW_DIMS = 32, FEW_POSITIONS = 32 };
static inline bool few(const struct tile *o) { return o->r1 - o->r0 <= 2*ATTN_GROUP; }

/* Scores by keys that are codes. next: the keys of the following tile, or NULL */
static void score_tile_codes(struct attn_task *t, const struct tile *o, const char *k, const char *next)
{
	const struct attn_shape *s = &t->a->shape;
	enum form form = form_of(s->k_type);
	ptrdiff_t to_next = next ? next - k : 0;
	for (size_t g = first_group(t, o); g < o->r1; g += t->group, to_next = 0)
		score_of[form][group_end(t, o, g) - g](scored(t, o, g, to_next), s->k_dim, t->q + g*t->k_wide, k,
			to_next, scores(t, g), true);
	if (s->v_in_k) wide_k(s->k_type, k, s->k_dim, t->k);
}
/* The same by keys that are numbers, widened to floats if necessary */
static void score_tile_numbers(struct attn_task *t, const struct tile *o, const char *k, const char *next)
{
	const struct attn_shape *s = &t->a->shape;
	bool as_is = s->k_type == GGU_TYPE_F32 || (few(o) && !s->v_in_k);
	enum form lies = form_of(s->k_type), form = as_is ? lies : FLOATS;
	size_t dim = s->k_dim, step = few(o) ? FEW_DIMS : dim;
	ptrdiff_t to_next = as_is && next && few(o) ? next - k : 0;
	struct ahead h = { NULL, 0, 0 };
	if (!to_next) h = ahead_of(next, t->k_bytes, groups(t, o)*size_parts(dim, step));
	for (size_t i = 0; i < dim; i += step) {
		size_t n = size_least(dim - i, step);
		const char *keys = k + i*ATTN_BLOCK*bytes_of(lies);
		if (!as_is) {
			float *to = t->k + (s->v_in_k ? i*ATTN_BLOCK : 0);
			wide_k(s->k_type, keys, n, to);
			keys = (const char *)to;
		}
		for (size_t g = first_group(t, o); g < o->r1; g += t->group) {
			size_t rows = group_end(t, o, g) - g;
			if (!to_next) fetch_piece(&h);
			score_of[form][rows](scored(t, o, g, to_next), n, t->q + g*t->k_wide + i*rows, keys, to_next,
				scores(t, g), i == 0);
		}
	}
}
/* Where a tile's values are as numbers: in the cache, or where they will be as floats */
static struct values numbers_of(struct attn_task *t, const struct tile *o)
{
	const struct attn_shape *s = &t->a->shape;
	struct values x = { s->v_in_k ? FLOATS : form_of(s->v_type), o->v, t->v_bytes,
		o->next && few(o) ? o->next - o->v : 0 };
	if (!s->v_in_k && s->v_dim == t->v_wide && (few(o) || x.form == FLOATS)) return x;
	return (struct values){ FLOATS, (const char *)t->v, t->v_wide*sizeof *t->v, 0 };
}
/* Makes floats of the values of positions at..at + n - 1. */
static void widen_values(struct attn_task *t, const char *v, size_t at, size_t n)
{
	const struct attn_shape *s = &t->a->shape;
	const float *k = s->k_type == GGU_TYPE_F32 ? (const float *)(const void *)t->tile : t->k;
	float *to = t->v + at*t->v_wide;
	if (s->v_in_k) turn_k(k + at, s->v_dim, n, to, t->v_wide);
	else wide_v(s->v_type, v + at*t->v_bytes, s->v_dim, n, to, t->v_wide);
}
/* Sums over values that are numbers */
static void mix_tile_numbers(struct attn_task *t, const struct tile *o)
{
	size_t end = end_of(t->row + o->r1 - 1, o->p);
	struct values x = numbers_of(t, o);
	bool widen = x.v != o->v;
	size_t step = widen && few(o) ? FEW_POSITIONS : ATTN_BLOCK;
	struct ahead h = { NULL, 0, 0 };
	if (!x.next) h = ahead_of(o->next, t->v_bytes*ATTN_BLOCK, groups(t, o)*(ATTN_BLOCK/step));
	for (size_t c = first_of(t->row + o->r0, o->p)/step*step; c < end; c += step) {
		size_t n = size_least(end - c, step);
		if (widen) widen_values(t, o->v, c, n);
		for (size_t g = first_group(t, o); g < o->r1; g += t->group) {
			size_t r = size_most(g, o->r0);
			if (!x.next) fetch_piece(&h);
			mix_rows_seen(t, &x, o->p, c, c + n, r, size_least(group_end(t, o, g), o->r1) - r);
		}
	}
}
/* The same for values that are codes */
static void mix_tile_codes(struct attn_task *t, const struct tile *o)
{
	enum form form = form_of(t->a->shape.v_type);
	struct values x = { form, o->v,
		attn_row_bytes(t->a->shape.v_type, form == CODES_16 ? ATTN_SHARE : 32)*ATTN_BLOCK,
		o->next ? o->next - o->v : 0 };
	for (size_t g = first_group(t, o); g < o->r1; g += t->group, x.next = 0) {
		size_t r = size_most(g, o->r0), n = size_least(group_end(t, o, g), o->r1) - r;
		struct seen seen[ATTN_MOST];
		for (size_t i = 0; i < n; i++)
			seen[i] = (struct seen){ (int)first_of(t->row + r + i, o->p),
				(int)end_of(t->row + r + i, o->p) };
		mix_shares_of[form][n](seen, scores(t, r), &x, t->v_wide, t->a_wide, t->split_a + r*t->a_wide);
	}
	for (size_t r = o->r0; r < o->r1 && has_minima(form); r++) add_minima(t, o, x.bytes, r);
}
static void tile(struct attn_task *t, const char *head, const char *next, size_t p, size_t r0, size_t r1)
{
	struct tile o = { head + t->k_bytes, next ? next + t->k_bytes : NULL, p, t->first, r0, r1 };
	t->tile = head;
	if (form_of(t->a->shape.k_type) >= CODES_8) score_tile_codes(t, &o, head, next);
	else score_tile_numbers(t, &o, head, next);
	weigh_rows(t, p, r0, r1);
	if (!t->a->shape.v_in_k && form_of(t->a->shape.v_type) >= CODES_8) mix_tile_codes(t, &o);
	else mix_tile_numbers(t, &o);
}

/* ---- splits ---- */

static void end_split(struct attn_task *t, size_t r)
{
	struct attn_sums *x = t->split + r;
	float *a = t->split_a + r*t->a_wide, *minima = a + t->v_wide;
	x->m = t->m[r];
	x->l[0] = r_tree(x->l);
	for (size_t j = 0; t->a_wide > t->v_wide && j < t->a->shape.v_dim; j += 32, minima += ATTN_LANES) {
		rf all = r_dup(r_tree(minima));
		for (size_t i = j; i < j + 32; i += REG) r_put(a + i, r_floats(a + i) + all);
	}
}
static void join(struct attn_sums *to, float *a, const struct attn_sums *x, const float *x_a, size_t v_wide)
{
	float m = x->m > to->m ? x->m : to->m, f, g;
	if (x->l[0] == 0) return;
	if (to->l[0] == 0) {
		to->m = x->m;
		to->l[0] = x->l[0];
		if (a != x_a) memcpy(a, x_a, v_wide*sizeof *a);
		return;
	}
	f = exp_below(to->m - m);
	g = exp_below(x->m - m);
	to->m = m;
	to->l[0] = fused(x->l[0], g, to->l[0]*f);
	for (size_t j = 0; j < v_wide; j += REG)
		r_put(a + j, r_fma(r_floats(x_a + j), r_dup(g), r_floats(a + j)*r_dup(f)));
}
static void end(const struct attn_sums *x, const float *a, const float *sink, size_t v_dim, float *out)
{
	float l = x->l[0], f = 1;
	size_t j = 0;
	if (l == 0) {
		memset(out, 0, v_dim*sizeof *out);
		return;
	}
	if (sink) {
		float m = *sink > x->m ? *sink : x->m;
		f = exp_below(x->m - m);
		l = l*f + exp_below(*sink - m);
	}
	l = 1/l;
	for (; j + REG <= v_dim; j += REG) r_put(out + j, r_floats(a + j)*r_dup(f)*r_dup(l));
	for (; j < v_dim; j++) out[j] = a[j]*f*l;
}

#ifdef EIGHT
enum { MOST_ROWS = ATTN_MOST };
#else
enum { MOST_ROWS = ATTN_GROUP };
#endif
const struct attn_table ATTN_TABLE = { MOST_ROWS, integers, pack_q, tile, end_split, join, end };
