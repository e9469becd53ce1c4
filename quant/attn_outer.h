/* SPDX-License-Identifier: MIT
 * attn_outer.h - scores, and sums over values, of up to six rows; part of attn_text.h.
 *
 * Both are outer products of rows by some registers of lanes, written once each for a constant number of rows and
 * registers: with few rows more registers are taken, so that enough chains of fma are under way. Codes are read as they
 * lie in the cache (attn_store.c), for each 32 dimensions of a tile:
 *
 *           keys, rows of ATTN_BLOCK positions               values, a row for each position
 *   Q8_0    d | codes 0,1 | codes 2,3 | ..                   d, the tile's | codes
 *   Q4_0    d | bytes 0,1 | bytes 2,3 | ..                   d | bytes
 *   Q5_1    d | m | bits 0..15 | bits 16..31 | bytes 0,1 ..  d | m | bits | bytes
 *
 * where byte i has code i in its lower half and code i + 16 in its upper half, and Q5_1's bits are the fifth ones. */
#define UNROLL _Pragma("GCC unroll 64")
#define INLINE static inline __attribute__((always_inline))
#if defined __AVX512F__
enum { WIDE_1 = 4, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
#elif defined __AVX2__
enum { WIDE_1 = 8, WIDE_2 = 4, WIDE_3 = 4, WIDE_4 = 2, WIDE_5 = 2, WIDE_6 = 2, REGS = 12 };
#else
enum { WIDE_1 = 16, WIDE_2 = 8, WIDE_3 = 4, WIDE_4 = 4, WIDE_5 = 4, WIDE_6 = 4, REGS = 24 };
#endif

/* How keys and values are read: as floats, which they are or have been widened to, or as they lie in the cache. WHOLE:
 * codes of values widened to floats. */
enum form { FLOATS, HALVES, BFLOATS, CODES_8, CODES_4, CODES_5, WHOLE, FORMS };
enum { ROW = 2*ATTN_BLOCK };            /* bytes of a number of two bytes of each position */
INLINE bool has_minima(enum form form) { return form == CODES_5; }
INLINE size_t bytes_of(enum form form) { return form == FLOATS || form == WHOLE ? 4 : 2; }

/* ---- scores by floats ---- */

/* What lies `next` bytes further, the same part of the next tile, is fetched on the way: this hides a memory whose
 * pages are small better than any other distance. 0: nothing is. */
INLINE void fetch_line(const char *at, size_t bytes, ptrdiff_t next)
{
	if (bytes % 64 == 0) __builtin_prefetch(at + next, 0, 2);
}
INLINE rf number(enum form form, const char *at)
{
	return form == HALVES ? r_f16(at) : form == BFLOATS ? r_bf16(at) : r_floats((const float *)(const void *)at);
}

/* s[r][..] of `rows` rows and `wide` registers of positions, further by n dimensions, or begun; q[n][rows] */
INLINE void score_part(enum form form, int rows, int wide, size_t n, const float *q, const char *k, ptrdiff_t next,
	float *s, bool begin)
{
	rf a[REGS], zero = { 0 };
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++)
			a[r*wide + c] = begin ? zero : r_floats(s + r*ATTN_BLOCK + c*REG);
	for (size_t i = 0; i < n; i++, q += rows, k += ATTN_BLOCK*bytes_of(form)) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) {
			size_t at = (size_t)c*REG*bytes_of(form);
			y[c] = number(form, k + at);
			fetch_line(k + at, at, next);
		}
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
	for (size_t p = 0; p < ATTN_BLOCK; p += (size_t)wide*REG)
		score_part(form, rows, wide, n, q, k + p*bytes_of(form), next, s + p, begin);
}

/* ---- scores by codes ---- */

/* Integers of rows for 32 dimensions: X in pairs, [16][rows]; d of each row; the sum of its X. */
enum { PAIRS = 16, QUERY = PAIRS + 2 };
INLINE float query_d(const int32_t *q, int rows, int r)
{
	float d;
	memcpy(&d, q + PAIRS*rows + r, sizeof d);
	return d;
}
/* sum[r][..] += the products with pair i of X, for a register of pairs of codes */
INLINE void add_pairs(int rows, int wide, const int32_t *q, const rs *y, ri *sum)
{
	UNROLL for (int r = 0; r < rows; r++) {
		rs x = (rs)((ri){ 0 } + q[r]);
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_pairs(x, y[c], sum[r*wide + c]);
	}
}
/* Pairs of fifth bits, shifted to where the first of them is in the lowest bit of its int16. */
INLINE rs fifth(const uint32_t *bits, size_t i) { return (rs)((r_load(bits) >> (int)(2*i) & 0x10001) << 4); }

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
/* s[r][..] of positions p.., further by the 32 dimensions at k, or begun; d and m: scales of the tile's positions */
INLINE void score_block(enum form form, int rows, int wide, const int32_t *q, const char *k, size_t p, const float *d,
	const uint32_t *bits, ptrdiff_t next, float *s, bool begin)
{
	ri sum[REGS];
	rf zero = { 0 };
	UNROLL for (int i = 0; i < rows*wide; i++) sum[i] = (ri){ 0 };
	sum_codes(form, rows, wide, q, k + (has_minima(form) ? 4 : 1)*ROW + 2*p, bits + p, next, sum);
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
/* The scales, and the fifth bits in pairs, of all positions */
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
INLINE void score_codes(enum form form, int rows, int wide, size_t n, const float *query, const char *k,
	ptrdiff_t next, float *s)
{
	const int32_t *q = (const int32_t *)(const void *)query;
	size_t bytes = (form == CODES_8 ? 34 : form == CODES_4 ? 18 : 24)*ATTN_BLOCK;
	for (size_t b = 0; b < n/32; b++, k += bytes, q += QUERY*rows) {
		float d[2*ATTN_BLOCK];
		uint32_t bits[2*ATTN_BLOCK];
		begin_block(form, k, d, bits);
		for (size_t p = 0; p < ATTN_BLOCK; p += (size_t)wide*REG)
			score_block(form, rows, wide, q, k, p, d, bits, next, s + p, b == 0);
	}
}

/* ---- sums over values ---- */

/* Values of a tile. v: numbers, rows of a position `bytes` apart, or blocks of codes, and base: the blocks whose scales
 * count. */
struct values {
	enum form form, kind;           /* kind: that of the codes that WHOLE ones are */
	const char *v, *base;
	size_t bytes, block_bytes;      /* between rows of numbers; between blocks, each of 32 dimensions */
	ptrdiff_t next;
};

/* REG dimensions from j + low on, of position p; codes: the block at v */
INLINE rf value(enum form form, const char *v, size_t p, size_t low)
{
	const uint8_t *b = (const uint8_t *)v;
	ri q;
	if (form == CODES_8) return r_int(r_i8(b + ROW + p*32 + low));
	b += has_minima(form) ? 2*ROW : ROW;
	q = r_u8(b + (has_minima(form) ? 4*ATTN_BLOCK : 0) + p*16 + low%16);
	if (low < 16) q &= 15;
	else q >>= 4;
	if (form == CODES_4) return r_int(q - 8);
	return r_int(r_or_16(q, b + 4*p, low));
}
/* a[r][..] += w[r][p]*v[p][..] of `rows` rows and `wide` registers of dimensions, positions from..to - 1 in order.
 * Numbers: v is at the dimension; codes: at the block, whose dimensions from `low` on are meant. w has rows for each
 * block. */
INLINE void mix_part(enum form form, int rows, int wide, size_t from, size_t to, const float *w, const char *v,
	size_t bytes, ptrdiff_t next, size_t low, size_t a_wide, float *a)
{
	bool codes = form >= CODES_8 && form <= CODES_5;
	rf sum[REGS];
	UNROLL for (int r = 0; r < rows; r++)
		UNROLL for (int c = 0; c < wide; c++) sum[r*wide + c] = r_floats(a + (size_t)r*a_wide + c*REG);
	for (size_t p = from; p < to; p++) {
		rf y[ATTN_BLOCK/REG];
		UNROLL for (int c = 0; c < wide; c++) {
			size_t at = low + (size_t)c*REG;
			const char *numbers = v + p*bytes + (size_t)c*REG*bytes_of(form);
			y[c] = codes ? value(form, v + at/32*bytes, p, at%32) : number(form, numbers);
			if (!codes) fetch_line(numbers, (size_t)c*REG*bytes_of(form), next);
			else if (at%32 == 0) __builtin_prefetch(v + at/32*bytes + p*(form == CODES_8 ? 32 : 16) + next,
				0, 2);
		}
		UNROLL for (int r = 0; r < rows; r++)
			UNROLL for (int c = 0; c < wide; c++) {
				size_t block = form < CODES_8 ? 0 : (low + (size_t)c*REG)/32;
				rf x = r_dup(w[(block*ATTN_GROUP + (size_t)r)*ATTN_BLOCK + p]);
				sum[r*wide + c] = r_fma(x, y[c], sum[r*wide + c]);
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
		mix_part(form, rows, wide, from, to, w, v->v + j*bytes, v->bytes, v->next, 0, a_wide, a + j);
	for (; j < v_wide; j += ATTN_LANES)
		mix_part(form, rows, ATTN_LANES/REG, from, to, w, v->v + j*bytes, v->bytes, v->next, 0, a_wide, a + j);
}

/* u[block][r][p] = w[r][p] times d[p] of n blocks of 32 dimensions */
INLINE void scale_weights(int rows, size_t n, const float *w, const char *base, size_t block_bytes, float *u)
{
	for (size_t b = 0; b < n; b++, base += block_bytes, u += ATTN_GROUP*ATTN_BLOCK)
		for (size_t p = 0; p < ATTN_BLOCK; p += REG) {
			rf d = r_f16(base + 2*p);
			UNROLL for (int r = 0; r < rows; r++)
				r_put(u + r*ATTN_BLOCK + p, r_floats(w + r*ATTN_BLOCK + p)*d);
		}
}
/* Steps of whole blocks; a step of less than a block goes by halves. */
INLINE void mix_codes(enum form form, int rows, int wide, size_t from, size_t to, const float *w,
	const struct values *v, size_t v_wide, size_t a_wide, float *a)
{
	enum { MOST = 2 };              /* blocks of a step */
	float u[MOST*ATTN_GROUP*ATTN_BLOCK];
	size_t j = 0, step = (size_t)wide*REG, whole = step < 32 ? 32 : step;
	bool floats = form == WHOLE;
	for (; j < v_wide; j += whole) {
		size_t n = v_wide - j < whole ? 1 : whole/32;
		const char *block = floats ? v->v + 4*j : v->v + j/32*v->block_bytes;
		size_t bytes = floats ? v->bytes : v->block_bytes;
		scale_weights(rows, n, w, v->base + j/32*v->block_bytes, v->block_bytes, u);
		if (n*32 < whole) {
			mix_part(form, rows, 32/REG, from, to, u, block, bytes, v->next, 0, a_wide, a + j);
			break;
		}
		mix_part(form, rows, wide, from, to, u, block, bytes, v->next, 0, a_wide, a + j);
		if (step < whole)
			mix_part(form, rows, wide, from, to, u, floats ? block + 4*step : block, bytes, v->next, step,
				a_wide, a + j + step);
	}
}

/* ---- by rows ---- */

typedef void score_rows(size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin);
typedef void mix_rows(size_t from, size_t to, const float *w, const struct values *v, size_t v_wide, size_t a_wide,
	float *a);
#define NUMBERS(form, rows) \
static void score_##form##_##rows(size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin) \
{ \
	score(form, rows, WIDE_##rows, n, q, k, next, s, begin); \
} \
static void mix_##form##_##rows(size_t from, size_t to, const float *w, const struct values *v, size_t v_wide, \
	size_t a_wide, float *a) \
{ \
	mix_numbers(form, rows, WIDE_##rows, from, to, w, v, v_wide, a_wide, a); \
}
#define SUMS_OF_CODES(form, rows) \
static void mix_##form##_##rows(size_t from, size_t to, const float *w, const struct values *v, size_t v_wide, \
	size_t a_wide, float *a) \
{ \
	mix_codes(form, rows, WIDE_##rows, from, to, w, v, v_wide, a_wide, a); \
}
#define CODES(form, rows) \
static void score_##form##_##rows(size_t n, const float *q, const char *k, ptrdiff_t next, float *s, bool begin) \
{ \
	(void)begin; \
	score_codes(form, rows, WIDE_##rows, n, q, k, next, s); \
} \
SUMS_OF_CODES(form, rows)
#define EACH_FORM(rows) NUMBERS(FLOATS, rows) NUMBERS(HALVES, rows) NUMBERS(BFLOATS, rows) \
	CODES(CODES_8, rows) CODES(CODES_4, rows) CODES(CODES_5, rows) SUMS_OF_CODES(WHOLE, rows)
EACH_FORM(1) EACH_FORM(2) EACH_FORM(3) EACH_FORM(4) EACH_FORM(5) EACH_FORM(6)
#define OF(verb, form) [form] = { NULL, verb##_##form##_1, verb##_##form##_2, verb##_##form##_3, \
	verb##_##form##_4, verb##_##form##_5, verb##_##form##_6 }
static score_rows *const score_of[FORMS][ATTN_GROUP + 1] = {
	OF(score, FLOATS), OF(score, HALVES), OF(score, BFLOATS), OF(score, CODES_8), OF(score, CODES_4),
	OF(score, CODES_5),
};
static mix_rows *const mix_of[FORMS][ATTN_GROUP + 1] = {
	OF(mix, FLOATS), OF(mix, HALVES), OF(mix, BFLOATS), OF(mix, CODES_8), OF(mix, CODES_4), OF(mix, CODES_5),
	OF(mix, WHOLE),
};
