/* SPDX-License-Identifier: MIT
 * float.c - products with floats: packing activations, and the loops over rows, panels and strips (float.h has the
 * picture). */
#include <string.h>
#include "../libgguf/size.h"
#include "float.h"
#include "tlb.h"

enum {
	ROW_BYTES = 64 << 10,           /* of rows that stay in L2 until they are multiplied with all of a few tokens */
	TOKENS = 264,                   /* for each panel; a multiple of every tile's tokens */
	SOME = 6,                       /* tokens copied at a time; divides every tile's tokens */
	PHASE = (FLOAT_CHUNK/FLOAT_LANES + 1)*FLOAT_OUTPUTS + FLOAT_GAP,        /* of a panel */
};
struct work {
	_Alignas(64) float panel[FLOAT_LANES*PHASE];
	bool columns;                   /* weights are stored by columns */
	/* one for each phase; a single one if all columns are one chunk, as then none wait for the next */
	_Alignas(64) float sums[][TOKENS*FLOAT_OUTPUTS + FLOAT_GAP];
};

const struct float_table *quant_float_table = &quant_float_c;
bool float_fetches_again = true;

static enum float_type type_of(uint32_t type)
{
	return type == GGU_TYPE_F16 ? FLOAT_F16 : type == GGU_TYPE_BF16 ? FLOAT_BF16 : FLOAT_F32;
}
bool float_can_multiply(uint32_t type) { return type == GGU_TYPE_F32 || type == GGU_TYPE_F16 || type == GGU_TYPE_BF16; }
static void decode_f64(const void *src, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double d;
		memcpy(&d, (const char *)src + 8*i, 8);
		dst[i] = (float)d;
	}
}
float_decode_fn *float_decoder(uint32_t type)
{
	if (type == GGU_TYPE_F64) return decode_f64;
	return float_can_multiply(type) ? quant_float_table->decode[type_of(type)] : NULL;
}
bool float_few(size_t n_tokens) { return n_tokens <= quant_float_table->few; }
size_t float_work_bytes(size_t n_in)
{
	return sizeof(struct work) + (n_in > FLOAT_CHUNK ? FLOAT_LANES : 1)*sizeof *((struct work *)0)->sums;
}

/* ---- packing ---- */

static size_t row_floats(size_t n_in) { return size_up(n_in, FLOAT_LANES); }
static size_t phase_floats(size_t n_in) { return (n_in/FLOAT_LANES + 1)*quant_float_table->tokens + FLOAT_GAP; }
size_t float_columns_bytes(size_t n_tokens, size_t n_in)
{
	size_t tokens = quant_float_table->tokens;
	return size_times(size_parts(n_tokens, tokens), FLOAT_LANES*phase_floats(n_in)*sizeof(float));
}
/* The size of whole strips, even for few tokens, which need less: so no part of the tokens needs more than the steps
 * that it has. */
size_t float_act_bytes(size_t n_tokens, size_t n_in) { return float_columns_bytes(n_tokens, n_in); }
void float_act_pack(const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n, float *act)
{
	size_t tokens = quant_float_table->tokens, phase = phase_floats(n_in);
	if (float_few(n_tokens)) {
		for (size_t t = from; t < from + n; t++)
			memcpy(act + t*row_floats(n_in), x + t*x_stride, n_in*sizeof *x);
		return;
	}
	for (size_t t = from; t < from + n; t += tokens) {
		size_t some = size_least(from + n - t, tokens);
		float *strip = act + t/tokens*FLOAT_LANES*phase;
		for (size_t r = (tokens - 1)/8*8 + 8; r; r -= 8) {
			size_t first = r - 8 < some ? r - 8 : some - 1;
			quant_float_table->transpose[FLOAT_F32]((const char *)(x + (t + first)*x_stride),
				x_stride*sizeof *x, some - first, n_in, tokens, phase, strip + r - 8);
		}
	}
}
void float_act_unpack(const float *act, size_t n_tokens, size_t n_in, size_t token, float *x)
{
	size_t tokens = quant_float_table->tokens, phase = phase_floats(n_in);
	const float *strip = act + token/tokens*FLOAT_LANES*phase + token%tokens;
	if (float_few(n_tokens)) memcpy(x, act + token*row_floats(n_in), n_in*sizeof *x);
	else for (size_t i = 0; i < n_in; i++) x[i] = strip[i%FLOAT_LANES*phase + i/FLOAT_LANES*tokens];
}
/* Each column is read once, for all strips. */
void float_columns_pack(const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n,
	float *act)
{
	size_t tokens = quant_float_table->tokens, phase = phase_floats(n_in), end = from + n;
	(void)n_tokens;
	for (size_t i = 0; i < n_in; i++, x += x_stride) {
		float *to = act + from/tokens*FLOAT_LANES*phase + i%FLOAT_LANES*phase + i/FLOAT_LANES*tokens;
		for (size_t t = from; t < end; t += tokens, to += FLOAT_LANES*phase)
			if (end - t >= tokens)
				for (size_t k = 0; k < tokens; k += SOME) memcpy(to + k, x + t + k, SOME*sizeof *x);
			else for (size_t k = 0; k < tokens; k++) to[k] = t + k < end ? x[t + k] : 0;
	}
}

/* ---- products ---- */

enum { PIECE = 16 };            /* outputs: no tile has fewer, and all have a multiple of it */
/* Copies n columns of n_o outputs, which are stored by columns, to a panel. */
static void take_panel(const float *w, size_t stride, size_t n_o, size_t n, float *panel)
{
	size_t width = quant_float_table->outputs;
	float rest[FLOAT_OUTPUTS] = { 0 };
	for (size_t i = 0; i < n; i++, w += stride) {
		float *to = panel + i%FLOAT_LANES*PHASE + i/FLOAT_LANES*width;
		const float *from = w;
		if (n_o < FLOAT_OUTPUTS) from = memcpy(rest, w, n_o*sizeof *w);
		for (size_t r = 0; r < FLOAT_OUTPUTS; r += PIECE)
			memcpy(to + r/width*width*(FLOAT_CHUNK/FLOAT_LANES + 1) + r%width, from + r, PIECE*sizeof *w);
	}
}
/* Makes a panel of columns i..i + n - 1 of rows o..: the parts of tiles one after another. */
static void make_panel(const struct quant_mul *m, size_t o, size_t n_o, size_t i, size_t n, struct work *k)
{
	size_t width = quant_float_table->outputs;
	float *panel = k->panel;
	if (k->columns) {
		take_panel((const float *)m->w + i*m->w_stride + o, m->w_stride, n_o, n, panel);
		return;
	}
	for (size_t r = 0; r < FLOAT_OUTPUTS; r += 8) {
		size_t first = r < n_o ? r : n_o - 1;
		const char *rows = (const char *)m->w + (o + first)*m->w_stride + i*float_width(type_of(m->type));
		float *to = panel + r/width*width*(FLOAT_CHUNK/FLOAT_LANES + 1) + r%width;
		quant_float_table->transpose[type_of(m->type)](rows, m->w_stride, n_o - first, n, width, PHASE, to);
	}
}
/* Where the columns from i on of phase l are in the strip that has token t */
static const float *strip_of(const struct quant_mul *m, size_t t, size_t l, size_t i)
{
	size_t tokens = quant_float_table->tokens;
	return (const float *)m->act + (t/tokens*FLOAT_LANES + l)*phase_floats(m->n_in) + i/FLOAT_LANES*tokens;
}
static const float *tile_of(const struct work *k, size_t r)
{
	return k->panel + r*quant_float_table->outputs*(FLOAT_CHUNK/FLOAT_LANES + 1);
}
/* Stores the sums of a tile for n_t tokens from t on and n_o outputs from o on */
static void put(const struct quant_mul *m, size_t t, size_t n_t, size_t o, size_t n_o, const float *sums)
{
	size_t width = quant_float_table->outputs;
	for (size_t i = 0; i < n_t; i++, sums += width)
		memcpy(m->y + (t + i)*m->y_stride + o, sums, size_least(n_o, width)*sizeof *sums);
}
/* Prefetches where put will store: otherwise it waits for lines that are far away, all of them at once. */
static void fetch_results(const struct quant_mul *m, size_t t, size_t n_t, size_t o)
{
	for (size_t i = 0; i < n_t; i++)
		for (size_t k = 0; k < quant_float_table->outputs; k += PIECE)
			__builtin_prefetch(m->y + (t + i)*m->y_stride + o + k, 1);
}
/* Multiplies all columns in one panel, so that no sums wait. */
static void at_once(const struct quant_mul *m, size_t t, size_t n_t, size_t o, size_t n_o, const struct work *k,
	float *sums)
{
	size_t width = quant_float_table->outputs, tokens = quant_float_table->tokens,
		next = t + tokens < m->n_tokens ? t + tokens : t;
	for (size_t r = 0; r*width < n_o; r++) {
		const bool whole = n_t == tokens && n_o - r*width >= width;
		const struct float_phases all = { m->n_in, n_t, tile_of(k, r), strip_of(m, t, 0, 0), PHASE,
			phase_floats(m->n_in), whole ? m->y + t*m->y_stride + o + r*width : sums,
			whole ? m->y_stride : width };
		fetch_results(m, t, n_t, o + r*width);
		quant_float_table->gemm_all(&all, (r + 1)*width < n_o ? all.strip : strip_of(m, next, 0, 0), sums);
		if (!whole) put(m, t, n_t, o + r*width, n_o - r*width, sums);
	}
}
/* Multiplies columns chunk by chunk: the sums of all phases and strips wait for the next chunk. */
static void by_chunks(const struct quant_mul *m, size_t t0, size_t n_t, size_t o, size_t n_o, struct work *k)
{
	size_t width = quant_float_table->outputs, tokens = quant_float_table->tokens, tiles = FLOAT_OUTPUTS/width,
		stride = sizeof *k->sums/sizeof **k->sums, all = size_parts(n_t, tokens)*tiles;
	for (size_t i = 0; i < m->n_in; i += FLOAT_CHUNK) {
		size_t n = size_least(m->n_in - i, FLOAT_CHUNK);
		make_panel(m, o, n_o, i, n, k);
		for (size_t l = 0; l < FLOAT_LANES; l++)
			for (size_t j = 0; j < all; j++)
				quant_float_table->gemm(n_t - j/tiles*tokens, n/FLOAT_LANES + (l < n%FLOAT_LANES),
					tile_of(k, j%tiles) + l*PHASE, strip_of(m, t0 + j/tiles*tokens, l, i),
					j + tiles < all ? strip_of(m, t0 + (j/tiles + 1)*tokens, l, i) :
						strip_of(m, t0, (l + 1)%FLOAT_LANES, i),
					k->sums[l] + j*tokens*width, i == 0);
	}
	quant_float_table->tree(k->sums[0], stride, all*tokens*width);
	for (size_t j = 0; j < all; j++) {
		size_t t = j/tiles*tokens, r = j%tiles*width;
		if (r < n_o) put(m, t0 + t, size_least(n_t - t, tokens), o + r, n_o - r,
			k->sums[0] + j*tokens*width);
	}
}
static void panels(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, struct work *k)
{
	size_t tokens = quant_float_table->tokens;
	for (size_t o = o0; o < o0 + n_o; o += FLOAT_OUTPUTS) {
		size_t some = size_least(o0 + n_o - o, FLOAT_OUTPUTS);
		if (m->n_in > FLOAT_CHUNK) {
			by_chunks(m, t0, n_t, o, some, k);
			continue;
		}
		make_panel(m, o, some, 0, m->n_in, k);
		for (size_t t = 0; t < n_t; t += tokens)
			at_once(m, t0 + t, size_least(n_t - t, tokens), o, some, k, k->sums[0]);
	}
}

static void mul_panels(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, struct work *k)
{
	if (m->n_in <= FLOAT_CHUNK) panels(m, t0, n_t, o0, n_o, k);             /* no sums wait for a next chunk */
	else for (size_t t = 0; t < n_t; t += TOKENS)
		panels(m, t0 + t, size_least(n_t - t, TOKENS), o0, n_o, k);
}
static void few_tokens(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o)
{
	size_t stride = row_floats(m->n_in), step = size_most(ROW_BYTES/size_most(m->w_stride, 1)/PIECE*PIECE, PIECE);
	struct tlb tlb = { m->w, m->n_out*m->w_stride, o0*m->w_stride };
	for (size_t o = o0; o < o0 + n_o; o += step) {
		tlb_look_up(&tlb, o*m->w_stride, (o + step)*m->w_stride);
		for (size_t t = t0; t < t0 + n_t; t += FLOAT_ROW_TOKENS)
			quant_float_table->rows[type_of(m->type)](size_least(o0 + n_o - o, step), m->n_in,
				(const char *)m->w + o*m->w_stride, m->w_stride,
				size_least(t0 + n_t - t, FLOAT_ROW_TOKENS), (const float *)m->act + t*stride, stride,
				m->y + t*m->y_stride + o, m->y_stride);
	}
}
void float_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	struct work *k = work;
	if (float_few(m->n_tokens)) {
		few_tokens(m, t0, n_t, o0, n_o);
		return;
	}
	k->columns = false;
	mul_panels(m, t0, n_t, o0, n_o, k);
}
void float_columns_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work)
{
	struct work *k = work;
	k->columns = true;
	mul_panels(m, t0, n_t, o0, n_o, k);
}
