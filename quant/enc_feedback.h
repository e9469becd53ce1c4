/* SPDX-License-Identifier: MIT
 * enc_feedback.h - chooses codes column by column, with each column's target corrected for the errors before it.
 *
 * feedback.c describes the method. This file does its work on a type's blocks, for sixteen rows and a group of up to
 * 256 columns, block after block. The type's own search (coder.fit) finds the scales, on the targets as they are when
 * the block begins; those of its sub-blocks are searched again when their turn comes. Then each column, or each word of
 * a code book, gets the code nearest to its target, and the error goes to the columns after it. Rows are lanes, so in
 * every lane sums run over columns in order.
 *
 *   target[k] = x[k] + what the columns before the group left + sum of rest[j]*factor[k][j], j in the group, j < k
 *   rest[k] = x[k] - value[k]
 *
 * The factor is stored in panels of eight columns: panel p, row j < 8(p + 1), is factor[8p..8p + 7][j], 0 from the
 * diagonal on, so that a sweep over j serves eight targets. */
#ifndef QUANT_ENC_FEEDBACK_H
#define QUANT_ENC_FEEDBACK_H
#include <float.h>
#include "enc_affine.h"
#include "enc_grid.h"
#include "enc_levels.h"
#include "enc_tile.h"

enum { PANEL = FEEDBACK_PANEL, COLUMNS = FEEDBACK_GROUP };
struct fb {
	_Alignas(64) float x[COLUMNS][LANES], target[COLUMNS][LANES], rest[COLUMNS][LANES];
	_Alignas(64) float before[COLUMNS][LANES];      /* targets as they are, while fb_ahead looks ahead */
	/* of the sub-blocks of the current block */
	_Alignas(64) float step[COLUMNS/8][LANES], offset[COLUMNS/8][LANES];
	_Alignas(64) uint8_t code[COLUMNS][LANES];
	/* IQ1: the delta that the fit chose for the word at that place */
	_Alignas(64) uint8_t other[COLUMNS/8][LANES];
	struct fitted fit[LANES];
	float scale[LANES];             /* of each row's tile */
	struct tile tile;
};
_Static_assert(sizeof(struct fb) <= FEEDBACK_WORK, "enc.h says what is enough");

/* The scales of the sub-block in a lane, as the decoder will see them. */
static void scales_min(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	*step = f16_near(f->d[lane/c->per])*f->ls[lane];
	*offset = -f16_near(f->m[lane/c->per])*f->lm[lane];
}
static void scales_sub(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	(void)offset;
	*step = f16_near(f->d[lane/c->per])*f->ls[lane];
}
static void scales_block(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	(void)offset;
	*step = f16_near(f->d[lane/c->per]);
}
static void scales_block_min(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	*step = f16_near(f->d[lane/c->per]);
	*offset = f16_near(f->m[lane/c->per]);
}
static void scales_book(const struct coder *c, const struct fitted *f, int lane, float *step, float *offset)
{
	(void)offset;
	*step = f16_near(f->d[lane/c->per])*c->book->unit*(2*f->ls[lane] + 1);
}

/* target[8p..] += what the columns from..to - 1 left */
static inline void fb_sweep(struct fb *s, const float *panel, int p, int from, int to)
{
	for (int o = 0; o < LANES; o += REG) {
		rf t[PANEL];
		for (int c = 0; c < PANEL; c++) t[c] = r_floats(&s->target[PANEL*p + c][o]);
		for (int j = from; j < to; j++) {
			rf r = r_floats(&s->rest[j][o]);
			for (int c = 0; c < PANEL; c++) t[c] += r*panel[PANEL*j + c];
		}
		for (int c = 0; c < PANEL; c++) r_put(&s->target[PANEL*p + c][o], t[c]);
	}
}
/* The same within panel p: adds to later targets what its elements from..to - 1, just chosen, left. */
static inline void fb_within(struct fb *s, const float *panel, int p, int o, int from, int to)
{
	for (int j = PANEL*p + from; j < PANEL*p + to; j++) {
		rf r = r_floats(&s->rest[j][o]);
		for (int c = to; c < PANEL; c++) {
			float *t = &s->target[PANEL*p + c][o];
			r_put(t, r_floats(t) + r*panel[PANEL*j + c]);
		}
	}
}
/* Records the value chosen for column k. */
static inline void fb_choose(struct fb *s, int k, int o, rf value)
{
	rf rest = r_floats(&s->x[k][o]) - value;
	/* a weight that is not finite must not harm others */
	r_put(&s->rest[k][o], r_keep(r_lt(r_abs(rest), r_dup(INFINITY)), rest));
}

/* What the targets of columns at..end - 1 would be if each column reached its own exactly: scales should fit these. */
static void fb_ahead(struct fb *s, const struct feedback_group *g, int at, int end)
{
	for (int p = at/PANEL; p < end/PANEL; p++) {
		fb_sweep(s, g->panels[p], p, at, PANEL*p);
		for (int o = 0; o < LANES; o += REG)
			for (int i = 0; i < PANEL; i++) {
				const int k = PANEL*p + i;
				rf rest = r_floats(&s->x[k][o]) - r_floats(&s->target[k][o]);
				r_put(&s->rest[k][o], r_keep(r_lt(r_abs(rest), r_dup(INFINITY)), rest));
				fb_within(s, g->panels[p], p, o, i, i + 1);
			}
	}
}
/* Finds the scales of the block that begins at column `at`, on the targets of sixteen rows. */
static void fb_fit(struct fb *s, const struct coder *c, const struct how *how, const float *weight, int at)
{
	const int units = LANES/c->per;
	struct tile *t = &s->tile;
	for (int e = 0; e < c->n; e++)
		for (int l = 0; l < LANES; l++) t->w[e][l] = t->given[e][l] = weight[at + l%c->per*c->n + e];
	memset(t->q, 0, sizeof t->q);
	memset(s->offset, 0, sizeof s->offset);
	for (int k = 0; k < c->per; k++) {
		for (int e = 0; e < c->n; e++)
			for (int l = 0; l < LANES; l++)
				t->x[e][l] = s->target[at + l%c->per*c->n + e][k*units + l/c->per];
		tile_scale(t, c->n, c->per);
		if (how->prior > 0) tile_prior(t, c->n, c->per, how->prior);
		for (int h = 0; h < units; h++) s->fit[k].lift[h] = 1;
		c->fit(t, how, &s->fit[k]);
		for (int h = 0; h < units; h++) s->scale[k*units + h] = t->scale[h];
		for (int l = 0; l < LANES; l++) {
			const int row = k*units + l/c->per, j = l%c->per;
			c->scales(c, &s->fit[k], l, &s->step[j][row], &s->offset[j][row]);
			for (int w = 0; w < c->n/8; w++)
				s->other[j*(c->n/8) + w][row] = t->code[l][8*w] >> 6 & 1;
		}
	}
}
/* Where a row's scales are in s->fit: of its tile, the unit and the lane of a sub-block. */
struct fb_row { struct fitted *fit; int unit, lane; };
static inline struct fb_row fb_row(struct fb *s, const struct coder *c, int row, int sub)
{
	const int units = LANES/c->per;
	return (struct fb_row){ &s->fit[row/units], row%units, row%units*c->per + sub };
}
/* Searches the scales of a sub-block of the block at `at` again, in units of those of the block, as what earlier
 * sub-blocks left has moved the targets since. Rows are lanes here, each in its own power of two as before. */
static void fb_again(struct fb *s, const struct coder *c, const struct how *how, const float *weight, int at, int sub)
{
	const int from = at + sub*c->n;
	struct tile *t = &s->tile;
	struct again v;
	float inv[LANES];
	for (int row = 0; row < LANES; row++) {
		const struct fb_row r = fb_row(s, c, row, sub);
		inv[row] = 1/s->scale[row];
		v.d[row] = f16_near(r.fit->d[r.unit])*inv[row]/r.fit->lift[r.unit];
		v.m[row] = c->affine ? f16_near(r.fit->m[r.unit])*inv[row] : 0;
	}
	for (int e = 0; e < c->n; e++)
		for (int row = 0; row < LANES; row++) {
			t->x[e][row] = s->target[from + e][row]*inv[row];
			t->w[e][row] = t->given[e][row] = weight[from + e];
		}
	if (how->prior > 0) tile_prior(t, c->n, 1, how->prior);
	c->again(t, how, &v);
	for (int row = 0; row < LANES; row++) {
		const struct fb_row r = fb_row(s, c, row, sub);
		r.fit->ls[r.lane] = v.ls[row];
		if (c->affine) r.fit->lm[r.lane] = v.lm[row];
		c->scales(c, r.fit, r.lane, &s->step[sub][row], &s->offset[sub][row]);
	}
}
/* Chooses the codes of a panel's columns, one by one. at: the first column of the block */
static void fb_panel_levels(struct fb *s, const struct coder *c, const struct feedback_group *g, int p, int at)
{
	const int sub = (PANEL*p - at)/c->n;
	const float *panel = g->panels[p];
	for (int o = 0; o < LANES; o += REG) {
		rf step = r_floats(&s->step[sub][o]), offset = r_floats(&s->offset[sub][o]);
		/* the inverse of MXFP4's smallest scale, 2^-128, would be infinite, and 0 times that is NaN */
		rf inv = r_min(r_inverse(step), r_dup(FLT_MAX));
		for (int i = 0; i < PANEL; i++) {
			const int k = PANEL*p + i;
			rf u = (r_floats(&s->target[k][o]) - offset)*inv;
			put_codes(&s->code[k][o], lv_code(c->levels, u));
			fb_choose(s, k, o, step*lv_value(c->levels, u) + offset);
			fb_within(s, panel, p, o, i, i + 1);
		}
	}
}

/* What the targets of elements first..first + n - 1 of panel p would be if each reached its own exactly */
static inline void fb_expect(const struct fb *s, const float *panel, int p, int o, int first, int n, rf *ahead)
{
	const int k = PANEL*p;
	for (int i = first; i < first + n; i++) ahead[i] = r_floats(&s->target[k + i][o]);
	for (int j = first; j < first + n; j++) {
		rf rest = r_floats(&s->x[k + j][o]) - ahead[j];
		for (int i = j + 1; i < first + n; i++) ahead[i] += rest*panel[PANEL*(k + j) + i];
	}
}
/* Finds which of the targets of elements first..first + n - 1 are stored with a minus. If the number of minuses must be
 * even and is not, the element with the smallest w|x| changes its sign. */
static inline void fb_signs(const struct grid *a, const rf *ahead, const float *weight, rf inv, int first, int n,
	ri *minus)
{
	rf least = r_dup(INFINITY);
	ri odd = ri_dup(0), at = odd;
	for (int i = first; i < first + n; i++) {
		rf x = ahead[i]*inv, c = r_abs(x)*weight[i];
		rm ok = r_lt(c, least);
		minus[i] = ri_one(r_lt(x, r_dup(0)));
		odd ^= minus[i];
		least = r_min(c, least);
		at = ri_if(ok, ri_dup(i), at);
	}
	for (int i = first; a->even && i < first + n; i++) minus[i] ^= odd & (ri)(at == ri_dup(i));
}
/* The digits of the word nearest to the magnitudes in the tile, elements `first` to first + word - 1 of column k's
 * panel; and which delta: IQ1_S must keep that of the sub-block. */
static inline ri fb_word(struct tile *t, const struct coder *c, const float *weight, int k, int first, int o, ri *other)
{
	const struct grid *a = c->book;
	const rm no = ri_lt(ri_dup(0), ri_dup(0)), yes = ri_lt(ri_dup(0), ri_dup(1));
	const int g = first/a->word;
	struct grid_words m;
	struct grid_word r, b;
	rf sw = r_dup(0), sa = sw, sx = sw;
	rm ok;
	for (int i = first; i < first + a->word; i++) {
		rf x = r_floats(&t->x[i][o]), w = r_dup(weight[k + i]);
		r_put(&t->w[i][o], w);
		sw += w; sa += w*r_abs(x); sx += w*x;
	}
	r_put(&m.w[g][o], sw); r_put(&m.abs[g][o], sa); r_put(&m.x[g][o], sx);
	c->word(a->delta == DELTA_LANE ? ri_lt(ri_dup(0), *other) : no, t, &m, o, g, r_dup(1), &r);
	if (a->delta != DELTA_WORD) return r.digits;
	c->word(yes, t, &m, o, g, r_dup(1), &b);
	ok = r_lt(b.cost, r.cost);
	*other = ri_one(ok);
	return ri_if(ok, b.digits, r.digits);
}
/* The same word by word, for types with a code book */
static void fb_panel_book(struct fb *s, const struct coder *c, const struct feedback_group *g, int p, int at)
{
	const float *weight = g->weight, *panel = g->panels[p];
	const struct grid *a = c->book;
	const int k = PANEL*p, sub = (k - at)/c->n;
	for (int o = 0; o < LANES; o += REG) {
		rf step = r_floats(&s->step[sub][o]), inv = r_inverse(step);
		rf ahead[PANEL];
		ri minus[PANEL], other = get_bytes(&s->other[(k - at)/PANEL][o]);
		for (int first = 0; first < PANEL; first += a->word) {
			ri digits;
			/* if the number of minuses must be even, signs are chosen for eight weights */
			const int n = first == 0 && a->even ? PANEL : a->word;
			fb_expect(s, panel, p, o, first, n, ahead);
			if (!a->delta && (first == 0 || !a->even)) fb_signs(a, ahead, weight + k, inv, first, n, minus);
			for (int i = first; i < first + a->word; i++) {
				rf x = r_clamp(ahead[i]*inv, -1e4f, 1e4f);
				r_put(&s->tile.x[i][o], a->delta ? x : r_if(ri_lt(ri_dup(0), minus[i]), 0 - x, x));
			}
			digits = fb_word(&s->tile, c, weight, k, first, o, &other);
			for (int i = first; i < first + a->word; i++) {
				ri digit = grid_digit(a, digits, i - first);
				rf v = r_lut8(a->level, digit);
				if (a->delta) v += r_keep(ri_lt(ri_dup(0), other), r_dup(a->shift));
				else v = r_if(ri_lt(ri_dup(0), minus[i]), 0 - v, v);
				put_bytes(&s->code[k + i][o], a->delta ? digit | other << 6 : digit | minus[i] << 7);
				fb_choose(s, k + i, o, step*v);
				fb_within(s, panel, p, o, i, i + 1);
			}
		}
	}
}

/* Packs the block that begins at column `at` of each row. */
static void fb_pack(struct fb *s, const struct coder *c, int at, int rows, char *dst, size_t stride)
{
	const int units = LANES/c->per;
	for (int row = 0; row < rows; row++) {
		const int h = row%units;
		for (int j = 0; j < c->per; j++)
			for (int e = 0; e < c->n; e++) s->tile.code[h*c->per + j][e] = s->code[at + j*c->n + e][row];
		c->pack(dst + (size_t)row*stride, &s->tile, &s->fit[row/units], h);
	}
}

/* Transposes up to sixteen rows into lanes; lanes without a row are 0. */
static void fb_load(float (*to)[LANES], const float *from, size_t stride, int rows, int cols)
{
	memset(to, 0, sizeof *to*(size_t)cols);
	for (int row = 0; row < rows; row++)
		for (int k = 0; k < cols; k++) to[k][row] = from[(size_t)row*stride + (size_t)k];
}
/* Chooses the codes of a sub-block of the block that begins at column `at`. IQ1 keeps the deltas, and so the scales, of
 * the first search. */
static void fb_sub_block(struct fb *s, const struct coder *c, const struct how *how, const struct feedback_group *g,
	int at, int sub)
{
	const int from = at + sub*c->n, end = from + c->n;
	for (int p = from/PANEL; p < end/PANEL; p++) fb_sweep(s, g->panels[p], p, at, from);
	if (c->again && !(c->book && c->book->delta)) {
		memcpy(s->before, s->target[from], sizeof *s->target*(size_t)c->n);
		fb_ahead(s, g, from, end);
		fb_again(s, c, how, g->weight, at, sub);
		memcpy(s->target[from], s->before, sizeof *s->target*(size_t)c->n);
	}
	for (int p = from/PANEL; p < end/PANEL; p++) {
		fb_sweep(s, g->panels[p], p, from, PANEL*p);
		if (c->book) fb_panel_book(s, c, g, p, at);
		else fb_panel_levels(s, c, g, p, at);
	}
}
/* Encodes a group of columns (enc.h). Where scales are searched twice, the effort is two lower: longer searches gain
 * nothing measurable (ENCODERS.md), except with books. */
static void encode_group(const struct coder *c, const struct how *how, const struct feedback_group *g)
{
	enum { LESS = 2 };
	const int block = c->n*c->per;
	const int effort = c->again && !c->book ? how->row - LESS : how->row;
	const struct how search = { effort > 0 ? effort : 0, how->prior, how->lift };
	struct fb *s = g->work;
	fb_load(s->x, g->x, g->stride, g->rows, g->cols);
	fb_load(s->target, g->target, COLUMNS, g->rows, g->cols);
	for (int k = 0; k < g->cols; k++)
		for (int l = 0; l < LANES; l++) s->target[k][l] += s->x[k][l];
	for (int at = 0; at < g->cols; at += block) {
		for (int p = at/PANEL; at > 0 && p < (at + block)/PANEL; p++) fb_sweep(s, g->panels[p], p, 0, at);
		memcpy(s->before, s->target[at], sizeof *s->target*(size_t)block);
		fb_ahead(s, g, at, at + block);
		fb_fit(s, c, &search, g->weight, at);
		memcpy(s->target[at], s->before, sizeof *s->target*(size_t)block);
		for (int sub = 0; sub < c->per; sub++) fb_sub_block(s, c, &search, g, at, sub);
		fb_pack(s, c, at, g->rows, (char *)g->dst + (size_t)(at/block)*c->bytes, g->dst_stride);
		for (int row = 0; row < g->rows; row++)
			for (int k = at; k < at + block; k++)
				g->rest[(size_t)row*g->stride + (size_t)k] = s->rest[k][row];
	}
}
#endif
