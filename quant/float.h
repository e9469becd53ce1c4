/* SPDX-License-Identifier: MIT
 * float.h - private to quant/: products with F32, F16 and BF16: the functions of an instruction set, and the layout of
 * operands.
 *
 *   float_text.h   one text for all instruction sets: halves to floats, rows times a few tokens, the tile
 *   float.c        packing, and the loops over panels and strips; calls the above through a table
 *
 * An output is sixteen sums, sum l over the columns i with i mod 16 = l, and then the tree (quant.h). A register of
 * sixteen columns gives them at once; this is how a row is multiplied with a few tokens. With many tokens, lanes are
 * outputs instead, and the sixteen sums are sixteen products of matrices, the phases. So weights are widened and
 * transposed into a panel, a chunk of columns at a time, and activations into strips, phase by phase:
 *
 *   panel, phase l                                    strip, phase l
 *   |r0:l|r1:l| .. |rP:l|                             |t0:l|t1:l| .. |tT:l|
 *   |r0:l+16|r1:l+16| ..                              |t0:l+16|t1:l+16| ..
 *   ..                                                ..
 *   a gap, so that phases do not compete for the same lines of a cache
 *
 * Packed for few tokens, activations are plain rows. */
#ifndef QUANT_FLOAT_H
#define QUANT_FLOAT_H
#include <stddef.h>
#include <stdint.h>
#include "kern.h"
#include "quant.h"

enum { FLOAT_LANES = 16, FLOAT_OUTPUTS = 32, FLOAT_CHUNK = 2048, FLOAT_GAP = 16 };
enum float_type { FLOAT_F32, FLOAT_F16, FLOAT_BF16, FLOAT_TYPES };

static inline size_t float_width(enum float_type type) { return type == FLOAT_F32 ? 4 : 2; }   /* bytes */
static inline float float_at(enum float_type type, const char *p)
{
	float f;
	uint16_t h;
	memcpy(&h, p, sizeof h);
	if (type != FLOAT_F32) return type == FLOAT_F16 ? kern_f16_to_f32(h) : kern_bf16_to_f32(h);
	memcpy(&f, p, sizeof f);
	return f;
}

typedef void float_decode_fn(const void *src, float *dst, size_t n);
/* n_out rows of w, w_stride bytes apart, times n_tokens rows of x, at most FLOAT_ROW_TOKENS */
enum { FLOAT_ROW_TOKENS = 8 };
typedef void float_rows_fn(size_t n_out, size_t n_in, const char *w, size_t w_stride, size_t n_tokens, const float *x,
	size_t x_stride, float *y, size_t y_stride);
/* Turns n columns of 8 rows, `stride` bytes apart, into phases: element i of row r becomes to[i%16*phase + i/16*width +
 * r]. Rows from n_rows on repeat the last one. Even a line with less than 8 places left is written 8 wide, so callers
 * begin with the last rows. */
typedef void float_transpose_fn(const char *rows, size_t stride, size_t n_rows, size_t n, size_t width, size_t phase,
	float *to);
/* n columns of a panel, one tile wide, and of a strip, of which only the first tokens are wanted; _phase: floats from
 * one phase to the next. The result is stored at `to`, `to_stride` floats from one token to the next, maybe for all
 * tokens of a tile. */
struct float_phases {
	size_t n, tokens;
	const float *panel, *strip;
	size_t panel_phase, strip_phase;
	float *to;
	size_t to_stride;
};
struct float_table {
	size_t outputs, tokens;                         /* of a tile; outputs divides FLOAT_OUTPUTS */
	/* the most tokens for row products: more than a tile's, as making a panel and filling half a strip cost more
	 * than reading rows from the cache again */
	size_t few;
	float_decode_fn *decode[FLOAT_TYPES];
	float_rows_fn *rows[FLOAT_TYPES];
	float_transpose_fn *transpose[FLOAT_TYPES];
	/* Sets acc[token][output] to (begin), or increases it by, n lines of a phase of a panel times those of a strip,
	 * whose tokens after the first `tokens` may be left out or become 0. next: the strip of the next call, which is
	 * too far away for the core to predict */
	void (*gemm)(size_t tokens, size_t n, const float *panel, const float *strip, const float *next, float *acc,
		bool begin);
	/* The tree over all phases; sums has room for a tile of each phase. */
	void (*gemm_all)(const struct float_phases *o, const float *next, float *sums);
	/* sums[0..n - 1] become the tree over sixteen such arrays, `stride` floats apart; n is a multiple of 16 */
	void (*tree)(float *sums, size_t stride, size_t n);
};
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct float_table quant_float_##floats;
#include "sets.inc"
#undef SET
/* The table in use; quant_select sets it. */
extern const struct float_table *quant_float_table;
/* Row products prefetch memory more than once (cpu_drops_prefetches). No result depends on it. */
extern bool float_fetches_again;

float_decode_fn *float_decoder(uint32_t type);          /* of F64 too; NULL: not a float type */
bool float_can_multiply(uint32_t type);
/* Are tokens so few that row products are used, not panels? */
bool float_few(size_t n_tokens);
/* As quant.h's. */
size_t float_act_bytes(size_t n_tokens, size_t n_in);
void float_act_pack(const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n, float *act);
void float_act_unpack(const float *act, size_t n_tokens, size_t n_in, size_t token, float *x);
void float_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);
size_t float_work_bytes(size_t n_in);
/* The same for F32 operands stored by columns, x[column*x_stride + token] and weights w[column*w_stride + output], with
 * w_stride in floats. Their packing has one form for any number of tokens. */
size_t float_columns_bytes(size_t n_tokens, size_t n_in);
void float_columns_pack(const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n,
	float *act);
void float_columns_mul(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);

#endif
