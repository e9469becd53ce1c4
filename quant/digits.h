/* SPDX-License-Identifier: MIT
 * digits.h - private to quant/: row products by digits, with which x86 multiplies a few tokens.
 *
 *   row_ISA.c         a row's blocks times up to DIGITS_TOKENS tokens, as integer sums (digits_text.h for the types,
 *                     digits_256.h and digits_512.h for the width of registers), which digits_settle.h settles; and
 *                     the instance's struct row_table
 *   books_ISA.c       the same for types with code books and ternary types (books_text.h, books_256.h, books_512.h)
 *   digits_widened.c  the same for types that neither text has
 *   digits_avx2.c     strips, the loops over rows and columns; for all of them
 *
 * An activation's 12 bits are two digits, x = 64*high + low, -32 <= low < 32, |high| <= 32, so that bytes are
 * multiplied with bytes: a product of unsigned and signed bytes takes the weights' codes as they come out of a mask and
 * a shift. Signed codes are biased; what the bias adds is known from sums of activations. Pairs of products of a byte
 * and a digit, and twice that, fit 16 bits: 4*255*32 = 32640. In ORDER_FOURTHS and ORDER_FOURTH_EIGHTS, whose codes
 * are below 32, x = 256*high + low, -128 <= low < 128: eight products fit 16 bits, 8*31*128 = 31744, and a scale's byte
 * times 256 is that byte in another place.
 *
 *   A strip of 256 columns, for super-blocks:     high[256] low[256], in each of the orders in which types have
 *                                                 their codes (enum digits_order); the rest of struct strip256
 *   A strip of 8 blocks of 32 columns:            struct strip_run
 *
 * Some rows (8 or 16) are processed before their sums are settled. A super-block's columns fill registers, and leave a
 * few lanes that add up to its sum. Registers of 64 bytes keep a block's digits for all of these rows; those of 32
 * bytes are too few for that, so there each row is processed to its end, as it is in memory (BY_ROWS). The same goes
 * for runs of eight blocks of 32 in registers of 32 bytes (digits_runs.h). In those of 64 bytes, and for Q1_0 and Q2_0,
 * each lane of a register is a row, so sums of blocks of 32 are complete as they come (digits_units.h). The sums stay
 * in memory until some columns of all rows are done; then they are settled for all rows at once. */
#ifndef QUANT_DIGITS_H
#define QUANT_DIGITS_H
#include "mul.h"

enum {
	DIGITS_ROWS = 16,               /* at most */
	DIGITS_TOKENS = 4,
	/* the most whose sums are kept for some rows: columns in blocks of 32, for each token; super-blocks, for all
	 * tokens */
	DIGITS_COLUMNS = 512,
	DIGITS_SUPERS = 32,             /* of one token, of eight rows */
	DIGITS_RUNS_MOST = 64,          /* of eight blocks of 32; the same */
	DIGITS_SUMS = DIGITS_RUNS_MOST*8*8,
};
/* The orders of a super-block's sixteens, as masks and shifts take them out of its bytes:
 *   FOURTHS   0 4 8 12   1 5 9 13   2 6 10 14   3 7 11 15     Q4_K and Q5_K, of which a byte holds k and k + 32
 *   PAIRS     0 2 4 6    1 3 5 7    8 10 12 14  9 11 13 15    IQ4_XS, k and k + 16
 *   HALVES    0 1 8 9    2 3 10 11  4 5 12 13   6 7 14 15     Q3_K, Q6_K: k, k + 32, k + 64, k + 96; Q2_K for several
 *                                                           tokens in registers of 32 bytes
 * FOURTHS_UP is FOURTHS for Q4_K in registers of 64 bytes, whose codes k + 32 stay in the upper halves of bytes: their
 *   digits are x = 16*high + low, -8 <= low < 8
 * FOURTH_EIGHTS is FOURTHS with the first halves of four sixteens before the second ones, and those 8 apart side by
 *   side, for registers of 32 bytes
 * EIGHTS is HALVES with the first halves of four sixteens before the second ones, and those 8 apart side by side, for
 *   Q6_K in registers of 32 bytes: two of them, half a lane to a sixteen, then have the same scales
 * LANES is HALVES with the fours of columns at the same place of four sixteens exchanged, for Q2_K and Q3_K: a lane of
 *   32 bits is then one sixteen, with four columns in each register */
enum digits_order {
	ORDER_PLAIN, ORDER_FOURTHS, ORDER_FOURTHS_UP, ORDER_FOURTH_EIGHTS, ORDER_PAIRS, ORDER_HALVES, ORDER_EIGHTS,
	ORDER_LANES, DIGITS_ORDERS
};
struct strip256 {
	_Alignas(64) struct digits { int8_t high[256], low[256]; } in[DIGITS_ORDERS];
	int16_t sum[16];                /* of 16 */
	int16_t first[8], second[8];    /* the same, of the even ones and the odd ones */
	int8_t sum_high[16], sum_low[16];       /* sum as 256*high + low */
	_Alignas(32) int32_t sum128[8]; /* of 32, times 128 */
	_Alignas(64) int16_t words[16][16];     /* IQ4_XS's, for registers of 32 bytes: see i_iq4_xs */
	_Alignas(64) int16_t eights[16][16];    /* those of code books for registers of 32 bytes: see books_256.h */
	int16_t sum8[2][16];            /* of eights of each half, the even ones and the odd ones */
	_Alignas(64) int16_t thirds[5][64];     /* TQ1_0's, for registers of 32 bytes: see tq1_0_sums */
	/* for Q3_K with GFNI: -4 times sum by lanes of ORDER_LANES, -64 times in odd ones */
	_Alignas(64) int32_t less4[16];
	float d;
};
/* Digits of eight blocks of 32: the first sixteen columns of each, then the second. If there are fewer blocks, the rest
 * are zeros. What products need of block k is 16*k bytes after what they need of the first. */
struct strip_run {
	_Alignas(64) int8_t high[2][8][16], low[2][8][16];
	struct sums32 { int32_t sum[2], all, none; } of[8];     /* of 16, of 32 */
	int32_t sum[2][8], all[8];      /* the same, those of even blocks, then those of odd ones */
	float all_float[8], d[8];
};
/* Where sum and all have a block */
static inline size_t digits_place(size_t block) { return block%2*4 + block/2; }
/* The digits of columns 4j to 4j + 3 of a block whose first ones are at p, in high or low of a strip_run */
static inline const int8_t *digits_four(const int8_t *p, int j) { return p + j/4*(8*16) + j%4*4; }
/* The sums of DIGITS_COLUMNS columns or DIGITS_SUPERS blocks; b counts blocks of 256 or of 32, r rows.
 *   super-blocks  s: [b][r][8], lanes that add up to a sum; m: [b][r][16], eight scales and eight mins, Q3_K's scales,
 *                 or Q2_K's mins in the upper halves of sixteen bytes; with AVX2 every other lane of Q2_K's s is for
 *                 mins instead
 *   blocks of 32  s: [b][r]; of 16: [b][half][r]
 *   runs          s: [run][r][8] in the order of strip_run's sums; of blocks in two parts: [run][r][part][8]
 * d and m of a weight are stored as [b][r]: halves; pairs of d and m if the type has mins (_16: sixteen to a block);
 * the exponents of MXFP4 in 16 bits; or the small floats of NVFP4, of both halves of a block in 16 bits. If some blocks
 * have one d (_2, _4), it is stored for the first of them. Runs have them as [run][r][8], in the order of blocks: as
 * floats, those of second parts apart, or as pairs. */
enum digits_scale { DIGITS_HALF, DIGITS_HALF_2, DIGITS_HALF_4, DIGITS_PAIR, DIGITS_PAIR_16, DIGITS_EXPONENT,
	DIGITS_SMALL };
struct digit_sums {
	_Alignas(64) int32_t s[DIGITS_SUMS];    /* each of n tokens has one n-th */
	_Alignas(64) uint8_t m[DIGITS_SUPERS*8*16];
	_Alignas(64) union {
		uint16_t half[DIGITS_COLUMNS/32*DIGITS_ROWS];
		uint32_t pair[DIGITS_COLUMNS/32*DIGITS_ROWS];
		float run[2][DIGITS_SUMS];
	} d;
};
/* A core may drop prefetches while it has as many lines in flight as it can. So each line is prefetched a second time,
 * this many rows before it is used. */
enum { DIGITS_NEARER = 4 };
/* Rows that are processed one after another are prefetched in this order too, into L2 and then into L1, about so many
 * bytes before they are used. Cores prefetch such rows on their own as well, but for that a row must be processed at
 * once: in chunks of 8 of 22 blocks, a fifth slower. So DIGITS_SUPERS is many. */
enum { DIGITS_LATER = 8 << 10, DIGITS_SOON = 4 << 10 };
/* n blocks of some rows; for blocks of 32: of all rows side by side. near: where the rows begin that are prefetched a
 * second time, maybe beyond the last row; rows DIGITS_NEARER further on are prefetched for the first time. For rows one
 * after another, after: where the next part begins, maybe beyond the last row; later, soon: how many rows further on
 * those are that are prefetched. */
struct digits_part {
	const char *w;
	size_t w_stride, n_rows, n;
	const char *strip;
	size_t strip_stride;
	const char *near;
	enum mul_fetch fetch;
	const char *after;
	size_t later, soon;
};
/* A row of a part or of what is processed after it; left: the part's rows from it on, or 0 if it is beyond these */
struct ahead { const char *w; size_t left; };
static inline struct ahead rows_ahead(const struct digits_part *p, size_t r)
{
	if (r < p->n_rows) return (struct ahead){ p->w + r*p->w_stride, p->n_rows - r };
	return (struct ahead){ mul_past(p->after, (r - p->n_rows)*p->w_stride), 0 };
}
static inline void ahead_go(struct ahead *a, const struct digits_part *p)
{
	a->w = --a->left ? mul_past(a->w, p->w_stride) : p->after;
}
/* Row r of a part, one after another, and the rows to prefetch with it */
struct walk {
	size_t r;
	const char *w;
	struct ahead later, soon;
};
static inline struct walk walk_from(const struct digits_part *p)
{
	return (struct walk){ 0, p->w, rows_ahead(p, p->later), rows_ahead(p, p->soon) };
}
static inline void walk_on(struct walk *at, const struct digits_part *p)
{
	at->r++;
	at->w = mul_past(at->w, p->w_stride);
	ahead_go(&at->later, p);
	ahead_go(&at->soon, p);
}
/* Prefetches `bytes` bytes at both places, those at `soon` for the second time. */
static inline void digits_fetch(const char *later, const char *soon, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(later + i, 0, 2);
	for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(soon + i, 0, 3);
}
typedef void digits_fn(const struct digits_part *p, struct digit_sums *to);
struct digits_type {
	digits_fn *sums[3];             /* for 1, 2 and 4 tokens */
	enum digits_scale scale;
	float factor;                   /* of d of super-blocks */
	size_t runs;                    /* by runs of digits_runs.h, each of 8 times so many sums; or 0 */
	size_t supers;                  /* in place of the table's, if not 0; of one token alone, if fewer */
	const struct digits_table *alone;       /* if not NULL, for one token if rows are prefetched into L1 */
};
/* y[rows] += n blocks of a token whose sums begin at `sums` and whose strip is `strip` */
typedef void settle_fn(const struct digits_type *type, enum mul_kind kind, const struct digit_sums *s,
	const int32_t *sums, size_t n, const void *strip, float *y);
/* What a table reads of a strip of 256, besides what all tables do. No more is packed, for that takes time. */
enum digits_reads {
	READS_32 = 1,                   /* ORDER_FOURTH_EIGHTS, ORDER_EIGHTS, words */
	READS_64 = 2,                   /* ORDER_FOURTHS_UP, ORDER_PAIRS */
	READS_BOOKS_32 = 4,             /* eights, sum8, thirds */
};
struct digits_table {
	size_t rows;                    /* side by side */
	size_t supers;                  /* a chunk's super-blocks of one token; half of it of two, and so on */
	unsigned reads;                 /* of enum digits_reads */
	settle_fn *settle;
	struct digits_type type[GGU_TYPE_COUNT];
};

/* For any type, using only its unpacking, and slowly; strip: bytes of a token. digits_widened.c */
void digits_widened(const struct quant_mul *m, enum mul_kind kind, size_t strip, size_t t0, size_t n_t, size_t o0,
	size_t n_o);

/* As in struct row_table. Types are multiplied by `books`, or by `digits` if that does not have them. */
size_t digits_strip_bytes(size_t block, size_t n_in);
/* reads: of both tables */
void digits_pack(unsigned reads, size_t block, size_t n_in, const float *x, void *strip);
void digits_unpack(size_t block, size_t n_in, const void *strip, float *x);
void digits_mul(const struct digits_table *books, const struct digits_table *digits, const struct quant_mul *m,
	enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o, void *work);

/* What Q3_K needs in registers of 32 bytes, `four` also Q2_K; digits_256.h has each where it is used. Compilers do not
 * see the values there. Else GCC, which has too few registers for all of them, would make those of equal pieces from an
 * integer for each block, three instructions instead of an operand in memory. */
struct q3_k_constants {
	_Alignas(32) uint64_t half[4], pair[4], even[4], odd[4], three[4], first[4], second[4], four[4], low[4], up[4],
		up_by[4], up_bits[4], bias[4];
};
extern const struct q3_k_constants quant_q3_k;

/* Of x86's row_ISA.c and books_ISA.c; not all of them exist. */
#define SET(name, NAME, CPU, codes, row, ...) \
	extern const struct digits_table quant_digits_##row, quant_books_##row;
#include "sets.inc"
#undef SET
#endif
