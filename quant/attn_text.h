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

/* How keys and values are read: as floats, which they are or have been widened to; or, where rows are so few that
 * widening would cost more than the sums, as they lie in the cache. */
enum form { FLOATS, HALVES, BFLOATS, CODES, FORMS };

/* What lies `next` bytes further, the same part of the next tile, is fetched on the way: this hides a memory whose
 * pages are small better than any other distance. 0: nothing is. */
INLINE void fetch_line(enum form form, const char *at, size_t i, ptrdiff_t next)
{
	if (i*(form == FLOATS ? 4 : form == CODES ? 1 : 2) % 64 == 0) __builtin_prefetch(at + next, 0, 2);
}
/* REG positions from c on, of dimension i of a chunk of keys; d: scales of its positions */
INLINE rf key(enum form form, const char *k, size_t i, size_t c, const float *d, ptrdiff_t next)
{
	size_t at = i*ATTN_BLOCK + c, bytes = form == FLOATS ? 4 : form == CODES ? 1 : 2;
	const char *from = k + (form == CODES ? 2*ATTN_BLOCK : 0) + at*bytes;
	fetch_line(form, from, c, next);
	if (form == HALVES) return r_f16(from);
	if (form == BFLOATS) return r_bf16(from);
	if (form == CODES) return r_floats(d + c)*r_int(r_i8(from));
	return r_floats((const float *)(const void *)from);
}
/* REG dimensions from j on, of the value at v */
INLINE rf value(enum form form, const char *v, size_t j, ptrdiff_t next)
{
	const struct q8_0 *b = (const struct q8_0 *)(const void *)v + j/32;
	const char *from = form == CODES ? (const char *)b->qs + j%32 : v + j*(form == FLOATS ? 4 : 2);
	fetch_line(form, from, j, next);
	if (form == HALVES) return r_f16(from);
	if (form == BFLOATS) return r_bf16(from);
	if (form == CODES) return r_half(&b->d)*r_int(r_i8(from));
	return r_floats((const float *)(const void *)from);
}

/* s[r][..] of `rows` rows and `wide` registers of positions, further by n dimensions, or begun; q[n][rows] */
INLINE void score_part(enum form form, int rows, int wide, size_t n, const float *q, const char *k, size_t p,
	const float *d, ptrdiff_t next, float *s, bool begin)
{
	rf a[REGS], zero = { 0 };
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++)
			a[r*wide + c] = begin ? zero : r_floats(s + r*ATTN_BLOCK + c*REG);
	for (size_t i = 0; i < n; i++, q += rows) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) y[c] = key(form, k, i, p + (size_t)c*REG, d, next);
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup(q[r]);
			UNROLL for (int c = 0; c < wide; c++) a[r*wide + c] = r_fma(x, y[c], a[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(s + r*ATTN_BLOCK + c*REG, a[r*wide + c]);
}
INLINE void score(enum form form, int rows, int wide, size_t n, const float *q, const char *k, ptrdiff_t next,
	float *s, bool begin)
{
	float d[ATTN_BLOCK];
	if (form == CODES) for (size_t p = 0; p < ATTN_BLOCK; p += REG) r_put(d + p, r_f16(k + 2*p));
	for (size_t p = 0; p < ATTN_BLOCK; p += (size_t)wide*REG)
		score_part(form, rows, wide, n, q, k, p, d, next, s + p, begin);
}

/* a[r][j..] += w[r][p]*v[p][j..] of `rows` rows and `wide` registers of dimensions, n positions in order; values lie
 * v_bytes apart */
INLINE void mix_part(enum form form, int rows, int wide, size_t n, const float *w, const char *v, size_t v_bytes,
	ptrdiff_t next, size_t j, size_t v_wide, float *a)
{
	rf sum[REGS];
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_floats(a + (size_t)r*v_wide + c*REG);
	for (size_t p = 0; p < n; p++, v += v_bytes, w++) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) y[c] = value(form, v, j + (size_t)c*REG, next);
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup(w[r*ATTN_BLOCK]);
			UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_fma(x, y[c], sum[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(a + (size_t)r*v_wide + c*REG, sum[r*wide + c]);
}
INLINE void mix(enum form form, int rows, int wide, size_t n, const float *w, const char *v, size_t v_bytes,
	ptrdiff_t next, size_t v_wide, float *a)
{
	size_t j = 0, step = (size_t)wide*REG;
	for (; j + step <= v_wide; j += step) mix_part(form, rows, wide, n, w, v, v_bytes, next, j, v_wide, a + j);
	for (; j < v_wide; j += ATTN_LANES)
		mix_part(form, rows, ATTN_LANES/REG, n, w, v, v_bytes, next, j, v_wide, a + j);
}

typedef void score_rows(size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin);
typedef void mix_rows(size_t n, const float *w, const char *v, size_t v_bytes, ptrdiff_t next, size_t v_wide, float *a);
#define ROWS(form, rows) \
static void score_##form##_##rows(size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin) \
{ \
	score(form, rows, WIDE_##rows, n, q, k, next, s, begin); \
} \
static void mix_##form##_##rows(size_t n, const float *w, const char *v, size_t v_bytes, ptrdiff_t next, size_t v_wide, float *a) \
{ \
	mix(form, rows, WIDE_##rows, n, w, v, v_bytes, next, v_wide, a); \
}
#define EACH_FORM(rows) ROWS(FLOATS, rows) ROWS(HALVES, rows) ROWS(BFLOATS, rows) ROWS(CODES, rows)
EACH_FORM(1) EACH_FORM(2) EACH_FORM(3) EACH_FORM(4) EACH_FORM(5) EACH_FORM(6)
#define OF(verb, form) [form] = { NULL, verb##_##form##_1, verb##_##form##_2, verb##_##form##_3, verb##_##form##_4, verb##_##form##_5, verb##_##form##_6 }
static score_rows *const score_of[FORMS][ATTN_GROUP + 1] = {
	OF(score, FLOATS), OF(score, HALVES), OF(score, BFLOATS), OF(score, CODES)
};
static mix_rows *const mix_of[FORMS][ATTN_GROUP + 1] = {
	OF(mix, FLOATS), OF(mix, HALVES), OF(mix, BFLOATS), OF(mix, CODES)
};

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
enum { TILE = ATTN_BLOCK/REG, LANES = ATTN_LANES/REG };        /* in registers */
/* The scores of a row in full, -inf at positions of the tile at p that are not lo..hi - 1 */
static inline void finish_scores(const struct attn *a, const struct attn_row *row, size_t p, size_t lo, size_t hi,
	float *s, rf *x)
{
	rf cap = r_dup(a->softcap), scale = r_dup(a->scale);
	UNROLL for (int i = 0; i < TILE; i++) x[i] = r_floats(s + i*REG)*scale;
	if (a->softcap > 0) for (int i = 0; i < TILE; i++) x[i] = cap*r_tanh(x[i]/cap);
	if (a->bias_kind) {
		UNROLL for (int i = 0; i < TILE; i++) r_put(s + i*REG, x[i]);
		add_bias(a, row, p, s);
		UNROLL for (int i = 0; i < TILE; i++) x[i] = r_floats(s + i*REG);
	}
	if (lo > 0 || hi < ATTN_BLOCK) {
		ri at = { 0 };
		for (int i = 0; i < REG; i++) at[i] = i - (int)lo;
		UNROLL for (int i = 0; i < TILE; i++, at += REG)
			x[i] = r_sel((at >= 0) & (at < (int)(hi - lo)), x[i], r_dup(-INFINITY));
	}
}
static inline float exp_below(float x) { return r_exp_below(r_dup(x))[0]; }

/* Scores become weights; the sums so far are brought to the new greatest score. */
static inline void weigh(struct attn_task *t, size_t r, size_t p, size_t lo, size_t hi, float *s)
{
	struct attn_sums *sums = t->split + r;
	float m, *a = t->split_a + r*t->v_wide;
	rf x[TILE], top = r_dup(sums->m), base, sum[LANES] = { { 0 } };
	finish_scores(t->a, t->row + r, p, lo, hi, s, x);
	UNROLL for (int i = 0; i < TILE; i++) top = r_sel(x[i] > top, x[i], top);
	m = r_greatest(top);
	base = r_dup(m == -INFINITY ? 0 : m);
	UNROLL for (int i = 0; i < TILE; i++) {
		rf w = r_exp_below(x[i] - base);
		r_put(s + i*REG, w);
		sum[i%LANES] += w;
	}
	if (m > sums->m) {
		rf f = r_dup(exp_below(sums->m - base[0]));
		for (size_t j = 0; j < t->v_wide; j += REG) r_put(a + j, r_floats(a + j)*f);
		for (int i = 0; i < LANES; i++) r_put(sums->l + i*REG, r_fma(r_floats(sums->l + i*REG), f, sum[i]));
		sums->m = m;
	} else for (int i = 0; i < LANES; i++) r_put(sums->l + i*REG, r_floats(sums->l + i*REG) + sum[i]);
}

/* ---- a tile ---- */

static inline size_t most(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t first_of(const struct attn_row *row, size_t p) { return most(row->from, p) - p; }
static inline size_t end_of(const struct attn_row *row, size_t p) { return least(row->to - p, ATTN_BLOCK); }

/* A part of the next tile that is fetched a piece at a time while this one is computed. */
struct ahead { const char *at; size_t left, piece; };
static inline struct ahead ahead_of(const char *next, size_t bytes, size_t pieces)
{
	return (struct ahead){ next, next ? bytes : 0, (bytes/pieces + 63)/64*64 };
}
static inline void fetch(struct ahead *h)
{
	size_t n = least(h->piece, h->left);
	for (size_t i = 0; i < n; i += 64) __builtin_prefetch(h->at + i, 0, 2);
	h->at += n;
	h->left -= n;
}

/* Values of a tile from its position `at` on. */
struct values { enum form form; const char *v; ptrdiff_t next; size_t bytes, at; };
static inline void mix_seen(struct attn_task *t, const struct values *v, size_t r, size_t n, size_t from, size_t to)
{
	if (from < to) mix_of[v->form][n](to - from, t->s + r*ATTN_BLOCK + from, v->v + (from - v->at)*v->bytes,
		v->bytes, v->next, t->v_wide, t->split_a + r*t->v_wide);
}
/* Weighted values up to position `end` of the tile at p, for rows r..r + n - 1, which see different ones: those seen
 * by all together, the others alone. */
static void mix_rows_seen(struct attn_task *t, const struct values *v, size_t p, size_t end, size_t r, size_t n)
{
	size_t lo = v->at, hi = end;
	for (size_t i = r; i < r + n; i++) {
		lo = most(lo, first_of(t->row + i, p));
		hi = least(hi, end_of(t->row + i, p));
	}
	hi = most(lo, hi);
	for (size_t i = r; i < r + n && lo > v->at; i++)
		mix_seen(t, v, i, 1, most(first_of(t->row + i, p), v->at),
			least(end_of(t->row + i, p), least(lo, end)));
	mix_seen(t, v, r, n, lo, least(hi, end));
	for (size_t i = r; i < r + n && hi < end; i++) mix_seen(t, v, i, 1, hi, least(end_of(t->row + i, p), end));
}

/* Dimensions of keys and positions of values that few rows meet at a time, widened so that they stay in L1. */
enum { FEW_DIMS = 32, FEW_POSITIONS = 32 };
static inline bool few(size_t r0, size_t r1) { return r1 - r0 <= ATTN_GROUP; }
static inline size_t groups(size_t r0, size_t r1) { return (r1 - 1)/ATTN_GROUP - r0/ATTN_GROUP + 1; }
/* The form in which few rows read a type; *as_is: without widening it */
static inline enum form form_of(uint32_t type, bool *as_is)
{
	enum form f = type == GGU_TYPE_F16 ? HALVES : type == GGU_TYPE_BF16 ? BFLOATS :
		type == GGU_TYPE_Q8_0 ? CODES : FLOATS;
	*as_is = f != FLOATS || type == GGU_TYPE_F32;
	return f;
}

/* Keys k; `next`: those of the tile that follows, or NULL. Weights are made when the last dimension has been met.
 * Returns the keys as floats; whole if values are made of them. */
static const char *meet_keys(struct attn_task *t, const char *k, const char *next, size_t p, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	bool as_is = s->k_type == GGU_TYPE_F32;
	enum form form = few(r0, r1) && !s->v_in_k ? form_of(s->k_type, &as_is) : FLOATS;
	size_t dim = s->k_dim, step = few(r0, r1) ? FEW_DIMS : dim;
	struct ahead h = ahead_of(next, attn_row_bytes(s->k_type, dim)*ATTN_BLOCK,
		groups(r0, r1)*((dim + step - 1)/step));
	ptrdiff_t to_next = as_is && next && few(r0, r1) ? next - k : 0;
	for (size_t i = 0; i < dim; i += step) {
		size_t n = least(dim - i, step);
		const char *keys = k + attn_row_bytes(s->k_type, i)*ATTN_BLOCK;
		if (!as_is) {
			float *to = t->k + (s->v_in_k ? i*ATTN_BLOCK : 0);
			wide_k(s->k_type, keys, n, to);
			keys = (const char *)to;
		}
		for (size_t g = r0/ATTN_GROUP*ATTN_GROUP; g < r1; g += ATTN_GROUP) {
			size_t rows = least(t->n - g, ATTN_GROUP), end = least(g + rows, r1);
			if (!to_next) fetch(&h);
			score_of[form][rows](n, t->q + g*dim + i*rows, keys, to_next, t->s + g*ATTN_BLOCK, i == 0);
			for (size_t r = most(g, r0); r < end && i + n == dim; r++)
				weigh(t, r, p, first_of(t->row + r, p), end_of(t->row + r, p), t->s + r*ATTN_BLOCK);
		}
	}
	return s->k_type == GGU_TYPE_F32 ? k : (const char *)t->k;
}
/* v, and `next`: values as they lie in the cache; or k: keys as floats, whose front they are */
static void meet_values(struct attn_task *t, const char *v, const char *next, const char *k, size_t p, size_t r0,
	size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	bool as_is = s->v_type == GGU_TYPE_F32;
	enum form form = few(r0, r1) ? form_of(s->v_type, &as_is) : FLOATS;
	size_t step = few(r0, r1) ? FEW_POSITIONS : ATTN_BLOCK, end = end_of(t->row + r1 - 1, p);
	size_t bytes = s->v_in_k ? 0 : attn_row_bytes(s->v_type, s->v_dim);
	struct ahead h = ahead_of(next, bytes*ATTN_BLOCK, groups(r0, r1)*(ATTN_BLOCK/step));
	struct values x = { as_is ? form : FLOATS, v, as_is && next && few(r0, r1) ? next - v : 0, bytes, 0 };
	if (s->v_dim != t->v_wide || s->v_in_k || !as_is) {
		as_is = false;
		x = (struct values){ FLOATS, (const char *)t->v, 0, t->v_wide*sizeof *t->v, 0 };
	}
	for (size_t c = first_of(t->row + r0, p)/step*step; c < end; c += step) {
		size_t n = least(end - c, step);
		x.at = c;
		if (as_is) x.v = v + c*bytes;
		else if (s->v_in_k) turn_k((const float *)(const void *)k + c, s->v_dim, n, t->v, t->v_wide);
		else wide_v(s->v_type, v + c*bytes, s->v_dim, n, t->v, t->v_wide);
		for (size_t g = r0/ATTN_GROUP*ATTN_GROUP; g < r1; g += ATTN_GROUP) {
			size_t r = most(g, r0);
			if (!x.next) fetch(&h);
			mix_rows_seen(t, &x, p, c + n, r, least(g + ATTN_GROUP, r1) - r);
		}
	}
}
static void tile(struct attn_task *t, const char *head, const char *next, size_t p, size_t r0, size_t r1)
{
	const struct attn_shape *s = &t->a->shape;
	size_t k_bytes = attn_row_bytes(s->k_type, s->k_dim)*ATTN_BLOCK;
	const char *k = meet_keys(t, head, next, p, r0, r1);
	meet_values(t, head + k_bytes, next ? next + k_bytes : NULL, k, p, r0, r1);
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
	for (size_t j = 0; j < v_wide; j += REG)
		r_put(a + j, r_fma(r_floats(x_a + j), r_dup(g), r_floats(a + j)*r_dup(f)));
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

const struct attn_table ATTN_TABLE = { pack_q, tile, end_split, join, end };
