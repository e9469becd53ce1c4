/* SPDX-License-Identifier: MIT
 * coded.h - weights that a checkpoint stores as codes and scales, as tensors of floats.
 *
 * What `quantization_config` calls its method says how the tensors are called that make up a weight (coded.c). One
 * tensor of F32 takes their place in the checkpoint; checkpoint_read computes its elements (coded_read.c), or one
 * thread reads the bytes of a box of codes and others compute what they stand for:
 *
 *   weight = scale*(code - zero)       in float32, of which nothing but the product is rounded
 *   weight = scale*code + bias         of MLX: the product is rounded, then the sum
 *
 * Codes are a matrix as it lies in the file, a byte each, or packed along its rows or its columns. Scales and zeros are
 * matrices for blocks of codes; or a list says which of their rows, or columns, belongs to each row, or column, of
 * codes. A tensor of three dimensions is so many matrices. The file may say what codes stand for, and scales may be
 * codes themselves (coded_bnb.c).
 *
 * Sources of the formats: transformers (FP8), compressed-tensors, NVIDIA ModelOpt, GPTQModel, AutoAWQ, AutoRound,
 * bitsandbytes, MLX. */
#ifndef CONVERT_CODED_H
#define CONVERT_CODED_H
#include "checkpoint.h"
#include "config.h"

enum { CODED_PIECE = 2048 };             /* most elements that are computed at once; most groups of columns */
enum coded_kind {
	CODED_INTEGER,                  /* zero is subtracted */
	CODED_E4M3, CODED_E5M2,         /* floats of 8 bits */
	CODED_E2M1,                     /* floats of 4 bits */
	CODED_MAPPED,                   /* the file says what 4 bits stand for */
};
/* scale = scale_level[code]*factor[i/block] + offset, of number i in a line of scales that are codes of 8 bits */
struct coded_map {
	float level[16];                /* what codes of weights stand for */
	float scale_level[256], offset;
	uint64_t block;                 /* 0: scales are floats */
	float factor[];
};
/* Rows, or columns, of numbers of 1 to 8 bits, as streams of bits: from the lowest bit of an integer to its highest,
 * and on in the next one */
struct coded_packed {
	struct source_tensor in;        /* name: NULL if there is none */
	unsigned bits;                  /* of a number, without sign unless `in` has bytes with one */
	bool down;                      /* a stream is a column, not a row */
	const uint8_t *place;           /* of each number among eight, if not in order */
	bool high_first;                /* of two numbers in a byte, the first one is higher */
	uint64_t width;                 /* integers of a row */
};
/* How many 32-bit integers a stream of n numbers takes */
static inline uint64_t coded_words(uint64_t n, unsigned bits) { return n/32*bits + (n%32*bits + 31)/32; }
struct coded {
	enum coded_kind kind;
	struct coded_packed code, zero;
	struct source_tensor scale, bias, group;        /* name: NULL if there is none */
	struct coded_map *map;          /* of CODED_MAPPED */
	uint64_t rows, columns;         /* of a matrix of codes */
	bool linear;                    /* it stands for [out][in], even if the model's own weight is [in][out] */
	uint64_t block_rows, block_columns;     /* of codes with a common scale */
	uint64_t scale_rows, scale_columns;     /* of a matrix of scales */
	bool shared;                    /* one matrix of scales for all */
	bool grouped_rows, grouped_columns;     /* `group` has the row, or column, of the scale */
	int lack;                       /* what all zeros lack, or the zero if there are none */
	float factor;                   /* of all scales */
	bool divided;                   /* they are divided by it */
};

/* Does config.json say that weights are coded, in a way that coded_open knows? c->root may be NULL. */
bool coded_is(const struct config *c);
/* Replaces the tensors of each coded weight by one, and removes those that are about activations. GGU_ERR_FORMAT,
 * GGU_ERR_UNSUPPORTED: the parts of a weight do not fit each other, or are of unknown types. */
enum ggu_status coded_open(struct checkpoint *source, const struct config *c, struct ggu_error *err);
void coded_free(struct coded *k);
/* Elements [from, from + n) in the order of the file. From any thread. */
enum ggu_status coded_read(const struct checkpoint *source, const struct coded *k, uint64_t from, float *to, size_t n,
	struct ggu_error *err);

/* Lines are the rows of all matrices, one after the other. No box is empty. */
struct coded_box { uint64_t line, n_lines, column, n_columns; };
/* What the file has of a box: codes, and scales, zeros and groups for them. Nothing changes it, so any number of
 * threads may compute elements. */
struct coded_raw;
/* The most bytes that it may take; UINT64_MAX: too many to count */
uint64_t coded_raw_bytes(const struct coded *k, const struct coded_box *b);
enum ggu_status coded_fetch(const struct checkpoint *source, const struct coded *k, const struct coded_box *b,
	struct coded_raw **out, struct ggu_error *err);
void coded_raw_free(struct coded_raw *r);
/* A thread that computes, with the scales that it used last */
struct coded_reader {
	const struct coded_raw *raw;
	float table[256];               /* what codes stand for */
	uint64_t line, first;           /* n scales and zeros from column `first` of a line of scales on */
	size_t n;
	float scale[CODED_PIECE], zero[CODED_PIECE];    /* zero: the bias, if there is one */
};
void coded_reader_init(struct coded_reader *r, const struct coded_raw *raw);
/* Elements [from, from + n), all of them in the box */
void coded_compute(struct coded_reader *r, uint64_t from, float *to, size_t n);

#endif
