/* SPDX-License-Identifier: MIT
 * attn_internal.h - the interface between a task of attention (attn.c) and the functions of an instruction set
 * (attn_text.h).
 *
 * A task has up to ATTN_ROWS rows, each one query head of one token: key-value heads slowest, then tokens. The rows of
 * a head are processed in groups of up to ATTN_GROUP, or in a single group if the instruction set can take them all:
 * with few rows keys and values come from memory, and of two groups the first would wait for them while the second
 * would not. The task walks over the tiles of a split and brings each into the following form, all float32, except that
 * queries for codes are integers (attn_outer.h):
 *
 *   q  [groups of rows][k_wide][rows of the group]       one query value is next to those it is used with
 *   k  [k_wide][ATTN_BLOCK]                              as keys are in the cache: lanes are positions
 *   s  [rows][ATTN_BLOCK]                                scores, then weights
 *   v  [ATTN_BLOCK][v_wide]                              lanes are dimensions
 *   a  [rows][a_wide]                                    sums of the split: v_wide of values, then those of mins
 *
 * k_wide and v_wide are k_dim and v_dim rounded up to whole vectors. */
#ifndef QUANT_ATTN_INTERNAL_H
#define QUANT_ATTN_INTERNAL_H
#include "attn.h"

enum { ATTN_ROWS = 192, ATTN_GROUP = 6, ATTN_MOST = 8, ATTN_LANES = 16 };
/* Of I16: the most numbers that share a scale, and the largest magnitude of their integers */
enum { ATTN_SHARE = 128, ATTN_AMAX = 4095 };

struct attn_row {
	const float *q;
	float *out;
	size_t head, pos, from, to;     /* positions seen: from..to - 1 */
};
/* What a row has of some positions besides the sums over values: the largest score, and the sum of weights in lanes,
 * which at the end is in l[0]. */
struct attn_sums { float m, l[ATTN_LANES]; };

struct attn_task {
	const struct attn *a;
	size_t kv, first;               /* the first of its key-value heads; the first row of the current one */
	size_t n, head_rows, group;     /* rows; rows of each head; rows of a group */
	size_t k_wide, v_wide, a_wide;
	size_t head_bytes, k_bytes, v_bytes;    /* of a tile; of its keys; of its values at a position */
	const char *tile;               /* the current one */
	struct attn_row row[ATTN_ROWS];
	struct attn_sums split[ATTN_ROWS], all[ATTN_ROWS];      /* of this split; of the splits before it */
	float m[ATTN_ROWS + ATTN_LANES];        /* largest scores of this split; final when it is done */
	float *q, *k, *v, *s;
	float *split_a, *all_a;
};

struct attn_table {
	size_t most;                    /* rows of a group if a head has no more: at most ATTN_MOST */
	/* Rounds n numbers, at most ATTN_SHARE, to integers times a scale, which is returned, and adds zeros up to
	 * whole vectors. q has room for ATTN_SHARE. */
	float (*integers)(const float *x, size_t n, int16_t *q);
	void (*pack_q)(struct attn_task *t);
	/* Processes rows r0..r1 - 1, of one head, with the tile of positions p..; head: its keys and values; next:
	 * those of the following tile, or NULL, which are prefetched meanwhile. */
	void (*tile)(struct attn_task *t, const char *head, const char *next, size_t p, size_t r0, size_t r1);
	void (*end_split)(struct attn_task *t, size_t r);       /* l[0] becomes the sum of l; mins are added */
	/* Joins the sums of another split, *x and x_a, into *to and a, which has v_wide of them. */
	void (*join)(struct attn_sums *to, float *a, const struct attn_sums *x, const float *x_a, size_t v_wide);
	/* Divides a by the sum of weights and stores the result, after the sink, if there is one. */
	void (*end)(const struct attn_sums *x, const float *a, const float *sink, size_t v_dim, float *out);
};
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct attn_table quant_attn_##attn;
#include "sets.inc"
#undef SET
/* The table in use; quant_select sets it. */
extern const struct attn_table *quant_attn_table;

/* A head in a block: keys, then values. */
size_t attn_head_bytes(const struct attn_shape *s);

#endif
