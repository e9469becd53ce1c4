/* SPDX-License-Identifier: MIT
 * enc_tile.h - the tile, in which sixteen sub-blocks are searched side by side, and small tools that searches share.
 *
 * A tile is transposed: x[e][l] is element e of the sub-block in lane l. A unit is a block of the file: 8 or 16
 * sub-blocks of a super-block, 16 of Q1_0, 4 of Q2_0 and NVFP4, or the block itself; a tile holds 2, 1, 4 or 16 units.
 * Each unit is multiplied by a power of two that brings its largest magnitude into [1, 2), so that no square overflows
 * and no sum is lost in the guards against division by zero. `scale` is the way back; its sign is the orientation of
 * the unit (see enc_affine.h). */
#ifndef QUANT_ENC_TILE_H
#define QUANT_ENC_TILE_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include "blocks.h"
#include "enc.h"
#include "enc_lane.h"

enum { LANES = 16 };

struct tile {
	_Alignas(64) float x[32][LANES];        /* weights, each unit in its own power of two */
	_Alignas(64) float w[32][LANES];        /* weights of errors: mean about 1, above 0 */
	_Alignas(64) float given[32][LANES];    /* the same before tile_prior; only if there is a prior */
	_Alignas(64) uint8_t q[32][LANES];      /* codes */
	_Alignas(64) uint8_t code[LANES][32];   /* the same by lane, as blocks hold them: tile_codes */
	float scale[LANES];                     /* of each unit: file value = scale * x */
};
/* The result of a unit's search besides the codes. Values of sub-blocks by lane, scales by unit and in the file's
 * range: already multiplied by the tile's scale. */
struct fitted {
	_Alignas(64) float ls[LANES], lm[LANES];
	float d[LANES], m[LANES];
	float lift[LANES];      /* of tile_lift, included in d; for coder.again, only of types that lift */
};

static inline uint32_t float_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float bits_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline float clampf(float a, float lo, float hi) { return a > lo ? a < hi ? a : hi : lo; }      /* NaN: lo */
static inline float roundi(float a) { return (a + 12582912.0f) - 12582912.0f; }         /* ties to even, |a| < 2^22 */

/* The f16 of a scale: ties to even, magnitudes above the range become its maximum, NaN becomes 0. */
static inline f16 f16_scale(float f)
{
	uint32_t u = float_bits(f), s = u >> 16 & 0x8000;
	u &= 0x7fffffff;
	if (u > 0x7f800000) return 0;
	if (u >= 0x477fe000) return (f16)(s | 0x7bff);
	if (u < 0x38800000)             /* subnormal: let the adder round at 2^-24 */
		return (f16)(s | (float_bits(bits_float(u) + 0.5f) & 0x7ff));
	u += 0xfff + (u >> 13 & 1);
	return (f16)(s | (u - 0x38000000) >> 13);
}
/* Its value: f rounded to f16. */
static inline float f16_near(float f)
{
	uint32_t u = float_bits(f), a = u & 0x7fffffff;
	float r;
	if (a > 0x7f800000) return 0;
	if (a >= 0x477fe000) r = 65504;
	else if (a < 0x38800000) r = (bits_float(a) + 0.5f) - 0.5f;
	else r = bits_float((a + 0xfff + (a >> 13 & 1)) & ~0x1fffu);
	return bits_float(float_bits(r) | (u & 0x80000000));
}
/* The same for lanes and in a unit's own range: the nearest a for which scale*a is an f16. */
static inline rf r_f16_near(rf a, rf scale)
{
	rf b = r_abs(a*scale), sub = (b + 0.5f) - 0.5f, r;
	ru u = (ru)b;
	r = (rf)((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
	r = r_if(r_lt(b, r_dup(0x1p-14f)), sub, r_min(r, r_dup(65504)));
	r = (rf)((ri)r | ((ri)(a*scale) & INT32_MIN));
	return r*(1/scale);
}
static inline float f16_unit(float a, float scale) { return f16_near(a*scale)*(1/scale); }
/* f16_unit of `most`/times, or the next one, if `times` of it are less than `most`, which happens where f16 has few
 * digits left: a scale that is too large costs less than one that is zero or lets no weight keep its size. most > 0 */
static inline float f16_reach(float most, float times, float scale)
{
	float d = f16_unit(most/times, scale);
	if (fabsf(d*times) < 0.95f*most) d += copysignf(0x1p-24f/scale, times);
	return d;
}

/* Below this, f16 has fewer than eight digits, and the scale of a block that has no other is chosen by the errors of
 * its neighbours in f16. */
static const float f16_coarse = 0x1p-17f;
/* The distance of neighbouring f16, in units' own ranges. */
static inline rf r_f16_step(rf scale) { return r_dup(0x1p-24f)*(1/scale); }

/* n stored scales, whole numbers of at most `most`, may be multiplied by a factor if d is divided by it, and the other
 * way round if they have a common factor. Returns the factor for which f16 rounds d least. */
static inline float f16_factor(float d, const float *s, int n, float most, float scale)
{
	float top = 0, least = INFINITY, factor = 1;
	int common = 0;
	for (int j = 0; j < n; j++) {
		top = fabsf(s[j]) > top ? fabsf(s[j]) : top;
		for (int k = (int)fabsf(s[j]); k; ) { int rest = common % k; common = k; k = rest; }
	}
	for (float k = 1; common > 0 && k*top <= most*(float)common; k++) {
		float miss = fabsf(f16_unit(d*(float)common/k, scale)*k - d*(float)common);
		if (miss < least) { least = miss; factor = k/(float)common; }
	}
	return factor;
}

/* If the first guesses of a search leave less than this share of the sum of w x x, weights are not ordinary but plain:
 * see enc_step.h. */
static const float tile_plain = 2e-5f;
/* The same for a type with so many codes beside 0: ordinary weights lose the square of the distance between codes. */
static inline float tile_nothing(float codes) { return tile_plain*(31/codes)*(31/codes); }
static inline float lane_sum(const float *v, int n)
{
	float s = 0;
	for (int l = 0; l < n; l++) s += v[l];
	return s;
}
/* The index of the smallest of n errors, the first of equals, ignoring NaN. n: a multiple of LANES */
static inline int least_error(const float *err, int n)
{
	_Alignas(64) float e[REG];
	_Alignas(64) int32_t k[REG];
	rf b = r_dup(INFINITY);
	ri at = ri_dup(0), here = at;
	int best = 0;
	for (int i = 0; i < n; i += REG) {
		rf c = r_floats(err + i);
		rm ok = r_lt(c, b);
		b = r_if(ok, c, b); at = ri_if(ok, here, at);
		here += REG;
	}
	memcpy(e, &b, sizeof b); memcpy(k, &at, sizeof at);
	for (int l = 1; l < REG; l++)
		if (e[l] < e[best] || (e[l] == e[best] && k[l] + l < k[best] + best)) best = l;
	return k[best] + best;
}

/* dst[e][l] = src[l][e] for e < n, a multiple of 4, in squares of four by four */
typedef float quad __attribute__((vector_size(16), may_alias));
#ifdef __clang__
#define QUAD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int32_t quad_index __attribute__((vector_size(16)));
#define QUAD_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (quad_index){ __VA_ARGS__ })
#endif
static inline quad quad_load(const float *p) { quad r; memcpy(&r, p, sizeof r); return r; }
static inline void quad_store(float *p, quad a) { memcpy(p, &a, sizeof a); }
static inline void transpose(float (*dst)[LANES], const float *const *src, int n)
{
	for (int l = 0; l < LANES; l += 4)
		for (int e = 0; e < n; e += 4) {
			quad a = quad_load(src[l] + e), b = quad_load(src[l + 1] + e);
			quad c = quad_load(src[l + 2] + e), d = quad_load(src[l + 3] + e);
			quad ab = QUAD_SHUFFLE(a, b, 0, 4, 1, 5), cd = QUAD_SHUFFLE(c, d, 0, 4, 1, 5);
			quad AB = QUAD_SHUFFLE(a, b, 2, 6, 3, 7), CD = QUAD_SHUFFLE(c, d, 2, 6, 3, 7);
			quad_store(dst[e] + l, QUAD_SHUFFLE(ab, cd, 0, 1, 4, 5));
			quad_store(dst[e + 1] + l, QUAD_SHUFFLE(ab, cd, 2, 3, 6, 7));
			quad_store(dst[e + 2] + l, QUAD_SHUFFLE(AB, CD, 0, 1, 4, 5));
			quad_store(dst[e + 3] + l, QUAD_SHUFFLE(AB, CD, 2, 3, 6, 7));
		}
}
/* Puts the codes of each lane in a row: the rows of the two halves are interleaved, byte by byte, four times. */
typedef uint8_t bytes __attribute__((vector_size(16), may_alias));
#ifdef __clang__
#define BYTES_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define BYTES_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (bytes){ __VA_ARGS__ })
#endif
static inline bytes bytes_load(const uint8_t *p) { bytes r; memcpy(&r, p, sizeof r); return r; }
static inline void bytes_store(uint8_t *p, bytes a) { memcpy(p, &a, sizeof a); }
static inline void tile_codes(struct tile *t, int n)
{
	for (int k = 0; k < n; k += 16) {
		bytes a[16], b[16];
		memcpy(a, t->q[k], sizeof a);
		for (int i = 0; i < 4; i++) {
			for (int j = 0; j < 8; j++) {
				b[2*j] = BYTES_SHUFFLE(a[j], a[j + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
					7, 23);
				b[2*j + 1] = BYTES_SHUFFLE(a[j], a[j + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
					29, 14, 30, 15, 31);
			}
			memcpy(a, b, sizeof a);
		}
		for (int l = 0; l < LANES; l++) bytes_store(t->code[l] + k, a[l]);
	}
}
/* For packing: sixteen bytes, each with four bits of one code and, above them, four of another. */
static inline void put_nibbles(uint8_t *dst, const uint8_t *low, const uint8_t *high)
{
	bytes_store(dst, (bytes_load(low) & 15) | bytes_load(high) << 4);
}
/* For packing: sixteen bytes, each with two bits of a code of four sub-blocks, those of lanes c[0], c[2], c[4],
 * c[6]. */
static inline void put_pairs(uint8_t *dst, const uint8_t (*c)[32])
{
	bytes_store(dst, (bytes_load(c[0]) & 3) | (bytes_load(c[2]) & 3) << 2 | (bytes_load(c[4]) & 3) << 4
		| bytes_load(c[6]) << 6);
}
/* For packing: n bytes, each with bit `bit` of eight codes, the first as the lowest bit; n is 1 or even. */
static inline void put_bits(uint8_t *dst, const uint8_t *code, int n, int bit)
{
	const bytes place = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	for (int i = 0; i < n; i += 2) {
		bytes b = ((bytes_load(code + 8*i) >> bit) & 1)*place;
		uint64_t u[2];
		memcpy(u, &b, sizeof b);
		for (int k = 0; k < 2 && i + k < n; k++) {
			u[k] |= u[k] >> 32; u[k] |= u[k] >> 16; u[k] |= u[k] >> 8;
			dst[i + k] = (uint8_t)u[k];
		}
	}
}

/* Scales each unit by its power of two, 2^k with k the exponent of its largest magnitude, within [2^-126, 2^126] so
 * that the inverse is normal too. Values that are not finite are ignored: adding one to the exponent makes them
 * negative. */
static inline void tile_scale(struct tile *t, int n, int per)
{
	_Alignas(64) int32_t top[LANES];
	_Alignas(64) float scale[LANES], inverse[LANES];
	for (int o = 0; o < LANES; o += REG) {
		ri most = ri_dup(0x00800000);
		for (int e = 0; e < n; e++)
			most = ri_max(most, (ri)(((ru)r_floats(&t->x[e][o]) & 0x7fffffff) + 0x00800000));
		memcpy(top + o, &most, sizeof most);
	}
	for (int g = 0; per > 1 && g < LANES; g += per) {
		for (int l = g + 1; l < g + per; l++) top[g] = top[l] > top[g] ? top[l] : top[g];
		for (int l = g + 1; l < g + per; l++) top[l] = top[g];
	}
	for (int o = 0; o < LANES; o += REG) {
		ri u, least = ri_dup(0x00800000), most = ri_dup(0x7e800000);
		memcpy(&u, top + o, sizeof u);
		u = ri_max((u - 0x00800000) & 0x7f800000, least);
		u = ri_if(ri_lt(u, most), u, most);
		r_put(scale + o, (rf)u);
		r_put(inverse + o, (rf)(0x7f000000 - u));
	}
	for (int g = 0; g < LANES; g += per) t->scale[g/per] = scale[g];
	for (int e = 0; e < n; e++)
		for (int o = 0; o < LANES; o += REG) r_put(&t->x[e][o], r_floats(&t->x[e][o])*r_floats(inverse + o));
}

/* The units of a matrix, taken down the columns of blocks, so that importances, transposed once, serve every row; or
 * row after row, as one long row, if there are none. row and col are those of the next unit. */
struct place { size_t rows, n_cols, row, col; };
/* Fills the tile with the next units and returns their number. n: elements of a sub-block; per: sub-blocks of a unit.
 * col: the columns whose importances a unit's lanes have; block: the destination of a unit's block; w: t->w or
 * t->given. */
static inline int tile_fill(struct tile *t, struct place *p, int n, int per, size_t *col, size_t *block,
	const float *x, const float *weights, float (*w)[LANES])
{
	static const float nothing[32];         /* for unused lanes, fitted quickly */
	const float *from[LANES], *weigh[LANES];
	int size = n*per, units = LANES/per, got = 0;
	size_t nb = p->n_cols/(size_t)size;
	bool stale = false;
	for (int h = 0; h < units; h++) {
		bool some = p->col < nb;
		const float *src = some ? x + p->row*p->n_cols + p->col*(size_t)size : nothing;
		for (int l = h*per; l < (h + 1)*per; l++) {
			from[l] = some ? src + (l - h*per)*n : nothing;
			weigh[l] = weights && some ? weights + p->col*(size_t)size + (l - h*per)*n : nothing;
		}
		if (!some) continue;
		stale |= col[h] != p->col;
		col[h] = p->col;
		block[h] = p->row*nb + p->col;
		got++;
		if (++p->row == p->rows) p->row = 0, p->col++;
	}
	if (!got) return 0;
	transpose(t->x, from, n);
	tile_scale(t, n, per);
	if (weights && stale) transpose(w, weigh, n);
	return got;
}
static inline void tile_begin(struct tile *t, size_t *col)
{
	for (int l = 0; l < LANES; l++) col[l] = SIZE_MAX;
	memset(t->q, 0, sizeof t->q);
	for (int e = 0; e < 32; e++)
		for (int l = 0; l < LANES; l++) t->w[e][l] = t->given[e][l] = 1;
}
/* Makes the errors of large weights count more, 1 + prior*|x|/rms times as much, with the rms over the unit. At two
 * bits this lowers the divergence of the model more than it raises the plain error. */
static inline void tile_prior(struct tile *t, int n, int per, float prior)
{
	_Alignas(64) float k[LANES];
	for (int o = 0; o < LANES; o += REG) {
		rf s = r_dup(0);
		for (int e = 0; e < n; e++) { rf x = r_floats(&t->x[e][o]); s += x*x; }
		r_put(k + o, s);
	}
	for (int g = 0; g < LANES; g += per) {
		float s = 0;
		for (int l = g; l < g + per; l++) s += k[l];
		s = s > 0 ? prior/sqrtf(s/(float)(n*per)) : 0;
		for (int l = g; l < g + per; l++) k[l] = s;
	}
	for (int e = 0; e < n; e++)
		for (int o = 0; o < LANES; o += REG)
			r_put(&t->w[e][o],
				r_floats(&t->given[e][o])*(1 + r_abs(r_floats(&t->x[e][o]))*r_floats(k + o)));
}

/* The sum of w x x in each lane */
static inline void tile_squares(const struct tile *t, int n, float *squares)
{
	for (int o = 0; o < LANES; o += REG) {
		rf s = r_dup(0);
		for (int e = 0; e < n; e++) { rf x = r_floats(&t->x[e][o]); s += r_floats(&t->w[e][o])*x*x; }
		r_put(squares + o, s);
	}
}
/* The factor of a unit's scale after the search, where its least-squares solution explains so much of the sum of w x x.
 * Least squares makes weights of few bits too small, by the part of the square that is its error; at two bits and less
 * that harms a model more than a slightly larger error. lift: how much of it is given back, up to three tenths: if a
 * code book fails completely (one huge weight), nothing is worth lifting. squares: of the unit's lanes */
static inline float tile_lift(const float *squares, int per, float explained, float lift)
{
	const float xx = lane_sum(squares, per);
	return xx > 0 && explained > 0 ? 1 + lift*clampf((xx - explained)/xx, 0, 0.3f) : 1;
}

/* For coder.again: sixteen sub-blocks, each of another unit. Their d and m are given, as in the file but divided by the
 * tile's scale; their ls and lm are the result. */
struct again { _Alignas(64) float d[LANES], m[LANES], ls[LANES], lm[LANES]; };

/* What a type provides to be encoded in tiles. */
struct affine;
struct levels;
struct grid;
struct grid_words;
struct grid_word;
struct coder {
	int n, per;             /* elements of a sub-block, sub-blocks of a unit */
	size_t bytes;           /* of a unit's block */
	void (*fit)(struct tile *t, const struct how *how, struct fitted *f);
	void (*pack)(void *block, const struct tile *t, const struct fitted *f, int unit);
	/* for weights on the type's lattice (enc_exact.h), if `exact` */
	const struct affine *affine;
	bool exact;
	/* for feedback (enc_feedback.h): weight = step*level + offset, with levels of one of two kinds */
	const struct levels *levels;
	const struct grid *book;
	/* searches the scales of the tile's sub-blocks again; NULL: they are not stored in units of a d */
	void (*again)(struct tile *t, const struct how *how, struct again *v);
	/* step and offset of the sub-block in a lane, as the decoder will see them; *offset stays as it is if
	 * there is none */
	void (*scales)(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset);
	/* grid_word of the book */
	void (*word)(rm other, const struct tile *t, const struct grid_words *m, int o, int g, rf inv,
		struct grid_word *r);
};
INLINE void encode_tiles(const struct coder *c, void *dst, const float *x, const float *weights, size_t rows,
	size_t cols, const struct how *how)
{
	struct tile t;
	struct fitted f;
	struct place p = { weights ? rows : 1, weights ? (rows ? cols : 0) : rows*cols, 0, 0 };
	size_t col[LANES], block[LANES];
	int got;
	tile_begin(&t, col);
	while ((got = tile_fill(&t, &p, c->n, c->per, col, block, x, weights, how->prior > 0 ? t.given : t.w)) > 0) {
		if (how->prior > 0) tile_prior(&t, c->n, c->per, how->prior);
		c->fit(&t, how, &f);
		for (int h = 0; h < got; h++) c->pack((char *)dst + block[h]*c->bytes, &t, &f, h);
	}
}
/* CODER defines coder_NAME: N elements to a sub-block, PER sub-blocks to a unit, FIT, the call that fits a tile (t, how
 * and f are in scope), pack_NAME, which must exist, and other members of struct coder. ENCODER also defines enc_NAME,
 * which encodes with it. */
#define CODER(name, N, PER, FIT, ...) \
static void fit_##name(struct tile *t, const struct how *how, struct fitted *f) { (void)how; FIT; } \
static const struct coder coder_##name = { N, PER, sizeof(struct name), fit_##name, pack_##name, __VA_ARGS__ };
/* Defines again_NAME by the call that does it; t, how and v are in scope. */
#define AGAIN(name, CALL) \
static void again_##name(struct tile *t, const struct how *how, struct again *v) { CALL; }
#define ENCODER(name, N, PER, FIT, ...) \
CODER(name, N, PER, FIT, __VA_ARGS__) \
static void enc_##name(void *dst, const float *x, const float *weights, size_t rows, size_t cols, \
	const struct how *how) \
{ \
	encode_tiles(&coder_##name, dst, x, weights, rows, cols, how); \
}
#endif
