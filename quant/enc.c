/* SPDX-License-Identifier: MIT
 * enc.c - quant_encode: the way from a type to its encoder in the table of the chosen instruction set. */
#include "enc.h"

const struct enc_table *quant_enc_table = &quant_enc_c;

bool quant_can_encode(uint32_t type)
{
	return type < GGU_TYPE_COUNT && quant_enc_c.fn[type];
}

bool quant_needs_importance(uint32_t type)
{
	switch (type) {
	case GGU_TYPE_IQ1_S: case GGU_TYPE_IQ1_M:
	case GGU_TYPE_IQ2_XXS: case GGU_TYPE_IQ2_XS: case GGU_TYPE_IQ2_S: case GGU_TYPE_IQ3_XXS:
		return true;
	default:
		return false;
	}
}

void quant_encode(uint32_t type, const float *x, const float *importance, size_t rows, size_t cols, int effort, void *dst)
{
	if (!quant_can_encode(type)) return;
	if (effort < QUANT_EFFORT_MIN) effort = QUANT_EFFORT_MIN;
	if (effort > QUANT_EFFORT_MAX) effort = QUANT_EFFORT_MAX;
	quant_enc_table->fn[type](dst, x, importance, rows, cols, effort);
}
