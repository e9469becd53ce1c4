/* SPDX-License-Identifier: MIT
 * attn_outer.h - the scores of up to eight rows, and their sums over values; part of attn_text.h.
 *
 * Both are outer products of rows and some registers of lanes: score_NAME has positions in lanes, mix_NAME dimensions.
 * Each is written once and compiled for constant numbers of rows and registers: with few rows more registers are used,
 * so that enough chains of fma are in flight. Codes are read in the form of the cache (attn_store.c), for each 32
 * dimensions of a tile:
 *
 *           keys, rows of ATTN_BLOCK positions               values, d to bits rows of positions too
 *   Q8_0    d | codes 0,1 | codes 2,3 | ..                   d | codes of positions 0,1 | of 2,3 | ..
 *   Q4_0    d | bytes 0,1 | bytes 2,3 | ..                   d | bytes of positions 0,1 | ..
 *   Q5_1    d | m | bits 0..15 | bits 16..31 | bytes 0,1 ..  d | m | bits 0..15 | bits 16..31 | bytes of 0,1 ..
 *   I16     d, floats | numbers 0,1 | numbers 2,3 | ..       d, floats | numbers of positions 0,1 | of 2,3 | ..
 *
 * The two of a pair are adjacent, for each position of keys and for each dimension of values. Byte i has code i in its
 * lower half and code i + 16 in its upper half; Q5_1's bits are the fifth bits. I16 has ATTN_SHARE dimensions where the
 * others have 32, and the last block may have fewer. */
#include "inline.h"

/* How keys and values are read: as floats, which they are or have been widened to, or in the form of the cache. */
enum form { FLOATS, HALVES, BFLOATS, CODES_8, CODES_4, CODES_5, CODES_16, FORMS };
enum { ROW = 2*ATTN_BLOCK };            /* bytes of a row: two for each position */
INLINE bool has_minima(enum form form) { return form == CODES_5; }
INLINE size_t bytes_of(enum form form) { return form == FLOATS ? 4 : 2; }
/* Bytes of what precedes a block's codes: its scales, mins and fifth bits */
INLINE size_t scales_of(enum form form) { return (size_t)ROW*(has_minima(form) ? 4 : form == CODES_16 ? 2 : 1); }

/* ---- scores by floats ---- */

/* Prefetches the line `next` bytes after `at`, the same part of the next tile. Of a line's registers only the first
 * does; offset: of `at` from the beginning of a line. If `next` is 0, that is the line itself, which does no harm. This
 * hides the latency of memory in small pages better than any other distance. */
INLINE void fetch_line(const char *at, size_t offset, ptrdiff_t next)
{
	if (offset % 64 == 0) __builtin_prefetch(at + next, 0, 2);
}
INLINE void fetch_scales(enum form form, const char *b, ptrdiff_t next)
{
	for (size_t i = 0; i < scales_of(form); i += 64) __builtin_prefetch(b + i + next, 0, 2);
}
INLINE rf number(enum form form, const char *at)
{
	return form == HALVES ? r_f16(at) : form == BFLOATS ? r_bf16(at) : r_floats((const float *)(const void *)at);
}

/* Adds n dimensions to s[r][..] of `rows` rows and `wide` registers of positions, or to 0 if `begin`; q[n][rows] */
INLINE void score_part(enum form form, int rows, int wide, size_t n, const float *q, const char *k, ptrdiff_t next,
	float *s, bool begin)
{
	rf a[REGS], zero = { 0 };
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++)
			a[r*wide + c] = begin ? zero : r_floats(s + r*ATTN_BLOCK + c*REG);
	TWICE for (size_t i = 0; i < n; i++, q += rows, k += ATTN_BLOCK*bytes_of(form)) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) {
			size_t at = (size_t)c*REG*bytes_of(form);
			y[c] = number(form, k + at);
			fetch_line(k + at, at, next);
		}
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup_at(q + r);
			UNROLL for (int c = 0; c < wide; c++) a[r*wide + c] = r_fma(x, y[c], a[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(s + r*ATTN_BLOCK + c*REG, a[r*wide + c]);
}
INLINE void score(enum form form, int rows, int wide, size_t to, size_t n, const float *q, const char *k,
	ptrdiff_t next, float *s, bool begin)
{
	for (size_t p = 0; p < to; p += (size_t)wide*REG)
		score_part(form, rows, wide, n, q, k + p*bytes_of(form), next, s + p, begin);
}

/* ---- scores by codes ---- */

/* Queries of rows as integers X, for 32 dimensions: X in pairs, [PAIRS][rows]; then d of each row; then the sum of its
 * X */
enum { PAIRS = 16, QUERY = PAIRS + 2 };
INLINE float query_d(const int32_t *q, int rows, int r)
{
	float d;
	memcpy(&d, q + PAIRS*rows + r, sizeof d);
	return d;
}
/* sum[r][..] += products of a pair of X, at q for each row, with pairs of codes */
INLINE void add_pairs(int rows, int wide, const int32_t *q, const rs *y, ri *sum)
{
	UNROLL for (int r = 0; r < rows; r++) {
		rs x = (rs)((ri){ 0 } + q[r]);
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_pairs(x, y[c], sum[r*wide + c]);
	}
}
/* Pairs of fifth bits, shifted so that the first of them is the lowest bit of its int16. */
INLINE rs fifth(const uint32_t *bits, size_t i) { return (rs)((r_load(bits) >> (int)(2*i) & 0x10001) << 4); }

/* Adds the products of 32 dimensions. k: the codes, from the first of these positions on; bits: their fifth bits */
INLINE void sum_codes(enum form form, int rows, int wide, const int32_t *q, const char *k, const uint32_t *bits,
	ptrdiff_t next, ri *sum)
{
	rs low[ATTN_BLOCK/REG], high[ATTN_BLOCK/REG];
	for (size_t i = 0; i < (form == CODES_8 ? 16 : 8); i++, k += ROW, q += rows) {
		UNROLL for (int c = 0; c < wide; c++) {
			const char *at = k + 2*c*REG;
			fetch_line(at, 2*(size_t)c*REG, next);
			if (form == CODES_8) {
				low[c] = r_i8_pairs(at);
				continue;
			}
			low[c] = r_u8_pairs(at);
			high[c] = low[c] >> 4;
			low[c] &= 15;
			if (form != CODES_5) continue;
			low[c] |= fifth(bits + c*REG, i);
			high[c] |= fifth(bits + ATTN_BLOCK + c*REG, i);
		}
		add_pairs(rows, wide, q, low, sum);
		if (form != CODES_8) add_pairs(rows, wide, q + 8*rows, high, sum);
	}
}
/* Adds 32 dimensions, at k, to the scores s[r][..] of the positions from p on, or stores them there if `begin`. d:
 * scales of all positions of the tile, followed by their mins */
INLINE void score_block(enum form form, int rows, int wide, const int32_t *q, const char *k, size_t p, const float *d,
	const uint32_t *bits, ptrdiff_t next, float *s, bool begin)
{
	ri sum[REGS];
	rf zero = { 0 };
	UNROLL for (int i = 0; i < rows*wide; i++) sum[i] = (ri){ 0 };
	sum_codes(form, rows, wide, q, k + scales_of(form) + 2*p, bits + p, next, sum);
	UNROLL for (int r = 0; r < rows; r++) {
		float dx = query_d(q, rows, r);
		int32_t all = q[(PAIRS + 1)*rows + r];
		UNROLL for (int c = 0; c < wide; c++) {
			float *to = s + r*ATTN_BLOCK + c*REG;
			rf y = begin ? zero : r_floats(to), x = r_int(sum[r*wide + c] - (form == CODES_4 ? 8*all : 0));
			y = r_fma(r_floats(d + p + c*REG)*r_dup(dx), x, y);
			if (has_minima(form))
				y = r_fma(r_floats(d + ATTN_BLOCK + p + c*REG)*r_dup(dx), r_dup((float)all), y);
			r_put(to, y);
		}
	}
}
/* Loads the scales and mins, and the fifth bits in pairs, of all positions of the block at k. */
INLINE void begin_block(enum form form, const char *k, float *d, uint32_t *bits)
{
	for (size_t p = 0; p < ATTN_BLOCK*(has_minima(form) ? 2 : 1); p += REG) r_put(d + p, r_f16(k + 2*p));
	if (form == CODES_5)
		for (size_t p = 0; p < 2*ATTN_BLOCK; p += REG) {
			ri h = r_widen(k + 2*ROW + 2*p);
			h |= h << 15;
			memcpy(bits + p, &h, sizeof h);
		}
}
INLINE void score_codes(enum form form, int rows, int wide, size_t to, size_t n, const float *query, const char *k,
	ptrdiff_t next, float *s)
{
	const int32_t *q = (const int32_t *)(const void *)query;
	size_t bytes = ATTN_BLOCK*(form == CODES_8 ? sizeof(struct q8_0) : form == CODES_4 ? sizeof(struct q4_0) :
		sizeof(struct q5_1));
	for (size_t b = 0; b < n/32; b++, k += bytes, q += QUERY*rows) {
		float d[2*ATTN_BLOCK];
		uint32_t bits[2*ATTN_BLOCK];
		fetch_scales(form, k, next);
		begin_block(form, k, d, bits);
		for (size_t p = 0; p < to; p += (size_t)wide*REG)
			score_block(form, rows, wide, q, k, p, d, bits, next, s + p, b == 0);
	}
}

/* ---- scores by integers of 16 bits ---- */

/* Adds the n pairs of dimensions of a block to the scores s[r][..] of `rows` rows and `wide` registers of positions, or
 * stores them there if `begin`. d: the block, from the scales of these positions on; q: X in pairs, [n][rows], then d
 * of each row */
INLINE void score_pairs(int rows, int wide, size_t n, const int32_t *q, const char *d, ptrdiff_t next, float *s,
	bool begin)
{
	const char *k = d + scales_of(CODES_16);
	ri sum[REGS];
	rf zero = { 0 };
	UNROLL for (int i = 0; i < rows*wide; i++) sum[i] = (ri){ 0 };
	for (size_t i = 0; i < n; i++, k += 2*ROW, q += rows) {
		rs y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) {
			y[c] = (rs)r_load(k + 4*c*REG);
			fetch_line(k + 4*c*REG, 4*(size_t)c*REG, next);
		}
		add_pairs(rows, wide, q, y, sum);
	}
	UNROLL for (int r = 0; r < rows; r++) {
		rf dx = r_dup_at((const float *)(const void *)(q + r));
		UNROLL for (int c = 0; c < wide; c++) {
			float *to = s + r*ATTN_BLOCK + c*REG;
			rf by = (rf)r_load(d + 4*c*REG)*dx;
			r_put(to, r_fma(by, r_int(sum[r*wide + c]), begin ? zero : r_floats(to)));
		}
	}
}
INLINE void score_integers(int rows, int wide, size_t to, size_t dim, const float *query, const char *k,
	ptrdiff_t next, float *s)
{
	const int32_t *q = (const int32_t *)(const void *)query;
	for (size_t i = 0; i < dim; i += ATTN_SHARE) {
		size_t n = size_up(size_least(dim - i, ATTN_SHARE), ATTN_LANES)/2;
		fetch_scales(CODES_16, k, next);
		for (size_t p = 0; p < to; p += (size_t)wide*REG)
			score_pairs(rows, wide, n, q, k + 4*p, next, s + p, i == 0);
		q += (n + 1)*(size_t)rows;
		k += 2*ROW*(n + 1);
	}
}

/* ---- sums over values: numbers ---- */

/* Values of a tile. v: numbers, with rows of positions `bytes` apart, or blocks of codes. */
struct values {
	enum form form;
	const char *v;
	size_t bytes;                   /* between rows of numbers, or between blocks */
	ptrdiff_t next;
};

/* a[r][..] += w[r][p]*v[p][..] of `rows` rows and `wide` registers of dimensions, positions from..to - 1 in order */
INLINE void mix_part(enum form form, int rows, int wide, size_t from, size_t to, const float *w, const char *v,
	size_t bytes, ptrdiff_t next, size_t a_wide, float *a)
{
	rf sum[REGS];
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_floats(a + (size_t)r*a_wide + c*REG);
	TWICE for (size_t p = from; p < to; p++) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) {
			size_t at = (size_t)c*REG*bytes_of(form);
			y[c] = number(form, v + p*bytes + at);
			fetch_line(v + p*bytes + at, at, next);
		}
		UNROLL for (int r = 0; r < rows; r++) {
			rf x = r_dup_at(w + (size_t)r*ATTN_BLOCK + p);
			UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_fma(x, y[c], sum[r*wide + c]);
		}
	}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) r_put(a + (size_t)r*a_wide + c*REG, sum[r*wide + c]);
}
INLINE void mix_numbers(enum form form, int rows, int wide, size_t from, size_t to, const float *w,
	const struct values *v, size_t v_wide, size_t a_wide, float *a)
{
	size_t j = 0, step = (size_t)wide*REG, bytes = bytes_of(form);
	for (; j + step <= v_wide; j += step)
		mix_part(form, rows, wide, from, to, w, v->v + j*bytes, v->bytes, v->next, a_wide, a + j);
	for (; j < v_wide; j += ATTN_LANES)
		mix_part(form, rows, ATTN_LANES/REG, from, to, w, v->v + j*bytes, v->bytes, v->next, a_wide, a + j);
}

/* ---- sums over values: codes ---- */

enum { TILE = ATTN_BLOCK/REG, STEP = 8 };      /* registers of a tile; positions in one step of a loop */
/* Positions of a tile that a row sees. */
struct seen { int from, to; };
/* Rows' weights times the scales of 32 dimensions, as integers, with their scales and, if needed, sums. */
struct shares { _Alignas(64) int16_t u[ATTN_MOST][ATTN_BLOCK]; float d[ATTN_LANES]; int32_t sum[ATTN_MOST]; };

/* The greatest of some magnitudes, given as their bits, which as integers are in the same order, with NaN above
 * infinity. NaN if it is infinite or NaN. */
INLINE float greatest_of(ri top)
{
	int32_t most = ri_greatest(top);
	float size;
	memcpy(&size, &most, sizeof size);
	return most >= 0x7f800000 ? NAN : size;
}
/* The scale with which `most` becomes the integer `greatest` */
INLINE float scale_of(float most, int greatest) { return most < 0x1p-96f ? 0 : most/(float)greatest; }
/* Both for AT_ONCE registers of magnitudes, each giving a lane */
INLINE rf scales_of_rows(const ri *top, int greatest)
{
	ri most = ri_greatests(top);
	rf size = r_sel((rf)most < 0x1p-96f, (rf){ 0 }, (rf)most);
	return r_sel(most >= 0x7f800000, r_dup(NAN), size)/r_dup((float)greatest);
}
/* u = w times the scales d, or 0 where a position is not seen. Returns magnitudes as integers, a register whose largest
 * is the largest of all. */
INLINE ri scale_weights(const float *w, const rf *d, struct seen seen, float *u)
{
	bool all = seen.from == 0 && seen.to == ATTN_BLOCK;
	ri at = { 0 }, top = { 0 };
	for (int i = 0; i < REG; i++) at[i] = i;
	UNROLL for (int i = 0; i < TILE; i++, at += REG) {
		rf x = r_floats(w + i*REG)*d[i];
		if (!all) x = r_sel((at >= seen.from) & (at < seen.to), x, (rf){ 0 });
		top = ri_max(top, (ri)x & INT32_MAX);
		r_put(u + i*REG, x);
	}
	return top;
}
/* Rounds u times inverse to integers; returns their sum, for the form that needs it. */
INLINE int32_t round_weights(enum form form, const float *u, rf inverse, int16_t *to)
{
	ri sum = { 0 }, x[2];
	UNROLL for (int i = 0; i < TILE; i += 2) {
		for (int k = 0; k < 2; k++) {
			x[k] = r_nearest(r_floats(u + (i + k)*REG)*inverse);
			if (form == CODES_4) sum += x[k];
		}
		r_put_shorts(to + i*REG, x[0], x[1]);
	}
	return form == CODES_4 ? r_sum(sum) : 0;
}
_Static_assert(ATTN_MOST%AT_ONCE == 0, "rows at once");
/* Makes the shares of some rows: integers of twelve bits, as those of activations (quant.h), for codes of up to eight
 * bits, and of thirteen for I16. Each stage handles all rows before the next one begins, as the steps for one row wait
 * for each other. */
INLINE void share(enum form form, int rows, const float *w, const char *d, const struct seen *seen, struct shares *o)
{
	_Alignas(64) float u[ATTN_MOST][ATTN_BLOCK], inverse[ATTN_LANES];
	ri top[ATTN_MOST];
	rf scale[TILE], one = r_dup(1);
	UNROLL for (int i = 0; i < TILE; i++)
		scale[i] = form == CODES_16 ? (rf)r_load(d + 4*i*REG) : r_f16(d + 2*i*REG);
	for (int r = 0; r < rows; r++) top[r] = scale_weights(w + r*ATTN_BLOCK, scale, seen[r], u[r]);
	for (int r = rows; r < ATTN_MOST; r++) top[r] = (ri){ 0 };
	for (int r = 0; r < rows; r += AT_ONCE) {
		rf step = scales_of_rows(top + r, form == CODES_16 ? ATTN_AMAX : MUL_AMAX);
		r_put(o->d + r, step);
		r_put(inverse + r, one/step);
	}
	for (int r = 0; r < rows; r++) {
		if (o->d[r] > 0) o->sum[r] = round_weights(form, u[r], r_dup_at(inverse + r), o->u[r]);
		else {
			memset(o->u[r], 0, sizeof o->u[r]);
			o->sum[r] = 0;
		}
	}
}
/* Bytes of a position's codes in a block of n dimensions */
INLINE size_t width_of(enum form form, size_t n) { return form == CODES_16 ? 2*n : form == CODES_8 ? n : n/2; }
/* The values of positions p and p + 1, in pairs, of REG dimensions from `low` on in the block of n dimensions at b.
 * Codes of 4 bits are as stored, without the offset. lane: 0, 1, 2 .. */
INLINE rs value_pairs(enum form form, const char *b, size_t n, size_t p, size_t low, ri lane)
{
	const char *code = b + scales_of(form);
	int32_t bits;
	rs x;
	if (form == CODES_16) return (rs)r_load(code + p*2*n + 4*low);
	if (form == CODES_8) return r_i8_pairs(code + p*32 + 2*low);
	x = r_u8_pairs(code + p*16 + 2*(low%16));
	if (low < 16) x &= 15;
	else x >>= 4;
	if (form == CODES_4) return x;
	memcpy(&bits, b + (low < 16 ? 2 : 3)*ROW + 2*p, sizeof bits);
	return x | (rs)(((((ri){ 0 } + bits) >> (lane + (int)(low%16))) & 0x10001) << 4);
}
/* Prefetches what the next tile has in the place of the codes of positions p and p + 1. */
INLINE void fetch_values(enum form form, const char *b, size_t n, size_t p, int way, size_t low, int wide,
	ptrdiff_t next)
{
	const char *at = b + scales_of(form) + p*width_of(form, n);
	if (form == CODES_16) {
		UNROLL for (int c = 0; c < wide; c++)
			fetch_line(at + 4*(low + (size_t)c*REG), 4*(size_t)c*REG, next);
		return;
	}
	if (low == 0 && (form == CODES_8 || way%2 == 0)) __builtin_prefetch(at + next, 0, 2);
}
/* Adds the values of positions from..to - 1, multiples of STEP, to a[r][..] of `rows` rows and `wide` registers of
 * dimensions, from `low` on, of the block of `dims` dimensions at b. Integers may be summed in any order, so with few
 * rows several sums are used at once. */
INLINE void mix_block(enum form form, int rows, int wide, size_t from, size_t to, const struct shares *u, const char *b,
	size_t dims, ptrdiff_t next, size_t low, size_t a_wide, float *a)
{
	const int n = rows*wide, ways = 4*n <= REGS*2/3 ? 4 : 2*n <= REGS*2/3 ? 2 : 1;
	ri sum[REGS], lane = { 0 };
	for (int i = 0; i < REG; i++) lane[i] = i;
	UNROLL for (int i = 0; i < n*ways; i++) sum[i] = (ri){ 0 };
	for (size_t p = from; p < to; p += 2*(size_t)ways)
		UNROLL for (int way = 0; way < ways; way++) {
			size_t q = p + 2*(size_t)way;
			rs y[ATTN_BLOCK/REG];
			fetch_values(form, b, dims, q, way, low, wide, next);
			UNROLL for (int c = 0; c < wide; c++)
				y[c] = value_pairs(form, b, dims, q, low + (size_t)c*REG, lane);
			UNROLL for (int r = 0; r < rows; r++) {
				int32_t pair;
				memcpy(&pair, u->u[r] + q, sizeof pair);
				UNROLL for (int c = 0; c < wide; c++) {
					ri *to_sum = sum + way*n + r*wide + c;
					*to_sum = r_pairs((rs)((ri){ 0 } + pair), y[c], *to_sum);
				}
			}
		}
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) {
			ri all = sum[r*wide + c] - (form == CODES_4 ? 8*u->sum[r] : 0);
			float *to_a = a + (size_t)r*a_wide + c*REG;
			UNROLL for (int way = 1; way < ways; way++) all += sum[way*n + r*wide + c];
			r_put(to_a, r_fma(r_dup_at(u->d + r), r_int(all), r_floats(to_a)));
		}
}
INLINE void mix_codes(enum form form, int rows, int most, const struct seen *seen, const float *w,
	const struct values *v, size_t v_wide, size_t a_wide, float *a)
{
	const int wide = form == CODES_16 || most < 32/REG ? most : 32/REG;
	const char *b = v->v;
	/* later rows see later positions */
	size_t from = (size_t)seen[0].from/STEP*STEP, to = size_up((size_t)seen[rows - 1].to, STEP);
	for (size_t j = 0, n; j < v_wide; j += n, b += v->bytes) {
		struct shares u;
		size_t low = 0, step = (size_t)wide*REG;
		n = form == CODES_16 ? size_least(v_wide - j, ATTN_SHARE) : 32;
		fetch_scales(form, b, v->next);
		share(form, rows, w, b, seen, &u);
		for (; low + step <= n; low += step)
			mix_block(form, rows, wide, from, to, &u, b, n, v->next, low, a_wide, a + j + low);
		for (; form == CODES_16 && low < n; low += ATTN_LANES)
			mix_block(form, rows, ATTN_LANES/REG, from, to, &u, b, n, v->next, low, a_wide, a + j + low);
	}
}

/* ---- all of these by number of rows ---- */

/* Scores of positions up to `to` or, as they come in registers, a few more. */
typedef void score_rows(size_t to, size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin);
typedef void mix_rows(size_t from, size_t to, const float *w, const struct values *v, size_t v_wide, size_t a_wide,
	float *a);
typedef void mix_shares(const struct seen *seen, const float *w, const struct values *v, size_t v_wide, size_t a_wide,
	float *a);
#define NUMBERS(form, rows) \
static void score_##form##_##rows(size_t to, size_t n, const float *q, const char *k, ptrdiff_t next, float *s, \
	bool begin) \
{ \
	score(form, rows, WIDE_##rows, to, n, q, k, next, s, begin); \
} \
static void mix_##form##_##rows(size_t from, size_t to, const float *w, const struct values *v, size_t v_wide, \
	size_t a_wide, float *a) \
{ \
	mix_numbers(form, rows, WIDE_##rows, from, to, w, v, v_wide, a_wide, a); \
}
#define CODES(form, rows) \
static void score_##form##_##rows(size_t to, size_t n, const float *q, const char *k, ptrdiff_t next, float *s, \
	bool begin) \
{ \
	(void)begin; \
	if (form == CODES_16) score_integers(rows, WIDE_##rows, to, n, q, k, next, s); \
	else score_codes(form, rows, WIDE_##rows, to, n, q, k, next, s); \
} \
static void mix_##form##_##rows(const struct seen *seen, const float *w, const struct values *v, size_t v_wide, \
	size_t a_wide, float *a) \
{ \
	mix_codes(form, rows, WIDE_##rows, seen, w, v, v_wide, a_wide, a); \
}
#define EACH_FORM(rows) NUMBERS(FLOATS, rows) NUMBERS(HALVES, rows) NUMBERS(BFLOATS, rows) \
	CODES(CODES_8, rows) CODES(CODES_4, rows) CODES(CODES_5, rows) CODES(CODES_16, rows)
EACH_FORM(1) EACH_FORM(2) EACH_FORM(3) EACH_FORM(4) EACH_FORM(5) EACH_FORM(6)
#ifdef EIGHT
EACH_FORM(7) EACH_FORM(8)
#define MORE(verb, form) verb##_##form##_7, verb##_##form##_8
#else
#define MORE(verb, form) NULL
#endif
#define OF(verb, form) [form] = { NULL, verb##_##form##_1, verb##_##form##_2, verb##_##form##_3, \
	verb##_##form##_4, verb##_##form##_5, verb##_##form##_6, MORE(verb, form) }
static score_rows *const score_of[FORMS][ATTN_MOST + 1] = {
	OF(score, FLOATS), OF(score, HALVES), OF(score, BFLOATS), OF(score, CODES_8), OF(score, CODES_4),
	OF(score, CODES_5), OF(score, CODES_16),
};
static mix_rows *const mix_of[CODES_8][ATTN_MOST + 1] = { OF(mix, FLOATS), OF(mix, HALVES), OF(mix, BFLOATS) };
static mix_shares *const mix_shares_of[FORMS][ATTN_MOST + 1] = {
	OF(mix, CODES_8), OF(mix, CODES_4), OF(mix, CODES_5), OF(mix, CODES_16),
};
