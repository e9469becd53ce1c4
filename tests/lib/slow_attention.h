/* SPDX-License-Identifier: MIT
 * slow_attention.h - attention of one query by the contract of quant/attn.h, number by number. */
#ifndef TESTS_SLOW_ATTENTION_H
#define TESTS_SLOW_ATTENTION_H
#include "../../quant/attn.h"
#include "slow.h"

/* Keys and values of a head at position 0, and the distance between rows; blocks also as integers, otherwise NULL. */
struct slow_past {
	const float *k, *v;
	const struct slow_weight *k_codes, *v_codes;
	size_t k_stride, v_stride;
};
/* Numbers as they are cached in I16: d*code. */
void slow_integers(const float *x, size_t n, struct slow_weight *w);
/* Query q of head `head` at pos, over positions from..to - 1: out[v_dim]. It shares exp and tanh with quant/vec.h, and
 * nothing else. */
void slow_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const struct slow_past *x, float *out);
/* The same as anyone would write it, in double, except that queries that meet blocks are rounded as they are.
 * slack[v_dim]: how far off the rounding of weights that meet blocks may be. */
void exact_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const struct slow_past *x, double *out, double *slack);
/* from..*to - 1: the positions that a token at pos sees. */
size_t slow_range(const struct attn *a, size_t n_pos, size_t pos, size_t *to);

#endif
