/* SPDX-License-Identifier: MIT
 * slow_gram.h - what gram.h adds up, column by column and in double. */
#ifndef SLOW_GRAM_H
#define SLOW_GRAM_H
#include <string.h>
#include "../../quant/gram.h"

enum { SLOW_ROW = GRAM_TOKENS/32*34 };
/* Column j of x times by, as it is met: taken to Q8_0 and to the integers of activations. */
static void slow_gram_column(const float *x, size_t stride, size_t n_tokens, size_t j, const float *by, float *code,
	float *act)
{
	_Alignas(64) static char packed[1 << 14];
	const size_t n = (n_tokens + 31)/32*32;
	float v[GRAM_TOKENS] = { 0 };
	char bytes[SLOW_ROW];
	for (size_t t = 0; t < n_tokens; t++) v[t] = by[t]*x[t*stride + j];
	quant_encode(GGU_TYPE_Q8_0, NULL, v, NULL, 1, n, QUANT_EFFORT_DEFAULT, bytes);
	quant_decode(GGU_TYPE_Q8_0, bytes, code, n);
	quant_act_pack(quant_act_of(GGU_TYPE_Q8_0), v, n, 1, n, 0, 1, packed);
	quant_act_unpack(quant_act_of(GGU_TYPE_Q8_0), packed, 1, n, 0, act);
	for (size_t t = n; t < GRAM_TOKENS; t++) code[t] = act[t] = 0;
}
/* to[i*n + j] += their sum, for j <= i; n columns */
static void slow_gram(const float *x, size_t stride, size_t n_tokens, size_t n, const float *by, double *to)
{
	float (*code)[GRAM_TOKENS] = malloc(n*sizeof *code), (*act)[GRAM_TOKENS] = malloc(n*sizeof *act);
	for (size_t j = 0; j < n; j++) slow_gram_column(x, stride, n_tokens, j, by, code[j], act[j]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j <= i; j++)
			for (size_t t = 0; t < GRAM_TOKENS; t++) to[i*n + j] += (double)act[i][t]*code[j][t];
	free(code);
	free(act);
}

#endif
