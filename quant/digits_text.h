/* SPDX-License-Identifier: MIT
 * digits_text.h - a row's blocks times the digits of activations, one text for all widths of registers; defines the
 * tables DIGITS_TABLE and, for products of rows by it and by BOOKS_TABLE, ROW_TABLE. An instance (row_ISA.c) first
 * includes digits_256.h or digits_512.h.
 *
 * Super-blocks are in digits_k.h, digits_lanes.h and books_text.h, blocks of 32 in digits_units.h and digits_runs.h.
 * The first letter of a word says what it works on:
 *   c_  c64          codes of 64 columns, a byte each
 *   d_  digits256    digits of 256 columns, in registers or in memory
 *   i_  isum         a row's sums in the lanes of a register; i_value, i_chains and i_q2_k leave eight of int32
 *   v_  vi, vf       a lane for each of ROWS rows, integers or floats
 *   h_  heads        the first sixteen bytes of the blocks of some rows
 *   y_, x_           one register of 32 bytes, where c64 is two (digits_256.h and ymm.h only) */

/* Keeps prefetches in place: compilers that schedule early would hoist both branches of them above the choice. */
#define STAY __asm__ volatile("" : : : "memory")
/* Prefetches lines DIGITS_NEARER rows after `near`, and those at `near` once more. */
INLINE void fetch_lines(const char *near, size_t stride, size_t bytes, enum mul_fetch fetch)
{
	const char *next;
	__asm__("" : "+r"(stride));     /* multiplied here, not kept four times as large in a register of vectors */
	next = near + DIGITS_NEARER*stride;
	__asm__("" : "+r"(next));       /* one register, not one for each line */
	if (fetch == MUL_BY_PAIRS) {
		STAY;
		UNROLL for (size_t i = 0; i < bytes; i += 128) __builtin_prefetch(next + i, 0, 2);
		UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(near + i, 0, 3);
	} else if (fetch == MUL_TO_L1) {
		STAY;
		UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i, 0, 3);
		UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(near + i, 0, 3);
	} else {
		STAY;
		UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
		UNROLL for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(near + i, 0, 2);
	}
	STAY;   /* before the loads that wait */
}
INLINE __m256i sum_at(const int16_t *p) { return _mm256_load_si256((const void *)p); }
INLINE __m128i x16(const void *p) { return _mm_loadu_si128(p); }

/* ---- products of super-blocks ---- */

/* The product of a row's block with the strips of some tokens. d: the first token's digits, high and low, in the order
 * of the type; at: the place of the sums. */
struct product {
	int n_tokens;
	const char *strip;
	size_t strip_stride;
	enum digits_order order;
	const digits256 *d;
	struct digit_sums *to;
	size_t at;
};
INLINE const struct strip256 *strip_of(const struct product *m, int t)
{
	return (const void *)(m->strip + (size_t)t*m->strip_stride);
}
/* With only one token, its digits stay in registers for several rows. */
INLINE digits256 high_of(const struct product *m, int t)
{
	return m->n_tokens == 1 ? m->d[0] : d_load(strip_of(m, t)->in[m->order].high);
}
INLINE digits256 low_of(const struct product *m, int t)
{
	return m->n_tokens == 1 ? m->d[1] : d_load(strip_of(m, t)->in[m->order].low);
}
/* Stores the lanes of token t's sum. */
INLINE void put_sum(const struct product *m, int t, __m256i a)
{
	_mm256_store_si256((void *)(m->to->s + t*(DIGITS_SUMS/m->n_tokens) + 8*m->at), a);
}
typedef void block_fn(const void *block, const struct product *m);

#include "digits_k.h"

/* A type's super-block */
struct super {
	size_t bytes, at_d;
	int has_min;                    /* dmin follows d */
	size_t at_heads;                /* offset of the sixteen bytes from which `scales`, if not NULL, makes m */
};
/* A row's block. w: its bytes */
INLINE void super_sums(const char *w, const struct product *m, struct super type, block_fn *block)
{
	block(w, m);
	if (type.has_min) memcpy(m->to->d.pair + m->at, w + type.at_d, 4);
	else memcpy(m->to->d.half + m->at, w + type.at_d, 2);
}
INLINE void supers_by_rows(int n_tokens, const struct digits_part *part, struct digit_sums *to, struct super type,
	enum digits_order order, heads_fn *scales, block_fn *block)
{
	const struct digits_part p = *part;
	for (struct walk at = walk_from(&p); at.r < p.n_rows; walk_on(&at, &p)) {
		const char *w = at.w, *later = at.later.w, *soon = at.soon.w, *strip = p.strip;
		for (size_t b = 0; b < p.n; b++, strip += sizeof(struct strip256)) {
			const struct strip256 *x = (const void *)strip;
			const digits256 d[2] = { d_load(x->in[order].high), d_load(x->in[order].low) };
			const struct product m = { n_tokens, strip, p.strip_stride, order, d, to, b*ROWS + at.r };
			digits_fetch(later, soon, type.bytes);
			if (scales && b%HEADS == 0)
				heads_of_blocks(w + type.at_heads, type.bytes, p.n - b < HEADS ? p.n - b : HEADS,
					scales, to->m + 16*m.at, 16*ROWS);
			super_sums(w, &m, type, block);
			w += type.bytes;
			later += type.bytes;
			soon += type.bytes;
		}
	}
}
INLINE void supers_by_blocks(int n_tokens, const struct digits_part *part, struct digit_sums *to, struct super type,
	enum digits_order order, heads_fn *scales, block_fn *block)
{
	const struct digits_part p = *part;
	for (size_t b = 0; b < p.n; b++) {
		const char *w = p.w + b*type.bytes, *strip = p.strip + b*sizeof(struct strip256),
			*near = p.near + b*type.bytes*ROWS;
		const struct strip256 *x = (const void *)strip;
		if (scales) heads_of_blocks(w + type.at_heads, p.w_stride, p.n_rows, scales, to->m + 16*b*ROWS, 16);
		const digits256 d[2] = { d_load(x->in[order].high), d_load(x->in[order].low) };
		for (size_t r = 0, at = b*ROWS; r < p.n_rows; r++, at++, w += p.w_stride, near += type.bytes) {
			const struct product m = { n_tokens, strip, p.strip_stride, order, d, to, at };
			fetch_lines(near, p.w_stride, type.bytes, p.fetch);
			super_sums(w, &m, type, block);
		}
	}
}
INLINE void supers(int n_tokens, const struct digits_part *p, struct digit_sums *to, struct super type,
	enum digits_order order, heads_fn *scales, block_fn *block)
{
	if (BY_ROWS) supers_by_rows(n_tokens, p, to, type, order, scales, block);
	else supers_by_blocks(n_tokens, p, to, type, order, scales, block);
}

/* Of bytes, which are signed, and of FP4's levels */
enum { BIAS_BYTE = 128, BIAS_FP4 = 12 };
#include "digits_units.h"
#if defined DIGITS_RUNS
#include "digits_runs.h"
#endif

/* ---- the table ---- */

/* Functions for 1, 2 and 4 tokens */
#define SUMS(name, call) \
static void name##_1(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 1 }; \
	call; \
} \
static void name##_2(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 2 }; \
	call; \
} \
static void name##_4(const struct digits_part *p, struct digit_sums *to) \
{ \
	enum { T = 4 }; \
	call; \
}
#define SUPER(name, order, scales, ...) \
SUMS(name, supers(T, p, to, (struct super){ sizeof(struct name), offsetof(struct name, d), __VA_ARGS__ }, order, \
	scales, name##_block))
#define UNITS(name, ...) \
SUMS(name, units(T, p, to, (struct unit){ sizeof(struct name), __VA_ARGS__ }, name##_codes))
/* Blocks of 32, or of 64 in two parts */
#if defined DIGITS_RUNS
#define BLOCKS(name, ...) \
static const struct unit name##_unit = { sizeof(struct name), __VA_ARGS__ }; \
static void name##_last(const struct digits_part *p, int32_t *s, struct digit_sums *to) \
{ \
	last_run(p, s, to, name##_unit, name##_pair); \
} \
SUMS(name, runs(T, p, to, name##_unit, name##_pair, name##_last))
enum { RUNS = 1 };
#else
#define BLOCKS UNITS
enum { RUNS = 0 };
#endif

SUPER(q2_k, ORDER_Q2_K(T), NULL, .has_min = 1)
SUPER(q3_k, order_q3_k, q3_k_heads, .at_heads = AT_Q3_K)
SUPER(q4_k, ORDER_Q4_K, q4_k_sixes, .has_min = 1)
SUPER(q5_k, ORDER_CHAINS, q4_k_sixes, .has_min = 1)
SUPER(q6_k, ORDER_SIXTEENS, NULL, .has_min = 0)
SUPER(iq4_xs, ORDER_PAIRS, NULL, .has_min = 0)
BLOCKS(q4_0, .blocks = 1, .parts = 1, .scale = 2, .bias = 8, .most = 15)
BLOCKS(q4_1, .blocks = 1, .parts = 1, .scale = 4, .most = 15)
BLOCKS(q5_0, .blocks = 1, .parts = 1, .scale = 2, .bias = 16, .most = 31)
BLOCKS(q5_1, .blocks = 1, .parts = 1, .scale = 4, .most = 31)
BLOCKS(q8_0, .blocks = 1, .parts = 1, .scale = 2, .bias = BIAS_BYTE, .most = 255, .side_by_side = 1)
BLOCKS(iq4_nl, .blocks = 1, .parts = 1, .scale = 2, .bias = BIAS_BYTE, .most = 241)
BLOCKS(mxfp4, .blocks = 1, .parts = 1, .scale = 1, .bias = BIAS_FP4, .most = 24)
BLOCKS(nvfp4, .blocks = 2, .parts = 2, .scale = 2, .bias = BIAS_FP4, .most = 24)
UNITS(q1_0, .blocks = 4, .parts = 1, .scale = 2, .bias = 1, .most = 2, .even = EVEN_Q1_0)
UNITS(q2_0, .blocks = 2, .parts = 1, .scale = 2, .bias = 1, .most = 3)

#define OF(name) { name##_1, name##_2, name##_4 }
#include "digits_settle.h"
_Static_assert(SUPERS*ROWS*8 <= DIGITS_SUMS && SUPERS <= (int)DIGITS_SUPERS, "sums of super-blocks");
const struct digits_table DIGITS_TABLE = { ROWS, SUPERS, READS, settle, {
	[GGU_TYPE_Q2_K] = { OF(q2_k), DIGITS_PAIR_16, 1 },
	[GGU_TYPE_Q3_K] = { OF(q3_k), DIGITS_HALF, 1 },
	[GGU_TYPE_Q4_K] = { OF(q4_k), DIGITS_PAIR, 1 },
	[GGU_TYPE_Q5_K] = { OF(q5_k), DIGITS_PAIR, 1 },
	[GGU_TYPE_Q6_K] = { OF(q6_k), DIGITS_HALF, 1 },
	[GGU_TYPE_IQ4_XS] = { OF(iq4_xs), DIGITS_HALF, 1 },
	[GGU_TYPE_Q4_0] = { OF(q4_0), DIGITS_HALF, 1, .runs = RUNS },
	[GGU_TYPE_Q4_1] = { OF(q4_1), DIGITS_PAIR, 1, .runs = RUNS },
	[GGU_TYPE_Q5_0] = { OF(q5_0), DIGITS_HALF, 1, .runs = RUNS },
	[GGU_TYPE_Q5_1] = { OF(q5_1), DIGITS_PAIR, 1, .runs = RUNS },
	[GGU_TYPE_Q8_0] = { OF(q8_0), DIGITS_HALF, 1, .runs = RUNS, .alone = DIGITS_Q8_0_ALONE },
	[GGU_TYPE_IQ4_NL] = { OF(iq4_nl), DIGITS_HALF, 1, .runs = RUNS },
	[GGU_TYPE_MXFP4] = { OF(mxfp4), DIGITS_EXPONENT, 1, .runs = RUNS },
	[GGU_TYPE_NVFP4] = { OF(nvfp4), DIGITS_SMALL, 1, .runs = 2*RUNS },
	[GGU_TYPE_Q1_0] = { OF(q1_0), DIGITS_HALF_4, 1 },
	[GGU_TYPE_Q2_0] = { OF(q2_0), DIGITS_HALF_2, 1 },
} };
static void mul(const struct quant_mul *m, enum mul_kind kind, size_t t0, size_t n_t, size_t o0, size_t n_o,
	void *work)
{
	digits_mul(&BOOKS_TABLE, &DIGITS_TABLE, m, kind, t0, n_t, o0, n_o, work);
}
static void pack(size_t block, size_t n_in, const float *x, void *strip)
{
	digits_pack(DIGITS_TABLE.reads | BOOKS_TABLE.reads, block, n_in, x, strip);
}
const struct row_table ROW_TABLE = { digits_strip_bytes, pack, digits_unpack, mul };
