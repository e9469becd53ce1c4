/* SPDX-License-Identifier: MIT
 * rope.h - rotary positions: how a description gives them, and sines and cosines for the rows of a batch.
 *
 *   rope       style: half or interleaved [dims base linear original magnitude when: EXPR]
 *              [divide divide_long: TENSOR or {by: TENSOR, [when: EXPR]}]
 *              [yarn: {factor [beta_fast beta_slow truncate when]: EXPR}]
 *
 * Pair j of dims/2 turns by position * base^(-2j/dims) / divisor[j], not at all if that is huge. The divisors for long
 * contexts (`divide_long`) apply to every position of a sequence that is longer than `original`. The length of the
 * sequence decides, not the room set aside for it. */
#ifndef MODEL_EVAL_ROPE_H
#define MODEL_EVAL_ROPE_H
#include <stdbool.h>
#include <stddef.h>

struct rope {
	int interleaved;                /* pairs (2j, 2j+1), else (j, j + dims/2) */
	size_t dims;
	double base, linear;            /* every angle is divided by linear */
	const float *divisor;           /* [dims/2] or NULL */
	const float *long_divisor;      /* [dims/2]: used instead in sequences longer than `original` */
	size_t original;                /* context the model was first trained on; 0: unknown */
	double magnitude;               /* factor of sin and cos; 0: what the scaling implies */
	double yarn, beta_fast, beta_slow;      /* yarn: scaling factor; 0: no yarn */
	bool truncate;                  /* yarn's ramp begins and ends at whole pairs */
};
bool rope_same(const struct rope *a, const struct rope *b);
/* freq[dims/2]: what a position is multiplied by to get the angle */
void rope_frequencies(const struct rope *r, bool is_long, float *freq);
/* turn[dims]: cos of the pairs at this position, then sin */
void rope_turn(const struct rope *r, const float *freq, size_t position, float *turn);
/* Turns the first dims of a head. */
void rope_apply(const struct rope *r, const float *turn, float *x);

#endif
