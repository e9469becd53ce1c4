/* SPDX-License-Identifier: MIT
 * calibrate.h - gguf-quantize --calibrate: tensors quantized one after another in the order in which the model uses
 * them, each for the inputs that the part quantized so far gives it. Programs only; all failures exit 2 with a
 * message. */
#ifndef TOOLS_CALIBRATE_H
#define TOOLS_CALIBRATE_H
#include "../quant/remake.h"

struct calibrate_options {
	const char *model, *text;       /* files; the text may be "-" */
	const char *out;                /* beside it lies what is too much for memory; NULL or "-": memory has to do */
	int ctx, jobs;                  /* tokens of a window; threads */
	uint64_t chunks;                /* windows; 0: all */
	double damp;                    /* below 0: what suits each type */
	bool measure;                   /* calibrated_result tells the error without feedback too */
};
struct calibration;
/* For the tensors and choices of re. The caller frees. */
struct calibration *calibrate(const struct remake *re, const struct calibrate_options *o);
/* Tensor i in its new type; NULL: it is not multiplied, or stays as it is. */
const void *calibrated(const struct calibration *c, size_t i);
/* What came of it, as recode tells. */
struct recode_result calibrated_result(const struct calibration *c, size_t i);
void calibrate_free(struct calibration *c);

#endif
