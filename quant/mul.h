/* SPDX-License-Identifier: MIT
 * mul.h - private to quant/: integer products: the functions of an instruction set, and the layout of operands.
 *
 *   codes_ISA.c    the bits of each type: decodes to floats, widens to int16; makes integers of activations
 *   row_ISA.c      row products: a few tokens times rows as they are in the file (on x86: digits.h)
 *   panel_ISA.c    many tokens: the tile, and the layout of codes that it needs
 *   mul.c          packing, the loops over panels and strips, the choice between the two; uses the above by tables
 *
 * A chunk of the rows of `outputs` outputs becomes a panel once, and is multiplied with all tokens. Tokens are packed
 * in strips of `tokens`. Both are rows of blocks, where a block is 32 columns or 256 (a super-block); lanes are
 * outputs. With r for an output (a row of weights), k for a column and t for a token:
 *
 *   panel, one block                                  strip, one block
 *   |r0:k0,k1|r1:k0,k1| .. |rP:k0,k1|  int16 pairs    |t0:k0,k1|t1:k0,k1| .. |tT:k0,k1|  int16 pairs
 *   |r0:k2,k3|r1:k2,k3| ..                            |t0:k2,k3| ..
 *   ..                                                ..
 *   |r0: mins of 16 and next 16| ..    8 lines*       |t0: sums of 16 and next 16| ..    8 lines, or one of floats
 *   |d of r0|d of r1| ..               float          |d of t0| ..                       float
 *   |m of r0|m of r1| ..               float*         |own of t0| ..                     int32: tile_crossed.h
 *                                                     |of the first half| ..             the same, of blocks of 32
 *                                                     |what sums of t0 lack| ..          of super-blocks: by_32
 *
 *   *  of types with mins; the lines of pairs only for super-blocks. For blocks of 16, m is the d of the second half.
 *
 * (AMX, dotprod and i8mm have digits in place of the pairs of codes: panel_amx.c, panel_short_amx.c, tile_bytes.h.) A
 * strip of one token is its columns in order, for row products. */
#ifndef QUANT_MUL_H
#define QUANT_MUL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../libgguf/types.h"
#include "quant.h"

/* What a tile must know of a type: how many columns share d, and whether there are mins. */
enum mul_kind { MUL_16, MUL_32, MUL_32_MIN, MUL_256, MUL_256_MIN, MUL_KINDS };

enum {
	MUL_CHUNK = 256,                /* columns of a panel */
	/* multiples of the outputs and tokens of every tile; a tile has at most 16 tokens */
	MUL_OUTPUTS = 32, MUL_TOKENS = QUANT_ACT_STEPS,
	MUL_GROUP = 128, MUL_SHORT_ROW = 1024,  /* see panel_table.group */
	MUL_AMAX = 2032,                /* the largest magnitude of an activation's integer */
	MUL_ROW_WORK = 120 << 10,       /* bytes of work space for row products */
};

/* A chunk of a row of weights, widened: weight = d*w + m*mn, or d*w + m for blocks of 32; for blocks of 16, m is the d
 * of the second half. m of super-blocks is -dmin, so that products always add. */
struct wide {
	_Alignas(64) int16_t w[MUL_CHUNK];
	float d[MUL_CHUNK/32], m[MUL_CHUNK/32];
	int16_t mn[MUL_CHUNK/16];
};
/* A block of a token's activations, 32 or 256: x is about d*q; sum: of 16 q. */
struct narrow {
	_Alignas(64) int16_t q[256], sum[16];
	float d;
};

enum { NARROW_ROWS = 16 };              /* blocks, of one token or of several, in a call of narrow */
/* By type; src needs no alignment, n is a multiple of the type's block. */
struct codes_table {
	void (*decode[GGU_TYPE_COUNT])(const void *src, float *dst, size_t n);
	/* for n columns, at most MUL_CHUNK */
	void (*widen[GGU_TYPE_COUNT])(const void *src, size_t n, struct wide *o);
	/* for rows of n columns, 32 or 256, `stride` apart; at most NARROW_ROWS. sums: are those wanted? */
	void (*narrow)(const float *x, size_t stride, size_t rows, int n, bool sums, struct narrow *o);
};

/* Row products: each token has its own strip, in the instance's layout. block: 32 or 256. */
struct row_table {
	size_t (*strip_bytes)(size_t block, size_t n_in);
	void (*pack)(size_t block, size_t n_in, const float *x, void *strip);
	void (*unpack)(size_t block, size_t n_in, const void *strip, float *x);
	/* As quant_mul; work: MUL_ROW_WORK bytes, aligned to 64 */
	void (*mul)(const struct quant_mul *m, enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o,
		void *work);
};

/* Stores n pairs (2n columns) of rows first to first + n_rows - 1 (at most 8), `stride` apart, in lines of `width`:
 * to[k*width + r] is pair k of row r. n and first are multiples of 8. All 8 rows are read, and up to 8 places of a line
 * are written from `first` on, even into the next line, so callers begin with the last rows. */
typedef void interleave_fn(const int16_t *rows, size_t stride, size_t first, size_t n_rows, size_t width, size_t n,
	int32_t *to);
/* Fills a panel with n columns, at most MUL_CHUNK, of the eight rows whose blocks begin at row[0..7]. to: the panel,
 * plus 4*first bytes if these rows are its outputs first to first + 7. */
typedef void fill_fn(const char *const *row, size_t n, char *to);
/* Products are added to acc[strip][token][output]. The results are stored there, except those of the first `whole`
 * strips, with all tokens and outputs of a tile, which are stored in to[token][output]. */
struct results {
	float *acc;
	bool begin;                     /* treat acc as 0, whatever it contains */
	size_t whole, stride;           /* stride: floats from one token to the next */
	float *to;
};
/* A panel times each strip, over n blocks, at least one */
typedef void gemm_fn(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes,
	const struct results *y);
/* Defines a gemm_fn for one kind: compiles an inline function for all kinds with this one as a constant. */
#define MUL_GEMM(name, of_all, kind) \
static void name(size_t n_blocks, const char *panel, size_t n_strips, const char *strips, size_t strip_bytes, \
	const struct results *y) \
{ \
	of_all(n_blocks, panel, n_strips, strips, strip_bytes, y, kind); \
}
struct panel_table {
	size_t outputs, tokens;         /* of a tile */
	/* Outputs whose panels use a chunk of the strips while it is in L2; 0: MUL_GROUP, and so for rows of up to
	 * MUL_SHORT_ROW columns, whose strips are all in L2 anyway. */
	size_t group;
	size_t few;                     /* the most tokens for row products, 8 at most */
	/* Fewer tokens than `least`, at most QUANT_ACT_STEPS, are multiplied by a weaker set's table. */
	size_t least;
	const struct panel_table *below;
	interleave_fn *codes, *pairs;   /* for a panel: codes and mins */
	/* Stores a block of a strip; q: all of its tokens, whose sums are read if `sums`. */
	void (*strip)(const struct narrow *q, size_t block, char *to);
	bool sums;
	size_t more_strip;              /* bytes that a block of a strip has beyond those of the picture, at its end */
	gemm_fn *gemm[MUL_KINDS];
	/* Integer i of a token in a strip's block; NULL: strips are pairs as in the picture. */
	int (*activation)(const char *strip, size_t token, size_t i);
	/* Of a super-block's minima a0, b0, a1, b1 .. of sixteens the panel has four lines of a0 - b0, a1 - b1 .. and
	 * four of b0, b1 .., and the strip four of the sums of every other sixteen and four of the sums of 32. In most
	 * types minima are those of 32 columns, so the first four are zeros and are left out. Sums of 32 are modulo
	 * 2^16; what each lacks, -1, 0 or 1 times that, is four bits in the line of `lack`. false: the eight lines are
	 * those of sixteens in order. */
	bool by_32;
	/* By type, replacing `widen` and `codes`; NULL, or NULL for a type: these are used. */
	fill_fn *const *fill;
};

/* panel_32 multiplies blocks of 32 columns and less, panel_256 super-blocks; some sets have one table for both. Panels
 * are filled, by type, by x86's fill_ISA.c: quant_fill_avx2 is for all panels of pairs of 32 outputs; avxvnni, of 16
 * outputs, and amx have their own; no others exist. */
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct codes_table quant_codes_##codes; \
	extern const struct row_table quant_row_##row; \
	extern const struct panel_table quant_panel_##panel_32, quant_panel_##panel_256; \
	extern fill_fn *const quant_fill_##panel_256[GGU_TYPE_COUNT];
#include "sets.inc"
#undef SET

/* Stores a block of a strip of `tokens`, the lines of its columns as `lines` does, and without own sums. */
void mul_strip(interleave_fn *lines, size_t tokens, bool by_32, const struct narrow *q, size_t block, char *to);

/* In use; quant_select sets them. */
extern const struct codes_table *mul_codes;
extern const struct row_table *mul_row;
/* of blocks of 32 columns and less, and of super-blocks; or the tables below these */
extern const struct panel_table *mul_panel_32, *mul_panel_256;
/* Later rows are prefetched into L1 if it has MUL_ROWS_L1 bytes, otherwise into L2. Zen 5's has, and Intel's since Ice
 * Lake; Zen 4's does not. Intel's cores fetch the other line of a pair on their own, so of each pair one line is
 * prefetched into L2, and both into L1 soon before they are used. No result depends on it. */
enum mul_fetch { MUL_TO_L2, MUL_TO_L1, MUL_BY_PAIRS };
enum { MUL_ROWS_L1 = 48 << 10 };
extern enum mul_fetch mul_row_fetch;
/* The place n bytes after p, to prefetch from. It may be far beyond the last row, where the sum of a pointer and a
 * number is undefined. */
static inline const char *mul_past(const char *p, size_t n) { return (const char *)((uintptr_t)p + n); }

/* As in quant.h, for block types; block is 32 or 256. */
size_t mul_act_step(size_t block, size_t n_tokens);
size_t mul_act_bytes(size_t block, size_t n_tokens, size_t n_in);
void mul_act_pack(size_t block, const float *x, size_t x_stride, size_t n_tokens, size_t n_in, size_t from, size_t n,
	char *act);
void mul_act_unpack(size_t block, const char *act, size_t n_tokens, size_t n_in, size_t token, float *x);
void mul_integers(const struct quant_mul *m, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);
size_t mul_work_bytes(size_t n_in);
enum mul_kind mul_kind_of(uint32_t type);
size_t mul_most_few(size_t block);      /* the most tokens for which row products are used, not panels */
size_t mul_most_below(size_t block);    /* the most of a weaker set's panels; 0: there are none */
bool mul_few(size_t block, size_t n_tokens);

static inline size_t mul_block(enum mul_kind k) { return k < MUL_256 ? 32 : 256; }
static inline int mul_has_m(enum mul_kind k) { return k == MUL_16 || k == MUL_32_MIN || k == MUL_256_MIN; }
/* The bytes of a block of a panel and of a strip, and where the parts after the codes begin. */
static inline size_t mul_panel_mn(enum mul_kind k, size_t outputs) { return 2*mul_block(k)*outputs; }
static inline size_t mul_panel_d(enum mul_kind k, size_t outputs)
{
	return mul_panel_mn(k, outputs) + (k == MUL_256_MIN ? 32*outputs : 0);
}
static inline size_t mul_panel_m(enum mul_kind k, size_t outputs) { return mul_panel_d(k, outputs) + 4*outputs; }
static inline size_t mul_panel_bytes(enum mul_kind k, size_t outputs)
{
	return mul_panel_m(k, outputs) + (mul_has_m(k) ? 4*outputs : 0);
}
static inline size_t mul_strip_sum(size_t block, size_t tokens) { return 2*block*tokens; }
static inline size_t mul_strip_d(size_t block, size_t tokens)
{
	return mul_strip_sum(block, tokens) + (block == 32 ? 4 : 32)*tokens;
}
static inline size_t mul_strip_own(size_t block, size_t tokens) { return mul_strip_d(block, tokens) + 4*tokens; }
static inline size_t mul_strip_lack(size_t tokens) { return mul_strip_own(256, tokens) + 4*tokens; }
/* A strip of one token ends before `own`: row products and portable C do not cross. */
static inline size_t mul_strip_bytes(size_t block, size_t tokens)
{
	return mul_strip_own(block, tokens) + (tokens > 1 ? 8*tokens : 0);
}
/* For tiles whose results lie in acc until their last block: before it, and after. */
static inline float *mul_results(const struct results *y, size_t strip, size_t floats)
{
	float *acc = y->acc + strip*floats;
	if (y->begin) memset(acc, 0, floats*sizeof *acc);
	return acc;
}
static inline void mul_results_done(const struct results *y, size_t strip, size_t tokens, size_t outputs)
{
	for (size_t t = strip*tokens; strip < y->whole && t < (strip + 1)*tokens; t++)
		memcpy(y->to + t*y->stride, y->acc + t*outputs, outputs*sizeof *y->to);
}
/* A pair or a number of a line, to be broadcast to all lanes. */
static inline int32_t mul_word(const void *p) { int32_t u; memcpy(&u, p, sizeof u); return u; }

#endif
