/* SPDX-License-Identifier: MIT
 * coded.h - weights that a checkpoint stores as codes and scales, as tensors of floats.
 *
 * What `quantization_config` calls its method says how the tensors are called that make up a weight (coded.c). One
 * tensor of F32 takes their place in the checkpoint; checkpoint_read computes its elements (coded_read.c):
 *
 *   weight = scale*(code - zero)       in float32, of which nothing but the product is rounded
 *
 * Codes are a matrix as it lies in the file, a byte each, or packed along its rows or its columns. Scales and zeros are
 * matrices for blocks of codes; or a list says which of their rows, or columns, belongs to each row, or column, of
 * codes. A tensor of three dimensions is so many matrices.
 *
 * Sources of the formats: transformers (FP8), compressed-tensors, NVIDIA ModelOpt, GPTQModel, AutoAWQ,
 * AutoRound. */
#ifndef CONVERT_CODED_H
#define CONVERT_CODED_H
#include "checkpoint.h"
#include "config.h"

enum { CODED_PIECE = 2048 };             /* most elements that are computed at once; most groups of columns */
enum coded_kind {
	CODED_INTEGER,                  /* zero is subtracted */
	CODED_E4M3, CODED_E5M2,         /* floats of 8 bits */
	CODED_E2M1,                     /* floats of 4 bits */
};
/* Rows, or columns, of numbers of 1 to 8 bits, as streams of bits: from the lowest bit of an integer to its highest,
 * and on in the next one */
struct coded_packed {
	struct source_tensor in;        /* name: NULL if there is none */
	unsigned bits;                  /* of a number, without sign unless `in` has bytes with one */
	bool down;                      /* a stream is a column, not a row */
	const uint8_t *place;           /* of each number among eight, if not in order */
	uint64_t width;                 /* integers of a row */
};
struct coded {
	enum coded_kind kind;
	struct coded_packed code, zero;
	struct source_tensor scale, group;      /* name: NULL if there is none */
	uint64_t rows, columns;         /* of a matrix of codes */
	uint64_t block_rows, block_columns;     /* of codes with a common scale */
	uint64_t scale_rows, scale_columns;     /* of a matrix of scales */
	bool shared;                    /* one matrix of scales for all */
	bool grouped_rows, grouped_columns;     /* `group` has the row, or column, of the scale */
	int bias;                       /* what all zeros lack, or the zero if there are none */
	float factor;                   /* of all scales */
	bool divided;                   /* they are divided by it */
};

/* Does config.json say that weights are coded, in a way that coded_open knows? root may be NULL. */
bool coded_is(const struct config *c);
/* Replaces the tensors of each coded weight by one, and removes those that are about activations. GGU_ERR_FORMAT,
 * GGU_ERR_UNSUPPORTED: the parts of a weight do not fit each other, or are of unknown types. */
enum ggu_status coded_open(struct checkpoint *source, const struct config *c, struct ggu_error *err);
void coded_free(struct coded *k);
/* Elements [from, from + n) in the order of the file. From any thread. */
enum ggu_status coded_read(const struct checkpoint *source, const struct coded *k, uint64_t from, float *to, size_t n,
	struct ggu_error *err);

#endif
