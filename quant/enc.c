/* SPDX-License-Identifier: MIT
 * enc.c - quant_encode: finds the encoder of a type in the table of the selected instruction set; and what is
 * minimised, by type. */
#include <math.h>
#include <string.h>
#include "../libgguf/types.h"
#include "blocks.h"
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

/* Types with code books doubt the importances less: that does not measurably change a model, and it changes the error
 * by a quarter of a percent. scripts/fit-objective measures the divergence with other numbers. */
static const struct { uint32_t type; float doubt, prior_with, prior_without, lift; } objectives[] = {
	{ GGU_TYPE_Q2_K, 0.22f, 0.25f, 0.35f, 0 },
	{ GGU_TYPE_Q3_K, 0.22f, 0, 0.25f, 0.2f },
	{ GGU_TYPE_IQ1_S, 0.11f, 0, 0, 0.87f },
	{ GGU_TYPE_IQ1_M, 0.11f, 0, 0, 0.67f },
	{ GGU_TYPE_IQ2_XXS, 0.11f, 0, 0, 0.72f },
	{ GGU_TYPE_IQ2_XS, 0.11f, 0, 0, 0.76f },
	{ GGU_TYPE_IQ2_S, 0.11f, 0, 0, 0.87f },
	{ GGU_TYPE_IQ3_XXS, 0.11f, 0, 0, 0.5f },
	{ GGU_TYPE_IQ3_S, 0.11f, 0, 0, 0.8f },
	{ GGU_TYPE_TQ1_0, 0.22f, 0, 0, 0.75f },
	{ GGU_TYPE_TQ2_0, 0.22f, 0, 0, 0.75f },
	{ GGU_TYPE_Q2_0, 0.22f, 0, 0, 0.75f },
};
struct quant_objective quant_objective_default(uint32_t type, bool weighed)
{
	for (size_t i = 0; i < sizeof objectives/sizeof *objectives; i++)
		if (objectives[i].type == type)
			return (struct quant_objective){ objectives[i].doubt, weighed ? objectives[i].prior_with :
				objectives[i].prior_without, objectives[i].lift };
	return (struct quant_objective){ 0.22f, 0, 0 };
}

/* The factor that brings the mean importance of a row to 1, at most 1e38; 0 if no importance is above 0. */
static float importance_gain(const float *importance, size_t cols)
{
	double s = 0, g;
	for (size_t j = 0; j < cols; j++) s += importance[j] > 0 && importance[j] < INFINITY ? importance[j] : 0;
	g = s > 0 ? (double)cols/s : 0;
	return g < 1e38 ? (float)g : 1e38f;
}
/* The share of the doubt for importances with a mean of 1: 1 if they are equal or there are none, and little if the
 * mean comes from a few columns, next to which the others would all look alike with the full doubt. It is the fourth
 * power of the mean of their fourth roots. A log-normal spread by sigma gives e^(-3/8 sigma^2). */
static float importance_spread(const float *importance, size_t cols, float gain)
{
	enum { LANES = 16 };
	float s[LANES] = { 0 }, m = 0;
	if (!(gain > 0)) return 1;
	for (size_t j = 0; j < cols; j++) {
		float a = importance[j]*gain;
		s[j%LANES] += sqrtf(sqrtf(a > 0 && a < 1e30f ? a : 0));
	}
	for (int l = 0; l < LANES; l++) m += s[l];
	m /= (float)cols;
	m *= m;
	return m < 1 ? m*m : 1;
}
void quant_weigh(const struct quant_objective *o, const float *importance, size_t cols, float *weights)
{
	const float least = 1e-6f, most = 1e9f, gain = importance_gain(importance, cols);
	const float doubt = fmaxf(o->doubt*importance_spread(importance, cols, gain), least);
	for (size_t j = 0; j < cols; j++) {
		float a = importance[j]*gain;
		weights[j] = !(a > 0) ? doubt : a < most ? a + doubt : most;
	}
}

static bool same_values(const float *x, const float *y, size_t n)
{
	while (n > 0 && x[n - 1] == y[n - 1]) n--;
	return n == 0;
}
/* Encodes a block of weights that are on the type's lattice, such as those of a decoded file, without any error. false:
 * they are not; `to` is unchanged. to NULL: only checks. */
static bool exact_block(const struct coder *c, uint32_t type, const float *x, void *to)
{
	enum { WEIGHTS = 256 };                 /* of the largest block */
	union {
#define BLOCK(NAME, name, kind, part, has_min) struct name name;
#include "types.inc"
#undef BLOCK
	} block;
	const struct ggu_type_info *t = ggu_type_info(type);
	float y[WEIGHTS];
	for (int negated = 0; negated < 2; negated++) {
		const enum exact_result r = quant_enc_table->exact(c, x, negated, &block);
		if (r == EXACT_NO_LATTICE) return false;
		if (r == EXACT_NOT_FOUND) continue;
		quant_decode(type, &block, y, t->block_weights);
		if (!same_values(x, y, t->block_weights)) continue;
		if (to) memcpy(to, &block, t->block_bytes);
		return true;
	}
	return false;
}
size_t enc_exact_blocks(uint32_t type, const float *x, size_t n_blocks, void *dst)
{
	const struct ggu_type_info *t = ggu_type_info(type);
	const struct coder *c = quant_enc_table->coder[type];
	size_t n = 0;
	for (size_t b = 0; c && b < n_blocks; b++)
		n += exact_block(c, type, x + b*t->block_weights, dst ? (char *)dst + b*t->block_bytes : NULL);
	return n;
}

enum ggu_status quant_encode(uint32_t type, const struct quant_objective *o, const float *x, const float *weights,
	size_t rows, size_t cols, int effort, void *dst)
{
	const struct quant_objective usual = quant_objective_default(type, weights != NULL);
	struct how how;
	if (!quant_can_encode(type)) return GGU_ERR_UNSUPPORTED;
	if (!o) o = &usual;
	if (effort < QUANT_EFFORT_MIN) effort = QUANT_EFFORT_MIN;
	if (effort > QUANT_EFFORT_MAX) effort = QUANT_EFFORT_MAX;
	how = (struct how){ effort - 1, o->prior, o->lift };
	quant_enc_table->fn[type](dst, x, weights, rows, cols, &how);
	enc_exact_blocks(type, x, rows*cols/ggu_type_info(type)->block_weights, dst);
	return GGU_OK;
}
