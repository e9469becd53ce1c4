/* SPDX-License-Identifier: MIT
 * attn_text.h - one tile of attention, one text for all instruction sets; defines the table ATTN_TABLE.
 *
 * Scores and the sums over values are both outer products of up to six rows by some registers of lanes, written once
 * each for a constant number of rows and registers: with few rows more registers are taken, so that enough chains
 * of fma are under way. */
#include "attn_internal.h"
#include "lane_math.h"

#define UNROLL _Pragma("GCC unroll 64")
#include "attn_wide.h"
#define INLINE static inline __attribute__((always_inline))
#if defined __AVX512F__
enum { WIDE_1 = 4, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
#elif defined __AVX2__
enum { WIDE_1 = 8, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 2, WIDE_5 = 2, WIDE_6 = 2, REGS = 12 };
#else
enum { WIDE_1 = 16, WIDE_2 = 8, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
#endif

/* ---- outer products ---- */

/* s[r][..] of `rows` rows and `wide` registers of positions; q[k_dim][rows] */
INLINE void score_part(int rows, int wide, size_t dim, const float *q, const float *k, float *s)
{
	rf a[REGS] = { { 0 } };
	for (size_t i = 0; i < dim; i++, q += rows, k += ATTN_BLOCK) {
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup(q[r]);
			UNROLL for (int c = 0; c < wide; c++) a[r*wide + c] = r_fma(x, r_floats(k + c*REG), a[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(s + r*ATTN_BLOCK + c*REG, a[r*wide + c]);
}
/* a[r][..] += w[r][p]*v[p][..] of `rows` rows and `wide` registers of dimensions, n positions in order */
INLINE void mix_part(int rows, int wide, size_t n, const float *w, const float *v, size_t v_wide, float *a)
{
	rf sum[REGS];
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_floats(a + (size_t)r*v_wide + c*REG);
	for (size_t p = 0; p < n; p++, v += v_wide, w++) {
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup(w[r*ATTN_BLOCK]);
			UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_fma(x, r_floats(v + c*REG), sum[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(a + (size_t)r*v_wide + c*REG, sum[r*wide + c]);
}

typedef void score_rows(size_t dim, const float *q, const float *k, float *s);
typedef void mix_rows(size_t n, const float *w, const float *v, size_t v_wide, float *a);
#define ROWS(rows, wide) \
static void score_##rows(size_t dim, const float *q, const float *k, float *s) \
{ \
	for (size_t p = 0; p < ATTN_BLOCK; p += wide*REG) score_part(rows, wide, dim, q, k + p, s + p); \
} \
static void mix_##rows(size_t n, const float *w, const float *v, size_t v_wide, float *a) \
{ \
	size_t j = 0; \
	for (; j + wide*REG <= v_wide; j += wide*REG) mix_part(rows, wide, n, w, v + j, v_wide, a + j); \
	for (; j < v_wide; j += ATTN_LANES) mix_part(rows, ATTN_LANES/REG, n, w, v + j, v_wide, a + j); \
}
ROWS(1, WIDE_1)
ROWS(2, WIDE_2)
ROWS(3, WIDE_3)
ROWS(4, WIDE_4)
ROWS(5, WIDE_5)
ROWS(6, WIDE_6)
static score_rows *const score_of[] = { NULL, score_1, score_2, score_3, score_4, score_5, score_6 };
static mix_rows *const mix_of[] = { NULL, mix_1, mix_2, mix_3, mix_4, mix_5, mix_6 };

static void pack_q(struct attn_task *t)
{
	size_t dim = t->a->shape.k_dim;
	for (size_t g = 0; g < t->n; g += ATTN_GROUP) {
		size_t rows = t->n - g < ATTN_GROUP ? t->n - g : ATTN_GROUP;
		for (size_t r = 0; r < rows; r++)
			for (size_t i = 0; i < dim; i++) t->q[g*dim + i*rows + r] = t->row[g + r].q[i];
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
/* The scores of a row at positions lo..hi - 1 of the tile at p; -inf at the others, and the greatest of all and m */
static inline float finish_scores(const struct attn *a, const struct attn_row *row, size_t p, size_t lo, size_t hi, float m, float *s)
{
	rf most = r_dup(m), cap = r_dup(a->softcap), scale = r_dup(a->scale);
	bool part = lo > 0 || hi < ATTN_BLOCK;
	ri at, first = { 0 }, end = { 0 };
	for (int i = 0; i < REG; i++) at[i] = i;
	first += (int32_t)lo;
	end += (int32_t)hi;
	UNROLL for (size_t i = 0; i < ATTN_BLOCK; i += REG) {
		rf x = r_floats(s + i)*scale;
		if (a->softcap > 0) x = cap*r_tanh(x/cap);
		r_put(s + i, x);
	}
	if (a->bias_kind) add_bias(a, row, p, s);
	UNROLL for (size_t i = 0; i < ATTN_BLOCK; i += REG, at += REG) {
		rf x = r_floats(s + i);
		if (part) {
			x = r_sel((at >= first) & (at < end), x, r_dup(-INFINITY));
			r_put(s + i, x);
		}
		most = r_sel(x > most, x, most);
	}
	return r_greatest(most);
}
static inline float exp_below(float x) { return r_exp_below(r_dup(x))[0]; }

/* Scores become weights; the sums so far are brought to the new greatest score. */
static inline void weigh(const struct attn_task *t, size_t r, size_t p, size_t lo, size_t hi, float *s)
{
	struct attn_sums *x = &((struct attn_task *)t)->split[r];
	float m = finish_scores(t->a, t->row + r, p, lo, hi, x->m, s), *a = t->split_a + r*t->v_wide;
	rf base = r_dup(m == -INFINITY ? 0 : m), sum[ATTN_LANES/REG] = { { 0 } };
	UNROLL for (int i = 0; i < ATTN_BLOCK/REG; i++) {
		rf w = r_exp_below(r_floats(s + i*REG) - base);
		r_put(s + i*REG, w);
		sum[i%(ATTN_LANES/REG)] += w;
	}
	if (m > x->m) {
		rf f = r_dup(exp_below(x->m - base[0]));
		for (size_t j = 0; j < t->v_wide; j += REG) r_put(a + j, r_floats(a + j)*f);
		for (int i = 0; i < ATTN_LANES/REG; i++) r_put(x->l + i*REG, r_fma(r_floats(x->l + i*REG), f, sum[i]));
	} else for (int i = 0; i < ATTN_LANES/REG; i++) r_put(x->l + i*REG, r_floats(x->l + i*REG) + sum[i]);
	x->m = m;
}

/* ---- a tile ---- */

static inline size_t most(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t first_of(const struct attn_row *row, size_t p) { return most(row->from, p) - p; }
static inline size_t end_of(const struct attn_row *row, size_t p) { return least(row->to - p, ATTN_BLOCK); }

/* The weighted values of rows r..r + n - 1, which see different positions: those seen by all together, the rest alone. */
static void mix(struct attn_task *t, const float *v, size_t p, size_t r, size_t n)
{
	size_t lo = 0, hi = ATTN_BLOCK, wide = t->v_wide;
	for (size_t i = r; i < r + n; i++) {
		lo = most(lo, first_of(t->row + i, p));
		hi = least(hi, end_of(t->row + i, p));
	}
	hi = most(lo, hi);
	for (size_t i = r; i < r + n; i++) {
		size_t from = first_of(t->row + i, p), to = least(end_of(t->row + i, p), lo);
		if (from < to) mix_1(to - from, t->s + i*ATTN_BLOCK + from, v + from*wide, wide, t->split_a + i*wide);
	}
	if (lo < hi) mix_of[n](hi - lo, t->s + r*ATTN_BLOCK + lo, v + lo*wide, wide, t->split_a + r*wide);
	for (size_t i = r; i < r + n; i++) {
		size_t to = end_of(t->row + i, p);
		if (hi < to) mix_1(to - hi, t->s + i*ATTN_BLOCK + hi, v + hi*wide, wide, t->split_a + i*wide);
	}
}

static void tile(struct attn_task *t, const float *k, const float *v, size_t p, size_t r0, size_t r1)
{
	size_t dim = t->a->shape.k_dim;
	for (size_t g = r0/ATTN_GROUP*ATTN_GROUP; g < r1; g += ATTN_GROUP) {
		size_t first = most(g, r0), end = least(g + ATTN_GROUP, r1);
		score_of[least(t->n - g, ATTN_GROUP)](dim, t->q + g*dim, k, t->s + g*ATTN_BLOCK);
		for (size_t r = first; r < end; r++) weigh(t, r, p, first_of(t->row + r, p), end_of(t->row + r, p), t->s + r*ATTN_BLOCK);
		mix(t, v, p, first, end - first);
	}
}

/* ---- splits ---- */

static void end_split(struct attn_sums *x)
{
	x->l[0] = v_tree(v_load(x->l));
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
	for (size_t j = 0; j < v_wide; j += REG) r_put(a + j, r_fma(r_floats(x_a + j), r_dup(g), r_floats(a + j)*r_dup(f)));
}
static void end(const struct attn_sums *x, const float *a, const float *sink, size_t v_dim, float *out)
{
	float l = x->l[0], f = 1;
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
	for (size_t j = 0; j < v_dim; j++) out[j] = a[j]*f*l;
}

const struct attn_table ATTN_TABLE = { wide_k, wide_v, turn_k, pack_q, tile, end_split, join, end };
