/* SPDX-License-Identifier: MIT
 * attn_text.h - one tile of attention, one text for all instruction sets; defines the table ATTN_TABLE. An instance
 * (attn_ISA.c) includes one of lane.h's vocabularies before, and gives
 *   WIDE_1 .. WIDE_6, REGS      registers of lanes that so many rows meet at a time; that sums have of both, at most
 *   EIGHT                       or not: there are WIDE_7 and WIDE_8 too
 *   ri r_pairs(a, b, sum)       sum += both products of each pair of int16
 *
 * Scores and sums over values are in attn_outer.h; what is not read as it lies in the cache is made floats first, by
 * attn_wide.h. */
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
	for (size_t r = 0; r < rows; r++) {
		const float *x = row[r].q;
		for (size_t i = 0; i < dim; i++) q[i*rows + r] = x[i];
	}
}
static void pack_codes(const struct attn_row *row, size_t rows, size_t dim, int32_t *q)
{
	for (size_t i = 0; i < dim; i += 32, q += QUERY*rows)
		for (size_t r = 0; r < rows; r++) {
			struct narrow x;
			int32_t pair[PAIRS];
			mul_codes->narrow(row[r].q + i, 0, 1, 32, &x);
			memcpy(pair, x.q, sizeof pair);
			for (size_t k = 0; k < PAIRS; k++) q[k*rows + r] = pair[k];
			memcpy(q + PAIRS*rows + r, &x.d, sizeof x.d);
			q[(PAIRS + 1)*rows + r] = x.sum[0] + x.sum[1];
		}
}
/* Lanes i.. of n numbers, and zeros behind them */
static inline rf some(const float *x, size_t i, size_t n)
{
	return i + REG <= n ? r_floats(x + i) : r_part(x + size_least(i, n), n - size_least(i, n));
}
static float integers(const float *x, size_t n, int16_t *q)
{
	ri top = { 0 };
	float d;
	for (size_t i = 0; i < n; i += REG) top = ri_max(top, (ri)some(x, i, n) & INT32_MAX);
	d = scale_of(greatest_of(top), ATTN_AMAX);
	if (!(d > 0)) memset(q, 0, ATTN_SHARE*sizeof *q);
	else for (size_t i = 0; i < n || i%ATTN_LANES; i += 2*(size_t)REG)
		r_put_shorts(q + i, rounded(some(x, i, n), 1/d), rounded(some(x, i + REG, n), 1/d));
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
			s[i] = fmaf(-a->bias[row->head], away, s[i]);
		}
	} else if (a->bias_kind == ATTN_RELATIVE) {
		const float *bias = a->bias + row->head*(2*a->reach + 1) + a->reach;
		for (size_t i = 0; i < ATTN_BLOCK; i++) {
			ptrdiff_t d = (ptrdiff_t)(p + i) - (ptrdiff_t)row->pos, reach = (ptrdiff_t)a->reach;
			s[i] += bias[d < -reach ? -reach : d > reach ? reach : d];
		}
	}
}
enum { LANES = ATTN_LANES/REG };       /* in registers */
/* Positions of the tile at p that a row sees. */
static inline size_t first_of(const struct attn_row *row, size_t p) { return size_most(row->from, p) - p; }
static inline size_t end_of(const struct attn_row *row, size_t p) { return size_least(row->to - p, ATTN_BLOCK); }

/* Scores become what the softmax takes, but for a last factor, which is returned: where the scale is all there is to
 * do, they stay as they are. lo..hi - 1 of the tile at p are seen, -inf stands for the others. */
static inline float finish_scores(const struct attn *a, const struct attn_row *row, size_t p, float *s)
{
	size_t lo = first_of(row, p), hi = end_of(row, p);
	bool all = lo == 0 && hi == ATTN_BLOCK;
	rf cap = r_dup(a->softcap), scale = r_dup(a->scale);
	ri at = { 0 };
	if (all && a->scale > 0 && !(a->softcap > 0) && !a->bias_kind) return a->scale;
	for (size_t i = 0; i < ATTN_BLOCK; i += REG) {
		rf x = r_floats(s + i)*scale;
		if (a->softcap > 0) x = cap*r_tanh(x/cap);
		r_put(s + i, x);
	}
	add_bias(a, row, p, s);
	for (int i = 0; i < REG; i++) at[i] = i - (int)lo;
	for (size_t i = 0; i < ATTN_BLOCK && !all; i += REG, at += REG)
		r_put(s + i, r_sel((at >= 0) & (at < (int)(hi - lo)), r_floats(s + i), r_dup(-INFINITY)));
	return 1;
}
static inline float exp_below(float x) { return r_exp_below(r_dup(x))[0]; }

/* The greatest score of a row so far; *factor is what its scores are still to be multiplied by, which keeps their
 * order. */
static inline float top_of(struct attn_task *t, size_t r, size_t p, float *factor)
{
	float *s = t->s + r*ATTN_BLOCK, greatest;
	rf top = r_dup(-INFINITY);
	*factor = finish_scores(t->a, t->row + r, p, s);
	UNROLL for (int i = 0; i < TILE; i++) top = r_max(r_floats(s + i*REG), top);
	greatest = r_greatest(top)*(*factor);
	return greatest > t->split[r].m ? greatest : t->split[r].m;
}
/* Scores become weights above a greatest of m, whose sum's lanes are put in `sum`. */
static inline void weigh(const struct attn_task *t, size_t r, float factor, float m, float *sum)
{
	float *s = t->s + r*ATTN_BLOCK;
	rf base = r_dup(m == -INFINITY ? 0 : m), all[LANES] = { { 0 } };
	UNROLL for (int i = 0; i < TILE; i++) {
		rf w = r_exp_below(r_floats(s + i*REG)*r_dup(factor) - base);
		r_put(s + i*REG, w);
		all[i%LANES] += w;
	}
	for (int i = 0; i < LANES; i++) r_put(sum + i*REG, all[i]);
}
/* The sums so far are brought to a greatest of m by f, and what is summed of this tile is added. */
static inline void add_weights(struct attn_task *t, size_t r, float m, float f, const float *sum)
{
	struct attn_sums *sums = t->split + r;
	float *a = t->split_a + r*t->a_wide;
	rf by = r_dup(f);
	for (int i = 0; i < ATTN_LANES; i += REG)
		r_put(sums->l + i, r_fma(r_floats(sums->l + i), by, r_floats(sum + i)));
	if (m > sums->m) for (size_t j = 0; j < t->a_wide; j += REG) r_put(a + j, r_floats(a + j)*by);
	sums->m = m;
}
/* All rows at each stage, since a stage's steps wait for each other. The sums' factor is 1 where the greatest has not
 * changed; it is wanted last, when what it is made of has long been stored. */
static inline void weigh_rows(struct attn_task *t, size_t p, size_t from, size_t to)
{
	for (size_t n; from < to; from += n) {
		_Alignas(64) float factor[REG], m[REG] = { 0 }, old[REG] = { 0 }, f[REG], sum[REG][ATTN_LANES];
		n = size_least(to - from, REG);
		for (size_t r = 0; r < n; r++) {
			old[r] = t->split[from + r].m;
			m[r] = top_of(t, from + r, p, factor + r);
		}
		for (size_t r = 0; r < n; r++) weigh(t, from + r, factor[r], m[r], sum[r]);
		rf x = r_floats(old), top = r_floats(m);
		r_put(f, r_sel(top > x, r_exp_below(x - top), r_dup(1)));
		for (size_t r = 0; r < n; r++) add_weights(t, from + r, m[r], f[r], sum[r]);
	}
}

/* ---- a tile ---- */

/* A part of the next tile that is fetched a piece at a time while this one is computed. */
struct ahead { const char *at; size_t left, piece; };
static inline struct ahead ahead_of(const char *next, size_t bytes, size_t pieces)
{
	return (struct ahead){ next, next ? bytes : 0, (bytes/pieces + 63)/64*64 };
}
static inline void fetch(struct ahead *h)
{
	size_t n = size_least(h->piece, h->left);
	for (size_t i = 0; i < n; i += 64) __builtin_prefetch(h->at + i, 0, 2);
	h->at += n;
	h->left -= n;
}

/* Groups of rows r0..r1 - 1, of a head whose rows begin at `head`. */
static inline size_t group_at(const struct attn_task *t, size_t head, size_t r)
{
	return (r - head)/t->group*t->group + head;
}
static inline size_t groups(const struct attn_task *t, size_t head, size_t r0, size_t r1)
{
	return (r1 - 1 - head)/t->group - (r0 - head)/t->group + 1;
}
static inline size_t head_of(const struct attn_task *t, size_t r) { return r/t->head_rows*t->head_rows; }

static inline void mix_seen(struct attn_task *t, const struct values *v, size_t r, size_t n, size_t from, size_t to)
{
	if (from < to) mix_of[v->form][n](from, to, t->s + r*ATTN_BLOCK, v, t->v_wide, t->a_wide,
		t->split_a + r*t->a_wide);
}
/* Weighted values at..end - 1 of the tile at p, for rows r..r + n - 1, which see different ones: those seen by all
 * together, the others alone. */
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
/* Sixteen sums of weighted minima for each 32 dimensions, behind the row's sums over values */
static void add_minima(struct attn_task *t, const char *base, size_t block_bytes, size_t p, size_t r)
{
	int lo = (int)first_of(t->row + r, p), hi = (int)end_of(t->row + r, p);
	float *sum = t->split_a + r*t->a_wide + t->v_wide;
	for (size_t b = 0; b < t->a->shape.v_dim/32; b++, base += block_bytes, sum += ATTN_LANES) {
		ri at = { 0 };
		for (int i = 0; i < REG; i++) at[i] = i;
		for (int i = 0; i < TILE; i++, at += REG) {
			float *to = sum + i%LANES*REG;
			rf old = r_floats(to), w = r_floats(t->s + r*ATTN_BLOCK + i*REG);
			r_put(to, r_sel((at >= lo) & (at < hi), r_fma(w, r_f16(base + ROW + 2*i*REG), old), old));
		}
	}
}

/* Few rows read what lies in the cache where that saves more than it costs to widen it for each group. Dimensions of
 * keys and positions of values that they meet at a time, where these are widened, stay in L1. */
enum { FEW_DIMS = 32, FEW_POSITIONS = 32 };
static inline bool few(size_t r0, size_t r1) { return r1 - r0 <= 2*ATTN_GROUP; }

/* Codes of keys; `next`: those of the tile that follows, or NULL. */
static void meet_codes(struct attn_task *t, const char *k, const char *next, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	enum form form = form_of(s->k_type);
	size_t head = head_of(t, r0);
	ptrdiff_t to_next = next ? next - k : 0;
	for (size_t g = group_at(t, head, r0); g < r1; g += t->group, to_next = 0) {
		size_t rows = size_least(head + t->head_rows - g, t->group);
		score_of[form][rows](s->k_dim, t->q + g*t->k_wide, k, to_next, t->s + g*ATTN_BLOCK, true);
	}
	if (s->v_in_k) wide_k(s->k_type, k, s->k_dim, t->k);
}
/* Numbers, widened as far as they are wanted so. */
static void meet_numbers(struct attn_task *t, const char *k, const char *next, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	bool as_is = s->k_type == GGU_TYPE_F32 || (few(r0, r1) && !s->v_in_k);
	enum form form = as_is ? form_of(s->k_type) : FLOATS;
	size_t dim = s->k_dim, step = few(r0, r1) ? FEW_DIMS : dim, head = head_of(t, r0);
	struct ahead h = ahead_of(next, attn_row_bytes(s->k_type, dim)*ATTN_BLOCK,
		groups(t, head, r0, r1)*size_parts(dim, step));
	ptrdiff_t to_next = as_is && next && few(r0, r1) ? next - k : 0;
	for (size_t i = 0; i < dim; i += step) {
		size_t n = size_least(dim - i, step);
		const char *keys = k + attn_row_bytes(s->k_type, i)*ATTN_BLOCK;
		if (!as_is) {
			float *to = t->k + (s->v_in_k ? i*ATTN_BLOCK : 0);
			wide_k(s->k_type, keys, n, to);
			keys = (const char *)to;
		}
		for (size_t g = group_at(t, head, r0); g < r1; g += t->group) {
			size_t rows = size_least(head + t->head_rows - g, t->group);
			if (!to_next) fetch(&h);
			score_of[form][rows](n, t->q + g*t->k_wide + i*rows, keys, to_next, t->s + g*ATTN_BLOCK,
				i == 0);
		}
	}
}
/* Numbers of a tile's values as they lie in the cache, or where they will be as floats. */
static struct values numbers_of(struct attn_task *t, const char *v, const char *next, bool few_rows)
{
	const struct attn_shape *s = &t->a->shape;
	struct values x = { s->v_in_k ? FLOATS : form_of(s->v_type), v, 0, next && few_rows ? next - v : 0 };
	x.bytes = s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim);
	if (!s->v_in_k && s->v_dim == t->v_wide && (few_rows || x.form == FLOATS)) return x;
	return (struct values){ FLOATS, (const char *)t->v, t->v_wide*sizeof *t->v, 0 };
}
static void widen_values(struct attn_task *t, const char *v, size_t at, size_t n)
{
	const struct attn_shape *s = &t->a->shape;
	const float *k = s->k_type == GGU_TYPE_F32 ? (const float *)(const void *)t->tile : t->k;
	float *to = t->v + at*t->v_wide;
	if (s->v_in_k) turn_k(k + at, s->v_dim, n, to, t->v_wide);
	else wide_v(s->v_type, v + at*attn_row_bytes(s->v_type, s->v_dim), s->v_dim, n, to, t->v_wide);
}
static void meet_value_numbers(struct attn_task *t, const char *v, const char *next, size_t p, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	size_t end = end_of(t->row + r1 - 1, p), head = head_of(t, r0);
	struct values x = numbers_of(t, v, next, few(r0, r1));
	bool widen = x.v != v;
	size_t step = widen && few(r0, r1) ? FEW_POSITIONS : ATTN_BLOCK;
	struct ahead h = ahead_of(next, s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim)*ATTN_BLOCK,
		groups(t, head, r0, r1)*(ATTN_BLOCK/step));
	for (size_t c = first_of(t->row + r0, p)/step*step; c < end; c += step) {
		size_t n = size_least(end - c, step);
		if (widen) widen_values(t, v, c, n);
		for (size_t g = group_at(t, head, r0); g < r1; g += t->group) {
			size_t r = size_most(g, r0);
			if (!x.next) fetch(&h);
			mix_rows_seen(t, &x, p, c, c + n, r,
				size_least(size_least(g + t->group, head + t->head_rows), r1) - r);
		}
	}
}
static void meet_value_codes(struct attn_task *t, const char *v, const char *next, size_t p, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	size_t head = head_of(t, r0);
	enum form form = form_of(s->v_type);
	struct values x = { form, v, attn_row_bytes(s->v_type, form == CODES_16 ? ATTN_SHARE : 32)*ATTN_BLOCK,
		next ? next - v : 0 };
	for (size_t g = group_at(t, head, r0); g < r1; g += t->group, x.next = 0) {
		size_t r = size_most(g, r0), n = size_least(size_least(g + t->group, head + t->head_rows), r1) - r;
		struct seen seen[ATTN_MOST];
		for (size_t i = 0; i < n; i++)
			seen[i] = (struct seen){ (int)first_of(t->row + r + i, p), (int)end_of(t->row + r + i, p) };
		mix_shares_of[form][n](seen, t->s + r*ATTN_BLOCK, &x, t->v_wide, t->a_wide, t->split_a + r*t->a_wide);
	}
	for (size_t r = r0; r < r1 && has_minima(form); r++) add_minima(t, v, x.bytes, p, r);
}
static void tile(struct attn_task *t, const char *head, const char *next, size_t p, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	size_t k_bytes = attn_row_bytes(s->k_type, s->k_dim)*ATTN_BLOCK;
	t->tile = head;
	if (form_of(s->k_type) >= CODES_8) meet_codes(t, head, next, r0, r1);
	else meet_numbers(t, head, next, r0, r1);
	weigh_rows(t, p, r0, r1);
	next = next ? next + k_bytes : NULL;
	if (!s->v_in_k && form_of(s->v_type) >= CODES_8) meet_value_codes(t, head + k_bytes, next, p, r0, r1);
	else meet_value_numbers(t, head + k_bytes, next, p, r0, r1);
}

/* ---- splits ---- */

static void end_split(struct attn_task *t, size_t r)
{
	struct attn_sums *x = t->split + r;
	float *a = t->split_a + r*t->a_wide, *minima = a + t->v_wide;
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
	to->l[0] = fmaf(x->l[0], g, to->l[0]*f);
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
