/* SPDX-License-Identifier: MIT
 * enc_tile.h - sixteen sub-blocks side by side, and the small scalar tools.
 *
 * A tile is transposed: x[e][l] is element e of the sub-block in lane l. A unit is what one scale of the
 * file covers: a super-block of 8 or 16 sub-blocks, or a block of its own; a tile holds 2, 1 or 16 units.
 * Each unit is multiplied by a power of two that brings its greatest magnitude into [1, 2), so that no
 * square overflows and no sum drowns in the guards against division by nothing. `scale` is the way
 * back; its sign is the orientation of the unit (see enc_affine.h). */
#ifndef QUANT_ENC_TILE_H
#define QUANT_ENC_TILE_H
#include <math.h>
#include <stddef.h>
#include "blocks.h"
#include "enc_lane.h"

enum { LANES = 16 };

struct tile {
	_Alignas(64) float x[32][LANES];        /* weights, each unit in its own power of two */
	_Alignas(64) float w[32][LANES];        /* what an error counts: importances, mean about 1, above 0 */
	_Alignas(64) float imp[32][LANES];      /* the same before tile_prior; only for types that have a prior */
	_Alignas(64) uint8_t q[32][LANES];      /* codes */
	float scale[LANES];                     /* of each unit: file value = scale * x */
};
/* What the search of a unit leaves, beside the codes. Sub-block values by lane, scales by unit and in
 * the file's range: already multiplied by the tile's scale. */
struct fitted {
	_Alignas(64) float ls[LANES], lm[LANES];
	float d[LANES], m[LANES];
};

static inline uint32_t float_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float bits_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline float clampf(float a, float lo, float hi) { return a > lo ? a < hi ? a : hi : lo; }      /* NaN: lo */
static inline float roundi(float a) { return (a + 12582912.0f) - 12582912.0f; }         /* ties to even, |a| < 2^22 */

/* The f16 of a scale: ties to even, magnitudes above the range become its end, NaN becomes 0. */
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
/* Its value: f rounded to what f16 can hold. */
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
static inline vf v_f16(vf a, float scale)
{
	vf b = v_abs(a*scale), sub = (b + 0.5f) - 0.5f, r;
	vi u = (vi)b;
	r = (vf)((u + 0xfff + (u >> 13 & 1)) & ~0x1fff);
	r = v_sel(v_lt(b, vf_dup(0x1p-14f)), sub, v_min(r, vf_dup(65504)));
	r = (vf)((vi)r | ((vi)(a*scale) & INT32_MIN));
	return r*(1/scale);
}
static inline float f16_unit(float a, float scale) { return f16_near(a*scale)*(1/scale); }

/* 2^k with k the exponent of the greatest magnitude, within [2^-126, 2^126] so that its inverse is
 * normal too. Values that are not finite do not count. */
static inline float unit_scale(const float *x, size_t n)
{
	float top = 0;
	uint32_t u;
	for (size_t i = 0; i < n; i++) {
		float a = bits_float(float_bits(x[i]) & 0x7fffffff);
		top = a > top && a < INFINITY ? a : top;
	}
	u = float_bits(top) & 0x7f800000;
	return u < 0x00800000 ? 0x1p-126f : u > 0x7e800000 ? 0x1p126f : bits_float(u);
}
/* n elements of each of `lanes` sub-blocks that follow one another in src */
static inline void transpose(float (*dst)[LANES], int at, const float *src, int n, int lanes, float gain)
{
	for (int e = 0; e < n; e++)
		for (int l = 0; l < lanes; l++) dst[e][at + l] = src[l*n + e]*gain;
}
/* A fifth of the mean is added to every importance: the matrix is an estimate from other text, and believing it
 * to the letter costs more than it gains (ENCODERS.md). It is a floor too: no column counts for nothing. */
static inline float tile_weight(float importance, float gain)
{
	float w = importance*gain;
	return w > 0 ? w < 1e9f ? w + 0.2f : 1e9f : 0.2f;
}
/* What brings the mean importance of a row to 1; 0 if there is none to speak of. */
static inline float importance_gain(const float *imp, size_t cols)
{
	double s = 0, g;
	for (size_t j = 0; j < cols; j++) s += imp[j] > 0 && imp[j] < INFINITY ? imp[j] : 0;
	g = s > 0 ? (double)cols/s : 0;
	return g < 1e38 ? (float)g : 1e38f;
}

/* The units of a matrix, taken down the columns of blocks, so that importances, transposed once, serve
 * every row: row and col are those of the next one. */
struct walk { size_t rows, n_cols, row, col; };
/* Fills the tile with the next units and returns their number. n: elements of a sub-block; per: sub-blocks
 * of a unit. col: whose importances a unit's lanes hold; block: where a unit's block belongs; w: t->w or t->imp. */
static inline int tile_fill(struct tile *t, struct walk *p, int n, int per, size_t *col, size_t *block,
	const float *x, const float *imp, float gain, float (*w)[LANES])
{
	int size = n*per, units = LANES/per, h;
	size_t nb = p->n_cols/(size_t)size;
	for (h = 0; h < units && p->col < nb; h++) {
		const float *src = x + p->row*p->n_cols + p->col*(size_t)size;
		if (col[h] != p->col && imp)
			for (int l = 0; l < per; l++)
				for (int e = 0; e < n; e++)
					w[e][h*per + l] = tile_weight(imp[p->col*(size_t)size + (size_t)(l*n + e)], gain);
		col[h] = p->col;
		block[h] = p->row*nb + p->col;
		t->scale[h] = unit_scale(src, (size_t)size);
		transpose(t->x, h*per, src, n, per, 1/t->scale[h]);
		if (++p->row == p->rows) p->row = 0, p->col++;
	}
	for (int k = h; k < units; k++) {       /* lanes without work: zeros, soon fitted */
		t->scale[k] = 1;
		for (int e = 0; e < n; e++)
			for (int l = 0; l < per; l++) t->x[e][k*per + l] = 0;
	}
	return h;
}
static inline void tile_begin(struct tile *t, size_t *col)
{
	for (int l = 0; l < LANES; l++) col[l] = SIZE_MAX;
	for (int e = 0; e < 32; e++)
		for (int l = 0; l < LANES; l++) t->w[e][l] = t->imp[e][l] = 1;
}
/* Errors of large weights count more: by 1 + prior*|x|/rms, the rms over the unit. At two bits that lowers the
 * divergence of the model more than it raises the plain error. */
static inline void tile_prior(struct tile *t, int n, int per, float prior)
{
	_Alignas(64) float k[LANES];
	for (int o = 0; o < LANES; o += VL) {
		vf s = vf_dup(0);
		for (int e = 0; e < n; e++) { vf x = vf_load(&t->x[e][o]); s += x*x; }
		vf_store(k + o, s);
	}
	for (int g = 0; g < LANES; g += per) {
		float s = 0;
		for (int l = g; l < g + per; l++) s += k[l];
		s = s > 0 ? prior/sqrtf(s/(float)(n*per)) : 0;
		for (int l = g; l < g + per; l++) k[l] = s;
	}
	for (int e = 0; e < n; e++)
		for (int o = 0; o < LANES; o += VL)
			vf_store(&t->w[e][o], vf_load(&t->imp[e][o])*(1 + v_abs(vf_load(&t->x[e][o]))*vf_load(k + o)));
}

/* The encoder of a type: enc_NAME, from its struct, the elements and number of the sub-blocks of a unit,
 * the call that fits a tile (t, f and row, the row of the type's effort table, are in scope) and pack_NAME. */
#define ENCODER(name, N, PER, FIT) ENCODER_PRIOR(name, N, PER, 0, 0, FIT)
/* WITH, WITHOUT: the prior of tile_prior with importances and without; one WITHOUT is there if one WITH is. */
#define ENCODER_PRIOR(name, N, PER, WITH, WITHOUT, FIT) \
static void enc_##name(void *dst, const float *x, const float *imp, size_t rows, size_t cols, int level) \
{ \
	struct name *out = dst; \
	struct tile t; \
	struct fitted f; \
	struct walk p = { rows, rows ? cols : 0, 0, 0 }; \
	size_t col[LANES], block[LANES]; \
	float gain = imp ? importance_gain(imp, cols) : 0; \
	int row = level - 1, got; \
	tile_begin(&t, col); \
	while ((got = tile_fill(&t, &p, N, PER, col, block, x, imp, gain, (WITHOUT) > 0 ? t.imp : t.w)) > 0) { \
		if ((WITHOUT) > 0) tile_prior(&t, N, PER, imp ? WITH : WITHOUT); \
		FIT; \
		for (int h = 0; h < got; h++) pack_##name(out + block[h], &t, &f, h); \
	} \
}
#endif
