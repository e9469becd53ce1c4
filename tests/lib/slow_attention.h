/* SPDX-License-Identifier: MIT
 * slow_attention.h - attention of one query by the contract of quant/attn.h, number by number. */
#ifndef TESTS_SLOW_ATTENTION_H
#define TESTS_SLOW_ATTENTION_H
#include "../../quant/attn.h"

/* Query q of head `head`, at pos, over the positions from..to - 1, whose keys and values are rows of k and v, as
 * floats: out[v_dim]. Shares exp and tanh with quant/vec.h, and nothing else. */
void slow_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const float *k, size_t k_stride, const float *v, size_t v_stride, float *out);
/* The same as anyone would write it, in double. */
void exact_attention(const struct attn *a, const float *q, size_t head, size_t pos, size_t from, size_t to,
	const float *k, size_t k_stride, const float *v, size_t v_stride, double *out);
/* from..*to - 1 are the positions that a token at pos sees. */
size_t slow_range(const struct attn *a, size_t n_pos, size_t pos, size_t *to);

#endif
