/* SPDX-License-Identifier: MIT
 * conv.h - the convolution over a few tokens that recurrent operators begin with: its part of their mappings, and where
 * a state keeps the rows before a batch. Private to model/eval.
 *
 *   conv: TENSOR; [conv_bias: TENSOR] [kernel: EXPR, by default what conv has for each channel] */
#ifndef MODEL_EVAL_CONV_H
#define MODEL_EVAL_CONV_H
#include "backend.h"
#include "build.h"

struct convolution {
	struct vector w, bias;
	size_t n, width, kept;          /* channels; see struct conv */
};
/* Rows of a table of fields whose struct has a struct convolution at `at`. */
#define CONV_FIELDS(at) \
	{ "conv", FIELD_VECTOR, (at) + offsetof(struct convolution, w), .flags = FIELD_NEEDED }, \
	{ "conv_bias", FIELD_VECTOR, (at) + offsetof(struct convolution, bias) }, \
	{ "kernel", FIELD_SIZE, (at) + offsetof(struct convolution, width), 0, 1, SCAN_MAX_WIDTH, \
		.flags = FIELD_MAY_LACK }
/* Checks that it has n channels, and adds its rows to what a state keeps. */
enum ggu_status conv_build(struct builder *b, const struct yaml_node *map, struct convolution *c, size_t n);
static inline double conv_macs(const struct convolution *c) { return (double)c->n*(double)c->width; }
/* In place, of the channels at x in rows `stride` floats apart. */
void conv_run(const struct convolution *c, struct run *r, size_t x, size_t stride);

#endif
