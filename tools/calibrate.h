/* SPDX-License-Identifier: MIT
 * calibrate.h - gguf-quantize --calibrate: quantizes tensors one after another in the order in which the model uses
 * them, each for the inputs that the part quantized so far gives it. Programs only; all failures exit 2 with a
 * message. */
#ifndef TOOLS_CALIBRATE_H
#define TOOLS_CALIBRATE_H
#include "../quant/remake.h"

struct calibrate_options {
	const char *model, *text;       /* files; the text may be "-" */
	const char *out;                /* streams and weights are in a file beside it; if it is no file: in memory */
	int ctx, jobs;                  /* tokens of a window; threads */
	uint64_t chunks;                /* windows; 0: all */
	double damp;                    /* below 0: chosen for each type */
	bool measure;                   /* measure the error without feedback too, for calibrated_result */
};
struct calibration;
/* Calibrates the tensors of re, with its choice of types. The caller frees the result. */
struct calibration *calibrate(const struct remake *re, const struct calibrate_options *o);
/* Tensor i in its new type; NULL: it is not used in a product, or stays as it is. */
const void *calibrated(const struct calibration *c, size_t i);
/* Its result, as from recode. */
struct recode_result calibrated_result(const struct calibration *c, size_t i);
void calibrate_free(struct calibration *c);

#endif
