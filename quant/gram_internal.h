/* SPDX-License-Identifier: MIT
 * gram_internal.h - the two steps of gram.c, a table for each instruction set.
 *
 * Codes are in panels of GRAM_COLUMNS columns, in words of 32 bits. A word has as many tokens of a column as an
 * instruction set multiplies and adds at once: four codes of eight bits or two of sixteen. A panel has the first word
 * of each of its columns, a cache line of them, then the second of each, and so on, so that it is read sequentially.
 * Registers of columns are multiplied with a word of another column in all lanes, and both are read from these
 * panels. */
#ifndef QUANT_GRAM_INTERNAL_H
#define QUANT_GRAM_INTERNAL_H
#include "gram.h"

enum { GRAM_COLUMNS = 16, GRAM_PACKED = 2*GRAM_COLUMNS };
struct gram_panels {
	size_t n_words;                 /* of a column */
	int32_t *words;                 /* [panels][n_words][GRAM_COLUMNS] */
	float *scale;                   /* [panels][GRAM_COLUMNS] */
	int32_t *sum;                   /* the same, of a column's codes */
};
struct gram_table {
	size_t in_word;                 /* tokens */
	/* packs GRAM_PACKED columns from `first` on; columns that do not exist become zeros */
	void (*pack)(const struct gram *g, size_t first, const struct gram_panels *p);
	/* adds n rows of the triangle from `first` on; n and first are multiples of 16 */
	void (*add)(const struct gram *g, const struct gram_panels *p, size_t first, size_t n);
};
#define SET(name, NAME, CPU, codes, row, panel_32, panel_256, floats, enc, vec, attn, gram) \
	extern const struct gram_table quant_gram_##gram;
#include "sets.inc"
#undef SET
/* The table in use; quant_select sets it. */
extern const struct gram_table *quant_gram_table;

#endif
