/* SPDX-License-Identifier: MIT
 * codes_text.h - converts between blocks, floats and integers, one text for all instruction sets; defines the table
 * CODES_TABLE.
 *
 * NAME_unpack of codec/NAME.h gives a block's codes and scales in vectors; here they become floats (decode) or the
 * int16 of a panel (widen). narrow makes integers of activations. An instance first includes one of bytes.h's
 * vocabularies and one of lane.h's. */
#include <math.h>
#include "unpack.h"

/* ---- weights ---- */

static inline void floats_of(const struct codes32 *c, int part, int has_min, float *to)
{
	if (part == 16) for (int i = 0; i < 32; i++) to[i] = (i < 16 ? c->d : c->m)*(float)c->q[i];
	else if (has_min) for (int i = 0; i < 32; i++) to[i] = c->d*(float)c->q[i] + c->m;
	else for (int i = 0; i < 32; i++) to[i] = c->d*(float)c->q[i];
}
/* In words: compilers make vectors of one weight from each of several sub-blocks, if they may choose. */
static inline void floats_of_super(const struct codes256 *c, int has_min, float *to)
{
	float d[16], m[16] = { 0 };
	for (int j = 0; j < 16; j++) d[j] = c->d*(float)c->sc[j];
	for (int j = 0; has_min && j < 16; j++) m[j] = c->dmin*(float)c->mn[j];
	for (int i = 0; i < 256; i += REG) {
		rf w = r_dup(d[i/16])*r_int(r_i8(c->q + i));
		if (has_min) w -= r_dup(m[i/16]);
		r_put(to + i, w);
	}
}
static inline void wide_of(const struct codes32 *c, int part, int has_min, size_t b, struct wide *o)
{
	UNROLL for (int i = 0; i < 32; i += 16) s_store(o->w + 32*b + i, s_bytes(b_load16(c->q + i)));
	o->d[b] = c->d;
	if (part == 16 || has_min) o->m[b] = c->m;
}
static inline void wide_of_super(const struct codes256 *c, int has_min, size_t b, struct wide *o)
{
	UNROLL for (int j = 0; j < 16; j++) s_store(o->w + 256*b + 16*j, s_bytes(b_load16(c->q + 16*j))*c->sc[j]);
	o->d[b] = c->d;
	if (!has_min) return;
	o->m[b] = -c->dmin;
	memcpy(o->mn + 16*b, c->mn, sizeof c->mn);
}

INLINE void decode32(const char *src, float *dst, size_t n, size_t weights, size_t bytes, int part, int has_min,
	unpack32_fn *unpack)
{
	for (; n; n -= weights, src += bytes) {
		struct codes32 c[4];
		unpack(src, c);
		UNROLL for (size_t p = 0; p < weights/32; p++, dst += 32) floats_of(c + p, part, has_min, dst);
	}
}
INLINE void widen32(const char *src, size_t n, struct wide *o, size_t weights, size_t bytes, int part, int has_min,
	unpack32_fn *unpack)
{
	for (size_t b = 0; b < n/32; b += weights/32, src += bytes) {
		struct codes32 c[4];
		unpack(src, c);
		UNROLL for (size_t p = 0; p < weights/32; p++) wide_of(c + p, part, has_min, b + p, o);
	}
}
INLINE void decode256(const char *src, float *dst, size_t n, size_t weights, size_t bytes, int part, int has_min,
	unpack256_fn *unpack)
{
	(void)part;
	for (; n; n -= weights, src += bytes, dst += weights) {
		struct codes256 c;
		unpack(src, &c);
		floats_of_super(&c, has_min, dst);
	}
}
INLINE void widen256(const char *src, size_t n, struct wide *o, size_t weights, size_t bytes, int part, int has_min,
	unpack256_fn *unpack)
{
	(void)part;
	for (size_t b = 0; b < n/weights; b++, src += bytes) {
		struct codes256 c;
		unpack(src, &c);
		wide_of_super(&c, has_min, b, o);
	}
}
#define BLOCK(NAME, name, kind, part, has_min) \
static void decode_##name(const void *src, float *dst, size_t n) \
{ decode##kind(src, dst, n, BLOCK_WEIGHTS_##NAME, sizeof(struct name), part, has_min, unpack_##name); } \
static void widen_##name(const void *src, size_t n, struct wide *o) \
{ widen##kind(src, n, o, BLOCK_WEIGHTS_##NAME, sizeof(struct name), part, has_min, unpack_##name); }
#include "types.inc"
#undef BLOCK

/* ---- activations ---- */

/* A register of which one lane is the largest magnitude. Their bits, as integers, have the order of the floats, then
 * infinity, then NaN. */
static inline ri largest(const float *x, int n)
{
	ri most = { 0 };
	for (int i = 0; i < n; i += REG) most = ri_max(most, (ri)r_floats(x + i) & INT32_MAX);
	return most;
}
static inline void narrow_row(const float *x, int n, const float *inverse, bool sums, struct narrow *o)
{
	for (int j = 0; j < n; j += 32) {
		ri u[32/REG];
		for (int i = 0; i < 32/REG; i++)
			u[i] = r_nearest(r_floats(x + j + i*REG)*r_dup_at(inverse));
		r_put_32(o->q + j, u, sums ? o->sum + j/16 : NULL);
	}
}
/* Each stage handles all rows, as the steps of a stage depend on each other. */
INLINE void narrow_rows(const float *x, size_t stride, size_t rows, int n, bool sums, struct narrow *o)
{
	float most[NARROW_ROWS], d[NARROW_ROWS], inverse[NARROW_ROWS];
	for (size_t r = 0; r < rows; r += AT_ONCE) {
		ri top[AT_ONCE];
		rf all;
		UNROLL for (size_t i = 0; i < AT_ONCE; i++)
			top[i] = r + i < rows ? largest(x + (r + i)*stride, n) : (ri){ 0 };
		all = (rf)ri_greatests(top);
		r_put(most + r, all);
		r_put(d + r, all/(float)MUL_AMAX);
		r_put(inverse + r, 1/(all/(float)MUL_AMAX));
	}
	for (size_t r = 0; r < rows; r++, x += stride, o++) {
		o->d = d[r];
		if (most[r] < INFINITY && most[r] >= 0x1p-96f) {
			narrow_row(x, n, inverse + r, sums, o);
			continue;
		}
		o->d = most[r] < 0x1p-96f ? 0 : NAN;
		memset(o->q, 0, (size_t)n*sizeof *o->q);
		memset(o->sum, 0, (size_t)n/16*sizeof *o->sum);
	}
}
static void narrow(const float *x, size_t stride, size_t rows, int n, bool sums, struct narrow *o)
{
	if (n == 256) narrow_rows(x, stride, rows, 256, sums, o);
	else if (sums) narrow_rows(x, stride, rows, 32, true, o);
	else narrow_rows(x, stride, rows, 32, false, o);
}

const struct codes_table CODES_TABLE = {
	.decode = {
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = decode_##name,
#include "types.inc"
#undef BLOCK
	},
	.widen = {
#define BLOCK(NAME, name, kind, part, has_min) [GGU_TYPE_##NAME] = widen_##name,
#include "types.inc"
#undef BLOCK
	},
	.narrow = narrow,
};
